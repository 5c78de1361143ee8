/* One thread turns the requests and writes the journal, one checks the file, one hashes it if the
 * server says what the whole should be. */
#include "client/download.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "client/one_stream.h"
#include "client/part_paths.h"
#include "client/pull_journal.h"
#include "client/range_jobs.h"

/* Versions of the file that may follow each other while it is pulled. */
#define VERSIONS_MOST 4
#define TURN_MS       100
#define JOURNAL_MS    100
#define SYNC_MS       30000

/* A transfer of one version. */
struct transfer {
    const struct download *download;
    struct part_paths paths;
    struct web_file file;
    struct incoming incoming;
    struct range_jobs jobs;
    struct pull_journal journal;
    struct piece_map snapshot;
    char synced[PIECE_TEXT_SIZE];
    bool has_synced;
    int64_t journal_due_ms;
    int64_t sync_due_ms;
    uint32_t journaled; /* pieces that the journal has */
    uint64_t before;
    /* The checking threads', under the incoming's lock. */
    bool is_checked;
    bool is_hashed;
    enum zt_status verdict;
    struct zt_error error;
    uint8_t sha256[32];
};

/* --- the threads --- */

static void end_thread(struct transfer *transfer, bool *out_flag, enum zt_status status,
                       const struct zt_error *error)
{
    struct incoming *incoming = &transfer->incoming;

    pthread_mutex_lock(&incoming->lock);
    *out_flag = true;
    if (status != ZT_OK && transfer->verdict == ZT_OK && !incoming->has_failed) {
        transfer->verdict = status;
        transfer->error = *error;
    }
    pthread_cond_broadcast(&incoming->changed);
    pthread_mutex_unlock(&incoming->lock);
}

static void *check(void *argument)
{
    struct transfer *transfer = argument;
    struct zt_error error;

    zt_error_clear(&error);
    end_thread(
        transfer, &transfer->is_checked,
        transfer->download->check(transfer->download->context, &transfer->incoming.source, &error),
        &error);
    return NULL;
}

static void *hash(void *argument)
{
    struct transfer *transfer = argument;
    struct zt_error error;

    end_thread(transfer, &transfer->is_hashed,
               incoming_hash(&transfer->incoming, transfer->sha256, &error), &error);
    return NULL;
}

/* --- the journal --- */

/* Under the lock, which is given up meanwhile. */
static enum zt_status write_journal(struct transfer *transfer, struct zt_error *error)
{
    const int64_t now_ms = clock_ms();
    struct incoming *incoming = &transfer->incoming;
    enum zt_status status;

    if (now_ms < transfer->journal_due_ms || transfer->journaled == incoming->map.here)
        return ZT_OK;
    transfer->snapshot = incoming->map;
    pthread_mutex_unlock(&incoming->lock);
    if (now_ms >= transfer->sync_due_ms && fdatasync(incoming->descriptor) == 0) {
        piece_map_write(&transfer->snapshot, transfer->synced);
        transfer->has_synced = true;
        transfer->sync_due_ms = clock_ms() + SYNC_MS;
    }
    status = pull_journal_write(&transfer->journal, &transfer->snapshot,
                                transfer->has_synced ? transfer->synced : NULL, error);
    transfer->journaled = transfer->snapshot.here;
    transfer->journal_due_ms = clock_ms() + JOURNAL_MS;
    pthread_mutex_lock(&incoming->lock);
    return status;
}

/* --- the loop --- */

static void pause_turn(struct incoming *incoming)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TURN_MS * CLOCK_NS_PER_MS;
    if (until.tv_nsec >= CLOCK_NS_PER_S) {
        until.tv_nsec -= CLOCK_NS_PER_S;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&incoming->changed, &incoming->lock, &until);
}

static bool is_over(const struct transfer *transfer)
{
    return transfer->verdict != ZT_OK || (piece_map_is_whole(&transfer->incoming.map) &&
                                          transfer->is_checked && transfer->is_hashed);
}

static void tell(struct transfer *transfer)
{
    const struct download *download = transfer->download;

    download->tell(download->context, transfer->file.size, transfer->before,
                   atomic_load(&transfer->jobs.received));
}

static enum zt_status turn(struct transfer *transfer, struct zt_error *error)
{
    struct incoming *incoming = &transfer->incoming;
    enum zt_status status = ZT_OK;

    pthread_mutex_lock(&incoming->lock);
    while (status == ZT_OK && !is_over(transfer)) {
        status = range_jobs_turn(&transfer->jobs, error);
        if (status == ZT_OK)
            status = write_journal(transfer, error);
        tell(transfer);
        if (status == ZT_OK && !is_over(transfer))
            pause_turn(incoming);
    }
    tell(transfer);
    transfer->journal_due_ms = 0;
    if (transfer->verdict != ZT_OK) {
        status = transfer->verdict;
        *error = transfer->error;
    } else if (status != ZT_STALE) {
        struct zt_error other;

        (void)write_journal(transfer, &other);
    }
    pthread_mutex_unlock(&incoming->lock);
    if (status != ZT_OK)
        incoming_fail(incoming, error);
    return status;
}

static enum zt_status with_threads(struct transfer *transfer, struct zt_error *error)
{
    pthread_t checker;
    pthread_t hasher;
    enum zt_status status;
    bool has_hasher = false;

