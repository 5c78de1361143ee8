/* Checks components on demand, with one check for all requests.
 *
 * A component's state is one atomic byte, so reading it takes no lock. UNCHECKED and CHECKING
 * change under the lock of the generation's verdicts, and the list there contains a check for each
 * component that is CHECKING. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "verify/verifier_work.h"

/* How long to wait before a component that cannot be read is tried again. */
#define TROUBLE_NS CLOCK_NS_PER_S

/* How many bytes a check reads before it looks whether any request still waits: about 0.1 s. */
#define LOOK_BYTES ((uint64_t)64 << 20)

/* --- the list of a generation --- */

static struct check **find_check(struct verification *verification, const struct check *wanted)
{
    struct check **link = &verification->checks;

    while (*link != NULL && *link != wanted)
        link = &(*link)->next;
    return link;
}

/* Returns the component's check; NULL if none is running. */
static struct check *check_of(const struct verification *verification, uint32_t component)
{
    struct check *check = verification->checks;

    while (check != NULL && check->component != component)
        check = check->next;
    return check;
}

/* --- troubles --- */

/* Returns the reason why the component could recently not be read; NULL if there is none. Also
 * removes expired reasons. */
static const struct trouble *find_trouble(struct verification *verification, uint32_t component)
{
    struct trouble **link = &verification->troubles;
    const struct trouble *found = NULL;
    int64_t now = clock_ns();

    while (*link != NULL) {
        struct trouble *trouble = *link;

        if (trouble->until_ns <= now) {
            *link = trouble->next;
            free(trouble);
            continue;
        }
        if (trouble->component == component)
            found = trouble;
        link = &trouble->next;
    }
    return found;
}

static void note_trouble(struct verification *verification, uint32_t component,
                         enum zt_status status)
{
    struct trouble *trouble;

    if (find_trouble(verification, component) != NULL)
        return;
    trouble = malloc(sizeof(*trouble));
    if (trouble == NULL)
        return;
    *trouble = (struct trouble){.component = component,
                                .is_unreachable = status == ZT_UNAVAILABLE || status == ZT_STALE,
                                .until_ns = clock_ns() + TROUBLE_NS,
                                .next = verification->troubles};
    verification->troubles = trouble;
}

/* --- a check --- */

/* Adds a check to the list. Returns NULL if out of memory. The lock must be held. */
static struct check *add_check(struct verifier *verifier, struct generation *generation,
                               uint32_t component)
{
    struct verification *verification = verification_of(generation);
    struct check *check = calloc(1, sizeof(*check));

    if (check == NULL)
        return NULL;
    check->verifier = verifier;
    check->generation = generation_hold(generation);
    check->component = component;
    check->next = verification->checks;
    verification->checks = check;
    if (atomic_load(&generation->states[component]) == COMPONENT_UNCHECKED)
        verification_set(generation, component, COMPONENT_CHECKING);
    return check;
}

/* Returns true if a check should continue: background work ends when the server drains or the model
 * is replaced, unless a request waits for it. */
static bool is_needed(struct check *check)
{
    struct verification *verification = verification_of(check->generation);
    bool joined;

    if (atomic_load(&check->verifier->stopping))
        return false;
    if (check->run == NULL || (!atomic_load(&check->verifier->server->draining) &&
                               !atomic_load(&check->generation->retired)))
        return true;
    pthread_mutex_lock(&verification->lock);
    joined = check->waiters != NULL;
    pthread_mutex_unlock(&verification->lock);
    return joined;
}

/* Returns true if the clients of all waiting requests are gone. Requests that join later ask again
 * and get a new check. */
static bool is_abandoned(struct check *check)
{
    struct verification *verification = verification_of(check->generation);
    bool gone;

    if (check->run != NULL)
        return false;
    pthread_mutex_lock(&verification->lock);
    gone = waiters_are_gone(check->waiters);
    pthread_mutex_unlock(&verification->lock);
    return gone;
}

