#include "download/incoming.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "disk/disk_file.h"
#include "download/piece_map.h"

/* The longest run of one request, since each costs a round trip. In small files each job gets two
 * runs. */
#define RUN_BYTES ((uint64_t)16 << 20)
/* A job that received this much retries at once. A job that receives less before each stall makes
 * no progress. */
#define MUCH_BYTES ((uint64_t)1 << 14)
/* Waiting reads are woken after this many pieces, and at the end of a run: that is more expensive
 * than a piece. */
#define WAKING_PIECES 16
/* Tries of a stream that may end after bytes arrived: each begins again. */
#define BREAKS_MOST 2
#define TURN_MS     100
#define JOURNAL_MS  100
#define SYNC_MS     30000
/* st_blocks counts in these. */
#define BLOCK_UNIT 512

struct job {
    struct incoming *incoming;
    struct remote_exchange exchange;
    uint64_t at; /* the next byte */
    uint64_t end;
    uint32_t end_piece; /* after the last one of the run */
    uint64_t tried_at;  /* where the last try began */
    unsigned failures;  /* tries in a row without progress */
    unsigned breaks;    /* tries with progress */
    int64_t due_ms;     /* of the next try */
    enum { JOB_IDLE, JOB_FLYING, JOB_ENDED, JOB_PAUSED } state;
    struct zt_error error; /* of writing */
};

struct incoming_source {
    struct zt_source source; /* first */
    struct incoming *incoming;
    bool is_wanted;
    bool is_open; /* under the lock */
};

struct incoming {
    const struct download *download;
    const struct web_file *web;
    const struct part_file *file;
    struct copied_bytes *copied;
    struct client *client; /* only of these jobs, so that they can be interrupted alone */
    struct job *jobs;
    unsigned job_count;
    uint64_t resumed_bytes;
    uint64_t copied_bytes;
    atomic_uint_least64_t received; /* bytes */
    uint64_t seed;                  /* of pauses */
    struct incoming_source following;
    struct incoming_source wanted;
    /* The journal. */
    char pieces[PIECE_TEXT_SIZE];
    char synced[PIECE_TEXT_SIZE];
    uint32_t journaled; /* number of pieces in the journal */
    int64_t journal_due_ms;
    int64_t sync_due_ms;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a piece arrived, a read waits, something failed, a request or a
                             * source ended */
    /* Under the lock. */
    struct piece_map map;
    uint32_t cursor; /* the piece to fetch next: where the last read waits */
    bool has_failed;
    struct zt_error error;
};

static void fail(struct incoming *incoming, const struct zt_error *error)
{
    assert(error->status != ZT_OK);
    if (!incoming->has_failed)
        incoming->error = *error;
    incoming->has_failed = true;
    pthread_cond_broadcast(&incoming->changed);
}

/* --- reading --- */

/* Waits, under the lock, until a range has arrived. is_wanted: it is fetched next. */
static enum zt_status await(struct incoming *incoming, uint64_t offset, uint64_t length,
                            bool is_wanted, struct zt_error *error)
{
    struct piece_map *map = &incoming->map;

    assert(offset <= map->size && length <= map->size - offset);
    while (!incoming->has_failed && !piece_map_has(map, offset, length)) {
        for (uint32_t i = piece_map_at(map, offset);
             is_wanted && i <= piece_map_at(map, offset + length - 1); i++)
            if (map->states[i] == PIECE_MISSING) {
                incoming->cursor = i;
                break;
            }
        pthread_cond_wait(&incoming->changed, &incoming->lock);
    }
    if (!incoming->has_failed)
        return ZT_OK;
    *error = incoming->error;
    return error->status;
}

