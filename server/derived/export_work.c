/* Makes the outline of an export: selects objects, cuts them, and projects them to the target
 * format without reading any data. It also creates and frees the work, and records its failure. */
#include "derived/export_work.h"

#include <assert.h>
#include <stdlib.h>

#include "base/glob.h"
#include "selection/matches.h"
#include "zt/decode.h"

/* Selecting and projecting the objects of a larger manifest may take longer than about 10 ms. */
#define LONG_MANIFEST_BYTES 262144

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

void export_runner_close(struct export_runner *runner)
{
    zt_source_close(runner->cuts);
    export_bytes_free(runner->bytes);
    free(runner->files);
    runner->cuts = NULL;
    runner->bytes = NULL;
    runner->files = NULL;
}

void export_work_free(struct export_work *work)
{
    if (work == NULL)
        return;
    for (unsigned i = 0; i < EXPORT_RUNNERS; i++)
        export_runner_close(&work->runners[i]);
    zt_projection_free(work->projection);
    zt_selection_free(&work->selection);
    free(work->selected);
    free(work->chosen);
    free(work->left_out);
    free(work->unchanged);
    free(work->attributes);
    free(work->axes);
    free(work->fingerprints);
    zt_file_plan_free(work->result.file);
    free(work->result.origins);
    pthread_mutex_destroy(&work->lock);
    generation_release(work->order.generation);
    free(work);
}

void export_work_take(struct export_work *work, struct export_result *out_result)
{
    assert(work->result.failed || work->projection != NULL);
    *out_result = work->result;
    work->result.file = NULL;
    work->result.origins = NULL;
}

/* --- failure --- */

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
                                               const struct export_origin *origin)
{
    return &work->order.generation->model->components[origin->component];
}

void export_fail_component(struct export_work *work, enum export_failure failure,
                           const struct export_origin *origin, const char *message)
{
    const struct zt_component *component = export_component_of(work, origin);
    struct zt_error error;

    zt_fail(&error,
            failure == EXPORT_CORRUPT ? ZT_CORRUPT
            : failure == EXPORT_ERROR ? ZT_UNAVAILABLE
                                      : ZT_UNSUPPORTED,
            NULL, component->offset, "%s", message);
    zt_error_at(&error, zt_object_name(&work->order.generation->model->objects[origin->object]),
                zt_component_name(component));
    export_fail(work, failure, &error);
}

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

bool export_is_wanted(struct export_work *work)
{
    struct zt_error error;

    if (atomic_load(&work->failed))
        return false;
    if (work->order.wanted(work->order.context))
        return true;
    zt_fail(&error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
    export_fail(work, EXPORT_ENDING, &error);
    return false;
}

/* --- objects --- */

static bool names_objects(const struct export_query *query)
{
    return query->lists != NULL && query->lists->name_count > 0;
}

static bool is_chosen(const struct export_query *query, struct glob_set *globs, struct zt_text name)
{
    if (!zt_text_starts_with(name, query->prefix))
        return false;
    if (globs == NULL && !names_objects(query))
        return true;
    return (globs != NULL && glob_set_matches(globs, name)) ||
           export_lists_name(query->lists, name);
}

static bool is_in_range(const struct export_query *query, uint32_t object)
{
    return query->count == 0 || (object >= query->first && object - query->first < query->count);
}

/* Marks the objects that the query selects and returns their number. globs is NULL for any name. */
static uint32_t mark_objects(const struct export_work *work, struct glob_set *globs, bool *chosen)
{
    const struct zt_model *model = work->order.generation->model;
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->object_count; i++)
        count += chosen[i] =
            is_in_range(work->order.query, i) &&
            is_chosen(work->order.query, globs, zt_object_name(&model->objects[i]));
    return count;
}

static void fail_empty(struct export_work *work)
{
    const struct export_query *query = work->order.query;
    struct zt_error error;

    matches_fail_all(query->prefix, query->matches, query->match_count,
                     work->order.generation->model, &error);
    export_fail(work, EXPORT_NO_OBJECT, &error);
}

/* Records a failure of matches_check or axis_rules_apply. */
static void fail_selection(struct export_work *work, const struct zt_error *error)
{
    if (error->status == ZT_NOT_FOUND)
        export_fail(work, EXPORT_RULE_UNUSED, error);
    else
        export_fail(work, export_failure_of(error->status, EXPORT_NOT_REPRESENTABLE), error);
}

/* Checks that each name is one of an object below the prefix. */
static enum zt_status check_names(const struct export_work *work, struct zt_error *error)
{
    const struct export_query *query = work->order.query;

