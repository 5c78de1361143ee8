/* Leaves out of an export what the client has: finds those objects by the digests of their
 * components, and names them in the metadata of the file. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "derived/export_base.h"
#include "derived/export_work.h"
#include "zt/attributes.h"

static bool is_changed(const struct export_work *work)
{
    return work->result.left_out_count > 0;
}

bool export_must_compare(const struct export_work *work)
{
    const struct export_query *query = work->order.query;

    assert(work->chosen != NULL);
    /* A client with the current revision has every object. */
    if (query->base != NULL)
        return !export_base_is_current(work->order.generation, query->base);
    return export_lists_state(query->lists);
}

/* --- which objects --- */

/* Why an object may have to be sent. */
struct lack {
    bool is_lacking; /* the client does not state a component */
    bool is_changed; /* a component is not the same in the base */
};

static void note_lacks(const struct export_work *work, struct lack *lacks)
{
    const struct zt_projection *projection = work->projection;
    const struct export_lists *lists = work->order.query->lists;

    for (uint32_t i = 0; i < projection->model->component_count; i++) {
        const struct export_origin *origin = &work->selected[projection->origins[i].component];

        assert(work->chosen[origin->object]);
        if (work->fingerprints == NULL ||
            !export_lists_have(lists, work->fingerprints[i].digest.bytes))
            lacks[origin->object].is_lacking = true;
        if (work->unchanged == NULL || !work->unchanged[i])
            lacks[origin->object].is_changed = true;
    }
}

static bool is_in_base(const struct export_work *work, uint32_t object, bool is_changed)
{
    const struct generation *generation = work->order.generation;
    const struct generation *base = work->order.query->base;

    return base != NULL && (export_base_is_current(generation, base) ||
                            (!is_changed && export_base_has_object(generation, base, object)));
}

static bool client_has(const struct export_work *work, uint32_t object, const struct lack *lack)
{
    const struct zt_object *found = &work->order.generation->model->objects[object];

    /* Without components there is no digest that a client could state. */
    return (!lack->is_lacking && found->component_count > 0) ||
           is_in_base(work, object, lack->is_changed);
}

static void flag_left_out(struct export_work *work)
{
    const uint32_t count = work->order.generation->model->object_count;
    struct lack *lacks = calloc(count + (size_t)1, sizeof(*lacks));

    assert(work->left_out != NULL);
    if (lacks == NULL) {
        export_fail_memory(work);
        return;
    }
    note_lacks(work, lacks);
    for (uint32_t i = 0; i < count; i++) {
        if (!work->chosen[i] || !client_has(work, i, &lacks[i]))
            continue;
        work->left_out[i] = true;
        work->result.left_out_count++;
    }
    free(lacks);
}

void export_leave_out(struct export_work *work)
{
    assert(work->order.query->leaves_out && work->result.left_out_count == 0);
    assert(work->fingerprints != NULL || !export_must_compare(work));
    flag_left_out(work);
    free(work->fingerprints);
    free(work->unchanged);
    work->fingerprints = NULL;
    work->unchanged = NULL;
    if (is_changed(work))
        export_work_select(work);
}

/* --- their names --- */

void export_name_left_out(struct export_work *work)
{
    const struct zt_model *model = work->order.generation->model;
    struct zt_attribute_list list = {.key = EXPORT_LEFT_OUT,
                                     .is_json = work->order.query->target == ZT_TARGET_SAFETENSORS};
    struct zt_text *names = calloc(work->result.left_out_count + (size_t)1, sizeof(*names));
    struct zt_text attributes;
    struct zt_error error;

    assert(work->left_out != NULL && work->selection.model != NULL);
    if (names == NULL) {
        export_fail_memory(work);
        return;
    }
    for (uint32_t i = 0; i < model->object_count; i++)
        if (work->left_out[i])
            names[list.count++] = zt_object_name(&model->objects[i]);
    assert(list.count == work->result.left_out_count);
    list.texts = names;
    if (zt_attributes_with_list(model->attributes, &list, &attributes, &error) == ZT_OK) {
        free(work->attributes);
        work->attributes = (char *)(uintptr_t)attributes.bytes;
        work->selection.model->attributes = attributes;
    } else {
        export_fail(work, export_failure_of(error.status, EXPORT_NOT_REPRESENTABLE), &error);
    }
    free(names);
}
