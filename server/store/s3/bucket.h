/* One bucket of one service: how keys become requests, and what answers mean. */
#ifndef STORE_S3_BUCKET_H
#define STORE_S3_BUCKET_H

#include <stdatomic.h>

#include "base/metrics.h"
#include "remote/remote.h"
#include "remote/sign.h"
#include "store/store.h"

/* Of a key, and of a key percent-encoded in a path with the bucket before it. */
#define BUCKET_KEY_SIZE  1025
#define BUCKET_PATH_SIZE (3 * BUCKET_KEY_SIZE + 80)
#define BUCKET_ETAG_SIZE 256
/* The most of a service's answer about a request that is read (errors, results in XML). */
#define BUCKET_REPLY_MOST ((size_t)65536)

struct bucket {
    struct remote *remote;
    struct signer *signer;
    char origin[512]; /* "https://host:port"; with the bucket in the host unless path_style */
    char name[256];   /* empty in paths unless path_style */
    char prefix[BUCKET_KEY_SIZE]; /* of all keys: empty, or with '/' at its end */
    bool path_style;
    atomic_bool is_away;     /* lists and reads get no answer, nor do others one after another */
    atomic_uint unanswered;  /* writes since the last answer */
    atomic_bool was_reached; /* since the start */
    _Atomic int64_t next_try_ms;
};

/* Whether a request is worth its time: always, unless the store is away; then one a second is, so
 * that the others fail at once and its return is noticed. */
bool bucket_may_ask(struct bucket *bucket);

/* For a read that a client waits for: while the store is away it is tried once, and ends soon, so
 * that a store that hangs does not hold each client that finds out for the whole time of a read. */
void bucket_be_brief(struct bucket *bucket, struct remote_exchange *exchange);

/* One version of an object, as a HEAD, a GET or a PUT told of it. */
struct object_version {
    char etag[BUCKET_ETAG_SIZE]; /* without quotes; empty: not told */
    char version_id[128];        /* empty: none, or "null" */
    uint64_t size_bytes;
    int64_t modified_s; /* whole seconds since 1970 */
    int64_t date_s;     /* the service's clock when it answered */
    char sha256[65];    /* x-amz-meta-ztserve-sha256, hex; empty: none */
};

/* Reads an ETag as sent or listed, without its quotes. False if it is empty, too long, or could not
 * be part of a header. */
bool bucket_etag_read(struct zt_text text, char out_etag[BUCKET_ETAG_SIZE]);

/* What the header of a 2xx answer tells of the object; modified_s is 0 in that of a PUT. */
void bucket_version_of(const struct remote_exchange *exchange, struct object_version *out_version);

/* The identity of a version; replicas make equal ones. Only what a list tells too: ETag, size,
 * whole seconds. */
struct file_identity bucket_identity(const char *etag, uint64_t size_bytes, int64_t modified_s);

/* Writes "/bucket/prefix<key>" percent-encoded; key is relative to the prefix. False: too long. */
bool bucket_path(const struct bucket *bucket, const char *key, char out_path[BUCKET_PATH_SIZE]);

/* Prepares an exchange: origin, path, signer; the caller adds the rest. path must live as long. */
void bucket_exchange(struct bucket *bucket, struct remote_exchange *exchange, const char *method,
                     const char *path);

/* The usual time for a request (30 s), instead of a moment by which it has to be answered. */
#define BUCKET_USUAL_TIME 0

/* Runs an exchange, waits for it, and judges it (see bucket_judge); not on a loop. by_ms: all of it
 * ends by then (clock_ms), which several requests may share. When it is over already, nothing is
 * sent: ZT_UNAVAILABLE with exchange->tried 0. */
enum zt_status bucket_run(struct bucket *bucket, enum metric operation,
                          struct remote_exchange *exchange, int64_t by_ms, struct zt_error *error);
/* Gives an exchange what is left until a moment, or its own time if that is less. False: nothing
 * is left. */
bool bucket_limit(struct remote_exchange *exchange, int64_t by_ms);