static enum zt_status read_file(const struct incoming *incoming, uint64_t offset, uint8_t *to,
                                size_t length, struct zt_error *error)
{
    while (length > 0) {
        const ssize_t got = pread(incoming->file->descriptor, to, length, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return disk_fail(error, "the part file cannot be read");
        if (got == 0)
            return zt_fail(error, ZT_IO, NULL, offset, "the part file has been truncated");
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return ZT_OK;
}

static struct incoming_source *cast(const struct zt_source *source)
{
    return (struct incoming_source *)(uintptr_t)source;
}

/* The size of a stream is known at its end. */
static uint64_t size(const struct zt_source *source)
{
    struct incoming *incoming = cast(source)->incoming;
    uint64_t bytes;

    pthread_mutex_lock(&incoming->lock);
    while (!incoming->has_failed && incoming->map.size == UINT64_MAX)
        pthread_cond_wait(&incoming->changed, &incoming->lock);
    bytes = incoming->map.size != UINT64_MAX ? incoming->map.size : 0;
    pthread_mutex_unlock(&incoming->lock);
    return bytes;
}

static enum zt_status read_at(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error)
{
    struct incoming *incoming = cast(source)->incoming;
    const uint64_t bytes = size(source);
    enum zt_status status;

    if (offset > bytes || length > bytes - offset)
        return zt_fail(error, ZT_IO, NULL, offset, "the file ends before");
    pthread_mutex_lock(&incoming->lock);
    status = await(incoming, offset, length, cast(source)->is_wanted, error);
    pthread_mutex_unlock(&incoming->lock);
    return status == ZT_OK ? read_file(incoming, offset, buffer, length, error) : status;
}

static const uint8_t *map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void close_source(struct zt_source *source)
{
    struct incoming *incoming = cast(source)->incoming;

    pthread_mutex_lock(&incoming->lock);
    assert(cast(source)->is_open);
    cast(source)->is_open = false;
    pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}

struct zt_source *incoming_source(struct incoming *incoming, bool is_wanted)
{
    static const struct zt_source_ops ops = {
        .size = size, .read_at = read_at, .map = map, .close = close_source};
    struct incoming_source *source = is_wanted ? &incoming->wanted : &incoming->following;

    assert(!source->is_open);
    *source = (struct incoming_source){{.ops = &ops}, incoming, is_wanted, true};
    return &source->source;
}

/* --- receiving, on the remote's thread --- */

static bool accept(struct remote_exchange *exchange)
{
    const struct web_file *web = ((const struct job *)exchange->context)->incoming->web;

    return (web->has_ranges || exchange->head.status == 200) &&
           web_file_is_same(web, &exchange->head);
}

/* Marks the pieces that end within the bytes that have just arrived. */
static void take_pieces(struct job *job, uint64_t from)
{
    struct incoming *incoming = job->incoming;
    struct piece_map *map = &incoming->map;

    for (uint32_t i = piece_map_at(map, from);
         i < job->end_piece && (piece_map_end(map, i) <= job->at || job->at == job->end); i++) {
        pthread_mutex_lock(&incoming->lock);
        assert(map->states[i] == PIECE_FLYING);
        piece_map_set(map, i, copied_bytes_state(incoming->copied, map, i));
        if (i % WAKING_PIECES == 0 || job->at == job->end)
            pthread_cond_broadcast(&incoming->changed);
        pthread_mutex_unlock(&incoming->lock);
    }
}

static bool take(struct remote_exchange *exchange, const void *bytes, size_t length)
{
    struct job *job = exchange->context;
    const uint64_t from = job->at;

    if (length > job->end - job->at ||
        part_file_write(job->incoming->file, from, bytes, length, &job->error) != ZT_OK)
        return false;
    job->at += length;
    atomic_fetch_add(&job->incoming->received, length);
    if (length > 0)
        take_pieces(job, from);
    return true;
}

static void done(struct remote_exchange *exchange)
{
    struct job *job = exchange->context;
    struct incoming *incoming = job->incoming;

    pthread_mutex_lock(&incoming->lock);
    assert(job->state == JOB_FLYING);
    job->state = JOB_ENDED;
    pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}

/* --- requests, under the lock --- */

/* Returns true if another try may succeed. A server that drips bytes and then stalls would
 * otherwise hold a pull forever. */
static bool may_try_again(struct job *job)
{
    const uint64_t received = job->at - job->tried_at;
    const bool has_ranges = job->incoming->web->has_ranges;
    const bool has_stalled = has_ranges && job->exchange.failure == REMOTE_FAILURE_TIMEOUT;

    assert(job->at >= job->tried_at);
    job->failures = received >= (has_stalled ? MUCH_BYTES : 1) ? 0 : job->failures + 1;
    job->breaks += received > 0 ? 1 : 0;
    return job->failures <= client_failures_most(&job->exchange) &&
           (has_ranges || job->breaks <= BREAKS_MOST);
}

/* The rest of a run, or the stream, is requested again after a pause. */
static enum zt_status judge_failure(struct job *job, struct zt_error *error)
{
    struct incoming *incoming = job->incoming;
    enum zt_status status;

    if (job->error.status != ZT_OK) {
        *error = job->error;
        return error->status;
    }
    status = web_file_failure(incoming->web, &job->exchange, error);
    if (status != ZT_UNAVAILABLE || !may_try_again(job))
        return status;
    job->state = JOB_PAUSED;
    job->due_ms = clock_ms();
    if (!incoming->web->has_ranges || job->at - job->tried_at < MUCH_BYTES)
        job->due_ms += (int64_t)client_pause_ms(&job->exchange, job->failures, &incoming->seed);
    return ZT_OK;
}

static enum zt_status end_stream(struct job *job, struct zt_error *error)
{
    struct incoming *incoming = job->incoming;

    if (job->exchange.status != ZT_OK || job->exchange.head.status != 200)
        return judge_failure(job, error);
    if (incoming->web->size != UINT64_MAX && incoming->web->size != job->at)
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file on the server has changed");
    job->state = JOB_IDLE;
    incoming->map.size = job->at;
    piece_map_set(&incoming->map, 0, PIECE_HERE);
    pthread_cond_broadcast(&incoming->changed);
    return ZT_OK;
}

static enum zt_status judge(struct job *job, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    if (!job->incoming->web->has_ranges)
        status = end_stream(job, error);
    else if (job->at == job->end)
        job->state = JOB_IDLE;
    else
        status = judge_failure(job, error);
    remote_exchange_free(&job->exchange);
    return status;
}

static bool take_run(struct job *job)
{
    struct incoming *incoming = job->incoming;
    struct piece_map *map = &incoming->map;
    const uint64_t share = map->size / incoming->job_count / 2;
    uint32_t first;
    uint32_t end;

    if (!piece_map_find(map, incoming->cursor, share < RUN_BYTES ? share : RUN_BYTES, &first, &end))
        return false;
    job->end_piece = copied_bytes_shorten(incoming->copied, map, first, end, &job->at, &job->end);
    for (uint32_t i = first; i < job->end_piece; i++)
        piece_map_set(map, i, PIECE_FLYING);
    incoming->cursor = job->end_piece % map->count;
    job->failures = 0;
    return true;
}

/* Releases the lock for a moment: done may be called at once. */
static enum zt_status begin(struct job *job, struct zt_error *error)
{
    struct remote_exchange *exchange = &job->exchange;
    struct incoming *incoming = job->incoming;

    assert(job->state == JOB_PAUSED || job->state == JOB_IDLE);
    assert(job->at < job->end && job->end <= incoming->map.size);
    if (!incoming->web->has_ranges) {
        job->at = 0;
        atomic_store(&incoming->received, 0);
        if (part_file_truncate(incoming->file, 0, error) != ZT_OK)
            return error->status;
    }
    job->state = JOB_FLYING;
    job->tried_at = job->at;
    web_file_prepare(incoming->client, incoming->web, job->at, job->end - 1, exchange);
    client_limit_tries(exchange, 1);
    exchange->accept = accept;
    exchange->take = take;
    exchange->done = done;
    exchange->context = job;
    pthread_mutex_unlock(&incoming->lock);
    client_begin(incoming->client, exchange);
    pthread_mutex_lock(&incoming->lock);
    return ZT_OK;
}

/* Handles requests that have ended and begins new ones. */
static enum zt_status turn(struct incoming *incoming, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (unsigned i = 0; i < incoming->job_count && status == ZT_OK; i++) {
        struct job *job = &incoming->jobs[i];

        if (job->state == JOB_ENDED)
            status = judge(job, error);
        if (status == ZT_OK && ((job->state == JOB_PAUSED && clock_ms() >= job->due_ms) ||
                                (job->state == JOB_IDLE && take_run(job))))
            status = begin(job, error);
    }
    return status;
}

/* --- running --- */

/* Releases the lock while it writes. */
static enum zt_status write_journal(struct incoming *incoming, struct zt_error *error)
{
    const uint32_t here = incoming->map.here - incoming->map.copied;
    const int64_t now_ms = clock_ms();
    enum zt_status status;

    assert(incoming->journaled <= here);
    if (!incoming->web->has_ranges || now_ms < incoming->journal_due_ms ||
        incoming->journaled == here)
        return ZT_OK;
    piece_map_write(&incoming->map, incoming->pieces);
    pthread_mutex_unlock(&incoming->lock);
    if (now_ms >= incoming->sync_due_ms && fdatasync(incoming->file->descriptor) == 0) {
        memcpy(incoming->synced, incoming->pieces, sizeof(incoming->synced));
        incoming->sync_due_ms = clock_ms() + SYNC_MS;
    }
    status = piece_journal_write(incoming->file->journal, incoming->download->url, incoming->web,
                                 incoming->pieces, incoming->synced, error);
    incoming->journaled = here;
    incoming->journal_due_ms = clock_ms() + JOURNAL_MS;
    pthread_mutex_lock(&incoming->lock);
    return status;
}

static void report_progress(const struct incoming *incoming)
{
    const struct download *download = incoming->download;
    const uint64_t total = incoming->web->size;

    download->report_progress(download->context, total != UINT64_MAX ? total : 0,
                              incoming->resumed_bytes + incoming->copied_bytes,
                              atomic_load(&incoming->received));
}

static void note_copied(void *context, uint64_t bytes)
{
    struct incoming *incoming = context;

    incoming->copied_bytes = bytes;
    report_progress(incoming);
}

static bool is_over(const struct incoming *incoming)
{
    return incoming->has_failed || (piece_map_is_whole(&incoming->map) &&
                                    !incoming->wanted.is_open && !incoming->following.is_open);
}

void incoming_run(struct incoming *incoming)
{
    enum zt_status status = ZT_OK; /* of requests and the journal */
    struct zt_error error;
    bool is_rejected;

    pthread_mutex_lock(&incoming->lock);
    while (status == ZT_OK && !is_over(incoming)) {
        status = turn(incoming, &error);
        if (status == ZT_OK)
            status = write_journal(incoming, &error);
        report_progress(incoming);
        if (status == ZT_OK && !is_over(incoming))
            thread_wait_ms(&incoming->changed, &incoming->lock, TURN_MS);
    }
    report_progress(incoming);
    is_rejected = incoming->has_failed;
    if (status != ZT_OK)
        fail(incoming, &error);
    incoming->journal_due_ms = 0;
    if (!is_rejected && status != ZT_STALE)
        (void)write_journal(incoming, &error);
    pthread_mutex_unlock(&incoming->lock);
}

void incoming_fail(struct incoming *incoming, const struct zt_error *error)
{
    pthread_mutex_lock(&incoming->lock);
    fail(incoming, error);
    pthread_mutex_unlock(&incoming->lock);
}

enum zt_status incoming_outcome(struct incoming *incoming, struct download_result *result,
                                struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    pthread_mutex_lock(&incoming->lock);
    if (incoming->has_failed) {
        *error = incoming->error;
        status = error->status;
    }
    assert(status != ZT_OK || piece_map_is_whole(&incoming->map));
    result->size = incoming->map.size;
    result->resumed = incoming->resumed_bytes;
    result->copied = incoming->copied_bytes;
    result->received = atomic_load(&incoming->received);
    pthread_mutex_unlock(&incoming->lock);
    return status;
}

/* --- beginning and end --- */

static enum zt_status check_room(const struct incoming *incoming, struct zt_error *error)
{
    const uint64_t bytes = incoming->web->size;
    struct statvfs disk;
    struct stat file;
    uint64_t there;
    uint64_t room;

    if (fstat(incoming->file->descriptor, &file) != 0 ||
        fstatvfs(incoming->file->descriptor, &disk) != 0)
        return ZT_OK;
    there = (uint64_t)file.st_blocks * BLOCK_UNIT;
    room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (there < bytes && bytes - there > room)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the disk has room for %" PRIu64 " bytes, the file has %" PRIu64 " more",
                       room, bytes - there);
    return ZT_OK;
}

/* Sets the part file's length, and discards its bytes if the journal has no pieces of them. */
static enum zt_status take_up(struct incoming *incoming, struct zt_error *error)
{
    struct piece_map *map = &incoming->map;
    struct stat file;

    if (check_room(incoming, error) != ZT_OK)
        return error->status;
    piece_journal_read(incoming->file->journal, incoming->download->url, incoming->web, map);
    /* If the file was truncated, its pieces are gone. */
    if (map->here > 0 && (fstat(incoming->file->descriptor, &file) != 0 ||
                          (uint64_t)file.st_size != incoming->web->size))
        piece_map_init(map, incoming->web->size);
    incoming->resumed_bytes = piece_map_bytes(map);
    incoming->journaled = map->here;
    if (map->here == 0 && part_file_truncate(incoming->file, 0, error) != ZT_OK)
        return error->status;
    return part_file_truncate(incoming->file, incoming->web->size, error);
}

static enum zt_status prepare(struct incoming *incoming, struct zt_error *error)
{
    struct client_options options = *incoming->download->options;

    piece_map_init(&incoming->map, incoming->web->has_ranges ? incoming->web->size : UINT64_MAX);
    if (incoming->web->has_ranges && take_up(incoming, error) != ZT_OK)
        return error->status;
    if (incoming->web->has_ranges)
        copied_bytes_make(incoming->copied, incoming->file, &incoming->map, note_copied, incoming);
    incoming->jobs = calloc(incoming->job_count, sizeof(*incoming->jobs));
    if (incoming->jobs == NULL)
        return zt_fail_memory(error, "requests");
    for (unsigned i = 0; i < incoming->job_count; i++)
        incoming->jobs[i].incoming = incoming;
    options.connections = incoming->job_count;
    return client_open(&options, &incoming->client, error);
}

enum zt_status incoming_open(const struct download *download, const struct web_file *web,
                             const struct part_file *file, struct copied_bytes *copied,
                             struct incoming **out_incoming, struct zt_error *error)
{
    struct incoming *incoming = calloc(1, sizeof(*incoming));
    enum zt_status status;

    assert(file->descriptor >= 0 && (!web->has_ranges || web->size != UINT64_MAX));
    assert(download->options->connections > 0);
    if (incoming == NULL)
        return zt_fail_memory(error, "a transfer");
    incoming->download = download;
    incoming->web = web;
    incoming->file = file;
    incoming->copied = copied;
    incoming->job_count = web->has_ranges ? download->options->connections : 1;
    incoming->seed = (uint64_t)clock_wall_ns() | 1;
    incoming->sync_due_ms = clock_ms() + SYNC_MS;
    pthread_mutex_init(&incoming->lock, NULL);
    pthread_cond_init(&incoming->changed, NULL);
    status = prepare(incoming, error);
    if (status != ZT_OK) {
        incoming_close(incoming);
        return status;
    }
    *out_incoming = incoming;
    return ZT_OK;
}

void incoming_close(struct incoming *incoming)
{
    if (incoming->client != NULL)
        client_interrupt(incoming->client);
    pthread_mutex_lock(&incoming->lock);
    assert(!incoming->wanted.is_open && !incoming->following.is_open);
    for (unsigned i = 0; incoming->client != NULL && i < incoming->job_count; i++) {
        while (incoming->jobs[i].state == JOB_FLYING)
            pthread_cond_wait(&incoming->changed, &incoming->lock);
        if (incoming->jobs[i].state == JOB_ENDED)
            remote_exchange_free(&incoming->jobs[i].exchange);
    }
    pthread_mutex_unlock(&incoming->lock);
    client_close(incoming->client);
    free(incoming->jobs);
    pthread_cond_destroy(&incoming->changed);
    pthread_mutex_destroy(&incoming->lock);
    free(incoming);
}
