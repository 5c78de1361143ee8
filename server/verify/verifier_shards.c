/* Checks shards against the digests that the model states for them; these cover components without
 * their own digests. A shard is hashed as a whole, once for all its components, and the verdict is
 * kept as long as the generation. */
#include "verify/verifier_work.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

/* How long to wait before a shard that cannot be read is tried again. */
#define RETRY_NS CLOCK_NS_PER_S

/* The state of one shard of a generation, under the lock of the generation's verdicts. */
struct shard_check {
    enum component_state state;
    struct waiter *waiters;
    uint32_t round;          /* number of the last run that hashed it */
    struct hashing *hashing; /* queued or running on a worker */
    int64_t retry_ns; /* set if CORRUPT or UNAVAILABLE only means that the shard could not be read;
                       * else 0 */
};

struct hashing {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    struct generation *generation;
    uint32_t shard;
};

static bool may_hash_on(void *context, uint64_t bytes)
{
    const struct hashing *hashing = context;

    (void)bytes;
    return !atomic_load(&hashing->verifier->stopping);
}

static enum zt_status hash_shard(struct hashing *hashing, struct zt_error *error)
{
    struct generation *generation = hashing->generation;
    const struct zt_progress progress = {may_hash_on, hashing};
    const struct zt_shard *stated = &generation->model->shards[hashing->shard];
    struct zt_source *source = generation->shards.sources[hashing->shard];
    enum zt_status status = zt_shard_check_digest(stated, source, &progress, error);

    /* Wrong bytes from a remote store may be a transfer error, so fetch them again. */
    if (status == ZT_CORRUPT && source != NULL &&
        zt_source_invalidate(source, 0, zt_source_size(source)))
        status = zt_shard_check_digest(stated, source, &progress, error);
    if ((status == ZT_OK || status == ZT_CORRUPT) && !generation_is_unwritten(generation))
        status =
            zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the file was changed while it was read");
    return status;
}

static enum component_state state_of(enum zt_status status)
{
    switch (status) {
    case ZT_OK:
        return COMPONENT_VERIFIED;
    case ZT_UNSUPPORTED:
        return COMPONENT_UNSUPPORTED;
    case ZT_UNAVAILABLE:
    case ZT_STALE:
        return COMPONENT_UNAVAILABLE;
    default:
        return COMPONENT_CORRUPT;
    }
}

static bool is_covered(const struct zt_component *component, uint32_t shard)
{
    return component->digest == NULL && component->shard == shard + 1;
}

/* Records the verdict for components that are covered only by the shard's digest. The lock must be
 * held. */
static void record_components(struct generation *generation, uint32_t shard, bool corrupt)
{
    const struct zt_shard *stated = &generation->model->shards[shard];
    struct verification *verification = verification_of(generation);
    char expected[ZT_DIGEST_TEXT_SIZE];

    snprintf(expected, sizeof(expected), "%.*s", (int)stated->digest_length, stated->digest);
    for (uint32_t i = 0; i < generation->model->component_count; i++) {
        if (!is_covered(&generation->model->components[i], shard))
            continue;
        verification_set(generation, i, corrupt ? COMPONENT_CORRUPT : COMPONENT_UNDIGESTED);
        /* Skip this once the list is full: removing a component's old failure takes a search. */
        if (!corrupt || verification->failure_count < FAILURES_MAX)
            verification_note_digest(generation, i, corrupt ? expected : NULL, "");
    }
}

static void run_hashing(struct job *job)
{
    struct hashing *hashing = (struct hashing *)job;
    struct generation *generation = hashing->generation;
    struct shard_check *known = &verification_of(generation)->shards[hashing->shard];
    struct zt_error error;
    struct waiter *waiter;
    enum zt_status status;

    zt_error_clear(&error);
    status = hash_shard(hashing, &error);
    if (status != ZT_OK && status != ZT_UNSUPPORTED && status != ZT_ARGUMENT)
        log_write(LOG_LEVEL_ERROR, "%s: %s", generation->path, error.message);
    pthread_mutex_lock(&verification_of(generation)->lock);
    waiter = known->waiters;
    *known = (struct shard_check){.state = state_of(status), .round = known->round};
    if (status == ZT_OK || status == ZT_CORRUPT)
        record_components(generation, hashing->shard, status == ZT_CORRUPT);
    /* A shard that was not hashed completely, or could not be read, may still be correct. */
    if (status != ZT_OK && status != ZT_UNSUPPORTED && status != ZT_CORRUPT)
        known->retry_ns = clock_ns() + RETRY_NS;
    pthread_mutex_unlock(&verification_of(generation)->lock);
    if (status == ZT_OK || status == ZT_CORRUPT)
        verifier_mark_dirty(hashing->verifier, generation);
    waiters_wake(waiter);
    generation_release(generation);
    free(hashing);
}

