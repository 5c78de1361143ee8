/* Requests for single objects of a bucket. */
#include "store/s3/bucket.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/hex.h"
#include "input/date.h"
#include "store/s3/percent.h"
#include "zt/digest.h"

/* Time limit of a request without a deadline. */
#define USUAL_MS     30000
#define NOT_MODIFIED 304
/* The end of the year 2261: in the next, nanoseconds no longer fit. */
#define TIME_END ((time_t)9214646400)

struct file_identity bucket_identity(const char *etag, uint64_t size_bytes, int64_t modified_s)
{
    /* A damaged list may have any number. */
    const int64_t modified_ns = (int64_t)((uint64_t)modified_s * UINT64_C(1000000000));

    return (struct file_identity){
        .device = 0,
        .inode = zt_xxh3(etag, strlen(etag)),
        .size_bytes = size_bytes,
        .modified_ns = modified_ns,
        .changed_ns = modified_ns,
    };
}

bool bucket_own_path(const struct bucket *bucket, char out_path[BUCKET_PATH_SIZE])
{
    size_t used = 0;

    return percent_append_plain(out_path, BUCKET_PATH_SIZE, &used, "/") &&
           (!bucket->path_style ||
            percent_append_plain(out_path, BUCKET_PATH_SIZE, &used, bucket->name));
}

static bool write_path(const struct bucket *bucket, bool has_name, const char *key,
                       char out_path[BUCKET_PATH_SIZE])
{
    const size_t size = BUCKET_PATH_SIZE;
    size_t used = 0;

    if (strlen(bucket->prefix) + strlen(key) >= BUCKET_KEY_SIZE)
        return false;
    if (has_name && (!percent_append_plain(out_path, size, &used, "/") ||
                     !percent_append_plain(out_path, size, &used, bucket->name)))
        return false;
    return percent_append_plain(out_path, size, &used, "/") &&
           percent_append(out_path, size, &used, zt_text_from(bucket->prefix), true) &&
           percent_append(out_path, size, &used, zt_text_from(key), true);
}

bool bucket_path(const struct bucket *bucket, const char *key, char out_path[BUCKET_PATH_SIZE])
{
    return write_path(bucket, bucket->path_style, key, out_path);
}

bool bucket_copy_source(const struct bucket *bucket, const char *key,
                        char out_source[BUCKET_PATH_SIZE])
{
    return write_path(bucket, true, key, out_source);
}

void bucket_exchange(struct bucket *bucket, struct remote_exchange *exchange, const char *method,
                     const char *path)
{
    remote_exchange_init(exchange);
    exchange->method = method;
    exchange->origin = bucket->origin;
    exchange->path = path;
    exchange->signer = bucket->signer;
}

/* --- versions --- */

static bool take_time(time_t time, int64_t *out_s)
{
    if (time < 0 || time >= TIME_END)
        return false;
    *out_s = (int64_t)time;
    return true;
}

bool bucket_time_of_header(const char *text, int64_t *out_s)
{
    time_t time;

    return http_date_parse(text, &time) && take_time(time, out_s);
}

bool bucket_time_of_list(struct zt_text text, int64_t *out_s)
{
    char copy[40];
    time_t time;

    if (text.length >= sizeof(copy))
        return false;
    memcpy(copy, text.bytes, text.length);
    copy[text.length] = '\0';
    return iso_date_parse(copy, &time) && take_time(time, out_s);
}

bool bucket_etag_read(struct zt_text text, char out_etag[BUCKET_ETAG_SIZE])
{
    if (text.length >= 2 && memcmp(text.bytes, "W/", 2) == 0)
        text = (struct zt_text){text.bytes + 2, text.length - 2};
    if (text.length >= 2 && text.bytes[0] == '"' && text.bytes[text.length - 1] == '"')
        text = (struct zt_text){text.bytes + 1, text.length - 2};
    if (text.length == 0 || text.length >= BUCKET_ETAG_SIZE)
        return false;
    /* It becomes part of a header. */
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] <= ' ' || text.bytes[i] == '"' || text.bytes[i] >= 0x7f)
            return false;
    memcpy(out_etag, text.bytes, text.length);
    out_etag[text.length] = '\0';
    return true;
}

/* The checksum of an object in parts may be one of their checksums, with "-" and their number. */
static void read_checksum(const struct remote_head *head, char out_hex[65])
{
    const struct zt_text text = zt_text_from(head->checksum);
    uint8_t sha256[32];
    size_t length;

    if (strcmp(head->checksum_type, "COMPOSITE") != 0 && text.length == ZT_BASE64_SIZE(32) - 1 &&
        text.bytes[text.length - 1] == '=' &&
        zt_base64_read((struct zt_text){text.bytes, text.length - 1}, ZT_BASE64, sha256, 32,
                       &length) &&
        length == 32)
        (void)zt_hex_write(out_hex, sha256, sizeof(sha256));
}

