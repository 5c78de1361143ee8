/* A finished model: sorting and finding entries by name, properties of a single component,
 * positions in the file, and freeing. */
#include "zt/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/index_sort.h"
#include "model/locate.h"
#include "model/model_build.h"
#include "model/name_sort.h"
#include "zt/digest.h"
#include "zt/dtype.h"

void zt_model_free(struct zt_model *model)
{
    if (model == NULL)
        return;
    /* The builder allocated these arrays; they are const for everyone else. */
    free((void *)(uintptr_t)model->objects);
    free((void *)(uintptr_t)model->components);
    free((void *)(uintptr_t)model->dimensions);
    free((void *)(uintptr_t)model->shards);
    if (model->storage != NULL) {
        zt_arena_free(&model->storage->arena);
        free(model->storage->manifest);
        free(model->storage);
    }
    free(model);
}

const struct zt_object *zt_model_find(const struct zt_model *model, struct zt_text name)
{
    struct zt_named_array objects = zt_objects_named(model->objects, model->object_count);

    return zt_names_find(&objects, name);
}

const struct zt_component *zt_object_find(const struct zt_model *model,
                                          const struct zt_object *object, struct zt_text name)
{
    struct zt_named_array components =
        zt_components_named(zt_object_components(model, object), object->component_count);

    return zt_names_find(&components, name);
}

uint64_t zt_object_elements(const struct zt_model *model, const struct zt_object *object)
{
    const uint64_t *shape = zt_object_shape(model, object);
    uint64_t elements = 1;

    for (unsigned i = 0; i < object->rank; i++)
        elements *= shape[i];
    return elements;
}

bool zt_model_elements(const struct zt_model *model, uint64_t *out_elements)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < model->object_count; i++)
        if (__builtin_add_overflow(sum, zt_object_elements(model, &model->objects[i]), &sum))
            return false;
    *out_elements = sum;
    return true;
}

uint64_t zt_manifest_position(const struct zt_model *model, const void *text)
{
    const struct zt_model_storage *storage = model->storage;
    const uint8_t *at = text;

    if (storage == NULL || storage->manifest == NULL || at < storage->manifest ||
        at >= storage->manifest + model->manifest_length)
        return ZT_NO_OFFSET;
    return model->manifest_offset + (uint64_t)(at - storage->manifest);
}

const struct zt_object *zt_component_owner(const struct zt_model *model,
                                           const struct zt_component *component)
{
    uint32_t index = zt_component_index(model, component);

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        if (index >= object->first_component &&
            index - object->first_component < object->component_count)
            return object;
    }
    return NULL;
}

/* --- what follows from a component's fields --- */

bool zt_component_is_swapped(const struct zt_component *component)
{
    return component->big_endian && zt_dtype_width((enum zt_dtype)component->dtype) > 1;
}

bool zt_component_is_transposed(const struct zt_component *component)
{
    const struct zt_arrangement *arrangement = component->arrangement;
    unsigned wide = 0;

    if (arrangement == NULL || !arrangement->fortran)
        return false;
    for (unsigned i = 0; i < arrangement->rank; i++)
        wide += arrangement->shape[i] != 1;
    return wide > 1;
}

bool zt_component_is_plain(const struct zt_component *component)
{
    return component->encoding == ZT_ENCODING_RAW && !zt_component_is_swapped(component) &&
           !zt_component_is_transposed(component);
}

bool zt_digest_covers_stored(const struct zt_model *model)
{
    return model->format != ZT_FORMAT_ZT2;
}

bool zt_digest_covers_entries(const struct zt_model *model)
{
    return model->format == ZT_FORMAT_NPZ || model->format == ZT_FORMAT_PYTORCH;
}

static struct zt_text digest_text(const struct zt_component *component)
{
    return (struct zt_text){component->digest, component->digest_length};
}

enum zt_status zt_component_digest(const struct zt_model *model,
                                   const struct zt_component *component,
                                   struct zt_digest *out_digest, struct zt_error *error)
{
    if (component->digest == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "the component states no digest");
    if (zt_digest_covers_entries(model))
        return zt_digest_parse_zip(digest_text(component), out_digest, error);
    return zt_digest_parse(digest_text(component), out_digest, error);
}

bool zt_component_decoded_sha256(const struct zt_model *model, const struct zt_component *component,
                                 uint8_t out_sha256[32])
{
    struct zt_digest digest;

    if (zt_component_digest(model, component, &digest, NULL) != ZT_OK)
        return false;
    if (digest.algorithm != ZT_DIGEST_SHA256)
        return false;
    if (zt_digest_covers_stored(model) && !zt_component_is_plain(component))
        return false;
    assert(digest.length_bytes == 32);
    memcpy(out_sha256, digest.bytes, 32);
    return true;
}

/* --- entries by name: an index is sorted first, then they are permuted in place --- */

struct zt_text zt_names_at(const struct zt_named_array *array, size_t place)
{
    const char *entry = (const char *)array->entries + place * array->stride;
    const char *name;
    uint32_t length;

    assert(place < array->count);
    memcpy(&name, entry, sizeof(name));
    memcpy(&length, entry + array->length_at, sizeof(length));
    return (struct zt_text){name, length};
}

static bool is_after(const void *array, uint32_t a, uint32_t b)
{
    return zt_text_compare(zt_names_at(array, a), zt_names_at(array, b)) > 0;
}

static bool is_sorted(const struct zt_named_array *array)
{
    for (size_t i = 1; i < array->count; i++)
        if (is_after(array, (uint32_t)i - 1, (uint32_t)i))
            return false;
    return true;
}

/* Moves every entry to its place, one cycle at a time. index[place] is the entry that belongs
 * there; held has room for one entry. */
static void permute(const struct zt_named_array *array, uint32_t *index, void *held)
{
    char *entries = array->entries;
    size_t stride = array->stride;

    for (size_t start = 0; start < array->count; start++) {
        size_t place;

        assert(index[start] < array->count);
        if (index[start] == start)
            continue;
        memcpy(held, entries + start * stride, stride);
        place = start;
        while (index[place] != start) {
            size_t source = index[place];

            memcpy(entries + place * stride, entries + source * stride, stride);
            index[place] = (uint32_t)place;
            place = source;
        }
        memcpy(entries + place * stride, held, stride);
        index[place] = (uint32_t)place;
    }
}

enum zt_status zt_names_sort(const struct zt_named_array *array, struct zt_error *error)
{
    const struct zt_index_order order = {is_after, array};
    uint32_t *index = NULL;
    void *held;

    assert(array->count <= UINT32_MAX && array->length_at + sizeof(uint32_t) <= array->stride);
    if (is_sorted(array))
        return ZT_OK;
    held = malloc(array->stride);
    if (held == NULL || zt_index_make((uint32_t)array->count, &order, &index) != ZT_OK) {
        free(held);
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    }
    permute(array, index, held);
    free(index);
    free(held);
    return ZT_OK;
}

size_t zt_names_duplicate(const struct zt_named_array *array)
{
    for (size_t i = 1; i < array->count; i++)
        if (zt_text_compare(zt_names_at(array, i - 1), zt_names_at(array, i)) == 0)
            return i;
    return 0;
}

void *zt_names_find(const struct zt_named_array *array, struct zt_text name)
{
    size_t low = 0;
    size_t high = array->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = zt_text_compare(zt_names_at(array, middle), name);

        if (order == 0)
            return (char *)array->entries + middle * array->stride;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == high);
    return NULL;
}
