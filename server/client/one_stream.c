#include "client/one_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "zt/digest.h"

/* Of those in which something came: each begins again. */
#define BREAKS_MOST 2
#define TURN_MS     100

struct stream {
    const struct download *download;
    struct web_file file;
    int descriptor;
    struct remote_exchange exchange;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    uint64_t received; /* under the lock, as is_done */
    unsigned breaks;   /* tries that ended after something had come */
    unsigned failures; /* since then */
    uint64_t seed;     /* of pauses */
    uint64_t pause_ms; /* before the next try */
    struct zt_hasher *hasher;
    int os_error; /* of writing; 0: none */
};

/* --- on the remote's thread --- */

static bool accept(struct remote_exchange *exchange)
{
    const struct stream *stream = exchange->context;

    return exchange->head.status == 200 && web_file_is_same(&stream->file, &exchange->head);
}

static bool take(struct remote_exchange *exchange, const void *bytes, size_t length)
{
    struct stream *stream = exchange->context;
    const char *from = bytes;

    zt_hasher_update(stream->hasher, bytes, length);
    for (size_t left = length; left > 0;) {
        const ssize_t written = write(stream->descriptor, from, left);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            stream->os_error = errno;
            return false;
        }
        from += written;
        left -= (size_t)written;
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
    const uint64_t total = stream->file.size != UINT64_MAX ? stream->file.size : 0;

    pthread_mutex_lock(&stream->lock);
    while (!stream->is_done) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TURN_MS * CLOCK_NS_PER_MS;
        until.tv_sec += until.tv_nsec / CLOCK_NS_PER_S;
        until.tv_nsec %= CLOCK_NS_PER_S;
        pthread_cond_timedwait(&stream->changed, &stream->lock, &until);
        download->tell(download->context, total, 0, stream->received);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* Whether there is to be another try. */
static bool may_go_on(struct stream *stream)
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

    if (stream->os_error != 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the part file cannot be written: %s",
                       strerrordesc_np(stream->os_error));
    if (exchange->status != ZT_OK || exchange->head.status != 200)
        return web_file_failure(&stream->file, exchange, error);
    if (stream->file.size != UINT64_MAX && stream->received != stream->file.size)
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                       "the file on the server has become another one");
    return ZT_OK;
}

static enum zt_status try_once(struct stream *stream, struct client *client, bool *out_again,
                               struct zt_error *error)
{
    enum zt_status status;

    zt_hasher_free(stream->hasher);
    stream->hasher = NULL;
    if (zt_hasher_new(ZT_DIGEST_SHA256, &stream->hasher) != ZT_OK)
        return zt_fail_memory(error, "a digest");
    if (ftruncate(stream->descriptor, 0) != 0 || lseek(stream->descriptor, 0, SEEK_SET) != 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the part file cannot be written: %s",
                       strerrordesc_np(errno));
    stream->is_done = false;
    stream->received = 0;
    web_file_prepare(client, &stream->file, 0, 0, &stream->exchange);
    client_limit_tries(&stream->exchange, 1);
    stream->exchange.accept = accept;
    stream->exchange.take = take;
    stream->exchange.done = done;
    stream->exchange.context = stream;
    client_begin(client, &stream->exchange);
    await(stream);
    status = judge(stream, error);
    *out_again = status == ZT_UNAVAILABLE && may_go_on(stream);
    remote_exchange_free(&stream->exchange);
    return status;
}

static enum zt_status receive(struct stream *stream, struct client *client, struct zt_error *error)
{
    bool again = false;
    enum zt_status status = try_once(stream, client, &again, error);

    while (again) {
        const struct timespec pause = {(time_t)(stream->pause_ms / 1000),
                                       (long)(stream->pause_ms % 1000) * CLOCK_NS_PER_MS};

        nanosleep(&pause, NULL);
        again = false;
        status = try_once(stream, client, &again, error);
    }
    return status;
}

/* The part file is whole: checks it, and gives it its name. */
static enum zt_status finish(struct stream *stream, const struct part_paths *paths,
                             struct download_result *result, struct zt_error *error)
{
    const struct download *download = stream->download;
    struct zt_source *source = NULL;
    struct zt_digest digest;
    enum zt_status status;

    zt_hasher_finish(stream->hasher, &digest);
    status = zt_source_open_file(paths->part, &source, error);
    if (status == ZT_OK)
        status = download->check(download->context, source, error);
    if (status == ZT_OK)
        status = part_digest_check(download, &stream->file, digest.bytes, error);
    result->size = stream->received;
    result->has_sha256 = stream->file.has_sha256;
    return status == ZT_OK ? part_publish(paths, stream->descriptor, error) : status;
}

enum zt_status one_stream_run(const struct download *download, struct client *client,
                              const struct part_paths *paths, const struct web_file *file,
                              struct download_result *result, struct zt_error *error)
{
    struct stream stream = {.download = download,
                            .file = *file,
                            .seed = (uint64_t)clock_wall_ns() | 1,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    enum zt_status status = part_open(paths, &stream.descriptor, error);

    if (status != ZT_OK)
        return status;
    status = receive(&stream, client, error);
    if (status == ZT_OK)
        status = finish(&stream, paths, result, error);
    zt_hasher_free(stream.hasher);
    /* Nothing of it could be taken up. */
    if (status != ZT_OK)
        part_forget(paths);
    close(stream.descriptor);
    return status;
}
