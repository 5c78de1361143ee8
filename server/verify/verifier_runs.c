/* Runs over all components of a generation. Each component is a unit of work and, with recheck, so
 * is the content of each object. A few slots take units, several components at once because these
 * are hashed side by side: from the clients in turn, and for each client from its oldest run. So
 * one large model is hashed on several threads, and many models of a client are hashed in order.
 * Each client leaves one slot free for others, so that another client's run starts at once, even
 * while large components are being hashed. */
#include "verify/verifier_work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

/* After this time a slot gives up its thread and queues itself again. */
#define TURN_NS (20 * CLOCK_NS_PER_MS)
/* The number of attempts to open a unit's file while no descriptors are left, and the pause between
 * them: about ten seconds in total. */
#define OPEN_TRIES  500
#define OPEN_GAP_MS 20

/* At this size no more components are added to a share, so that requests for the last of them need
 * not wait long. Two are hashed at once, so neither of them waits. */
#define SHARE_BYTES ((uint64_t)64 << 20)

/* The maximum number of concurrent idle jobs; on most machines the pool has fewer threads for
 * them. */
#define RUN_SLOTS_MAX 64

struct run {
    struct job job; /* first: the run's place in the queue; the slots do the work */
    struct generation *generation;
    uint64_t next_unit; /* under the verifier's lock, like the members below */
    uint64_t units;
    uint32_t active;
    bool recheck;
    atomic_uint_fast64_t hashed_bytes;
};

/* Units that a slot takes at once. */
struct share {
    struct run *run;
    uint64_t first;
    uint64_t count;
};

struct run_slot {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    bool queued;
    bool is_busy; /* processing a unit of this client's run */
    uint64_t client;
};

void verifier_run_advance(struct run *run, uint64_t stored_bytes)
{
    atomic_fetch_add(&run->hashed_bytes, stored_bytes);
}

uint64_t verifier_run_bytes(const struct run *run)
{
    return atomic_load(&run->hashed_bytes);
}

static bool is_cancelled(const struct verifier *verifier, const struct run *run)
{
    return atomic_load(&verifier->stopping) || atomic_load(&verifier->server->draining) ||
           atomic_load(&run->generation->retired);
}

void verifier_note_ready(struct verifier *verifier)
{
    if (verifier->loaded && verifier->eager_left == 0)
        atomic_store(&verifier->ready, true);
}

/* The verifier's lock must be held. */
static bool may_take(const void *context, uint64_t client)
{
    const struct verifier *verifier = context;
    unsigned busy = 0;

    for (unsigned i = 0; i < verifier->slot_count; i++)
        busy += verifier->slots[i].is_busy && verifier->slots[i].client == client;
    return busy + 1 < verifier->slot_count;
}

/* The next units of a run: one, or several components of the same file while enough are left for
 * every slot. */
static struct share next_share(const struct verifier *verifier, struct run *run)
{
    const struct zt_model *model = run->generation->model;
    const struct zt_component *components = model->components;
    struct share share = {.run = run, .first = run->next_unit, .count = 1};
    uint64_t most;
    uint64_t bytes;

    if (share.first >= model->component_count)
        return share;
    most = (model->component_count - share.first) / verifier->slot_count;
    most = most < VERIFIER_TOGETHER ? most : VERIFIER_TOGETHER;
    bytes = components[share.first].length;
    while (share.count < most && (share.count < 2 || bytes < SHARE_BYTES) &&
           components[share.first + share.count].shard == components[share.first].shard)
        bytes += components[share.first + share.count++].length;
    return share;
}

/* Takes units of the next run. Returns false, and the slot becomes idle, if there are none for
 * it. */
