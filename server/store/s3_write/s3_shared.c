/* Files that the servers over one bucket keep for each other, so that only one of them fetches them
 * from far away: objects named by SHA-256. Every reader checks the bytes, so any server may write
 * them, and two servers may write the same object at once. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "store/s3/bucket_read.h"
#include "store/s3_write/s3_multipart.h"

/* Relative to the prefix. Not a model's name, so it is neither listed nor served. */
#define SHARED_PREFIX   ".ztserve/shared/"
#define SHARED_KEY_SIZE (sizeof(SHARED_PREFIX) + BUCKET_SHA256_SIZE)

/* A client waits meanwhile. */
#define FIND_MS 3000
/* The time limit of a write: for a small request, and for each MiB of its body. */
#define SMALL_MS       30000
#define BODY_MS_A_MIB  1000
#define BYTES_IN_A_MIB ((uint64_t)1 << 20)

static void make_key(const struct store_shared_file *file, char out_key[SHARED_KEY_SIZE])
{
    strcpy(out_key, SHARED_PREFIX);
    zt_hex_write(out_key + sizeof(SHARED_PREFIX) - 1, file->sha256, sizeof(file->sha256));
}

static enum zt_status fail_away(struct zt_error *error)
{
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the object store is unreachable");
}

static enum zt_status fail_long(struct zt_error *error)
{
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
}

static enum zt_status find(struct store *base, struct store_shared_file *file,
                           struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    struct object_version version;
    char key[SHARED_KEY_SIZE];
    enum zt_status status;

    static_assert(STORE_SHARED_VERSION_SIZE >= BUCKET_ETAG_SIZE, "an ETag names the version");
    if (!bucket_may_ask(&store->bucket))
        return fail_away(error);
    make_key(file, key);
    status = bucket_head(&store->bucket, key, clock_ms() + FIND_MS, &version, error);
    if (status != ZT_OK)
        return status;
    if (version.size_bytes != file->size_bytes || version.etag[0] == '\0')
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the object in the bucket is not this file");
    strcpy(file->version, version.etag);
    return ZT_OK;
}

/* --- reading --- */

struct shared_read {
    struct bucket_read read; /* first */
    char path[BUCKET_PATH_SIZE];
    store_shared_done done;
    void *context;
};

static void on_done(struct bucket_read *read, enum zt_status status, const struct zt_error *error)
{
    struct shared_read *shared = (struct shared_read *)read;

    shared->done(shared->context, read->fetch, status, error);
    remote_exchange_free(&read->exchange);
    free(shared);
}

static enum zt_status begin(struct s3_store *store, const struct store_shared_file *file,
                            struct shared_read **out_read, struct zt_error *error)
{
    char key[SHARED_KEY_SIZE];
    struct shared_read *shared;

    if (!bucket_may_ask(&store->bucket))
        return fail_away(error);
    shared = calloc(1, sizeof(*shared));
    if (shared == NULL)
        return zt_fail_memory(error, "a request to the object store");
    make_key(file, key);
    if (!bucket_path(&store->bucket, key, shared->path)) {
        free(shared);
        return fail_long(error);
    }
    *out_read = shared;
    return ZT_OK;
}

static void fetch(struct store *base, const struct store_shared_file *file,
                  struct cache_fetch *wanted, store_shared_done done, void *context)
{
    struct s3_store *store = (struct s3_store *)base;
    struct shared_read *shared = NULL;
    struct zt_error error;
    const enum zt_status status = begin(store, file, &shared, &error);

    assert(file->version[0] != '\0');
    if (status != ZT_OK) {
        done(context, wanted, status, &error);
        return;
    }
    shared->done = done;
    shared->context = context;
    shared->read.bucket = &store->bucket;
    shared->read.url_path = shared->path;
    shared->read.etag = file->version;
    shared->read.size_bytes = file->size_bytes;
    shared->read.fetch = wanted;
    shared->read.done = on_done;
    bucket_read_prepare(&shared->read);
    bucket_be_brief(&store->bucket, &shared->read.exchange);
    remote_begin(store->remote, &shared->read.exchange);
}

/* --- writing --- */

static enum zt_status keep_whole(struct s3_store *store, const struct s3_parts *parts,
                                 struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char sha256[BUCKET_SHA256_SIZE];
    const int64_t time_ms = SMALL_MS + (int64_t)(parts->length / BYTES_IN_A_MIB) * BODY_MS_A_MIB;
    enum zt_status status = s3_hash_part(parts->descriptor, 0, parts->length, NULL, sha256, error);

    if (status != ZT_OK)
        return status;
    if (strcmp(sha256, parts->sha256) != 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the file on the disk has changed");
    if (!bucket_path(&store->bucket, parts->key, path))
        return fail_long(error);
    bucket_exchange(&store->bucket, &exchange, "PUT", path);
    exchange.body = REMOTE_BODY_FILE;
    exchange.body_descriptor = parts->descriptor;
    exchange.body_length = parts->length;
    exchange.body_sha256 = sha256;
    exchange.body_most = BUCKET_REPLY_MOST;
    remote_exchange_add(&exchange, "x-amz-meta-ztserve-sha256", parts->sha256);
    status = bucket_run(&store->bucket, METRIC_STORE_WRITE, &exchange, clock_ms() + time_ms, error);
    remote_exchange_free(&exchange);
    return status;
}

static enum zt_status keep_parts(struct s3_store *store, const struct s3_parts *parts,
                                 struct zt_error *error)
{
    struct s3_multipart *multipart;
    enum zt_status status = s3_multipart_send(store, parts, &multipart, error);

    if (status != ZT_OK)
        return status;
    status = s3_multipart_complete(store, NULL, multipart, S3_COMPLETE_ALWAYS, NULL, error);
    if (status != ZT_OK) {
        s3_keeper_abort(store, multipart);
        return status;
    }
    s3_multipart_drop(store, multipart);
    s3_multipart_free(multipart);
    return ZT_OK;
}

enum zt_status s3_send_file(struct s3_store *store, const struct s3_parts *parts,
                            struct zt_error *error)
{
    if (!store->config->writable || store->base.staging == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "this server does not write");
    if (!bucket_may_ask(&store->bucket))
        return fail_away(error);
    return parts->length > parts->part_bytes ? keep_parts(store, parts, error)
                                             : keep_whole(store, parts, error);
}

static enum zt_status keep(struct store *base, const struct store_shared_file *file, int descriptor,
                           struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[SHARED_KEY_SIZE];
    char sha256[BUCKET_SHA256_SIZE];
    const struct s3_parts parts = {.key = key,
                                   .descriptor = descriptor,
                                   .length = file->size_bytes,
                                   .part_bytes = (uint64_t)store->config->s3.part_bytes,
                                   .sha256 = sha256};

    assert(file->size_bytes > 0 && descriptor >= 0);
    make_key(file, key);
    zt_hex_write(sha256, file->sha256, sizeof(file->sha256));
    return s3_send_file(store, &parts, error);
}

const struct store_shared_ops s3_shared_ops = {.find = find, .fetch = fetch, .keep = keep};
