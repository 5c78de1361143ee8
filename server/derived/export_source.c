/* Lays out the outline of an export by the stated lengths of its components, and reads it. */
#include "derived/export_source.h"

#include <assert.h>
#include <stdlib.h>

#include "derived/export_work.h"

struct export_source {
    struct zt_source base; /* first */
    struct server *server;
    struct generation *generation; /* held by the work */
    struct export_query query;
    struct export_work *work;
    struct zt_file_plan *plan;
    struct export_origin *origins; /* one per component of the plan */
    struct export_bytes *bytes;
    struct zt_source *file;
};

static struct export_source *of(const struct zt_source *source)
{
    return (struct export_source *)(uintptr_t)source;
}

/* --- as a source --- */

static uint64_t size(const struct zt_source *source)
{
    return of(source)->plan->length;
}

static enum zt_status read_at(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error)
{
    return zt_source_read_at(of(source)->file, offset, buffer, length, error);
}

static const uint8_t *map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void close_export(struct zt_source *source)
{
    struct export_source *self = of(source);

    zt_source_close(self->file);
    export_bytes_free(self->bytes);
    free(self->origins);
    zt_file_plan_free(self->plan);
    export_work_free(self->work);
    free(self);
}

static enum zt_status read_component(void *context, uint32_t component, uint64_t offset,
                                     void *buffer, size_t length, struct zt_error *error)
{
    const struct export_source *self = context;
    struct zt_error own;

    return export_bytes_read(self->bytes, &self->origins[component], offset,
                             (struct export_buffer){buffer, length}, error != NULL ? error : &own);
}

/* --- laying it out --- */

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
        return zt_fail_memory(error, "an export");
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

/* The caller owns the work and the plan afterwards, even on failure. */
static enum zt_status lay_out(struct export_source *self, struct zt_error *error)
{
    const struct export_order order = {.server = self->server,
                                       .generation = self->generation,
                                       .query = &self->query,
                                       .wanted = is_always_wanted};

    assert(self->query.cut.parts == 0);
    self->work = export_work_new(&order);
    if (self->work == NULL)
        return zt_fail_memory(error, "an export");
    export_work_make_outline(self->work);
    return self->work->result.failed ? status_of(&self->work->result, error)
                                     : plan_by_lengths(self->work, &self->plan, error);
}

enum zt_status export_size(struct server *server, struct generation *generation,
                           const struct export_query *query, uint64_t *out_length,
                           struct zt_error *error)
{
    struct export_source self = {.server = server, .generation = generation, .query = *query};
    const enum zt_status status = lay_out(&self, error);

    if (status == ZT_OK)
        *out_length = self.plan->length;
    zt_file_plan_free(self.plan);
    export_work_free(self.work);
    return status;
}

/* --- opening --- */

static enum zt_status open_bytes(struct export_source *self, struct zt_error *error)
{
    const struct zt_component_bytes bytes = {read_component, self};

    self->origins = export_work_origins(self->work);
    self->bytes = export_bytes_new(self->server, self->generation, NULL, self->query.to_f32);
    if (self->origins == NULL || self->bytes == NULL)
        return zt_fail_memory(error, "an export");
    return zt_file_plan_source(self->plan, &bytes, &self->file, error);
}

enum zt_status export_source_open(struct server *server, struct generation *generation,
                                  const struct export_query *query, struct zt_source **out_source,
                                  struct zt_error *error)
{
    static const struct zt_source_ops ops = {
        .size = size, .read_at = read_at, .map = map, .close = close_export};
    struct export_source *self = calloc(1, sizeof(*self));
    enum zt_status status;

    assert(query->match_count == 0 && query->rule_count == 0 && query->prefix.length == 0);
    if (self == NULL)
        return zt_fail_memory(error, "an export");
    self->base.ops = &ops;
    self->server = server;
    self->generation = generation;
    self->query = *query;
    status = lay_out(self, error);
    if (status == ZT_OK)
        status = open_bytes(self, error);
    if (status == ZT_OK)
        *out_source = &self->base;
    else
        close_export(&self->base);
    return status;
}

bool export_source_is_still(struct zt_source *source)
{
    return generation_is_same(of(source)->generation);
}
