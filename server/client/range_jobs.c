#include "client/range_jobs.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

/* The longest run of one request, since each costs a round trip. In small files each job gets two
 * runs. */
#define RUN_BYTES ((uint64_t)16 << 20)
/* A job that received this much retries at once. A job that receives less before each stall makes
 * no progress. */
#define MUCH_BYTES ((uint64_t)1 << 14)
/* Waiting reads are woken after this many pieces, and at the end of a run. */
#define WAKING_PIECES 16

/* --- on the remote's thread --- */

static bool accept(struct remote_exchange *exchange)
{
    const struct range_job *job = exchange->context;

    return web_file_is_same(job->jobs->file, &exchange->head);
}

/* Marks the pieces that end within the bytes that have just arrived. */
static void take_pieces(struct range_job *job, uint64_t from)
{
    struct incoming *incoming = job->jobs->incoming;
    const struct piece_map *map = &incoming->map;

    for (uint32_t i = piece_map_at(map, from); i < map->count && piece_map_end(map, i) <= job->at;
         i++)
        incoming_take_piece(incoming, i, i % WAKING_PIECES == 0 || job->at == job->end);
}

static bool take(struct remote_exchange *exchange, const void *bytes, size_t length)
{
    struct range_job *job = exchange->context;
    const uint64_t from = job->at;

    if (length > job->end - job->at)
        return false;
    if (part_file_write(job->jobs->incoming->file, from, bytes, length, &job->error) != ZT_OK) {
        job->failed_to_write = true;
        return false;
    }
    job->at += length;
    atomic_fetch_add(&job->jobs->received, length);
    if (length > 0)
        take_pieces(job, from);
    return true;
}

static void done(struct remote_exchange *exchange)
{
    struct range_job *job = exchange->context;
    struct incoming *incoming = job->jobs->incoming;

    pthread_mutex_lock(&incoming->lock);
    assert(job->state == JOB_FLYING);
    job->state = JOB_ENDED;
    pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}

/* --- on the caller's --- */

enum zt_status range_jobs_open(struct range_jobs *jobs, const struct client_options *options,
                               struct zt_error *error)
{
    struct client_options own = *options;
    enum zt_status status;

    assert(jobs->count > 0 && jobs->count <= RANGE_JOBS_MAX);
    jobs->jobs = calloc(jobs->count, sizeof(*jobs->jobs));
    if (jobs->jobs == NULL)
        return zt_fail_memory(error, "requests");
    own.connections = jobs->count;
    status = client_open(&own, &jobs->client, error);
    if (status != ZT_OK) {
        free(jobs->jobs);
        return status;
    }
    for (unsigned i = 0; i < jobs->count; i++)
        jobs->jobs[i].jobs = jobs;
    jobs->seed = (uint64_t)clock_wall_ns() | 1;
    return ZT_OK;
}

/* Returns true if the last try made progress. A server that drips bytes and then stalls would
 * otherwise hold a pull forever. */
static bool made_progress(const struct range_job *job)
{
    const uint64_t received = job->at - job->tried_at;

    assert(job->at >= job->tried_at);
    return received >= (job->exchange.failure == REMOTE_FAILURE_TIMEOUT ? MUCH_BYTES : 1);
}

/* The rest of the run is requested again after a pause. */
static enum zt_status judge_failure(struct range_jobs *jobs, struct range_job *job,
                                    struct zt_error *error)
{
    enum zt_status status;

    if (job->failed_to_write) {
        *error = job->error;
        return error->status;
    }
    status = web_file_failure(jobs->file, &job->exchange, error);
    if (status != ZT_UNAVAILABLE)
        return status;
    job->failures = made_progress(job) ? 0 : job->failures + 1;
    if (job->failures > client_failures_most(&job->exchange))
        return status;
    job->state = JOB_PAUSED;
    job->due_ms = clock_ms();
    if (job->at - job->tried_at < MUCH_BYTES)
        job->due_ms += (int64_t)client_pause_ms(&job->exchange, job->failures, &jobs->seed);
    return ZT_OK;
}

static enum zt_status judge(struct range_jobs *jobs, struct range_job *job, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    if (job->at == job->end)
        job->state = JOB_IDLE;
    else
        status = judge_failure(jobs, job, error);
    remote_exchange_free(&job->exchange);
    return status;
}

static bool take_run(struct range_jobs *jobs, struct range_job *job)
{
    struct incoming *incoming = jobs->incoming;
    struct piece_map *map = &incoming->map;
    const uint64_t share = map->size / jobs->count / 2;
    uint32_t first;
    uint32_t end;

    if (!piece_map_find(map, incoming->cursor, share < RUN_BYTES ? share : RUN_BYTES, &first, &end))
        return false;
    for (uint32_t i = first; i < end; i++)
        piece_map_set(map, i, PIECE_FLYING);
    incoming->cursor = end % map->count;
    job->at = piece_map_begin(map, first);
    job->end = piece_map_end(map, end - 1);
    job->failures = 0;
    return true;
}

/* Called under the lock, which it releases for a moment: done may be called at once. */
static void begin(struct range_jobs *jobs, struct range_job *job)
{
    struct remote_exchange *exchange = &job->exchange;

    assert(job->state == JOB_PAUSED || job->state == JOB_IDLE);
    assert(job->at < job->end && job->end <= jobs->incoming->map.size);
    job->state = JOB_FLYING;
    job->tried_at = job->at;
    web_file_prepare(jobs->client, jobs->file, job->at, job->end - 1, exchange);
    client_limit_tries(exchange, 1);
    exchange->accept = accept;
    exchange->take = take;
    exchange->done = done;
    exchange->context = job;
    pthread_mutex_unlock(&jobs->incoming->lock);
    client_begin(jobs->client, exchange);
    pthread_mutex_lock(&jobs->incoming->lock);
}

enum zt_status range_jobs_turn(struct range_jobs *jobs, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (unsigned i = 0; i < jobs->count && status == ZT_OK; i++) {
        struct range_job *job = &jobs->jobs[i];

        if (job->state == JOB_ENDED)
            status = judge(jobs, job, error);
        if (status == ZT_OK && ((job->state == JOB_PAUSED && clock_ms() >= job->due_ms) ||
                                (job->state == JOB_IDLE && take_run(jobs, job))))
            begin(jobs, job);
    }
    return status;
}

void range_jobs_close(struct range_jobs *jobs)
{
    struct incoming *incoming = jobs->incoming;

    client_interrupt(jobs->client);
    pthread_mutex_lock(&incoming->lock);
    for (unsigned i = 0; i < jobs->count; i++) {
        while (jobs->jobs[i].state == JOB_FLYING)
            pthread_cond_wait(&incoming->changed, &incoming->lock);
        if (jobs->jobs[i].state == JOB_ENDED)
            remote_exchange_free(&jobs->jobs[i].exchange);
    }
    pthread_mutex_unlock(&incoming->lock);
    client_close(jobs->client);
    free(jobs->jobs);
}
