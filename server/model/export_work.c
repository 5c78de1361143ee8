/* The stages of a plan: select and project; verify and read what must be read, several components at once; check
 * content, find equal bytes, lay the file out.
 *
 * No job waits for another: a runner whose component is being verified ends, and is queued again by whoever verified
 * it. After a while of reading it queues itself, so that exports do not keep others from the workers. */
#include "model/export_work.h"

#include <stdlib.h>
#include <string.h>

#include "model/glob.h"
#include "model/verifier.h"
#include "model/verifier_runs.h"
#include "zt/convert.h"
#include "zt/decode.h"

/* Components in flight: enough for a few disks and processors. */
#define RUNNERS 4
#define NONE    UINT32_MAX
/* What a runner reads before others have their turn: about 0.1 s. */
#define TURN_BYTES ((uint64_t)64 << 20)
/* Up to this a job of its own costs more than the hashing. */
#define SMALL_BYTES ((uint64_t)1 << 20)

struct runner {
    struct job job; /* first: the job is the structure */
    struct waiter waiter;
    struct export_work *work;
    uint32_t component; /* of the outline, at hand; NONE */
    uint64_t spent_bytes;
    struct export_bytes *bytes;
    struct zt_source *cuts;
    struct zt_source **files; /* as struct zt_conversion has them, and the cuts */
};

struct export_work {
    struct job job;
    struct export_order order;
    const struct zt_cut *cut;
    struct zt_selection selection;
    struct export_part *selected; /* of each of the selection's components */
    struct zt_projection *projection;
    struct zt_fact *facts;
    atomic_uint next; /* component that no runner has taken yet */
    atomic_uint running;
    struct runner runners[RUNNERS];
    pthread_mutex_t lock; /* of the failure: the first one counts */
    atomic_bool failed;
    struct export_result result;
};