static bool on_hashed(void *context, uint64_t stored_bytes)
{
    struct check *check = context;
    uint64_t before = atomic_fetch_add(&check->hashed_bytes, stored_bytes);

    metric_add(METRIC_HASHED_BYTES, stored_bytes);
    if (check->run != NULL)
        verifier_run_advance(check->run, stored_bytes);
    /* Also at the beginning, since the check may have been queued for a long time. */
    if ((before == 0 || before / LOOK_BYTES != (before + stored_bytes) / LOOK_BYTES) &&
        is_abandoned(check))
        return false;
    return is_needed(check);
}

static enum component_state state_of(enum zt_verdict verdict)
{
    switch (verdict) {
    case ZT_VERDICT_VERIFIED:
        return COMPONENT_VERIFIED;
    case ZT_VERDICT_UNDIGESTED:
        return COMPONENT_UNDIGESTED;
    case ZT_VERDICT_FAILED:
        return COMPONENT_CORRUPT;
    case ZT_VERDICT_UNSUPPORTED:
        break;
    }
    return COMPONENT_UNSUPPORTED;
}

static void log_corrupt(const struct check *check, const struct zt_component_check *result)
{
    const struct generation *generation = check->generation;
    const struct zt_model *model = generation->model;
    const struct zt_object *object =
        &model->objects[verification_object_of(model, check->component)];
    const struct zt_component *component = &model->components[check->component];

    log_write(LOG_LEVEL_ERROR,
              "corrupt: %s: object %.*s, component %.*s: the file states %s, the bytes give %s",
              generation->path, (int)object->name_length, object->name, (int)component->name_length,
              component->name, result->expected,
              result->actual[0] != '\0' ? result->actual : "nothing that can be decoded");
}

/* Records the result. The lock must be held. */
static void record(struct check *check, enum zt_status status,
                   const struct zt_component_check *result)
{
    struct generation *generation = check->generation;
    struct verification *verification = verification_of(generation);
    uint32_t component = check->component;

    assert(*find_check(verification, check) == check);
    *find_check(verification, check) = check->next;
    if (status == ZT_OK) {
        bool failed = result->verdict == ZT_VERDICT_FAILED;

        verification_set(generation, component, state_of(result->verdict));
        verification_note_digest(generation, component, failed ? result->expected : NULL,
                                 result->actual);
        return;
    }
    /* A stopped check says nothing about the bytes: requests that joined it ask again and get a new
     * check. */
    if (status != ZT_ARGUMENT)
        note_trouble(verification, component, status);
    /* Another check of the same component may still be running; the component then stays
     * CHECKING. */
    if (atomic_load(&generation->states[component]) == COMPONENT_CHECKING &&
        check_of(verification, component) == NULL)
        verification_set(generation, component, COMPONENT_UNCHECKED);
}

static void count_check(enum zt_status status, enum zt_verdict verdict)
{
    /* A stopped check has no result. */
    if (status == ZT_ARGUMENT || (status == ZT_OK && verdict == ZT_VERDICT_UNDIGESTED))
        return;
    metric_add(status != ZT_OK                     ? METRIC_CHECKS_UNREADABLE
               : verdict == ZT_VERDICT_VERIFIED    ? METRIC_CHECKS_VERIFIED
               : verdict == ZT_VERDICT_UNSUPPORTED ? METRIC_CHECKS_UNSUPPORTED
                                                   : METRIC_CHECKS_FAILED,
               1);
}

/* Wrong bytes from a remote store may be a transfer error: they are fetched once more, and the
 * second result counts. */
static void check_again_if_remote(struct check *check, struct zt_source *source,
                                  struct zt_component_to_check *item)
{
    const struct generation *generation = check->generation;
    const struct zt_component *component = item->component;

    if (item->status != ZT_OK || item->check.verdict != ZT_VERDICT_FAILED || source == NULL ||
        component->length == 0 ||
        !zt_source_invalidate(source, component->offset, component->length))
        return;
    log_write(LOG_LEVEL_WARN,
              "%s: component %u does not match its digest; its bytes are fetched again",
              generation->path, check->component);
    item->check = (struct zt_component_check){.verdict = ZT_VERDICT_UNSUPPORTED};
    item->status = zt_component_check(generation->model, component, source, item->progress,
                                      &item->check, &item->error);
}

