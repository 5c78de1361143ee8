/* Any worker may continue reading under the lock, so the end never waits for a queued job. */
#include "upload/shared/body_follower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((size_t)256 << 10)
/* Less than this is not worth a job. */
#define FOLLOW_BYTES ((uint64_t)1 << 20)
/* The most that one job reads, since other jobs wait for the worker. */
#define JOB_BYTES ((uint64_t)8 << 20)

/* --- digests --- */

enum { SHA256, SHA512, XXH3 };

bool byte_digests_init(struct byte_digests *digests, bool with_sha512, bool with_xxh3)
{
    assert(digests->hashers[SHA256] == NULL);
    return zt_hasher_new(ZT_DIGEST_SHA256, &digests->hashers[SHA256]) == ZT_OK &&
           (!with_sha512 || zt_hasher_new(ZT_DIGEST_SHA512, &digests->hashers[SHA512]) == ZT_OK) &&
           (!with_xxh3 || zt_hasher_new(ZT_DIGEST_XXH3, &digests->hashers[XXH3]) == ZT_OK);
}

/* Each hasher gets a piece while it is in the processor's cache. */
void byte_digests_update(struct byte_digests *digests, const void *bytes, size_t length)
{
    for (int i = SHA256; i <= XXH3; i++)
        if (digests->hashers[i] != NULL)
            zt_hasher_update(digests->hashers[i], bytes, length);
}

enum zt_status byte_digests_take(void *context, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    (void)error;
    byte_digests_update(context, bytes, length);
    return ZT_OK;
}

void byte_digests_finish(struct byte_digests *digests)
{
    struct zt_digest *const values[] = {&digests->sha256, &digests->sha512, &digests->xxh3};

    for (int i = SHA256; i <= XXH3; i++)
        if (digests->hashers[i] != NULL)
            zt_hasher_finish(digests->hashers[i], values[i]);
}

void byte_digests_free(struct byte_digests *digests)
{
    for (int i = SHA256; i <= XXH3; i++) {
        zt_hasher_free(digests->hashers[i]);
        digests->hashers[i] = NULL;
    }
}

bool byte_digests_agree(const struct byte_digests *digests, const struct digest_field *field)
{
    assert(!field->has_sha512 || digests->hashers[SHA512] != NULL);
    return (!field->has_sha256 ||
            memcmp(field->sha256, digests->sha256.bytes, sizeof(field->sha256)) == 0) &&
           (!field->has_sha512 ||
            memcmp(field->sha512, digests->sha512.bytes, sizeof(field->sha512)) == 0);
}

/* --- life, and jobs --- */

static void run_job(struct job *job);

void body_follower_init(struct body_follower *follower, void *owner, void (*free)(void *owner))
{
    follower->owner = owner;
    follower->free = free;
    follower->job.run = run_job;
    atomic_init(&follower->references, 1);
    pthread_mutex_init(&follower->lock, NULL);
}

void body_follower_destroy(struct body_follower *follower)
{
    assert(atomic_load(&follower->references) == 0);
    assert(!atomic_load(&follower->is_queued));
    pthread_mutex_destroy(&follower->lock);
}

void body_follower_release(struct body_follower *follower)
{
    unsigned before = atomic_fetch_sub(&follower->references, 1);

    assert(before > 0);
    if (before == 1)
        follower->free(follower->owner);
}

static void run_job(struct job *job)
{
    struct body_follower *follower =
        (struct body_follower *)((char *)job - offsetof(struct body_follower, job));

    follower->work(follower->work_context);
    atomic_store(&follower->is_queued, false);
    body_follower_release(follower);
}

bool body_follower_run(struct body_follower *follower, void (*work)(void *context), void *context)
{
    if (atomic_exchange(&follower->is_queued, true))
        return false;
    follower->work = work;
    follower->work_context = context;
    atomic_fetch_add(&follower->references, 1);
    follower->job.client = atomic_load(&follower->client);
    workers_submit(follower->workers, &follower->job);
    return true;
}

static void do_nothing(void *context)
{
    (void)context;
}

/* The job's reference is then the last one. */
void body_follower_release_on_worker(struct body_follower *follower)
{
    (void)body_follower_run(follower, do_nothing, NULL);
    body_follower_release(follower);
}

/* --- following --- */

