/* One thread runs the requests and writes the journal, one checks the file while it arrives, and
 * one hashes it if the server states a digest. */
#include "download/download.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "download/incoming.h"
#include "download/part_file.h"
#include "download/replaceable.h"
#include "zt/shards.h"

/* Maximum number of versions that one pull tries, if the file changes during it. */
#define VERSIONS_MOST 4

/* One version that is fetched and checked at once. */
struct transfer {
    const struct download *download;
    struct copied_bytes copied;
    struct incoming *incoming;
    struct zt_source *wanted;    /* of the check, which closes it */
    struct zt_source *following; /* of the hashing thread */
    bool is_hashed;
    struct zt_digest digest;
};

/* --- the digest of the whole --- */

/* Compares a complete and checked file with the server's digest. Asks for that if the file's own
 * digests are not enough; the server may have none. */
static enum zt_status check_digest(struct transfer *transfer, struct client *client,
                                   struct web_file *web, struct zt_error *error)
{
    const struct download *download = transfer->download;
    enum zt_status status = ZT_OK;

    const bool needs_digest = transfer->copied.needs_digest && transfer->copied.count > 0;

    if (!web->has_sha256 && !download->wants_digest && !needs_digest &&
        download->is_covered(download->context))
        return ZT_OK;
    if (!web_file_ask_digest(client, web))
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file on the server has changed");
    if (!web->has_sha256 && needs_digest)
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                       "the server states no digest of the file any more, so that the bytes from "
                       "local files cannot be checked");
    if (!web->has_sha256)
        return ZT_OK;
    if (!transfer->is_hashed) {
        struct zt_source *source = incoming_source(transfer->incoming, false);

        status = zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &transfer->digest, error);
        zt_source_close(source);
    }
    if (status != ZT_OK)
        return status;
    assert(transfer->digest.length_bytes == sizeof(web->sha256));
    if (memcmp(transfer->digest.bytes, web->sha256, sizeof(web->sha256)) == 0)
        return ZT_OK;
    return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                   "the bytes do not match the server's digest of the file");
}

/* --- the threads --- */

static void *check(void *argument)
{
    struct transfer *transfer = argument;
    const struct download *download = transfer->download;
    struct zt_error error;

    zt_error_clear(&error);
    if (download->check(download->context, transfer->wanted, &error) != ZT_OK)
        incoming_fail(transfer->incoming, &error);
    return NULL;
}

static void *hash(void *argument)
{
    struct transfer *transfer = argument;
    struct zt_error error;

    zt_error_clear(&error);
    if (zt_source_digest(transfer->following, ZT_DIGEST_SHA256, NULL, &transfer->digest, &error) !=
        ZT_OK)
        incoming_fail(transfer->incoming, &error);
    zt_source_close(transfer->following);
    return NULL;
}

/* Hashes a file while it arrives if the server is expected to state a digest. A stream can only be
 * read at its end, when the server has been asked. */
static bool start_hashing(struct transfer *transfer, const struct web_file *web,
                          pthread_t *out_thread)
{
    if (!web->has_ranges || (!web->has_sha256 && !transfer->download->wants_digest))
        return false;
    transfer->following = incoming_source(transfer->incoming, false);
    if (thread_start(out_thread, "hash", hash, transfer) == 0)
        return true;
    zt_source_close(transfer->following);
    return false;
}

static enum zt_status run_threads(struct transfer *transfer, struct client *client,
                                  struct web_file *web, struct download_result *result,
                                  struct zt_error *error)
{
    pthread_t checker;
    pthread_t hasher;
    enum zt_status status;

    transfer->wanted = incoming_source(transfer->incoming, true);
    if (thread_start(&checker, "check", check, transfer) != 0) {
        zt_source_close(transfer->wanted);
        return zt_fail_memory(error, "a thread");
    }
    transfer->is_hashed = start_hashing(transfer, web, &hasher);
    incoming_run(transfer->incoming);
    pthread_join(checker, NULL);
    if (transfer->is_hashed)
        pthread_join(hasher, NULL);
    status = incoming_outcome(transfer->incoming, result, error);
    return status == ZT_OK ? check_digest(transfer, client, web, error) : status;
}