void bucket_version_of(const struct remote_exchange *exchange, struct object_version *out_version)
{
    const struct remote_head *head = &exchange->head;
    struct object_version version = {.size_bytes = 0};

    (void)bucket_etag_read(zt_text_from(head->etag), version.etag);
    if (strcmp(head->version_id, "null") != 0 &&
        strlen(head->version_id) < sizeof(version.version_id))
        strcpy(version.version_id, head->version_id);
    if (head->has_range)
        version.size_bytes = head->range_size;
    else if (head->content_length != UINT64_MAX)
        version.size_bytes = head->content_length;
    (void)bucket_time_of_header(head->last_modified, &version.modified_s);
    (void)bucket_time_of_header(head->date, &version.date_s);
    if (zt_hex_is_lower(zt_text_from(head->digest), 64))
        strcpy(version.sha256, head->digest);
    else
        read_checksum(head, version.sha256);
    *out_version = version;
}

/* --- requests --- */

static enum zt_status too_long(struct zt_error *error)
{
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the key is longer than %d bytes",
                   BUCKET_KEY_SIZE - 1);
}

static bool limit(struct remote_exchange *exchange, int64_t by_ms)
{
    const int64_t left_ms = by_ms - clock_ms();

    if (by_ms == BUCKET_USUAL_TIME)
        return true;
    if (left_ms <= 0)
        return false;
    if (exchange->time_ms == 0)
        exchange->time_ms = USUAL_MS;
    if ((uint64_t)left_ms < exchange->time_ms)
        exchange->time_ms = (uint64_t)left_ms;
    return true;
}

enum zt_status bucket_run(struct bucket *bucket, enum metric operation,
                          struct remote_exchange *exchange, int64_t by_ms, struct zt_error *error)
{
    if (!limit(exchange, by_ms))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the object store takes too long to respond");
    (void)remote_run(bucket->remote, exchange);
    return bucket_judge(bucket, operation, exchange, error);
}

/* Runs an exchange and reads the object's version from the response. */
static enum zt_status run(struct bucket *bucket, enum metric operation,
                          struct remote_exchange *exchange, int64_t by_ms,
                          struct object_version *out, struct zt_error *error)
{
    const enum zt_status status = bucket_run(bucket, operation, exchange, by_ms, error);

    if (status == ZT_OK && out != NULL)
        bucket_version_of(exchange, out);
    return status;
}

enum zt_status bucket_head(struct bucket *bucket, const char *key, int64_t by_ms,
                           struct object_version *out, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    enum zt_status status;

    if (!bucket_path(bucket, key, path))
        return too_long(error);
    bucket_exchange(bucket, &exchange, "HEAD", path);
    status = run(bucket, METRIC_STORE_READ, &exchange, by_ms, out, error);
    /* Without this check, an unknown size would be taken for a real one. */
    if (status == ZT_OK && exchange.head.content_length == UINT64_MAX)
        status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                         "the store does not state the object's length");
    remote_exchange_free(&exchange);
    return status;
}

enum zt_status bucket_sha256(const void *bytes, size_t length, char out_hex[BUCKET_SHA256_SIZE],
                             struct zt_error *error)
{
    struct zt_digest digest;

    if (zt_digest_of(ZT_DIGEST_SHA256, bytes, length, &digest) != ZT_OK)
        return zt_fail_memory(error, "hashing");
    assert(2 * (size_t)digest.length_bytes + 1 == BUCKET_SHA256_SIZE);
    zt_hex_write(out_hex, digest.bytes, digest.length_bytes);
    return ZT_OK;
}

enum zt_status bucket_put(struct bucket *bucket, const struct bucket_put *put,
                          struct object_version *out, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    char sha256[BUCKET_SHA256_SIZE];
    enum zt_status status;

    assert(put->condition != BUCKET_IF_VERSION || put->etag != NULL);
    if (!bucket_path(bucket, put->key, path))
        return too_long(error);
    status = bucket_sha256(put->bytes, put->length, sha256, error);
    if (status != ZT_OK)
        return status;
    bucket_exchange(bucket, &exchange, "PUT", path);
    if (put->condition == BUCKET_IF_ABSENT)
        remote_exchange_add(&exchange, "if-none-match", "*");
    else if (put->condition == BUCKET_IF_VERSION)
        remote_exchange_add(&exchange, "if-match", put->etag);
    exchange.body = REMOTE_BODY_MEMORY;
    exchange.body_bytes = put->bytes;
    exchange.body_length = put->length;
    exchange.body_sha256 = sha256;
    exchange.body_most = BUCKET_REPLY_MOST;
    status = run(bucket, METRIC_STORE_WRITE, &exchange, put->by_ms, out, error);
    if (status == ZT_OK && out != NULL)
        out->size_bytes = put->length;
    remote_exchange_free(&exchange);
    return status;
}