    for (size_t i = 0; names_objects(query) && i < query->lists->name_count; i++) {
        const struct zt_text name = query->lists->names[i];

        if (!zt_text_starts_with(name, query->prefix) ||
            zt_model_find(work->order.generation->model, name) == NULL)
            return match_fail("objects", name, error);
    }
    return ZT_OK;
}

/* Checks that every glob and every name selects an object. */
static enum zt_status check_used(const struct export_work *work, struct zt_error *error)
{
    const struct export_query *query = work->order.query;
    const enum zt_status status = matches_check(query->prefix, query->matches, query->match_count,
                                                work->order.generation->model, error);

    return status == ZT_OK ? check_names(work, error) : status;
}

/* Sets a flag for each object of the model. Returns false if the work has failed. */
static bool choose_objects(struct export_work *work)
{
    const struct export_query *query = work->order.query;
    bool *chosen = calloc(work->order.generation->model->object_count + (size_t)1, sizeof(*chosen));
    struct glob_set *globs =
        query->match_count > 0 ? glob_set_new(query->matches, query->match_count) : NULL;
    uint32_t count = 0;
    struct zt_error error;

    if (chosen == NULL || (globs == NULL && query->match_count > 0)) {
        export_fail_memory(work);
        goto out;
    }
    count = mark_objects(work, globs, chosen);
    if (count == 0 && (query->match_count > 0 || query->prefix.length > 0) && !names_objects(query))
        fail_empty(work);
    else if (check_used(work, &error) != ZT_OK)
        fail_selection(work, &error);
out:
    glob_set_free(globs);
    work->chosen = chosen;
    return !atomic_load(&work->failed);
}

/* Returns false if the work has failed. */
static bool find_axes(struct export_work *work)
{
    const struct export_query *query = work->order.query;
    const struct zt_model *model = work->order.generation->model;
    struct zt_error error;

    if (work->cut == NULL)
        return true;
    if (query->rule_count == 0 && work->cut->parts > 1)
        work->result.suggestion = axis_set_suggest(model);
    if (axis_rules_apply(query->rules, query->rule_count, model, work->chosen, &work->axes,
                         &error) == ZT_OK)
        return true;
    fail_selection(work, &error);
    return false;
}

/* A CBOR map. */
static const char torch_attributes[] = "\xa1\x66"
                                       "format"
                                       "\x62"
                                       "pt";

/* Returns a flag for each object of the model. Returns NULL if out of memory. */
static bool *flag_wanted(const struct export_work *work)
{
    const uint32_t count = work->order.generation->model->object_count;
    bool *wanted = calloc(count + (size_t)1, sizeof(*wanted));

    for (uint32_t i = 0; wanted != NULL && i < count; i++)
        wanted[i] = work->chosen[i] && (work->left_out == NULL || !work->left_out[i]);
    return wanted;
}

static void select_flagged(struct export_work *work, const bool *wanted)
{
    const struct zt_model *model = work->order.generation->model;
    const struct zt_choice choice = {wanted, work->cut, work->axes, work->order.query->to_f32};
    struct zt_error error;
    enum zt_status status;

    status = zt_model_select(model, &choice, &work->selection, &work->result.verdict, &error);
    if (status == ZT_ARGUMENT)
        export_fail(work, EXPORT_NOT_CUT, &error);
    else if (status != ZT_OK)
        export_fail(work, export_failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
    else if (work->order.query->is_for_torch)
        work->selection.model->attributes =
            (struct zt_text){torch_attributes, sizeof(torch_attributes) - 1};
    else if (work->order.query->leaves_out)
        export_name_left_out(work);
}

static void select_wanted(struct export_work *work)
{
    bool *wanted = flag_wanted(work);

    if (wanted == NULL)
        export_fail_memory(work);
    else
        select_flagged(work, wanted);
    free(wanted);
}

static void choose(struct export_work *work)
{
    const uint32_t count = work->order.generation->model->object_count;

    if (!choose_objects(work) || !find_axes(work) || !work->order.query->leaves_out)
        return;
    work->left_out = calloc(count + (size_t)1, sizeof(*work->left_out));
    if (work->left_out == NULL)
        export_fail_memory(work);
}

/* Returns the axis along which an object of the generation is cut. */
static int64_t axis_of(const struct export_work *work, uint32_t object)
{
    return work->axes != NULL ? work->axes[object] : ZT_AXIS_NONE;
}

/* Returns how the selection widens an object of the generation; it widens only objects that it
 * cuts. */
static struct zt_widening widening_of(const struct export_work *work, uint32_t object)
{
    const struct zt_model *model = work->order.generation->model;

    if (axis_of(work, object) == ZT_AXIS_NONE || !work->order.query->to_f32)
        return (struct zt_widening){.widener = NULL};
    return zt_widening_to_f32(model, &model->objects[object]);
}

/* Finds the component of the generation for each component of the selection. */
static void list_selected(struct export_work *work)
{
    const struct zt_model *model = work->selection.model;

    assert(model != NULL && work->selected == NULL);
    work->selected = calloc(model->component_count + (size_t)1, sizeof(*work->selected));
    if (work->selected == NULL) {
        export_fail_memory(work);
        return;
    }
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        for (uint32_t j = object->first_component;
             j < object->first_component + object->component_count; j++)
            work->selected[j] =
                (struct export_origin){.object = work->selection.objects[i],
                                       .component = work->selection.components[j],
                                       .widening = widening_of(work, work->selection.objects[i]),
                                       .axis = axis_of(work, work->selection.objects[i])};
    }
}