/* Notes the outcome of any exchange with the bucket: metrics, retries, whether the store is away
 * (logged when that changes). operation: METRIC_STORE_LIST, … Turns it into a status: ZT_OK for
 * 2xx; ZT_NOT_FOUND for 404 of a key; ZT_STALE for 412 and 416; ZT_ARGUMENT for what will not go
 * away (wrong credentials, clock, region, bucket; the message says which); ZT_UNAVAILABLE for all
 * else, 200 with <Error> in its body included. On any thread. */
enum zt_status bucket_judge(struct bucket *bucket, enum metric operation,
                            struct remote_exchange *exchange, struct zt_error *error);

/* Whether the body of an answer is an error as object stores write them: XML with a code. */
bool bucket_is_error(const struct remote_exchange *exchange);
/* ZT_ARGUMENT: what gave an answer with this status is something else. */
enum zt_status bucket_is_no_store(unsigned status, struct zt_error *error);

/* Each runs one exchange as bucket_run does. ZT_UNAVAILABLE also of a HEAD whose answer does not
 * tell the size. */
enum zt_status bucket_head(struct bucket *bucket, const char *key, int64_t by_ms,
                           struct object_version *out, struct zt_error *error);

enum bucket_condition { BUCKET_ALWAYS, BUCKET_IF_ABSENT, BUCKET_IF_VERSION };

struct bucket_put {
    const char *key;
    enum bucket_condition condition;
    const char *etag;  /* of BUCKET_IF_VERSION, without quotes (Ceph knows only that) */
    const void *bytes; /* or NULL: from the descriptor */
    int descriptor;
    uint64_t length;
    const char *sha256;      /* hex, of the bytes; NULL: computed */
    const char *meta_sha256; /* hex, kept with the object; NULL: none */
    int64_t by_ms;
};
/* ZT_STALE: the condition does not hold. After ZT_UNAVAILABLE it may have been done all the same.
 * out may be NULL. */
enum zt_status bucket_put(struct bucket *bucket, const struct bucket_put *put,
                          struct object_version *out, struct zt_error *error);
/* Reads a small object whole (at most `most` bytes, ZT_LIMIT above). *out_bytes is freed by the
 * caller, and has a NUL behind it. */
enum zt_status bucket_get(struct bucket *bucket, const char *key, size_t most, int64_t by_ms,
                          char **out_bytes, size_t *out_length, struct object_version *out,
                          struct zt_error *error);
/* ZT_OK also if there was none. */
enum zt_status bucket_delete(struct bucket *bucket, const char *key, int64_t by_ms,
                             struct zt_error *error);

struct listed_object {
    const char *key;  /* relative to the prefix */
    const char *etag; /* without quotes; NULL: of what begins with the key (bucket_list_level) */
    uint64_t size_bytes;
    int64_t modified_s;
};
/* One list of one key, within a few seconds: whether the address, the credentials, the clock, the
 * region and the bucket are right. As bucket_judge; ZT_ARGUMENT also for what else will not go
 * away: a certificate that is not trusted, http where https is spoken and the other way round,
 * something that is no object store. ZT_UNAVAILABLE: the store, or the proxy, is away. */
enum zt_status bucket_check(struct bucket *bucket, struct zt_error *error);

/* Lists all keys that begin with `beginning`, in pages; false from visit ends it. ZT_OK only if the
 * list came whole. Keys that cannot be told are left out; others may be hostile, or come twice. */
enum zt_status bucket_list(struct bucket *bucket, const char *beginning, int64_t by_ms,
                           bool (*visit)(void *context, const struct listed_object *object),
                           void *context, struct zt_error *error);

/* The same of one level: of keys that have a slash behind the beginning, only what they have up to
 * that, each once in most cases, without ETag, size and time. */
enum zt_status bucket_list_level(struct bucket *bucket, const char *beginning, int64_t by_ms,
                                 bool (*visit)(void *context, const struct listed_object *object),
                                 void *context, struct zt_error *error);

#endif