static bool is_small(struct remote_exchange *exchange)
{
    const struct remote_head *head = &exchange->head;

    return head->status / 100 != 2 || head->content_length == UINT64_MAX ||
           head->content_length <= exchange->body_most;
}

/* Runs a prepared GET of at most exchange->body_most bytes. */
static enum zt_status get(struct bucket *bucket, struct remote_exchange *exchange, int64_t by_ms,
                          struct bucket_object *out_object, struct zt_error *error)
{
    struct bucket_object object = {.bytes = NULL};
    enum zt_status status;

    assert(exchange->body_most > 0);
    exchange->accept = is_small;
    bucket_be_brief(bucket, exchange);
    status = run(bucket, METRIC_STORE_READ, exchange, by_ms, &object.version, error);
    if (status != ZT_OK && exchange->failure == REMOTE_FAILURE_REFUSED)
        status = zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the object has more than %zu bytes",
                         exchange->body_most);
    if (status == ZT_OK && exchange->head.status != NOT_MODIFIED) {
        /* An empty body may have no memory. */
        object.bytes = exchange->answer != NULL ? exchange->answer : calloc(1, 1);
        object.length = exchange->answer != NULL ? exchange->answer_length : 0;
        exchange->answer = NULL;
        if (object.bytes == NULL)
            status = zt_fail_memory(error, "an object");
    }
    if (status == ZT_OK)
        *out_object = object;
    remote_exchange_free(exchange);
    return status;
}

/* Prepares a GET of at most so many bytes. path must outlive the exchange. */
static enum zt_status prepare_get(struct bucket *bucket, const char *key, size_t most,
                                  char path[BUCKET_PATH_SIZE], struct remote_exchange *out_exchange,
                                  struct zt_error *error)
{
    if (!bucket_path(bucket, key, path))
        return too_long(error);
    bucket_exchange(bucket, out_exchange, "GET", path);
    out_exchange->body_most = most;
    return ZT_OK;
}

enum zt_status bucket_get(struct bucket *bucket, const char *key, size_t most, int64_t by_ms,
                          struct bucket_object *out_object, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    const enum zt_status status = prepare_get(bucket, key, most, path, &exchange, error);

    return status == ZT_OK ? get(bucket, &exchange, by_ms, out_object, error) : status;
}

enum zt_status bucket_get_start(struct bucket *bucket, const char *key, size_t most,
                                struct bucket_object *out_object, struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    const enum zt_status status = prepare_get(bucket, key, most, path, &exchange, error);

    if (status != ZT_OK)
        return status;
    exchange.has_range = true;
    exchange.range_last = most - 1;
    return get(bucket, &exchange, BUCKET_USUAL_TIME, out_object, error);
}

enum zt_status bucket_get_unless(struct bucket *bucket, const char *key, const char *etag,
                                 size_t most, struct bucket_object *out_object,
                                 struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    enum zt_status status = prepare_get(bucket, key, most, path, &exchange, error);

    assert(etag[0] != '\0');
    if (status != ZT_OK)
        return status;
    remote_exchange_add(&exchange, "if-none-match", etag);
    status = get(bucket, &exchange, BUCKET_USUAL_TIME, out_object, error);
    /* A service may ignore the condition. */
    if (status == ZT_OK && strcmp(out_object->version.etag, etag) == 0) {
        free(out_object->bytes);
        out_object->bytes = NULL;
    }
    return status;
}

enum zt_status bucket_delete(struct bucket *bucket, const char *key, int64_t by_ms,
                             struct zt_error *error)
{
    struct remote_exchange exchange;
    char path[BUCKET_PATH_SIZE];
    enum zt_status status;

    if (!bucket_path(bucket, key, path))
        return too_long(error);
    bucket_exchange(bucket, &exchange, "DELETE", path);
    exchange.body_most = BUCKET_REPLY_MOST;
    status = run(bucket, METRIC_STORE_WRITE, &exchange, by_ms, NULL, error);
    remote_exchange_free(&exchange);
    return status == ZT_NOT_FOUND ? ZT_OK : status;
}