    transfer->is_hashed = !(transfer->file.has_sha256 || transfer->download->wants_digest);
    if (thread_start(&checker, "check", check, transfer) != 0)
        return zt_fail_memory(error, "a thread");
    if (!transfer->is_hashed)
        has_hasher = thread_start(&hasher, "hash", hash, transfer) == 0;
    transfer->is_hashed = !has_hasher;
    status = turn(transfer, error);
    pthread_join(checker, NULL);
    if (has_hasher)
        pthread_join(hasher, NULL);
    if (status == ZT_OK && !has_hasher &&
        !transfer->download->is_covered(transfer->download->context)) {
        status = incoming_hash(&transfer->incoming, transfer->sha256, error);
        has_hasher = true;
    }
    if (status == ZT_OK && has_hasher)
        status = part_digest_check(transfer->download, &transfer->file, transfer->sha256, error);
    return status;
}

static enum zt_status run_jobs(struct transfer *transfer, struct zt_error *error)
{
    enum zt_status status;

    pull_journal_read(&transfer->journal, &transfer->incoming.map);
    status = incoming_begin(&transfer->incoming, error);
    transfer->before = piece_map_bytes(&transfer->incoming.map);
    transfer->journaled = transfer->incoming.map.here;
    if (status == ZT_OK)
        status = range_jobs_open(&transfer->jobs, transfer->download->options, error);
    if (status != ZT_OK)
        return status;
    status = with_threads(transfer, error);
    range_jobs_close(&transfer->jobs);
    return status;
}

/* What has come is of no use: wrong, or of a version that is gone. */
static bool is_worthless(enum zt_status status)
{
    return status == ZT_STALE || status == ZT_CORRUPT || status == ZT_INVALID ||
           status == ZT_UNSUPPORTED;
}

static enum zt_status transfer_into(int descriptor, const struct download *download,
                                    const struct part_paths *paths, const struct web_file *file,
                                    struct download_result *result, struct zt_error *error)
{
    struct transfer *transfer = calloc(1, sizeof(*transfer));
    enum zt_status status;

    if (transfer == NULL)
        return zt_fail_memory(error, "a transfer");
    transfer->download = download;
    transfer->file = *file;
    transfer->journal = (struct pull_journal){paths->journal, download->url, &transfer->file};
    transfer->jobs = (struct range_jobs){
        .incoming = &transfer->incoming, .file = &transfer->file, .count = download->jobs};
    transfer->sync_due_ms = clock_ms() + SYNC_MS;
    status = incoming_open(&transfer->incoming, descriptor, file->size, error);
    if (status != ZT_OK) {
        free(transfer);
        return status;
    }
    status = run_jobs(transfer, error);
    if (status == ZT_OK)
        status = part_publish(paths, descriptor, error);
    result->resumed = transfer->before;
    result->has_sha256 = transfer->file.has_sha256;
    incoming_close(&transfer->incoming);
    free(transfer);
    return status;
}

static enum zt_status transfer_ranges(const struct download *download,
                                      const struct part_paths *paths, const struct web_file *file,
                                      struct download_result *result, struct zt_error *error)
{
    int descriptor;
    enum zt_status status = part_open(paths, &descriptor, error);

    if (status != ZT_OK)
        return status;
    status = transfer_into(descriptor, download, paths, file, result, error);
    if (is_worthless(status) || (status != ZT_OK && part_is_blank(descriptor)))
        part_forget(paths);
    close(descriptor);
    return status;
}

/* --- versions --- */

static enum zt_status pull_version(const struct download *download, struct client *client,
                                   const struct part_paths *paths, struct download_result *result,
                                   struct zt_error *error)
{
    struct web_file file;
    enum zt_status status = web_file_open(client, &download->place, &file, error);

    if (status != ZT_OK)
        return status;
    result->size = file.size;
    if (part_is_there(client, paths, &file)) {
        result->was_there = true;
        return ZT_OK;
    }
    return file.has_ranges ? transfer_ranges(download, paths, &file, result, error)
                           : one_stream_run(download, client, paths, &file, result, error);
}

/* Whoever asks for it again gets the rest only. */
static void add_hint(const struct part_paths *paths, struct zt_error *error)
{
    static const char hint[] = "; the same command continues where this one stopped";
    struct zt_error plain = *error;

    if (access(paths->part, F_OK) != 0)
        return;
    zt_fail(error, plain.status, plain.rule, plain.offset, "%.*s%s",
            (int)(sizeof(error->message) - sizeof(hint)), plain.message, hint);
    error->os_error = plain.os_error;
}

enum zt_status download_run(const struct download *download, struct download_result *out_result,
                            struct zt_error *error)
{
    struct download_result result = {0};
    struct part_paths paths = {0};
    struct client *client = NULL;
    enum zt_status status = part_paths_make(&paths, download->path, error);

    assert(download->jobs > 0 && download->jobs <= RANGE_JOBS_MAX);
    if (status == ZT_OK)
        status = client_open(download->options, &client, error);
    if (status == ZT_OK) {
        status = ZT_STALE;
        for (unsigned i = 0; i < VERSIONS_MOST && status == ZT_STALE; i++)
            status = pull_version(download, client, &paths, &result, error);
    }
    if (status == ZT_UNAVAILABLE)
        add_hint(&paths, error);
    client_close(client);
    part_paths_free(&paths);
    if (status == ZT_OK)
        *out_result = result;
    return status;
}
