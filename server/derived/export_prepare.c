/* Prepares an export from its outline. It verifies several components in parallel, and reads them
 * if the target contains their digests or lengths. Then it checks contents, finds equal bytes and
 * lays out the file. If the client states what it has, an earlier pass over all components computes
 * their SHA-256, and export_left_out.c leaves out objects.
 *
 * No job waits for another: a runner whose component is being verified returns, and the verifier
 * queues it again. A runner that has read for a while queues itself again, so that exports do not
 * block other jobs. */
#include "derived/export_base.h"
#include "derived/export_work.h"

#include <assert.h>
#include <stdlib.h>

#include "verify/component_digests.h"
#include "verify/verifier.h"
#include "zt/decode.h"

#define NONE UINT32_MAX
/* How many bytes a runner reads before it queues itself again: about 0.1 s. */
#define RUN_BYTES ((uint64_t)64 << 20)
/* Up to this length, a separate job costs more than the hashing itself. */
#define SMALL_BYTES ((uint64_t)1 << 20)

/* --- one component --- */

static const struct export_origin *origin_of(const struct export_work *work, uint32_t component)
{
    return &work->selected[work->projection->origins[component].component];
}

/* Returns true if a verified component must be read as well. That is so if the target contains a
 * digest or length that is unknown, or if the source's digest does not prove that the component can
 * be decoded: a failure would then cut off the answer. */
static bool must_read(const struct export_work *work, uint32_t component,
                      enum component_state state)
{
    const struct zt_model *model = work->order.generation->model;
    const struct zt_component *from = export_component_of(work, origin_of(work, component));
    enum zt_digest_algorithm algorithm;
    bool decoded = state == COMPONENT_VERIFIED &&
                   (!zt_digest_covers_stored(model) || zt_digest_covers_entries(model));

    if (zt_target_fingerprint(work->order.query->target, &algorithm) ||
        work->projection->model->components[component].decoded_length == ZT_LENGTH_UNKNOWN)
        return true;
    return from->encoding != ZT_ENCODING_RAW && from->encoding != ZT_ENCODING_STRIDED && !decoded &&
           state != COMPONENT_UNCHECKED;
}

bool export_runner_advance(void *context, uint64_t bytes)
{
    struct export_runner *runner = context;

    runner->spent_bytes += bytes;
    return export_is_wanted(runner->work);
}

static struct zt_conversion conversion_of(const struct export_work *work,
                                          struct zt_source *const *files,
                                          const struct zt_progress *progress)
{
    return (struct zt_conversion){.projection = work->projection,
                                  .source = work->selection.model,
                                  .files = files,
                                  .progress = progress,
                                  .trusted = true};
}

/* Returns true if the component is exported whole and unchanged, so that other queries can use its
 * fingerprint. */
static bool is_whole(const struct export_work *work, uint32_t component)
{
    return (origin_of(work, component)->axis == ZT_AXIS_NONE || work->cut->parts == 1) &&
           work->projection->origins[component].change == ZT_CHANGE_NONE &&
           origin_of(work, component)->widening.widener == NULL;
}

/* Finds a fingerprint that an earlier export or the background hashing has computed. */
static bool find_fingerprint(const struct export_work *work, uint32_t component,
                             enum zt_digest_algorithm algorithm, struct zt_fingerprint *fingerprint)
{
    const struct generation *generation = work->order.generation;
    const uint32_t from = origin_of(work, component)->component;
    struct zt_digest digest = {.algorithm = ZT_DIGEST_SHA256, .length_bytes = 32};
    bool known;

    if (!is_whole(work, component))
        return false;
    known = decoded_digest_find(generation, from, algorithm, fingerprint);
    if (!known && algorithm == ZT_DIGEST_SHA256 &&
        zt_component_is_plain(&generation->model->components[from]) &&
        stored_digest_whole(generation, from, digest.bytes)) {
        *fingerprint = (struct zt_fingerprint){.length = generation->model->components[from].length,
                                               .digest = digest};
        known = true;
    }
    fingerprint->same_as = component;
    return known;
}

/* Makes a SHA-256 known of which the stored bytes have just been read. */
static void learn_stored(const struct export_work *work, const struct export_origin *origin,
                         const struct zt_fingerprint *fingerprint)
{
    if (zt_component_is_plain(export_component_of(work, origin)))
        stored_digest_learn(work->order.server, work->order.generation, origin->component,
                            fingerprint->digest.bytes);
}

