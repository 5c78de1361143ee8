/* The life of a plan in the making, and how it fails. */
#include <stdlib.h>

#include "derived/export_making.h"

struct export_work *export_work_new(const struct export_order *order)
{
    struct export_work *work = calloc(1, sizeof(*work));

    if (work == NULL)
        return NULL;
    work->order = *order;
    generation_hold(order->generation);
    work->cut = order->query->cut.parts > 0 ? &order->query->cut : NULL;
    zt_error_clear(&work->result.error);
    pthread_mutex_init(&work->lock, NULL);
    return work;
}

void export_work_free(struct export_work *work)
{
    if (work == NULL)
        return;
    for (unsigned i = 0; i < EXPORT_RUNNERS; i++) {
        zt_source_close(work->runners[i].cuts);
        export_bytes_free(work->runners[i].bytes);
        free(work->runners[i].files);
    }
    zt_projection_free(work->projection);
    zt_selection_free(&work->selection);
    free(work->selected);
    free(work->facts);
    zt_file_plan_free(work->result.image);
    free(work->result.parts);
    pthread_mutex_destroy(&work->lock);
    generation_release(work->order.generation);
    free(work);
}

void export_work_take(struct export_work *work, struct export_result *out_result)
{
    *out_result = work->result;
    work->result.image = NULL;
    work->result.parts = NULL;
}

/* --- failing --- */

void export_fail(struct export_work *work, enum export_failure failure,
                 const struct zt_error *error)
{
    pthread_mutex_lock(&work->lock);
    if (!work->result.failed) {
        work->result.failed = true;
        work->result.failure = failure;
        work->result.error = *error;
    }
    pthread_mutex_unlock(&work->lock);
    atomic_store(&work->failed, true);
}

void export_fail_memory(struct export_work *work)
{
    struct zt_error error;

    zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an export");
    export_fail(work, EXPORT_ERROR, &error);
}

const struct zt_component *export_component_of(const struct export_work *work,
                                               const struct export_part *part)
{
    return &work->order.generation->model->components[part->component];
}

void export_fail_component(struct export_work *work, enum export_failure failure,
                           const struct export_part *part, const char *message)
{
    const struct zt_component *component = export_component_of(work, part);
    struct zt_error error;

    zt_fail(&error, failure == EXPORT_CORRUPT ? ZT_CORRUPT : ZT_UNSUPPORTED, NULL,
            component->offset, "%s", message);
    zt_error_at(&error, zt_object_name(&work->order.generation->model->objects[part->object]),
                zt_component_name(component));
    export_fail(work, failure, &error);
}

/* What a status means where a component is read (ours: unsupported), or a file laid out. */
enum export_failure export_failure_of(enum zt_status status, enum export_failure unsupported)
{
    switch (status) {
    case ZT_UNSUPPORTED:
    case ZT_LIMIT:
        return unsupported;
    case ZT_CORRUPT:
        return EXPORT_CORRUPT;
    case ZT_INVALID:
        return EXPORT_INVALID;
    default:
        return EXPORT_ERROR;
    }
}

/* Whether to go on. */
bool export_is_wanted(struct export_work *work)
{
    struct zt_error error;

    if (atomic_load(&work->failed))
        return false;
    if (work->order.wanted(work->order.context))
        return true;
    zt_fail(&error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is ending");
    export_fail(work, EXPORT_ENDING, &error);
    return false;
}