/* Records what a check found, wakes its waiters, and frees it. */
static void conclude(struct check *check, struct zt_component_to_check *item)
{
    struct generation *generation = check->generation;
    bool was_corrupt = atomic_load(&generation->states[check->component]) == COMPONENT_CORRUPT;
    struct waiter *waiter;

    /* If the file was written to, the verdict is about other bytes than the generation's. */
    if (item->status == ZT_OK && !generation_is_unwritten(generation))
        item->status = zt_fail(&item->error, ZT_IO, NULL, ZT_NO_OFFSET,
                               "the file was changed while it was read");
    count_check(item->status, item->check.verdict);
    if (item->status == ZT_OK && item->check.verdict == ZT_VERDICT_FAILED && !was_corrupt)
        log_corrupt(check, &item->check);
    /* The store itself logs that it is unreachable, and a replaced file is checked as a new
     * generation. */
    if (item->status != ZT_OK && item->status != ZT_ARGUMENT && item->status != ZT_UNAVAILABLE &&
        item->status != ZT_STALE)
        log_write(LOG_LEVEL_WARN, "%s: component %u cannot be checked: %s", generation->path,
                  check->component, item->error.message);
    pthread_mutex_lock(&verification_of(generation)->lock);
    record(check, item->status, &item->check);
    waiter = check->waiters;
    pthread_mutex_unlock(&verification_of(generation)->lock);
    if (item->status == ZT_OK) {
        verifier_mark_dirty(check->verifier, generation);
        stored_digest_want(check->verifier->server, generation, check->component);
    }
    waiters_wake(waiter);
    generation_release(generation);
    free(check);
}

/* Checks of components of one file that run together. */
struct together {
    struct check *const *checks;
    const struct zt_component_to_check *items;
    struct zt_source *source;
};

static void take_checked(void *context, struct zt_component_to_check *item)
{
    const struct together *together = context;
    struct check *check = together->checks[item - together->items];

    check_again_if_remote(check, together->source, item);
    conclude(check, item);
}

/* Runs checks of components of one file, from hashing to waking their waiters, and frees them. The
 * caller holds the generation. */
static void run_checks(struct generation *generation, struct check *const checks[], size_t count)
{
    const struct zt_model *model = generation->model;
    const struct zt_files files = generation_files(generation);
    struct zt_component_to_check items[VERIFIER_TOGETHER];
    struct zt_progress progress[VERIFIER_TOGETHER];
    struct together together = {
        .checks = checks,
        .items = items,
        .source = zt_files_source(&files, &model->components[checks[0]->component])};
    const struct zt_checked_sink sink = {take_checked, &together};

    assert(count > 0 && count <= VERIFIER_TOGETHER);
    for (size_t i = 0; i < count; i++) {
        progress[i] = (struct zt_progress){on_hashed, checks[i]};
        items[i].component = &model->components[checks[i]->component];
        items[i].progress = &progress[i];
        items[i].check = (struct zt_component_check){.verdict = ZT_VERDICT_UNSUPPORTED};
        assert(checks[i]->generation == generation);
    }
    zt_components_check(model, together.source, items, count, &sink);
}

static void run_check_job(struct job *job)
{
    struct check *check = (struct check *)job;
    /* The check's own reference ends with it. */
    struct generation *generation = generation_hold(check->generation);

    run_checks(generation, &check, 1);
    generation_release(generation);
}

void verifier_check_together(struct verifier *verifier, struct generation *generation,
                             const uint32_t components[], size_t count, struct run *run)
{
    struct check *checks[VERIFIER_TOGETHER];
    size_t begun = 0;

    assert(count <= VERIFIER_TOGETHER);
    if (verification_of(generation) == NULL)
        return;
    pthread_mutex_lock(&verification_of(generation)->lock);
    for (size_t i = 0; i < count; i++) {
        checks[begun] = add_check(verifier, generation, components[i]);
        if (checks[begun] != NULL)
            checks[begun++]->run = run;
    }
    pthread_mutex_unlock(&verification_of(generation)->lock);
    if (begun > 0)
        run_checks(generation, checks, begun);
}

