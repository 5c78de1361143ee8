/* Components follow one another, each at the next multiple of the alignment, with only zeros
 * between them. */
#include "upload/writer/writer_layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct laying {
    struct writer_layout *layout;
    struct zt_assembly *assembly;
    struct failure *failure;
    bool failed;
};

static uint64_t aligned(uint64_t offset, uint64_t alignment)
{
    assert(alignment > 0);
    return (offset + alignment - 1) / alignment * alignment;
}

/* --- places --- */

static bool add_place(struct writer_layout *layout, struct writer_component *component)
{
    if (layout->count == layout->capacity &&
        zt_array_reserve(&layout->components, &layout->capacity, layout->count + 1,
                         sizeof(*layout->components), SIZE_MAX) != ZT_OK)
        return false;
    assert(layout->count < layout->capacity);
    layout->components[layout->count++] = component;
    return true;
}

static bool collect(void *context, const struct writer_object *object)
{
    struct laying *laying = context;

    for (struct writer_component *one = object->components; one != NULL && !laying->failed;
         one = one->next)
        laying->failed = !add_place(laying->layout, one);
    return !laying->failed;
}

static int compare_places(const void *a, const void *b)
{
    const struct writer_component *x = *(struct writer_component *const *)a;
    const struct writer_component *y = *(struct writer_component *const *)b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->length > y->length) - (x->length < y->length);
}

/* A component without bytes always gets the first offset that data may have. */
static void place_all(struct writer_layout *layout, const struct zt_places *places)
{
    uint64_t end = sizeof(places->head);

    layout->is_tight = true;
    for (size_t i = 0; i < layout->count; i++) {
        struct writer_component *component = layout->components[i];
        uint64_t offset = aligned(component->length > 0 ? end : 1, places->data_alignment);
        uint64_t component_end = offset + component->length;

        assert(component_end >= offset && offset % places->data_alignment == 0);
        component->final_offset = offset;
        layout->is_tight = layout->is_tight && offset == component->offset;
        end = component_end > end ? component_end : end;
    }
    layout->data_end = aligned(end, places->manifest_alignment);
}

/* --- the manifest --- */

static struct zt_digest stated(const struct zt_places *places,
                               const struct writer_component *component)
{
    struct zt_digest digest = {.algorithm = places->digest};

    digest.length_bytes = places->digest == ZT_DIGEST_SHA256 ? 32 : 8;
    assert(digest.length_bytes <= sizeof(component->stated));
    memcpy(digest.bytes, component->stated, digest.length_bytes);
    return digest;
}

static bool fail_laying(struct laying *laying, const struct zt_error *error)
{
    bool is_ours = error->status == ZT_NO_MEMORY;

    assert(error->status != ZT_OK);
    laying->failed = true;
    return failure_set(laying->failure, is_ours ? PROBLEM_INTERNAL : PROBLEM_INVALID_MODEL, error);
}

static bool add_component(struct laying *laying, const struct writer_component *component)
{
    const struct zt_places places = zt_target_places(laying->layout->session->target);
    const struct zt_assembly_component entry = {
        .name = writer_component_name(component),
        .dtype = (enum zt_dtype)component->dtype,
        .logical = (enum zt_logical)component->logical,
        .compressed = component->compressed,
        .offset = component->final_offset,
        .length = component->length,
        .decoded_length = component->decoded_length,
        .digest = stated(&places, component),
    };
    struct zt_error error;

    assert(component->final_offset + component->length <= laying->layout->data_end);
    return zt_assembly_component(laying->assembly, &entry, &error) == ZT_OK ||
           fail_laying(laying, &error);
}

/* An undeclared object is dense and has the shape of its data. */
static bool add_object(void *context, const struct writer_object *object)
{
    static const struct zt_text dense = {"dense", 5};
    struct laying *laying = context;
    const struct zt_declaration *declared = object->declared;
    const struct writer_component *data = writer_object_find(object, (struct zt_text){"data", 4});
    struct zt_shape shape = {.rank = 0};
    struct zt_assembly_object entry = {.name = object->name, .format = dense, .shape = &shape};
    struct zt_error error;

    if (declared != NULL && declared->shape.stated)
        shape = declared->shape;
    else if (data != NULL)
        shape = writer_component_shape(data);
    if (declared != NULL) {
        entry.format = declared->format;
        entry.attributes = declared->attributes;
    }
    if (zt_assembly_object(laying->assembly, &entry, &error) != ZT_OK)
        return fail_laying(laying, &error);
    for (const struct writer_component *one = object->components; one != NULL; one = one->next)
        if (!add_component(laying, one))
            return false;
    return true;
}

static bool assemble(struct laying *laying)
{
    struct writer_layout *layout = laying->layout;
    struct writer_session *session = layout->session;
    struct zt_error error;

    if (zt_assembly_new(session->target, session->attributes, &laying->assembly, &error) != ZT_OK)
        return fail_laying(laying, &error);
    writer_contents_walk(&session->contents, add_object, laying);
    return !laying->failed && ((zt_assembly_check(laying->assembly, &error) == ZT_OK &&
                                zt_assembly_end(laying->assembly, layout->data_end, &layout->end,
                                                &layout->end_length, &error) == ZT_OK) ||
                               fail_laying(laying, &error));
}

bool writer_layout_make(struct writer_session *session, struct writer_layout *out_layout,
                        struct failure *failure)
{
    struct writer_layout layout = {.session = session};
    struct laying laying = {.layout = &layout, .failure = failure};
    const struct zt_places places = zt_target_places(session->target);
    bool made = false;

    writer_contents_walk(&session->contents, collect, &laying);
    if (laying.failed) {
        failure_no_memory(failure, "the layout of an upload");
        goto out;
    }
    if (layout.count > 0)
        qsort(layout.components, layout.count, sizeof(*layout.components), compare_places);
    place_all(&layout, &places);
    made = assemble(&laying);
out:
    assert(!made || (layout.end != NULL && layout.end_length > 0));
    zt_assembly_free(laying.assembly);
    if (made)
        *out_layout = layout;
    else
        writer_layout_free(&layout);
    return made;
}

void writer_layout_free(struct writer_layout *layout)
{
    free(layout->components);
    free(layout->end);
    layout->components = NULL;
    layout->end = NULL;
}