static enum zt_status fetch(const struct download *download, struct client *client,
                            struct web_file *web, const struct part_file *file,
                            struct download_result *result, struct zt_error *error)
{
    struct transfer transfer = {.download = download};
    struct differences *differences = &transfer.copied.differences;
    enum zt_status status = ZT_OK;

    differences->client = client;
    differences->place = &web->place;
    differences->jobs = download->options->connections;
    if (download->find_local != NULL && web->has_ranges)
        status = download->find_local(download->context, client, web, &transfer.copied, error);
    if (status == ZT_OK)
        status = incoming_open(download, web, file, &transfer.copied, &transfer.incoming, error);
    if (status == ZT_OK) {
        status = run_threads(&transfer, client, web, result, error);
        incoming_close(transfer.incoming);
        result->made = differences->made_bytes;
        result->differences = differences->received_bytes;
    }
    copied_bytes_free(&transfer.copied);
    return status;
}

/* --- versions --- */

/* Returns true if the fetched bytes are useless: wrong, or from a version that is gone. */
static bool is_worthless(enum zt_status status)
{
    return status == ZT_STALE || status == ZT_CORRUPT || status == ZT_INVALID ||
           status == ZT_UNSUPPORTED;
}

/* Takes over the digest of a list, which is of another version if the server states another one
 * now. */
static enum zt_status expect_digest(const struct download *download, struct web_file *web,
                                    struct zt_error *error)
{
    if (download->sha256 == NULL)
        return ZT_OK;
    if (web->has_sha256 && memcmp(web->sha256, download->sha256, sizeof(web->sha256)) != 0)
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                       "the file on the server has changed since it was listed");
    web->has_sha256 = true;
    memcpy(web->sha256, download->sha256, sizeof(web->sha256));
    return ZT_OK;
}

static enum zt_status pull_version(const struct download *download, struct client *client,
                                   struct part_file *file, struct download_result *result,
                                   struct zt_error *error)
{
    struct web_file web;
    enum zt_status status = web_file_open(client, &download->place, &web, error);

    if (status == ZT_OK)
        status = expect_digest(download, &web, error);
    if (status != ZT_OK)
        return status;
    result->size = web.size;
    memcpy(result->axis_suggestion, web.axis_suggestion, sizeof(result->axis_suggestion));
    if (web_file_is_at(client, &web, file->path)) {
        result->was_there = true;
        return ZT_OK;
    }
    if (!download->replaces_any && replaceable_check(file->path, error) != ZT_OK)
        return error->status;
    status = part_file_open(file, error);
    if (status != ZT_OK)
        return status;
    status = fetch(download, client, &web, file, result, error);
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

static enum zt_status pull_versions(const struct download *download, struct client *client,
                                    struct part_file *file, struct download_result *result,
                                    struct zt_error *error)
{
    enum zt_status status = ZT_STALE;

    for (unsigned i = 0; i < VERSIONS_MOST && status == ZT_STALE; i++) {
        *result = (struct download_result){.size = 0};
        status = pull_version(download, client, file, result, error);
    }
    return status;
}

/* If the file is wrong, bytes of local files may be the reason: fetches all of it. */
static enum zt_status pull_again(const struct download *download, struct client *client,
                                 struct part_file *file, struct download_result *result,
                                 struct zt_error *error)
{
    struct download plain = *download;
    enum zt_status status;

    plain.find_local = NULL;
    status = pull_versions(&plain, client, file, result, error);
    result->is_again = true;
    return status;
}

enum zt_status download_run(const struct download *download, struct download_result *out_result,
                            struct zt_error *error)
{
    struct download_result result = {0};
    struct part_file file;
    struct client *client = NULL;
    enum zt_status status = part_file_init(&file, download->path, download->replaces_any, error);

    if (status == ZT_OK)
        status = client_open(download->options, &client, error);
    if (status == ZT_OK)
        status = pull_versions(download, client, &file, &result, error);
    if (result.copied > 0 && status != ZT_STALE && is_worthless(status))
        status = pull_again(download, client, &file, &result, error);
    if (status == ZT_UNAVAILABLE)
        add_hint(&file, error);
    client_close(client);
    part_file_free(&file);
    if (status == ZT_OK)
        *out_result = result;
    return status;
}
