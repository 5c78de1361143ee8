/* Requests to one bucket of one service: turns keys into requests, and interprets the responses. */
#ifndef STORE_S3_BUCKET_H
#define STORE_S3_BUCKET_H

#include <stdatomic.h>

#include "base/metrics.h"
#include "remote/remote.h"
#include "remote/sign.h"
#include "store/store.h"

/* Size of a key, and of a percent-encoded path with the bucket and a key. */
#define BUCKET_KEY_SIZE  1025
#define BUCKET_PATH_SIZE (3 * BUCKET_KEY_SIZE + 80)
#define BUCKET_ETAG_SIZE 256
/* Maximum bytes read of a response about a request (errors, results in XML). */
#define BUCKET_REPLY_MOST ((size_t)65536)

struct bucket {
    struct remote *remote;
    struct signer *signer;
    char origin[512]; /* "https://host:port"; includes the bucket in the host unless path_style */
    char name[256];   /* the bucket's name; empty in paths unless path_style */
    char prefix[BUCKET_KEY_SIZE]; /* prefix of all keys: empty, or ends with '/' */
    bool path_style;
    atomic_bool is_unreachable; /* lists and reads get no response, or several requests in a row got
                              * none */
    atomic_uint unanswered;     /* writes since the last response */
    atomic_bool was_reached;    /* since the start */
    atomic_bool is_suspected;   /* a read has failed, and the server is checking whether the store
                              * still responds */
    _Atomic int64_t next_try_ms;
    /* For a bucket that is not the server's store: gets the outcome of each exchange, instead of
     * the store's metrics and messages about whether it is away. The service's own words do not
     * become part of errors. NULL for a store. */
    void (*noted)(struct bucket *bucket, const struct remote_exchange *exchange);
};

/* Returns true if a request should be sent: always, unless the store is away. Then only one per
 * second is sent, to notice when the store returns, and all others fail at once. */
bool bucket_may_ask(struct bucket *bucket);

/* Shortens a read that a client waits for. While the store is away, the read is tried once and ends
 * soon, so that a hanging store does not block each client for the full time of a read. */
void bucket_be_brief(struct bucket *bucket, struct remote_exchange *exchange);

/* One version of an object, from the response to a HEAD, GET or PUT. */
struct object_version {
    char etag[BUCKET_ETAG_SIZE]; /* without quotes; empty: unknown */
    char version_id[128];        /* empty: none, or it was "null" */
    uint64_t size_bytes;
    int64_t modified_s; /* whole seconds since 1970 */
    int64_t date_s;     /* the service's clock when it responded */
    char sha256[65];    /* x-amz-meta-ztserve-sha256, or the service's own, hex; empty: none */
};

/* Reads the version from the header of a response. Unstated values are empty or 0. */
void bucket_version_of(const struct remote_exchange *exchange, struct object_version *out_version);

/* Reads an ETag from a header or a list, and removes its quotes. Returns false if it is empty, too
 * long, or could not be part of a header. */
bool bucket_etag_read(struct zt_text text, char out_etag[BUCKET_ETAG_SIZE]);

/* Parses the two time formats of a service into whole seconds since 1970: of a header, "Sun, 06 Nov
 * 1994 08:49:37 GMT" (RFC 9110 section 5.6.7); of a list, "1994-11-06T08:49:37.123Z" (RFC 3339).
 * Fractions are dropped, because headers have none: otherwise the same file would differ between a
 * list and a HEAD. */
bool bucket_time_of_header(const char *text, int64_t *out_s);
bool bucket_time_of_list(struct zt_text text, int64_t *out_s);

/* Computes the identity of a version. All replicas compute the same one, from values that a list
 * also contains: ETag, size, and the time in whole seconds. */
struct file_identity bucket_identity(const char *etag, uint64_t size_bytes, int64_t modified_s);

/* Writes the path of the bucket itself. Returns false if it is too long. */
bool bucket_own_path(const struct bucket *bucket, char out_path[BUCKET_PATH_SIZE]);
/* Writes "/bucket/prefix<key>", percent-encoded; key is relative to the prefix. Returns false if it
 * is too long. */
bool bucket_path(const struct bucket *bucket, const char *key, char out_path[BUCKET_PATH_SIZE]);

/* Writes the value of x-amz-copy-source for a key. Returns false if it is too long. */
bool bucket_copy_source(const struct bucket *bucket, const char *key,
                        char out_source[BUCKET_PATH_SIZE]);

/* Prepares an exchange: origin, path and signer; the caller adds the rest. path must outlive it. */
void bucket_exchange(struct bucket *bucket, struct remote_exchange *exchange, const char *method,
                     const char *path);

/* Selects the usual time limit of a request (30 s) instead of a deadline. */
#define BUCKET_USUAL_TIME 0

/* Runs an exchange, waits for it, and judges the result (see bucket_judge). Not on a loop.
 * Everything ends by by_ms (clock_ms), which several requests may share. If by_ms is already over,
 * no request is sent: returns ZT_UNAVAILABLE with exchange->tried 0. */
enum zt_status bucket_run(struct bucket *bucket, enum metric operation,
                          struct remote_exchange *exchange, int64_t by_ms, struct zt_error *error);
