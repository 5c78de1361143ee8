/* Whoever holds the lock reads, so that the end never waits for a job that has not begun. */
#include "upload/shared/body_follower.h"

#include <stdlib.h>

#define PIECE_BYTES ((size_t)256 << 10)
/* Less than this is not worth a job. */
#define FOLLOW_BYTES ((uint64_t)1 << 20)
/* What one job reads at most: others wait for the worker too. */
#define JOB_BYTES ((uint64_t)8 << 20)

static void run_follow(struct job *job);

bool body_follower_init(struct body_follower *follower)
{
    pthread_mutex_init(&follower->lock, NULL);
    follower->job.run = run_follow;
    follower->buffer = malloc(PIECE_BYTES);
    return follower->buffer != NULL;
}

void body_follower_free(struct body_follower *follower)
{
    free(follower->buffer);
    pthread_mutex_destroy(&follower->lock);
}

uint64_t body_follower_received(struct body_follower *follower)
{
    return atomic_load(&follower->received);
}

/* With the lock held. */
static enum zt_status take_to(struct body_follower *follower, uint64_t end)
{
    uint64_t at = atomic_load(&follower->taken);
    struct zt_error *error = &follower->error;
    struct zt_source *source;
    enum zt_status status;

    if (error->status != ZT_OK || at >= end)
        return error->status;
    status = follower->server->store->ops->read_back(follower->stored, &source, error);
    while (status == ZT_OK && at < end) {
        size_t length = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;

        status = zt_source_read_at(source, follower->base + at, follower->buffer, length, error);
        if (status == ZT_OK)
            status = follower->sink.take(follower->sink.context, follower->buffer, length, error);
        if (status == ZT_OK) {
            at += length;
            atomic_store(&follower->taken, at);
        }
    }
    error->status = status;
    return status;
}

/* A failure here is told when the rest is taken. */
static void run_follow(struct job *job)
{
    struct body_follower *follower =
        (struct body_follower *)((char *)job - offsetof(struct body_follower, job));
    uint64_t end;
    uint64_t most;

    pthread_mutex_lock(&follower->lock);
    end = atomic_load(&follower->received);
    most = atomic_load(&follower->taken) + JOB_BYTES;
    (void)take_to(follower, end < most ? end : most);
    pthread_mutex_unlock(&follower->lock);
    atomic_store(&follower->is_queued, false);
    follower->release(follower->owner);
}

void body_follower_advance(struct body_follower *follower, uint64_t length)
{
    uint64_t received = atomic_fetch_add(&follower->received, length) + length;

    if (received - atomic_load(&follower->taken) < FOLLOW_BYTES ||
        atomic_exchange(&follower->is_queued, true))
        return;
    follower->hold(follower->owner);
    workers_submit(follower->server->workers, &follower->job);
}

void body_follower_count(struct body_follower *follower, uint64_t length)
{
    atomic_fetch_add(&follower->received, length);
}

void body_follower_take(struct body_follower *follower, uint64_t at, const void *bytes,
                        size_t length)
{
    const struct zt_sink *sink = &follower->sink;

    pthread_mutex_lock(&follower->lock);
    if (take_to(follower, at) == ZT_OK)
        follower->error.status = sink->take(sink->context, bytes, length, &follower->error);
    if (follower->error.status == ZT_OK)
        atomic_store(&follower->taken, at + length);
    pthread_mutex_unlock(&follower->lock);
}

enum zt_status body_follower_finish(struct body_follower *follower, struct zt_error *error)
{
    enum zt_status status;

    pthread_mutex_lock(&follower->lock);
    status = take_to(follower, atomic_load(&follower->received));
    pthread_mutex_unlock(&follower->lock);
    if (status != ZT_OK)
        *error = follower->error;
    return status;
}