static bool take_units(struct verifier *verifier, struct run_slot *slot, struct share *out_share)
{
    struct run *run;

    pthread_mutex_lock(&verifier->lock);
    run = (struct run *)job_queue_take(&verifier->runs, may_take, verifier);
    if (run == NULL) {
        slot->queued = false;
        pthread_mutex_unlock(&verifier->lock);
        return false;
    }
    assert(run->next_unit < run->units);
    *out_share = next_share(verifier, run);
    run->next_unit += out_share->count;
    assert(run->next_unit <= run->units);
    run->active++;
    slot->is_busy = true;
    slot->client = run->job.client;
    /* Object contents are checked after all components, so that a fault that a wrong digest
     * explains is not reported twice. */
    if (run->next_unit < run->units && run->next_unit != run->generation->model->component_count)
        job_queue_put_back(&verifier->runs, &run->job);
    pthread_mutex_unlock(&verifier->lock);
    return true;
}

/* Checks the content rules of an object. A broken rule is not reported if the digest is wrong too:
 * the bytes are then not what the writer wrote. */
static void check_content(struct verifier *verifier, struct run *run, uint32_t index)
{
    struct generation *generation = run->generation;
    const struct zt_model *model = generation->model;
    const struct zt_object *object = &model->objects[index];
    const struct zt_files files = generation_files(generation);
    const struct zt_component *component;
    struct zt_error error;
    enum zt_status status;
    uint32_t number = NO_COMPONENT;
    bool broken;

    zt_error_clear(&error);
    status = zt_object_check(model, object, &files, &error);
    broken = status == ZT_INVALID || status == ZT_CORRUPT;
    component =
        zt_object_find(model, object, (struct zt_text){error.component, strlen(error.component)});
    if (broken && component != NULL)
        number = zt_component_index(model, component);
    /* The error names no component, so it is reported for the object's first one. */
    else if (broken && object->component_count > 0)
        number = object->first_component;
    if (number != NO_COMPONENT && atomic_load(&generation->states[number]) == COMPONENT_CORRUPT)
        broken = false;
    pthread_mutex_lock(&verification_of(generation)->lock);
    verification_note_content(generation, index, number,
                              !broken              ? NULL
                              : error.rule != NULL ? error.rule
                                                   : zt_status_name(status),
                              error.message);
    pthread_mutex_unlock(&verification_of(generation)->lock);
    if (broken)
        log_write(LOG_LEVEL_ERROR, "%s: object %s: %s (%s)", generation->path, error.object,
                  error.message, error.rule != NULL ? error.rule : zt_status_name(status));
    verifier_mark_dirty(verifier, generation);
}

/* Announces the next bytes to the store. The whole file will be read, mostly in this order, so
 * remote bytes are fetched across the boundaries of components. */
static void advise_from(const struct generation *generation, uint64_t unit)
{
    const struct zt_component *component = &generation->model->components[unit];
    const struct zt_files files = generation_files(generation);
    struct zt_source *source = zt_files_source(&files, component);

    if (source != NULL)
        zt_source_read_on(source, component->offset, zt_source_size(source) - component->offset, 0);
}

/* Returns true if a component is covered only by the digest of its shard. */
static bool is_covered_by_shard(const struct generation *generation, uint32_t index)
{
    const struct zt_component *component = &generation->model->components[index];

    return component->digest == NULL && component->shard != 0 &&
           generation->model->shards[component->shard - 1].digest != NULL;
}

/* Whether the component must be hashed now; does what else there is to do for it. */
static bool prepare_component(struct verifier *verifier, struct run *run, uint32_t unit)
{
    const struct generation *generation = run->generation;
    unsigned char state;

    if (is_covered_by_shard(generation, unit))
        verifier_check_shard_now(verifier, run->generation,
                                 generation->model->components[unit].shard - 1);
    state = atomic_load(&generation->states[unit]);
    if (state == COMPONENT_UNDIGESTED || state == COMPONENT_UNSUPPORTED) {
        stored_digest_want(verifier->server, run->generation, unit);
        return false;
    }
    if ((run->recheck && generation->model->components[unit].digest != NULL) ||
        (state != COMPONENT_VERIFIED && state != COMPONENT_CORRUPT))
        return true;
    stored_digest_want(verifier->server, run->generation, unit);
    verifier_run_advance(run, generation->model->components[unit].length);
    return false;
}

