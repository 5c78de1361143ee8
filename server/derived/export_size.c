/* Lays out the outline of an export by the lengths that its source states. */
#include "derived/export_size.h"

#include <assert.h>
#include <stdlib.h>

#include "derived/export_work.h"

static bool is_always_wanted(void *context)
{
    (void)context;
    return true;
}

static enum zt_status plan_by_lengths(const struct export_work *work,
                                      struct zt_file_plan **out_plan, struct zt_error *error)
{
    const struct zt_model *model = work->projection->model;
    struct zt_fingerprint *fingerprints =
        calloc(model->component_count + (size_t)1, sizeof(*fingerprints));
    enum zt_status status = ZT_OK;

    if (fingerprints == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an export");
    for (uint32_t i = 0; i < model->component_count && status == ZT_OK; i++) {
        fingerprints[i] =
            (struct zt_fingerprint){.length = model->components[i].decoded_length, .same_as = i};
        if (fingerprints[i].length == ZT_LENGTH_UNKNOWN)
            status = zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "a length is not stated");
    }
    if (status == ZT_OK)
        status = zt_file_plan_make(work->projection, fingerprints, out_plan, error);
    free(fingerprints);
    return status;
}

static enum zt_status status_of(const struct export_result *result, struct zt_error *error)
{
    *error = result->error;
    return result->error.status == ZT_NO_MEMORY ? ZT_NO_MEMORY : ZT_UNSUPPORTED;
}

enum zt_status export_size(struct server *server, struct generation *generation,
                           const struct export_query *query, uint64_t *out_length,
                           struct zt_error *error)
{
    const struct export_order order = {
        .server = server, .generation = generation, .query = query, .wanted = is_always_wanted};
    struct export_work *work = export_work_new(&order);
    struct zt_file_plan *plan = NULL;
    enum zt_status status;

    assert(query->cut.parts == 0);
    if (work == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an export");
    export_work_make_outline(work);
    status =
        work->result.failed ? status_of(&work->result, error) : plan_by_lengths(work, &plan, error);
    if (status == ZT_OK)
        *out_length = plan->length;
    zt_file_plan_free(plan);
    export_work_free(work);
    return status;
}