void verifier_check_now(struct verifier *verifier, struct generation *generation,
                        uint32_t component)
{
    verifier_check_together(verifier, generation, &component, 1, NULL);
}

/* --- asking --- */

/* Joins the running check, or starts one (*out_begun, which the caller must submit). The lock must
 * be held. */
static enum component_state join_check(struct verifier *verifier, struct generation *generation,
                                       uint32_t component, struct waiter *waiter,
                                       struct check **out_begun)
{
    enum component_state state = atomic_load(&generation->states[component]);
    const struct trouble *trouble;
    struct check *check = NULL;

    if (state == COMPONENT_CHECKING) {
        check = check_of(verification_of(generation), component);
    } else if (state == COMPONENT_UNCHECKED) {
        trouble = find_trouble(verification_of(generation), component);
        if (atomic_load(&verifier->stopping) || trouble != NULL)
            return trouble != NULL && trouble->is_unreachable ? COMPONENT_UNAVAILABLE
                                                              : COMPONENT_CORRUPT;
        *out_begun = check = add_check(verifier, generation, component);
        if (check != NULL)
            check->job.client = waiter->client;
    } else {
        return state;
    }
    if (check == NULL)
        return COMPONENT_CORRUPT;
    if (check != *out_begun)
        workers_share(server_waiters(verifier->server), &check->job, waiter->client);
    waiter->next = check->waiters;
    check->waiters = waiter;
    return COMPONENT_CHECKING;
}

/* A component without a digest is trusted, unless the digest of its shard covers it. */
static enum component_state ask_undigested(struct verifier *verifier, struct generation *generation,
                                           uint32_t component, struct waiter *waiter)
{
    const uint32_t shard = generation->model->components[component].shard;
    enum component_state state = COMPONENT_VERIFIED;

    if (shard != 0 && generation->model->shards[shard - 1].digest != NULL)
        state = verifier_ask_shard(verifier, generation, shard - 1, waiter);
    return state == COMPONENT_CHECKING || state == COMPONENT_CORRUPT ||
                   state == COMPONENT_UNAVAILABLE
               ? state
               : COMPONENT_UNDIGESTED;
}

enum component_state verifier_insist(struct verifier *verifier, struct generation *generation,
                                     uint32_t component, struct waiter *waiter)
{
    enum component_state state = atomic_load(&generation->states[component]);
    struct check *begun = NULL;

    if (state == COMPONENT_UNDIGESTED)
        return ask_undigested(verifier, generation, component, waiter);
    if (state != COMPONENT_UNCHECKED && state != COMPONENT_CHECKING)
        return state;
    /* Without memory for verdicts no component can be checked, so none is served. */
    if (verification_of(generation) == NULL)
        return COMPONENT_CORRUPT;
    pthread_mutex_lock(&verification_of(generation)->lock);
    state = join_check(verifier, generation, component, waiter, &begun);
    /* Submit it under the lock, so that requests that join the check find it queued. */
    if (begun != NULL) {
        begun->job.run = run_check_job;
        workers_submit_sized(server_waiters(verifier->server), &begun->job,
                             generation->model->components[component].length);
    }
    pthread_mutex_unlock(&verification_of(generation)->lock);
    return state;
}

enum component_state verifier_ask(struct verifier *verifier, struct generation *generation,
                                  uint32_t component, struct waiter *waiter)
{
    enum component_state state;

    if (verifier->server->config->verify != CONFIG_VERIFY_OFF)
        return verifier_insist(verifier, generation, component, waiter);
    state = atomic_load(&generation->states[component]);
    return state == COMPONENT_CHECKING ? COMPONENT_UNCHECKED : state;
}