static void compute_fingerprint(struct export_runner *runner)
{
    struct export_work *work = runner->work;
    struct zt_fingerprint *fingerprint = &work->fingerprints[runner->component];
    const struct zt_progress progress = {export_runner_advance, runner};
    const struct zt_conversion conversion = conversion_of(work, runner->files, &progress);
    struct zt_error error;
    enum zt_status status =
        work->is_comparing
            ? zt_component_hash(&conversion, runner->component, ZT_DIGEST_SHA256, fingerprint,
                                &error)
            : zt_fingerprint_take(&conversion, runner->component, fingerprint, &error);
    const struct export_origin *origin = origin_of(work, runner->component);

    if (status == ZT_OK && is_whole(work, runner->component) &&
        !export_is_too_large(work, origin, fingerprint->length))
        decoded_digest_add(work->order.generation, origin->component, fingerprint);
    if (status == ZT_OK && work->is_comparing && is_whole(work, runner->component))
        learn_stored(work, origin, fingerprint);
    if (status != ZT_OK && export_is_wanted(work))
        export_fail(work, export_failure_of(status, EXPORT_UNSUPPORTED_ENCODING), &error);
}

enum component_state export_verify(struct export_runner *runner, struct generation *generation,
                                   uint32_t component)
{
    const struct server *server = runner->work->order.server;
    const uint64_t length = generation->model->components[component].length;

    assert(component < generation->model->component_count);
    if (server->config->verify != CONFIG_VERIFY_OFF && length <= SMALL_BYTES &&
        atomic_load(&generation->states[component]) == COMPONENT_UNCHECKED) {
        verifier_check_now(server->verifier, generation, component);
        runner->spent_bytes += length;
    }
    return verifier_ask(server->verifier, generation, component, &runner->waiter);
}

static void refuse_component(struct export_work *work, const struct export_origin *origin,
                             enum component_state state)
{
    if (state == COMPONENT_UNAVAILABLE)
        export_fail_component(work, EXPORT_ERROR, origin,
                              "the stored bytes cannot be read from the store at the moment");
    else
        export_fail_component(work, EXPORT_CORRUPT, origin,
                              "the stored bytes do not match the digest stated in the file; "
                              "they are not served");
}

/* Sets the fingerprint that this pass needs. */
static void find_or_compute(struct export_runner *runner, enum component_state state)
{
    struct export_work *work = runner->work;
    const uint32_t component = runner->component;
    enum zt_digest_algorithm algorithm = ZT_DIGEST_XXH3;

    (void)zt_target_fingerprint(work->order.query->target, &algorithm);
    if (work->is_comparing)
        algorithm = ZT_DIGEST_SHA256;
    if (work->is_comparing ? !export_lists_state(work->order.query->lists)
                           : !must_read(work, component, state))
        return;
    if (!find_fingerprint(work, component, algorithm, &work->fingerprints[component]))
        compute_fingerprint(runner);
}

/* Returns false if the verifier will queue the runner again; the caller must not touch it then. */
static bool prepare_component(struct export_runner *runner)
{
    struct export_work *work = runner->work;
    const uint32_t component = runner->component;
    const struct export_origin *origin = origin_of(work, component);
    enum component_state state;

    assert(component < work->projection->model->component_count);
    state = export_verify(runner, work->order.generation, origin->component);
    /* Another thread may already have ended the work. */
    if (state == COMPONENT_CHECKING)
        return false;
    if (state == COMPONENT_CORRUPT || state == COMPONENT_UNAVAILABLE) {
        if (export_is_wanted(work))
            refuse_component(work, origin, state);
        return true;
    }
    if (work->unchanged != NULL && !export_base_compare(runner))
        return false;
    if (state == COMPONENT_VERIFIED)
        stored_digest_want(work->order.server, work->order.generation, origin->component);
    work->fingerprints[component] = (struct zt_fingerprint){
        .length = work->projection->model->components[component].decoded_length,
        .same_as = component};
    find_or_compute(runner, state);
    return true;
}

/* --- the file --- */

struct export_origin *export_work_origins(const struct export_work *work)
{
    const struct zt_projection *projection = work->projection;
    const uint32_t count = projection->model->component_count;
    struct export_origin *origins = calloc(count + (size_t)1, sizeof(*origins));

    if (origins == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct zt_origin *origin = &projection->origins[i];

        origins[i] = work->selected[origin->component];
        if (origin->change != ZT_CHANGE_NONE)
            origins[i].widening =
                zt_widening_of(origin, &work->selection.model->components[origin->component],
                               &projection->model->components[i]);
    }
    return origins;
}

static void make_origins(struct export_work *work)
{
    work->result.origins = export_work_origins(work);
    work->result.origin_count = work->projection->model->component_count;
    if (work->result.origins == NULL)
        export_fail_memory(work);
}

static void lay_out(struct export_work *work)
{
    const struct zt_conversion conversion = conversion_of(work, work->runners[0].files, NULL);
    struct zt_error error;
    enum zt_status status = zt_conversion_check(&conversion, &error);

    if (status == ZT_OK)
        status = zt_fingerprints_match(&conversion, work->fingerprints, &error);
    if (status == ZT_OK)
        status =
            zt_file_plan_make(work->projection, work->fingerprints, &work->result.file, &error);
    if (status != ZT_OK)
        export_fail(work, export_failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
    else
        make_origins(work);
}

/* --- runners --- */

/* Returns an upper estimate of the bytes to be read and decoded. */
static uint64_t bytes_of(const struct export_work *work)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < work->selection.model->component_count; i++) {
        const struct zt_component *component = export_component_of(work, &work->selected[i]);
        const bool grows = component->decoded_length > component->length;
        const uint64_t bytes = grows ? component->decoded_length : component->length;

        sum = bytes < UINT64_MAX - sum ? sum + bytes : UINT64_MAX;
    }
    return sum;
}