/* Whether the bytes arrive from a store: in order, so one component after another is hashed, and a
 * request that waits for the first need not wait for the others. */
static bool is_remote(const struct generation *generation, uint32_t unit)
{
    const struct zt_files files = generation_files(generation);
    struct zt_source *source = zt_files_source(&files, &generation->model->components[unit]);

    return source != NULL && zt_source_is_remote(source);
}

static void do_share(struct verifier *verifier, const struct share *share)
{
    struct run *run = share->run;
    const uint32_t count = run->generation->model->component_count;
    uint32_t components[VERIFIER_TOGETHER];
    size_t chosen = 0;
    size_t together;

    assert(share->count <= VERIFIER_TOGETHER);
    if (share->first >= count) {
        check_content(verifier, run, (uint32_t)(share->first - count));
        return;
    }
    for (uint64_t i = 0; i < share->count; i++)
        if (prepare_component(verifier, run, (uint32_t)(share->first + i)))
            components[chosen++] = (uint32_t)(share->first + i);
    together = is_remote(run->generation, (uint32_t)share->first) ? 1 : chosen;
    for (size_t i = 0; i < chosen; i += together) {
        advise_from(run->generation, components[i]);
        verifier_check_together(verifier, run->generation, &components[i], together, run);
    }
}

/* Opens a run's file again. If the file has changed, the catalog retires the generation, and its
 * successor has a separate run. If the process has no descriptors, that is unknown, so the function
 * retries. Returns false if the unit cannot be processed. */
static bool open_for_unit(struct verifier *verifier, const struct run *run)
{
    static const struct timespec pause = {.tv_nsec = OPEN_GAP_MS * CLOCK_NS_PER_MS};
    struct catalog *catalog = verifier->server->catalog;
    struct generation *generation = run->generation;

    for (int i = 0; i < OPEN_TRIES; i++) {
        if (catalog_hold_open(catalog, generation))
            return true;
        generation_release(catalog_update(catalog, generation->path));
        if (is_cancelled(verifier, run))
            return false;
        nanosleep(&pause, NULL);
    }
    metric_add(METRIC_CHECKS_UNREADABLE, 1);
    log_write(LOG_LEVEL_WARN, "%s: a part is not verified: the file cannot be reopened",
              generation->path);
    return false;
}

/* Keeps the run's file open during the unit only, since thousands of runs may wait. */
static void do_share_if_wanted(struct verifier *verifier, const struct share *share)
{
    struct run *run = share->run;

    if (is_cancelled(verifier, run) || !open_for_unit(verifier, run))
        return;
    do_share(verifier, share);
    generation_release(run->generation);
}

/* Called when the last unit is done. */
static void end_run(struct verifier *verifier, struct run *run)
{
    struct verification *verification = verification_of(run->generation);

    pthread_mutex_lock(&verification->lock);
    assert(verification->run == run);
    verification->run = NULL;
    pthread_mutex_unlock(&verification->lock);
    if (!run->recheck) {
        pthread_mutex_lock(&verifier->lock);
        assert(verifier->eager_left > 0);
        verifier->eager_left--;
        if (!atomic_load(&verifier->stopping))
            verifier_note_ready(verifier);
        pthread_mutex_unlock(&verifier->lock);
    }
    parking_release_idle(run->generation);
    free(run);
    hash_queue_release(verifier->server->hash_queue);
}

/* Starts all idle slots. The verifier's lock must be held. */
static void start_slots(struct verifier *verifier)
{
    for (unsigned i = 0; i < verifier->slot_count; i++) {
        if (verifier->slots[i].queued)
            continue;
        verifier->slots[i].queued = true;
        workers_submit_idle(server_waiters(verifier->server), &verifier->slots[i].job);
    }
}

