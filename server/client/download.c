/* Fetches a file by ranges or as one stream. With ranges, one thread runs the requests and writes
 * the journal, one checks the file while it arrives, and one hashes it if the server states a
 * digest. */
#include "client/download.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "client/one_stream.h"
#include "client/part_file.h"
#include "client/pull_journal.h"
#include "client/range_jobs.h"
#include "zt/shards.h"

/* Maximum number of versions that one pull tries, if the file changes during it. */
#define VERSIONS_MOST 4
#define TURN_MS       100
#define JOURNAL_MS    100
#define SYNC_MS       30000

/* Fetching one version by ranges. */
struct transfer {
    const struct download *download;
    const struct web_file *web;
    struct incoming incoming;
    struct range_jobs jobs;
    struct pull_journal journal;
    struct piece_map snapshot;
    char synced[PIECE_TEXT_SIZE];
    bool has_synced;
    int64_t journal_due_ms;
    int64_t sync_due_ms;
    uint32_t journaled; /* number of pieces in the journal */
    uint64_t before;
    /* Written by the checking threads, under the incoming file's lock. */
    bool is_checked;
    bool is_hashed;
    enum zt_status verdict;
    struct zt_error error;
    struct zt_digest digest;
};

/* --- the digest of the whole --- */

/* Asks the server for a digest of the whole, if the file's own digests are not enough. */
static enum zt_status ask_digest(const struct download *download, struct web_file *web,
                                 struct zt_error *error)
{
    struct client *client = NULL;
    bool is_same;

    if (web->has_sha256 || (!download->wants_digest && download->is_covered(download->context)))
        return ZT_OK;
    if (client_open(download->options, &client, error) != ZT_OK)
        return error->status;
    is_same = web_file_ask_digest(client, web);
    client_close(client);
    return is_same
               ? ZT_OK
               : zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file on the server has changed");
}

/* Compares a complete and checked file with the server's digest, if there is one. known: the digest
 * of the source's bytes, or NULL. */
static enum zt_status check_digest(const struct download *download, struct web_file *web,
                                   struct zt_source *source, const struct zt_digest *known,
                                   struct zt_error *error)
{
    struct zt_digest digest;

    if (ask_digest(download, web, error) != ZT_OK)
        return error->status;
    if (!web->has_sha256)
        return ZT_OK;
    if (known == NULL && zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, error) != ZT_OK)
        return error->status;
    if (known == NULL)
        known = &digest;
    assert(known->algorithm == ZT_DIGEST_SHA256 && known->length_bytes == sizeof(web->sha256));
    if (memcmp(known->bytes, web->sha256, sizeof(web->sha256)) == 0)
        return ZT_OK;
    return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                   "the bytes do not match the server's digest of the file");
}

/* --- the threads --- */

static void end_thread(struct transfer *transfer, bool *out_flag, enum zt_status status,
                       const struct zt_error *error)
{
    struct incoming *incoming = &transfer->incoming;

    pthread_mutex_lock(&incoming->lock);
    assert(!*out_flag);
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
    end_thread(transfer, &transfer->is_checked,
               transfer->download->check(transfer->download->context,
                                         &transfer->incoming.wanted.source, &error),
               &error);
    return NULL;
}

static void *hash(void *argument)
{
    struct transfer *transfer = argument;
    struct zt_error error;

    zt_error_clear(&error);
    end_thread(transfer, &transfer->is_hashed,
               zt_source_digest(&transfer->incoming.following.source, ZT_DIGEST_SHA256, NULL,
                                &transfer->digest, &error),
               &error);
    return NULL;
}

/* --- the journal --- */

/* Called under the lock, which it releases while it writes. */
static enum zt_status write_journal(struct transfer *transfer, struct zt_error *error)
{
    const int64_t now_ms = clock_ms();
    struct incoming *incoming = &transfer->incoming;
    enum zt_status status;