/* Submits by size, so that small exports do not wait for large ones. */
static void submit(struct export_runner *runner)
{
    workers_submit_sized(server_waiters(runner->work->order.server), &runner->job,
                         runner->work->bytes);
}

static void begin_pass(struct export_work *work);

/* Ends the pass with its last runner. */
static void end_runner(struct export_work *work)
{
    const unsigned running = atomic_fetch_sub(&work->running, 1);

    assert(running >= 1 && running <= EXPORT_RUNNERS);
    if (running > 1)
        return;
    if (work->is_comparing && export_is_wanted(work)) {
        export_leave_out(work);
        work->is_comparing = false;
        if (export_is_wanted(work)) {
            begin_pass(work);
            return;
        }
    }
    if (export_is_wanted(work))
        lay_out(work);
    work->order.ended(work->order.context);
}

static bool take_component(struct export_runner *runner)
{
    struct export_work *work = runner->work;

    if (!export_is_wanted(work))
        return false;
    if (runner->component == NONE)
        runner->component = atomic_fetch_add(&work->next, 1);
    return runner->component < work->projection->model->component_count;
}

static void run_runner(struct job *job)
{
    struct export_runner *runner = (struct export_runner *)job;

    runner->spent_bytes = 0;
    while (take_component(runner)) {
        if (!prepare_component(runner))
            return;
        runner->component = NONE;
        if (runner->spent_bytes > RUN_BYTES) {
            submit(runner);
            return;
        }
    }
    end_runner(runner->work);
}

static void wake_runner(struct waiter *waiter)
{
    struct export_runner *runner =
        (struct export_runner *)(void *)((char *)waiter - offsetof(struct export_runner, waiter));

    submit(runner);
}

static enum zt_status read_cut(void *context, uint32_t component, uint64_t offset, void *buffer,
                               size_t length, struct zt_error *error)
{
    const struct export_runner *runner = context;

    return export_bytes_read(runner->bytes, &runner->work->selected[component], offset,
                             (struct export_buffer){buffer, length}, error);
}

/* Opens the bytes of the selection. */
static bool open_runner(struct export_work *work, struct export_runner *runner)
{
    struct generation *generation = work->order.generation;
    const uint32_t shards = generation->model->shard_count;
    const struct zt_component_bytes bytes = {read_cut, runner};

    runner->component = NONE;
    export_runner_close(runner);
    runner->files = calloc(shards + (size_t)2, sizeof(struct zt_source *));
    runner->bytes =
        export_bytes_new(work->order.server, generation, work->cut, work->order.query->to_f32);
    if (runner->files == NULL || runner->bytes == NULL ||
        zt_file_plan_source(&work->selection.cuts, &bytes, &runner->cuts, NULL) != ZT_OK)
        return false;
    runner->files[0] = generation->source;
    for (uint32_t i = 0; i < shards; i++)
        runner->files[i + 1] = generation->shards.sources[i];
    runner->files[shards + 1] = runner->cuts;
    return true;
}

static bool open_pass(struct export_work *work)
{
    const size_t count = work->projection->model->component_count + (size_t)1;
    bool opened = true;

    assert(work->fingerprints == NULL && work->unchanged == NULL);
    work->bytes = bytes_of(work);
    work->fingerprints = calloc(count, sizeof(*work->fingerprints));
    if (work->is_comparing && work->order.query->base != NULL) {
        work->unchanged = calloc(count, sizeof(*work->unchanged));
        opened = work->unchanged != NULL;
    }
    for (unsigned i = 0; i < EXPORT_RUNNERS && opened; i++)
        opened = open_runner(work, &work->runners[i]);
    return opened && work->fingerprints != NULL;
}

static void begin_pass(struct export_work *work)
{
    unsigned runners = EXPORT_RUNNERS;

    atomic_store(&work->next, 0);
    if (!open_pass(work)) {
        export_fail_memory(work);
        runners = 1;
    }
    atomic_store(&work->running, runners);
    for (unsigned i = 0; i < runners; i++)
        submit(&work->runners[i]);
}

void export_work_prepare(struct export_work *work)
{
    for (unsigned i = 0; i < EXPORT_RUNNERS; i++) {
        struct export_runner *runner = &work->runners[i];

        runner->work = work;
        runner->job.run = run_runner;
        runner->job.client = work->order.client;
        runner->waiter.wake = wake_runner;
        runner->waiter.client = work->order.client;
    }
    work->is_comparing = export_must_compare(work);
    begin_pass(work);
}
