/* Ranged reads of one version of an object: a GET that names the version (If-Match), whose response
 * is compared with it. So two versions are never mixed, even if the service ignores the
 * condition. */
#ifndef STORE_S3_BUCKET_READ_H
#define STORE_S3_BUCKET_READ_H

#include "cache/cache.h"
#include "store/s3/bucket.h"

/* Embedded in the caller's structure. Set by the caller before bucket_read_prepare; texts are
 * borrowed. */
struct bucket_read {
    struct remote_exchange exchange; /* first */
    struct bucket *bucket;
    const char *url_path; /* bucket_path */
    const char *etag;     /* without quotes; never empty */
    uint64_t size_bytes;
    struct cache_fetch *fetch;
    bool reports_progress; /* readers may have bytes as they arrive, and a cut is resumed */
    /* Called once, on the remote's thread or before remote_begin returns; never waits. ZT_OK:
     * fetch->bytes are those of the version. ZT_STALE: the bucket has another version, or none.
     * Otherwise fails as bucket_judge does. The caller frees the structure, after
     * remote_exchange_free, and calls fetch->done. */
    void (*done)(struct bucket_read *read, enum zt_status status, const struct zt_error *error);
    atomic_bool is_other; /* the response is for another version */
};

/* Prepares the exchange, whose limits the caller may change before remote_begin. */
void bucket_read_prepare(struct bucket_read *read);

#endif