/* Records the outcome of any exchange with the bucket: metrics, retries, and whether the store is
 * away (logged when that changes). operation: METRIC_STORE_LIST, … Returns ZT_OK for 2xx, and for
 * 304 if it was asked for; ZT_NOT_FOUND for a 404 of a key; ZT_STALE for 412 and 416; ZT_ARGUMENT
 * for permanent errors (wrong credentials, clock, region or bucket, named in the message);
 * ZT_UNAVAILABLE for everything else, including a 200 with <Error> in its body. On any thread. */
enum zt_status bucket_judge(struct bucket *bucket, enum metric operation,
                            struct remote_exchange *exchange, struct zt_error *error);

/* Returns true if the body of a response is an object store's error: XML with a code. */
bool bucket_is_error(const struct remote_exchange *exchange);
/* Fails with ZT_ARGUMENT: the responder of this status is not an object store. */
enum zt_status bucket_is_no_store(unsigned status, struct zt_error *error);

/* Each runs one exchange as bucket_run does. A HEAD also returns ZT_UNAVAILABLE if the response has
 * no size. */
enum zt_status bucket_head(struct bucket *bucket, const char *key, int64_t by_ms,
                           struct object_version *out, struct zt_error *error);

/* The size of a SHA-256 in hex, with NUL. */
#define BUCKET_SHA256_SIZE 65
/* Computes the SHA-256 of a body in hex, which the signature covers. Returns ZT_NO_MEMORY. */
enum zt_status bucket_sha256(const void *bytes, size_t length, char out_hex[BUCKET_SHA256_SIZE],
                             struct zt_error *error);

enum bucket_condition { BUCKET_ALWAYS, BUCKET_IF_ABSENT, BUCKET_IF_VERSION };

struct bucket_put {
    const char *key;
    enum bucket_condition condition;
    const char *etag; /* for BUCKET_IF_VERSION, without quotes (Ceph accepts only that) */
    const void *bytes;
    size_t length;
    int64_t by_ms;
};
/* Writes a small object. Returns ZT_STALE if the condition does not hold. After ZT_UNAVAILABLE, the
 * write may still have happened. out may be NULL. */
enum zt_status bucket_put(struct bucket *bucket, const struct bucket_put *put,
                          struct object_version *out, struct zt_error *error);
struct bucket_object {
    char *bytes; /* followed by a NUL; the caller frees them */
    size_t length;
    struct object_version version;
};
/* Reads a small object (at most `most` bytes; ZT_LIMIT if it is larger). */
enum zt_status bucket_get(struct bucket *bucket, const char *key, size_t most, int64_t by_ms,
                          struct bucket_object *out_object, struct zt_error *error);
/* Reads at most so many bytes of the beginning of an object that is not empty. */
enum zt_status bucket_get_start(struct bucket *bucket, const char *key, size_t most,
                                struct bucket_object *out_object, struct zt_error *error);
/* Reads a small object, unless it has this ETag: then bytes is NULL. */
enum zt_status bucket_get_unless(struct bucket *bucket, const char *key, const char *etag,
                                 size_t most, struct bucket_object *out_object,
                                 struct zt_error *error);
/* Returns ZT_OK also if the object did not exist. */
enum zt_status bucket_delete(struct bucket *bucket, const char *key, int64_t by_ms,
                             struct zt_error *error);

struct listed_object {
    const char *key;  /* relative to the prefix */
    const char *etag; /* without quotes; NULL: this is a common prefix of keys
                       * (bucket_list_level) */
    uint64_t size_bytes;
    int64_t modified_s;
};
/* Lists one key within a few seconds, to check the address, the credentials, the clock, the region
 * and the bucket. Returns the same as bucket_judge, and ZT_ARGUMENT also for other permanent
 * errors: an untrusted certificate, http instead of https or the reverse, or a service that is not
 * an object store. Returns ZT_UNAVAILABLE if the store, or the proxy, is away. */
enum zt_status bucket_check(struct bucket *bucket, struct zt_error *error);

/* Limits how long a list is tried. Zeros mean the usual limits of an exchange. */
struct bucket_patience {
    int64_t by_ms;
    uint64_t try_ms;
    unsigned tries;
};
/* Asks for the first key below the prefix, in the same way as bucket_list. Returns ZT_OK if the
 * response is a list, even an empty one. *out_exchange is the last request with its response, but
 * without path and query, to judge failures. The caller frees it in every case. */
enum zt_status bucket_list_first(struct bucket *bucket, const struct bucket_patience *patience,
                                 struct remote_exchange *out_exchange, struct zt_error *error);

/* Lists all keys that begin with `beginning`, in pages, until visit returns false. Returns ZT_OK
 * only if the list is complete. Unreadable keys are left out. The others may be hostile, or appear
 * twice. */
enum zt_status bucket_list(struct bucket *bucket, const char *beginning, int64_t by_ms,
                           bool (*visit)(void *context, const struct listed_object *object),
                           void *context, struct zt_error *error);

/* Lists one level. Keys that contain a slash after the beginning appear only up to that slash,
 * usually once each, without ETag, size and time. */
enum zt_status bucket_list_level(struct bucket *bucket, const char *beginning, int64_t by_ms,
                                 bool (*visit)(void *context, const struct listed_object *object),
                                 void *context, struct zt_error *error);

#endif