    assert(transfer->journaled <= incoming->map.here);
    if (now_ms < transfer->journal_due_ms || transfer->journaled == incoming->map.here)
        return ZT_OK;
    transfer->snapshot = incoming->map;
    pthread_mutex_unlock(&incoming->lock);
    if (now_ms >= transfer->sync_due_ms && fdatasync(incoming->file->descriptor) == 0) {
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

static bool is_over(const struct transfer *transfer)
{
    return transfer->verdict != ZT_OK || (piece_map_is_whole(&transfer->incoming.map) &&
                                          transfer->is_checked && transfer->is_hashed);
}

static void report_progress(struct transfer *transfer)
{
    const struct download *download = transfer->download;

    download->report_progress(download->context, transfer->web->size, transfer->before,
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
        report_progress(transfer);
        if (status == ZT_OK && !is_over(transfer))
            thread_wait_ms(&incoming->changed, &incoming->lock, TURN_MS);
    }
    report_progress(transfer);
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

static enum zt_status run_threads(struct transfer *transfer, struct web_file *web,
                                  struct zt_error *error)
{
    const bool is_to_be_hashed = web->has_sha256 || transfer->download->wants_digest;
    pthread_t checker;
    pthread_t hasher;
    bool has_hasher;
    enum zt_status status;

    transfer->is_hashed = !is_to_be_hashed;
    if (thread_start(&checker, "check", check, transfer) != 0)
        return zt_fail_memory(error, "a thread");
    has_hasher = is_to_be_hashed && thread_start(&hasher, "hash", hash, transfer) == 0;
    if (!has_hasher)
        transfer->is_hashed = true;
    status = turn(transfer, error);
    pthread_join(checker, NULL);
    if (has_hasher)
        pthread_join(hasher, NULL);
    if (status != ZT_OK)
        return status;
    assert(piece_map_is_whole(&transfer->incoming.map) && transfer->is_checked);
    return check_digest(transfer->download, web, &transfer->incoming.following.source,
                        has_hasher ? &transfer->digest : NULL, error);
}

static enum zt_status run_transfer(struct transfer *transfer, struct web_file *web,
                                   struct zt_error *error)
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
    status = run_threads(transfer, web, error);
    range_jobs_close(&transfer->jobs);
    return status;
}

static enum zt_status fetch_ranges(const struct download *download, struct web_file *web,
                                   const struct part_file *file, uint64_t *out_before,
                                   struct zt_error *error)
{
    struct transfer *transfer = calloc(1, sizeof(*transfer));
    enum zt_status status;

    assert(web->has_ranges && web->size != UINT64_MAX && file->descriptor >= 0);
    if (transfer == NULL)
        return zt_fail_memory(error, "a transfer");
    transfer->download = download;
    transfer->web = web;
    transfer->journal = (struct pull_journal){file->journal, download->url, web};
    transfer->jobs =
        (struct range_jobs){.incoming = &transfer->incoming, .file = web, .count = download->jobs};
    transfer->sync_due_ms = clock_ms() + SYNC_MS;
    status = incoming_open(&transfer->incoming, file, web->size, error);
    if (status == ZT_OK) {
        status = run_transfer(transfer, web, error);
        *out_before = transfer->before;
        incoming_close(&transfer->incoming);
    }
    free(transfer);
    return status;
}

/* The file is checked once it is complete. */
static enum zt_status fetch_stream(const struct download *download, struct client *client,
                                   struct web_file *web, const struct part_file *file,
                                   uint64_t *out_size_bytes, struct zt_error *error)
{
    struct zt_source *source = NULL;
    struct zt_source *whole = NULL;
    enum zt_status status = one_stream_fetch(download, client, web, file, out_size_bytes, error);

    if (status == ZT_OK)
        status = zt_source_open_file(file->part, &source, error);
    if (status == ZT_OK)
        status = download->check(download->context, source, error);
    if (status == ZT_OK)
        status = zt_source_open_file(file->part, &whole, error);
    if (status == ZT_OK)
        status = check_digest(download, web, whole, NULL, error);
    zt_source_close(whole);
    return status;
}

/* --- versions --- */

/* Returns true if the fetched bytes are useless: wrong, or from a version that is gone. */
static bool is_worthless(enum zt_status status)
{
    return status == ZT_STALE || status == ZT_CORRUPT || status == ZT_INVALID ||
           status == ZT_UNSUPPORTED;
}

static enum zt_status pull_version(const struct download *download, struct client *client,
                                   struct part_file *file, struct download_result *result,
                                   struct zt_error *error)
{
    struct web_file web;
    enum zt_status status = web_file_open(client, &download->place, &web, error);

    if (status != ZT_OK)
        return status;
    result->size = web.size;
    memcpy(result->axis_suggestion, web.axis_suggestion, sizeof(result->axis_suggestion));
    if (web_file_is_at(client, &web, file->path)) {
        result->was_there = true;
        return ZT_OK;
    }
    status = part_file_open(file, error);
    if (status != ZT_OK)
        return status;
    status = web.has_ranges ? fetch_ranges(download, &web, file, &result->resumed, error)
                            : fetch_stream(download, client, &web, file, &result->size, error);
    if (status == ZT_OK)
        status = part_file_publish(file, error);
    result->has_sha256 = web.has_sha256;
    /* A stream cannot be resumed. */
    if (is_worthless(status) || (status != ZT_OK && (!web.has_ranges || part_file_is_blank(file))))
        part_file_remove(file);
    part_file_close(file);
    return status;
}

/* A further try fetches only the rest. */
static void add_hint(const struct part_file *file, struct zt_error *error)
{
    static const char hint[] = "; run the same command again to resume";
    struct zt_error plain = *error;

    if (access(file->part, F_OK) != 0)
        return;
    zt_fail(error, plain.status, plain.rule, plain.offset, "%.*s%s",
            (int)(sizeof(error->message) - sizeof(hint)), plain.message, hint);
    error->os_error = plain.os_error;
}

enum zt_status download_run(const struct download *download, struct download_result *out_result,
                            struct zt_error *error)
{
    struct download_result result = {0};
    struct part_file file;
    struct client *client = NULL;
    enum zt_status status = part_file_init(&file, download->path, download->replaces_any, error);

    assert(download->jobs > 0 && download->jobs <= RANGE_JOBS_MAX);
    if (status == ZT_OK)
        status = client_open(download->options, &client, error);
    if (status == ZT_OK) {
        status = ZT_STALE;
        for (unsigned i = 0; i < VERSIONS_MOST && status == ZT_STALE; i++)
            status = pull_version(download, client, &file, &result, error);
    }
    if (status == ZT_UNAVAILABLE)
        add_hint(&file, error);
    client_close(client);
    part_file_free(&file);
    if (status == ZT_OK)
        *out_result = result;
    return status;
}