/* Continues with the content once all components are done. The verifier's lock must be held. */
static void continue_run(struct verifier *verifier, struct run *run)
{
    if (run->active > 0 || run->next_unit == run->units || run->job.line != NULL)
        return;
    job_queue_put_back(&verifier->runs, &run->job);
    start_slots(verifier);
}

static void work(struct job *job)
{
    struct run_slot *slot = (struct run_slot *)job;
    struct verifier *verifier = slot->verifier;
    int64_t begun_ns = clock_ns();
    struct share share;

    while (take_units(verifier, slot, &share)) {
        struct run *run = share.run;
        bool last;

        do_share_if_wanted(verifier, &share);
        pthread_mutex_lock(&verifier->lock);
        assert(run->active > 0);
        run->active--;
        slot->is_busy = false;
        continue_run(verifier, run);
        last = run->active == 0 && run->next_unit == run->units;
        pthread_mutex_unlock(&verifier->lock);
        if (last)
            end_run(verifier, run);
        if (clock_ns() - begun_ns > TURN_NS) {
            workers_submit_idle(server_waiters(verifier->server), &slot->job);
            return;
        }
    }
}

bool verifier_runs_init(struct verifier *verifier)
{
    const struct workers *workers = verifier->server->workers;
    const unsigned most = workers != NULL ? workers_for_idle(workers) : 1;

    job_queue_init(&verifier->runs);
    verifier->slot_count = most < RUN_SLOTS_MAX ? most : RUN_SLOTS_MAX;
    verifier->slots = calloc(verifier->slot_count, sizeof(*verifier->slots));
    if (verifier->slots == NULL)
        return false;
    for (unsigned i = 0; i < verifier->slot_count; i++) {
        verifier->slots[i].job.run = work;
        verifier->slots[i].verifier = verifier;
    }
    return true;
}

/* Queues the run and starts all idle slots. Returns false if the verifier is stopping. */
static bool enqueue(struct verifier *verifier, struct run *run)
{
    bool open;

    pthread_mutex_lock(&verifier->lock);
    open = !atomic_load(&verifier->stopping);
    if (open) {
        job_queue_put(&verifier->runs, &run->job);
        /* Verifying whole models has priority over background hashing, because a client has asked
         * for it. */
        hash_queue_hold(verifier->server->hash_queue);
        verifier->eager_left += !run->recheck;
    }
    if (open)
        start_slots(verifier);
    pthread_mutex_unlock(&verifier->lock);
    return open;
}

/* Makes the run this client's too. The verdicts' lock must be held, so that the run does not
 * end. */
static void share(struct verifier *verifier, struct run *run, uint64_t client)
{
    pthread_mutex_lock(&verifier->lock);
    job_queue_move(&verifier->runs, &run->job, client, may_take, verifier);
    start_slots(verifier);
    pthread_mutex_unlock(&verifier->lock);
}

void verifier_run_begin(struct verifier *verifier, struct generation *generation, bool recheck,
                        uint64_t client)
{
    struct verification *verification = verification_of(generation);
    const struct zt_model *model = generation->model;
    struct run *run = calloc(1, sizeof(*run));
    bool begun;

    if (run == NULL)
        return;
    run->recheck = recheck;
    run->job.client = client;
    run->units = (uint64_t)model->component_count + (recheck ? model->object_count : 0);
    run->generation = generation;
    pthread_mutex_lock(&verification->lock);
    begun = verification->run == NULL && run->units > 0;
    if (begun) {
        verification->run = run;
        verification->round++;
    } else if (verification->run != NULL && client != JOB_OF_SERVER) {
        share(verifier, verification->run, client);
    }
    pthread_mutex_unlock(&verification->lock);
    if (!begun) {
        free(run);
        return;
    }
    parking_hold_idle(generation);
    if (enqueue(verifier, run))
        return;
    pthread_mutex_lock(&verification->lock);
    verification->run = NULL;
    pthread_mutex_unlock(&verification->lock);
    parking_release_idle(generation);
    free(run);
}
