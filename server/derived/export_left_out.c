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
    if (!query->leaves_out ||
        (query->base.length > 0 && export_base_is_current(work->order.generation, query->base)))
        return false;
    return query->base.length > 0 || (query->lists != NULL && query->lists->have_count > 0);
}

/* --- which objects --- */

/* Flags the objects of which the client lacks a component. */
static void flag_lacking(const struct export_work *work, bool *lacking)
{
    const struct zt_projection *projection = work->projection;

    for (uint32_t i = 0; i < projection->model->component_count; i++) {
        const struct export_origin *origin = &work->selected[projection->origins[i].component];

        assert(work->chosen[origin->object]);
        if (work->fingerprints == NULL ||
            !export_lists_have(work->order.query->lists, work->fingerprints[i].digest.bytes))
            lacking[origin->object] = true;
    }
}

static bool client_has(const struct export_work *work, uint32_t object, bool is_lacking)
{
    const struct export_query *query = work->order.query;
    const struct generation *generation = work->order.generation;
    const struct zt_object *found = &generation->model->objects[object];

    /* Without components there is no digest to compare. */
    if (!is_lacking && found->component_count > 0)
        return true;
    return query->base.length > 0 &&
           export_base_has_object(generation, query->base, zt_object_name(found));
}

static void flag_left_out(struct export_work *work)
{
    const uint32_t count = work->order.generation->model->object_count;
    bool *lacking = calloc(count + (size_t)1, sizeof(*lacking));

    assert(work->left_out != NULL);
    if (lacking == NULL) {
        export_fail_memory(work);
        return;
    }
    flag_lacking(work, lacking);
    for (uint32_t i = 0; i < count; i++) {
        if (!work->chosen[i] || !client_has(work, i, lacking[i]))
            continue;
        work->left_out[i] = true;
        work->result.left_out_count++;
    }
    free(lacking);
}

void export_leave_out(struct export_work *work)
{
    assert(work->order.query->leaves_out && work->result.left_out_count == 0);
    assert(work->fingerprints != NULL || !export_must_compare(work));
    flag_left_out(work);
    free(work->fingerprints);
    work->fingerprints = NULL;
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