/* --- encodings and target --- */

/* Returns true if the component is decoded through the bounded cache of decoded components. */
static bool is_cached(const struct zt_component *component)
{
    struct zt_slice whole;

    return !zt_component_is_plain(component) && component->encoding != ZT_ENCODING_ZSTD_SEEKABLE &&
           !zt_slice_of_view(NULL, component, &whole);
}

bool export_is_too_large(struct export_work *work, const struct export_origin *origin,
                         uint64_t length)
{
    if (!is_cached(export_component_of(work, origin)) || length == ZT_LENGTH_UNKNOWN ||
        length <= (uint64_t)config_number(&work->order.server->config->limits.decoded_bytes))
        return false;
    export_fail_component(work, EXPORT_UNSUPPORTED_ENCODING, origin,
                          "its decoded size exceeds this server's limits.decoded_bytes");
    return true;
}

static void check_encodings(struct export_work *work)
{
    for (uint32_t i = 0; i < work->selection.model->component_count && !atomic_load(&work->failed);
         i++) {
        const struct export_origin *origin = &work->selected[i];
        const struct zt_component *component = export_component_of(work, origin);

        if (component->encoding == ZT_ENCODING_UNKNOWN)
            export_fail_component(work, EXPORT_UNSUPPORTED_ENCODING, origin,
                                  "its encoding cannot be decoded here");
        else
            (void)export_is_too_large(work, origin, component->decoded_length);
    }
}

static void project(struct export_work *work)
{
    struct zt_error error;
    const struct export_query *query = work->order.query;
    enum zt_status status = (query->to_f32 ? zt_model_project_widened : zt_model_project)(
        work->selection.model, query->target, &work->projection, &error);

    if (status != ZT_OK)
        export_fail(work, export_failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
}

void export_work_select(struct export_work *work)
{
    static void (*const stages[])(struct export_work * work) = {select_wanted, list_selected,
                                                                check_encodings, project};

    zt_projection_free(work->projection);
    zt_selection_free(&work->selection);
    free(work->selected);
    work->projection = NULL;
    work->selection = (struct zt_selection){.model = NULL};
    work->selected = NULL;
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && export_is_wanted(work); i++)
        stages[i](work);
}

void export_work_make_outline(struct export_work *work)
{
    if (export_is_wanted(work))
        choose(work);
    if (!atomic_load(&work->failed))
        export_work_select(work);
    if (work->order.query->leaves_out && !atomic_load(&work->failed) && !export_must_compare(work))
        export_leave_out(work);
}

static void run_outline(struct job *job)
{
    struct export_work *work = (struct export_work *)job;

    export_work_make_outline(work);
    work->order.ended(work->order.context);
}

void export_work_outline(struct export_work *work)
{
    const struct generation *generation = work->order.generation;

    work->job.run = run_outline;
    work->job.client = work->order.client;
    if (generation->model->manifest_length > LONG_MANIFEST_BYTES)
        workers_submit_long(server_waiters(work->order.server), &work->job);
    else
        workers_submit(server_waiters(work->order.server), &work->job);
}

void export_work_share(struct export_work *work, uint64_t client)
{
    struct workers *workers = server_waiters(work->order.server);

    workers_share(workers, &work->job, client);
    for (unsigned i = 0; i < EXPORT_RUNNERS; i++)
        workers_share(workers, &work->runners[i].job, client);
}