/* Returns NULL if out of memory. The lock must be held. */
static struct hashing *begin(struct verifier *verifier, struct generation *generation,
                             uint32_t shard)
{
    struct hashing *hashing = calloc(1, sizeof(*hashing));

    if (hashing == NULL)
        return NULL;
    hashing->job.run = run_hashing;
    hashing->verifier = verifier;
    hashing->generation = generation_hold(generation);
    hashing->shard = shard;
    return hashing;
}

/* Returns NULL if out of memory, or if the verifier is stopping. The lock must be held. */
static struct shard_check *check_of_shard(struct verifier *verifier, struct generation *generation,
                                          uint32_t shard)
{
    struct verification *verification = verification_of(generation);

    if (verification->shards == NULL)
        verification->shards = calloc(generation->shards.count, sizeof(*verification->shards));
    if (verification->shards == NULL || atomic_load(&verifier->stopping))
        return NULL;
    assert(shard < generation->shards.count);
    return &verification->shards[shard];
}

/* Returns the known state, or adds the waiter. The lock must be held. */
static enum component_state join(struct verifier *verifier, struct generation *generation,
                                 uint32_t shard, struct waiter *waiter, struct hashing **out_begun)
{
    struct shard_check *known = check_of_shard(verifier, generation, shard);

    if (known == NULL)
        return COMPONENT_CORRUPT;
    if (known->retry_ns != 0 && known->retry_ns <= clock_ns())
        *known = (struct shard_check){.state = COMPONENT_UNCHECKED};
    if (known->state == COMPONENT_UNCHECKED) {
        *out_begun = begin(verifier, generation, shard);
        if (*out_begun != NULL)
            (*out_begun)->job.client = waiter->client;
        known->hashing = *out_begun;
        known->state = *out_begun != NULL ? COMPONENT_CHECKING : COMPONENT_UNCHECKED;
    }
    if (known->state == COMPONENT_CHECKING) {
        if (*out_begun == NULL && known->hashing != NULL)
            workers_share(server_waiters(verifier->server), &known->hashing->job, waiter->client);
        waiter->next = known->waiters;
        known->waiters = waiter;
    }
    return known->state != COMPONENT_UNCHECKED ? known->state : COMPONENT_CORRUPT;
}

enum component_state verifier_ask_shard(struct verifier *verifier, struct generation *generation,
                                        uint32_t shard, struct waiter *waiter)
{
    struct hashing *begun = NULL;
    enum component_state state;

    if (generation->model->shards[shard].digest == NULL)
        return COMPONENT_UNDIGESTED;
    if (verification_of(generation) == NULL)
        return COMPONENT_CORRUPT;
    pthread_mutex_lock(&verification_of(generation)->lock);
    state = join(verifier, generation, shard, waiter, &begun);
    /* Submit it under the lock, so that requests that join find it queued. */
    if (begun != NULL)
        workers_submit_long(server_waiters(verifier->server), &begun->job);
    pthread_mutex_unlock(&verification_of(generation)->lock);
    return state;
}

void verifier_check_shard_now(struct verifier *verifier, struct generation *generation,
                              uint32_t shard)
{
    struct verification *verification = verification_of(generation);
    struct shard_check *known;
    struct hashing *begun = NULL;

    if (generation->model->shards[shard].digest == NULL)
        return;
    pthread_mutex_lock(&verification->lock);
    known = check_of_shard(verifier, generation, shard);
    if (known != NULL && known->round != verification->round &&
        known->state != COMPONENT_CHECKING) {
        begun = begin(verifier, generation, shard);
        known->state = begun != NULL ? COMPONENT_CHECKING : known->state;
        known->round = verification->round;
    }
    pthread_mutex_unlock(&verification->lock);
    if (begun != NULL)
        run_hashing(&begun->job);
}
