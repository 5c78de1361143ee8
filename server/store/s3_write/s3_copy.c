/* Copies that the service makes, so that no byte passes through this server. An object of up to
 * about 5 GiB is copied by one request (the limit of AWS), a larger one in parts, several
 * concurrently.
 *
 * While the service copies, it may send no byte for minutes. Some services then send "200" with
 * spaces, and an error at the end (bucket_judge). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/s3_write/s3_multipart.h"

/* 5 GiB, and parts of 1 GiB, for s3.part_bytes of 16 MiB. */
#define WHOLE_PARTS 320
#define COPY_PARTS  64
#define WHOLE_MOST  ((uint64_t)5 << 30)
#define PART_MOST   ((uint64_t)1 << 30)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static enum zt_status too_long(struct zt_error *error)
{
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is too long");
}

static enum zt_status copy_whole(struct s3_claim *claim, struct s3_copy *copy,
                                 struct zt_error *error)
{
    struct bucket *bucket = &claim->store->bucket;
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char source[BUCKET_PATH_SIZE];
    enum zt_status status;

    if (!bucket_path(bucket, copy->to, path) || !bucket_copy_source(bucket, copy->from, source))
        return too_long(error);
    assert(copy->parts == NULL && copy->etag[0] != '\0');
    bucket_exchange(bucket, &exchange, "PUT", path);
    exchange.body_most = BUCKET_REPLY_MOST;
    /* A second copy must not begin while the first may still run. */
    exchange.tries = 1;
    exchange.try_ms = UINT32_MAX;
    remote_exchange_add(&exchange, "x-amz-copy-source", source);
    remote_exchange_add(&exchange, "x-amz-copy-source-if-match", copy->etag);
    remote_exchange_add(&exchange, "x-amz-metadata-directive", "REPLACE");
    remote_exchange_add(&exchange, "x-amz-meta-ztserve-sha256", copy->sha256);
    s3_claim_extend(claim, S3_COPY_MS(copy->size_bytes));
    status = s3_claim_run(claim, &exchange, error);
    copy->is_unknown = exchange.tried > 0 && exchange.status != ZT_OK &&
                       exchange.failure != REMOTE_FAILURE_CONNECT;
    remote_exchange_free(&exchange);
    return status;
}

enum zt_status s3_copy_prepare(struct s3_store *store, struct s3_copy *copy, struct zt_error *error)
{
    const uint64_t part_bytes = (uint64_t)store->config->s3.part_bytes;
    char source[BUCKET_PATH_SIZE];
    const struct s3_parts parts = {
        .key = copy->to,
        .descriptor = -1,
        .copy_source = source,
        .copy_etag = copy->etag,
        .length = copy->size_bytes,
        .part_bytes = least(COPY_PARTS * part_bytes, PART_MOST),
        .sha256 = copy->sha256,
    };

    assert(copy->parts == NULL && strlen(copy->sha256) == BUCKET_SHA256_SIZE - 1);
    if (copy->size_bytes <= least(WHOLE_PARTS * part_bytes, WHOLE_MOST))
        return ZT_OK;
    if (!bucket_copy_source(&store->bucket, copy->from, source))
        return too_long(error);
    return s3_multipart_send(store, &parts, &copy->parts, error);
}

enum zt_status s3_copy_run(struct s3_claim *claim, struct s3_copy *copy, struct zt_error *error)
{
    struct s3_store *store = claim->store;
    enum zt_status status;

    assert(copy->etag[0] != '\0' && !copy->is_unknown);
    if (copy->parts == NULL)
        return copy_whole(claim, copy, error);
    s3_claim_extend(claim, S3_COPY_MS(copy->size_bytes));
    status = s3_multipart_complete(store, claim, copy->parts, S3_COMPLETE_ALWAYS, NULL, error);
    if (status != ZT_OK) {
        copy->is_unknown = copy->parts->is_completing;
        return status;
    }
    s3_multipart_drop(store, copy->parts);
    s3_multipart_free(copy->parts);
    copy->parts = NULL;
    return ZT_OK;
}

void s3_copy_end(struct s3_store *store, struct s3_copy *copy)
{
    s3_keeper_abort(store, copy->parts);
    copy->parts = NULL;
}
