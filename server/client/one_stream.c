#include "client/one_stream.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

/* Tries that may end after bytes arrived: each begins again. */
#define BREAKS_MOST 2
#define TURN_MS     100

struct stream {
    const struct download *download;
    const struct web_file *web;
    const struct part_file *file;
    struct remote_exchange exchange;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    uint64_t received; /* under the lock, as is_done */
    unsigned breaks;   /* tries that ended after bytes arrived */
    unsigned failures; /* since then */
    uint64_t seed;     /* of pauses */
    uint64_t pause_ms; /* before the next try */
    bool failed_to_write;
    struct zt_error error; /* of writing */
};

/* --- on the remote's thread --- */

static bool accept(struct remote_exchange *exchange)
{
    const struct stream *stream = exchange->context;

    return exchange->head.status == 200 && web_file_is_same(stream->web, &exchange->head);
}

static bool take(struct remote_exchange *exchange, const void *bytes, size_t length)
{
    struct stream *stream = exchange->context;

    if (part_file_write(stream->file, stream->received, bytes, length, &stream->error) != ZT_OK) {
        stream->failed_to_write = true;
        return false;
    }
    pthread_mutex_lock(&stream->lock);
    stream->received += length;
    pthread_mutex_unlock(&stream->lock);
    return true;
}

static void done(struct remote_exchange *exchange)
{
    struct stream *stream = exchange->context;

    pthread_mutex_lock(&stream->lock);
    stream->is_done = true;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

/* --- on the caller's --- */

static void await(struct stream *stream)
{
    const struct download *download = stream->download;
    const uint64_t total = stream->web->size != UINT64_MAX ? stream->web->size : 0;

    pthread_mutex_lock(&stream->lock);
    while (!stream->is_done) {
        thread_wait_ms(&stream->changed, &stream->lock, TURN_MS);
        download->report_progress(download->context, total, 0, stream->received);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* Returns true if another try may succeed. */
static bool may_try_again(struct stream *stream)
{
    const struct remote_exchange *exchange = &stream->exchange;

    stream->failures = stream->received > 0 ? 0 : stream->failures + 1;
    stream->breaks += stream->received > 0 ? 1 : 0;
    stream->pause_ms = client_pause_ms(exchange, stream->failures, &stream->seed);
    return stream->breaks <= BREAKS_MOST && stream->failures <= client_failures_most(exchange);
}

static enum zt_status judge(struct stream *stream, struct zt_error *error)
{
    const struct remote_exchange *exchange = &stream->exchange;

    if (stream->failed_to_write) {
        *error = stream->error;
        return error->status;
    }
    if (exchange->status != ZT_OK || exchange->head.status != 200)
        return web_file_failure(stream->web, exchange, error);
    if (stream->web->size != UINT64_MAX && stream->received != stream->web->size)
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file on the server has changed");
    return ZT_OK;
}

static enum zt_status try_once(struct stream *stream, struct client *client, bool *out_again,
                               struct zt_error *error)
{
    enum zt_status status;

    if (part_file_truncate(stream->file, 0, error) != ZT_OK)
        return error->status;
    stream->is_done = false;
    stream->received = 0;
    web_file_prepare(client, stream->web, 0, 0, &stream->exchange);
    client_limit_tries(&stream->exchange, 1);
    stream->exchange.accept = accept;
    stream->exchange.take = take;
    stream->exchange.done = done;
    stream->exchange.context = stream;
    client_begin(client, &stream->exchange);
    await(stream);
    status = judge(stream, error);
    *out_again = status == ZT_UNAVAILABLE && may_try_again(stream);
    remote_exchange_free(&stream->exchange);
    return status;
}

enum zt_status one_stream_fetch(const struct download *download, struct client *client,
                                const struct web_file *web, const struct part_file *file,
                                uint64_t *out_size_bytes, struct zt_error *error)
{
    struct stream stream = {.download = download,
                            .web = web,
                            .file = file,
                            .seed = (uint64_t)clock_wall_ns() | 1,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    bool again = false;
    enum zt_status status;

    assert(!web->has_ranges && file->descriptor >= 0);
    status = try_once(&stream, client, &again, error);
    while (again) {
        const struct timespec pause = {(time_t)(stream.pause_ms / 1000),
                                       (long)(stream.pause_ms % 1000) * CLOCK_NS_PER_MS};

        nanosleep(&pause, NULL);
        again = false;
        status = try_once(&stream, client, &again, error);
    }
    *out_size_bytes = stream.received;
    return status;
}