struct export_work *export_work_new(const struct export_order *order)
{
    struct export_work *work = calloc(1, sizeof *work);

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
    for (unsigned i = 0; i < RUNNERS; i++) {
        zt_source_close(work->runners[i].cuts);
        export_bytes_free(work->runners[i].bytes);
        free(work->runners[i].files);
    }
    zt_projection_free(work->projection);
    zt_selection_free(&work->selection);
    free(work->selected);
    free(work->facts);
    zt_image_free(work->result.image);
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

static void fail(struct export_work *work, enum export_failure failure, const struct zt_error *error)
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

static void fail_memory(struct export_work *work)
{
    struct zt_error error;

    zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an export");
    fail(work, EXPORT_ERROR, &error);
}

static const struct zt_component *component_of(const struct export_work *work, const struct export_part *part)
{
    return &work->order.generation->model->components[part->component];
}

static void fail_component(struct export_work *work, enum export_failure failure, const struct export_part *part,
                           const char *message)
{
    const struct zt_component *component = component_of(work, part);
    struct zt_error error;

    zt_fail(&error, failure == EXPORT_CORRUPT ? ZT_CORRUPT : ZT_UNSUPPORTED, NULL, component->offset, "%s", message);
    zt_error_at(&error, zt_object_name(&work->order.generation->model->objects[part->object]),
                zt_component_name(component));
    fail(work, failure, &error);
}

/* What a status means where a component is read (ours: unsupported), or a file laid out. */
static enum export_failure failure_of(enum zt_status status, enum export_failure unsupported)
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
static bool is_wanted(struct export_work *work)
{
    struct zt_error error;

    if (atomic_load(&work->failed))
        return false;
    if (work->order.wanted(work->order.context))
        return true;
    zt_fail(&error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is ending");
    fail(work, EXPORT_ENDING, &error);
    return false;
}

/* --- outline --- */

static bool matches(const struct export_query *query, struct zt_text name)
{
    if (name.length < query->prefix.length ||
        (query->prefix.length > 0 && memcmp(name.bytes, query->prefix.bytes, query->prefix.length) != 0))
        return false;
    for (size_t i = 0; i < query->match_count; i++)
        if (glob_match(query->matches[i], name))
            return true;
    return query->match_count == 0;
}

/* NULL: failed. */
static bool *choose_objects(struct export_work *work)
{
    const struct zt_model *model = work->order.generation->model;
    const struct export_query *query = work->order.query;
    bool *chosen = calloc(model->object_count + (size_t)1, sizeof *chosen);
    uint32_t count = 0;
    struct zt_error error;

    if (chosen == NULL) {
        fail_memory(work);
        return NULL;
    }
    for (uint32_t i = 0; i < model->object_count; i++)
        count += chosen[i] = matches(query, zt_object_name(&model->objects[i]));
    if (count > 0 || (query->match_count == 0 && query->prefix.length == 0))
        return chosen;
    zt_fail(&error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no object of the model has such a name");
    fail(work, EXPORT_NO_OBJECT, &error);
    free(chosen);
    return NULL;
}

static void select_objects(struct export_work *work)
{
    const struct zt_model *model = work->order.generation->model;
    bool *chosen = choose_objects(work);
    const struct zt_choice choice = {chosen, work->cut};
    struct zt_error error;
    enum zt_status status;

    if (chosen == NULL)
        return;
    status = zt_model_select(model, &choice, &work->selection, &work->result.verdict, &error);
    free(chosen);
    if (status == ZT_ARGUMENT)
        fail(work, EXPORT_NOT_CUT, &error);
    else if (status != ZT_OK)
        fail(work, failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
}

/* Which components of the generation those of the selection are, and of which objects. */
static void list_selected(struct export_work *work)
{
    const struct zt_model *model = work->selection.model;

    work->selected = calloc(model->component_count + (size_t)1, sizeof *work->selected);
    if (work->selected == NULL) {
        fail_memory(work);
        return;
    }
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        for (uint32_t j = object->first_component; j < object->first_component + object->component_count; j++)
            work->selected[j] =
                (struct export_part){work->selection.objects[i], work->selection.components[j], 0, 0, false};
    }
}

/* Through the cache of decoded components, which has bounds. */
static bool is_cached(const struct zt_component *component)
{
    return !zt_component_is_plain(component) && component->encoding != ZT_ENCODING_ZSTD_SEEKABLE;
}

static bool is_too_large(const struct export_work *work, const struct zt_component *component, uint64_t length)
{
    return is_cached(component) && length != ZT_LENGTH_UNKNOWN &&
           length > (uint64_t)work->order.server->config->limits.decoded_bytes;
}

#define TOO_LARGE "decoded it would be larger than limits.decoded_bytes of this server allows"

static void check_encodings(struct export_work *work)
{
    for (uint32_t i = 0; i < work->selection.model->component_count && !atomic_load(&work->failed); i++) {
        const struct export_part *part = &work->selected[i];
        const struct zt_component *component = component_of(work, part);

        if (component->encoding == ZT_ENCODING_UNKNOWN)
            fail_component(work, EXPORT_UNSUPPORTED_ENCODING, part, "its encoding cannot be decoded here");
        else if (is_too_large(work, component, component->decoded_length))
            fail_component(work, EXPORT_UNSUPPORTED_ENCODING, part, TOO_LARGE);
    }
}

static void project(struct export_work *work)
{
    struct zt_error error;
    enum zt_status status =
        zt_model_project(work->selection.model, work->order.query->target, &work->projection, &error);

    if (status != ZT_OK)
        fail(work, failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
}

static void run_outline(struct job *job)
{
    static void (*const stages[])(struct export_work * work) = {select_objects, list_selected, check_encodings,
                                                                project};
    struct export_work *work = (struct export_work *)job;

    for (size_t i = 0; i < sizeof stages / sizeof stages[0] && is_wanted(work); i++)
        stages[i](work);
    work->order.ended(work->order.context);
}

void export_work_outline(struct export_work *work)
{
    work->job.run = run_outline;
    workers_submit(work->order.server->workers, &work->job);
}

/* --- preparing: one component --- */

static const struct export_part *part_of(const struct export_work *work, uint32_t component)
{
    return &work->selected[work->projection->origins[component].component];
}

/* Whether it is not enough that it is verified: what the target states is not known yet, or a stream may turn out not
 * to decode, though its digest is right, when half of the file is sent. */
static bool must_read(const struct export_work *work, uint32_t component, enum component_state state)
{
    const struct zt_model *model = work->order.generation->model;
    const struct zt_component *from = component_of(work, part_of(work, component));
    enum zt_digest_algorithm algorithm;
    bool decoded = state == COMPONENT_VERIFIED && (!zt_digest_covers_stored(model) || model->format == ZT_FORMAT_NPZ);

    if (zt_target_fact(work->order.query->target, &algorithm) ||
        work->projection->model->components[component].decoded_length == ZT_LENGTH_UNKNOWN)
        return true;
    return from->encoding != ZT_ENCODING_RAW && !decoded && state != COMPONENT_UNCHECKED;
}

static bool advance(void *context, uint64_t bytes)
{
    struct runner *runner = context;

    runner->spent_bytes += bytes;
    return is_wanted(runner->work);
}

static struct zt_conversion conversion_of(const struct export_work *work, struct zt_source *const *files,
                                          const struct zt_progress *progress)
{
    return (struct zt_conversion){.projection = work->projection,
                                  .source = work->selection.model,
                                  .files = files,
                                  .progress = progress,
                                  .trusted = true};
}

static void gather(struct runner *runner)
{
    struct export_work *work = runner->work;
    struct zt_fact *fact = &work->facts[runner->component];
    const struct zt_progress progress = {advance, runner};
    const struct zt_conversion conversion = conversion_of(work, runner->files, &progress);
    struct zt_error error;
    enum zt_status status = zt_fact_gather(&conversion, runner->component, fact, &error);
    const struct export_part *part = part_of(work, runner->component);

    if (status == ZT_OK && is_too_large(work, component_of(work, part), fact->length))
        fail_component(work, EXPORT_UNSUPPORTED_ENCODING, part, TOO_LARGE);
    if (status != ZT_OK && is_wanted(work))
        fail(work, failure_of(status, EXPORT_UNSUPPORTED_ENCODING), &error);
}

static enum component_state verify(struct runner *runner)
{
    const struct export_order *order = &runner->work->order;
    const uint32_t component = part_of(runner->work, runner->component)->component;
    const uint64_t length = order->generation->model->components[component].length;

    if (order->server->config->verify != CONFIG_VERIFY_OFF && length <= SMALL_BYTES &&
        order->generation->verification != NULL &&
        atomic_load(&order->generation->states[component]) == COMPONENT_UNCHECKED) {
        verifier_check_now(order->server->verifier, order->generation, component, NULL);
        runner->spent_bytes += length;
    }
    return verifier_ask(order->server->verifier, order->generation, component, &runner->waiter);
}

/* False: the runner will be queued again once the component is verified, and is no longer ours. */
static bool prepare_component(struct runner *runner)
{
    struct export_work *work = runner->work;
    const uint32_t component = runner->component;
    const struct export_part *part = part_of(work, component);
    const enum component_state state = verify(runner);

    if (state == COMPONENT_CHECKING)
        return false;
    if (state == COMPONENT_CORRUPT) {
        if (is_wanted(work))
            fail_component(work, EXPORT_CORRUPT, part,
                           "the stored bytes do not agree with the digest that the file states; they are not served");
        return true;
    }
    work->facts[component] =
        (struct zt_fact){.length = work->projection->model->components[component].decoded_length, .same_as = component};
    if (must_read(work, component, state))
        gather(runner);
    return true;
}

/* --- preparing: the end --- */

static void make_parts(struct export_work *work)
{
    const struct zt_projection *projection = work->projection;
    const uint32_t count = projection->model->component_count;
    struct export_part *parts = calloc(count + (size_t)1, sizeof *parts);

    if (parts == NULL) {
        fail_memory(work);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct zt_origin *origin = &projection->origins[i];
        struct zt_part change;

        zt_part_set_change(&change, (enum zt_change)origin->change,
                           &work->selection.model->components[origin->component], &projection->model->components[i]);
        parts[i] = work->selected[origin->component];
        parts[i].from_width = change.from_width;
        parts[i].to_width = change.to_width;
        parts[i].is_signed = change.is_signed;
    }
    work->result.parts = parts;
    work->result.part_count = count;
}

static void lay_out(struct export_work *work)
{
    const struct zt_conversion conversion = conversion_of(work, work->runners[0].files, NULL);
    struct zt_error error;
    enum zt_status status = zt_conversion_check(&conversion, &error);

    if (status == ZT_OK)
        status = zt_facts_match(&conversion, work->facts, &error);
    if (status == ZT_OK)
        status = zt_image_make(work->projection, work->facts, &work->result.image, &error);
    if (status != ZT_OK)
        fail(work, failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
    else
        make_parts(work);
}

static void end_runner(struct export_work *work)
{
    if (atomic_fetch_sub(&work->running, 1) > 1)
        return;
    if (is_wanted(work))
        lay_out(work);
    work->order.ended(work->order.context);
}

/* --- runners --- */

static bool take_component(struct runner *runner)
{
    struct export_work *work = runner->work;

    if (!is_wanted(work))
        return false;
    if (runner->component == NONE)
        runner->component = atomic_fetch_add(&work->next, 1);
    return runner->component < work->projection->model->component_count;
}

static void run_runner(struct job *job)
{
    struct runner *runner = (struct runner *)job;

    runner->spent_bytes = 0;
    while (take_component(runner)) {
        if (!prepare_component(runner))
            return;
        runner->component = NONE;
        if (runner->spent_bytes > TURN_BYTES) {
            workers_submit(runner->work->order.server->workers, &runner->job);
            return;
        }
    }
    end_runner(runner->work);
}

static void wake_runner(struct waiter *waiter)
{
    struct runner *runner = (struct runner *)(void *)((char *)waiter - offsetof(struct runner, waiter));

    workers_submit(runner->work->order.server->workers, &runner->job);
}

static enum zt_status read_cut(void *context, uint32_t component, uint64_t offset, void *buffer, size_t length,
                               struct zt_error *error)
{
    const struct runner *runner = context;

    return export_bytes_read(runner->bytes, &runner->work->selected[component], offset,
                             (struct export_buffer){buffer, length}, error);
}

static bool make_runner(struct export_work *work, struct runner *runner)
{
    struct generation *generation = work->order.generation;
    const uint32_t shards = generation->model->shard_count;
    const struct zt_component_bytes bytes = {read_cut, runner};

    runner->work = work;
    runner->component = NONE;
    runner->job.run = run_runner;
    runner->waiter.wake = wake_runner;
    runner->files = calloc(shards + (size_t)2, sizeof(struct zt_source *));
    runner->bytes = export_bytes_new(work->order.server, generation, work->cut);
    if (runner->files == NULL || runner->bytes == NULL ||
        zt_image_source(&work->selection.cuts, &bytes, &runner->cuts, NULL) != ZT_OK)
        return false;
    runner->files[0] = generation->source;
    for (uint32_t i = 0; i < shards; i++)
        runner->files[i + 1] = generation->shards.sources[i];
    runner->files[shards + 1] = runner->cuts;
    return true;
}

void export_work_prepare(struct export_work *work)
{
    bool made = true;

    work->facts = calloc(work->projection->model->component_count + (size_t)1, sizeof *work->facts);
    for (unsigned i = 0; i < RUNNERS && made; i++)
        made = make_runner(work, &work->runners[i]);
    if (!made || work->facts == NULL) {
        fail_memory(work);
        atomic_store(&work->running, 1);
        work->runners[0].work = work;
        work->runners[0].job.run = run_runner;
        workers_submit(work->order.server->workers, &work->runners[0].job);
        return;
    }
    atomic_store(&work->running, RUNNERS);
    for (unsigned i = 0; i < RUNNERS; i++)
        workers_submit(work->order.server->workers, &work->runners[i].job);
}