uint64_t body_follower_received(const struct body_follower *follower)
{
    return atomic_load(&follower->received);
}

void body_follower_stop(struct body_follower *follower)
{
    pthread_mutex_lock(&follower->lock);
    follower->stored = NULL;
    pthread_mutex_unlock(&follower->lock);
}

static enum zt_status give_to_sink(struct body_follower *follower, const void *bytes, size_t length)
{
    struct zt_error *error = &follower->sink_error;

    assert(error->status == ZT_OK);
    error->status = follower->sink.take(follower->sink.context, bytes, length, error);
    if (error->status == ZT_OK)
        atomic_fetch_add(&follower->taken, length);
    return error->status;
}

/* With the lock held. */
static enum zt_status read_to(struct body_follower *follower, uint64_t end, uint8_t *buffer,
                              struct zt_error *error)
{
    uint64_t at = atomic_load(&follower->taken);
    struct zt_source *source;
    enum zt_status status = follower->store->ops->read_back(follower->stored, &source, error);

    while (status == ZT_OK && at < end) {
        size_t length = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;

        status = zt_source_read_at(source, follower->base + at, buffer, length, error);
        if (status == ZT_OK)
            status = give_to_sink(follower, buffer, length);
        at += length;
    }
    if (follower->sink_error.status != ZT_OK)
        *error = follower->sink_error;
    return status;
}

/* With the lock held. Does nothing once the end was taken: then there is no file to read either. */
static enum zt_status take_to(struct body_follower *follower, uint64_t end, struct zt_error *error)
{
    enum zt_status status;
    uint8_t *buffer;

    if (follower->sink_error.status != ZT_OK) {
        *error = follower->sink_error;
        return error->status;
    }
    if (atomic_load(&follower->taken) >= end)
        return ZT_OK;
    assert(end <= atomic_load(&follower->received));
    if (follower->stored == NULL)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the body was given up");
    buffer = malloc(PIECE_BYTES);
    if (buffer == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to read a body with");
    status = read_to(follower, end, buffer, error);
    free(buffer);
    return status;
}

/* A failure occurs again when the rest is taken, and is reported then. */
static void catch_up(void *context)
{
    struct body_follower *follower = context;
    struct zt_error ignored;
    uint64_t end;
    uint64_t most;

    pthread_mutex_lock(&follower->lock);
    end = atomic_load(&follower->received);
    most = atomic_load(&follower->taken) + JOB_BYTES;
    (void)take_to(follower, end < most ? end : most, &ignored);
    pthread_mutex_unlock(&follower->lock);
}

void body_follower_advance(struct body_follower *follower, uint64_t length)
{
    uint64_t received = atomic_fetch_add(&follower->received, length) + length;
    uint64_t taken = atomic_load(&follower->taken);

    if (received >= taken + FOLLOW_BYTES)
        (void)body_follower_run(follower, catch_up, follower);
}

/* While the follower keeps up, the two workers are never that far apart. */
void body_follower_count(struct body_follower *follower, uint64_t length)
{
    const uint64_t received = atomic_fetch_add(&follower->received, length) + length;

    if (received >= atomic_load(&follower->taken) + JOB_BYTES)
        (void)body_follower_run(follower, catch_up, follower);
}

/* Whether what is missing up to there can be read back, and is little. With the lock held. */
static bool is_near(const struct body_follower *follower, uint64_t at)
{
    return at <= atomic_load(&follower->received) && at < atomic_load(&follower->taken) + JOB_BYTES;
}

void body_follower_take(struct body_follower *follower, uint64_t at, const void *bytes,
                        size_t length)
{
    struct zt_error error;

    pthread_mutex_lock(&follower->lock);
    if ((atomic_load(&follower->taken) == at ||
         (is_near(follower, at) && take_to(follower, at, &error) == ZT_OK)) &&
        atomic_load(&follower->taken) == at && follower->sink_error.status == ZT_OK)
        (void)give_to_sink(follower, bytes, length);
    pthread_mutex_unlock(&follower->lock);
}

enum zt_status body_follower_finish(struct body_follower *follower, struct zt_error *error)
{
    enum zt_status status;

    pthread_mutex_lock(&follower->lock);
    status = take_to(follower, atomic_load(&follower->received), error);
    pthread_mutex_unlock(&follower->lock);
    return status;
}
