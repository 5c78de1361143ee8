/* An object store that takes writes, in the place of the HTTP client (remote/remote.h): one bucket
 * "b" in memory, with a clock of its own, conditions that it honours or not, and answers that get
 * lost. Answers come before remote_begin returns. */
#ifndef WRITABLE_REMOTE_H
#define WRITABLE_REMOTE_H

#include "remote_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/s3/bucket.h"

#define SHELF_OBJECTS 16
#define SHELF_BYTES   (256 << 10)

struct shelf_object {
    char key[300]; /* empty: none */
    char etag[40];
    char sha256[65];
    uint8_t *bytes;
    size_t length;
    int64_t modified_s;
};

struct shelf {
    struct shelf_object objects[SHELF_OBJECTS];
    int64_t now_s;
    unsigned writes; /* gives ETags */
    bool ignores_put_conditions;
    bool ignores_complete_conditions;
    bool ignores_copy_conditions;
    bool is_unreachable;
    bool cannot_tell;    /* HEADs get no answer */
    const char *fails;   /* writes whose path has this get no answer … */
    bool does_them;      /* … but are done */
    unsigned fail_times; /* so often */
    /* Multipart uploads: one at a time. */
    struct shelf_object upload;
    bool has_upload;
    unsigned parts;
    unsigned begun;
    unsigned aborted;
    unsigned copies; /* of objects and parts */
    unsigned gets;
    void (*before)(struct remote_exchange *exchange); /* each write */
};

static struct shelf shelf;

static inline struct shelf_object *shelf_find(const char *key)
{
    for (size_t i = 0; i < SHELF_OBJECTS; i++)
        if (shelf.objects[i].key[0] != '\0' && strcmp(shelf.objects[i].key, key) == 0)
            return &shelf.objects[i];
    return NULL;
}

static inline struct shelf_object *shelf_put(const char *key, const void *bytes, size_t length)
{
    struct shelf_object *object = shelf_find(key);

    for (size_t i = 0; i < SHELF_OBJECTS && object == NULL; i++)
        if (shelf.objects[i].key[0] == '\0')
            object = &shelf.objects[i];
    assert_non_null(object);
    free(object->bytes);
    *object = (struct shelf_object){.length = length, .modified_s = shelf.now_s};
    snprintf(object->key, sizeof(object->key), "%s", key);
    snprintf(object->etag, sizeof(object->etag), "etag-%u", ++shelf.writes);
    object->bytes = malloc(length + 1);
    assert_non_null(object->bytes);
    memcpy(object->bytes, bytes, length);
    return object;
}

static inline void shelf_remove(const char *key)
{
    struct shelf_object *object = shelf_find(key);

    if (object == NULL)
        return;
    free(object->bytes);
    *object = (struct shelf_object){.length = 0};
}

static inline size_t shelf_count(const char *beginning)
{
    size_t count = 0;

    for (size_t i = 0; i < SHELF_OBJECTS; i++)
        count += shelf.objects[i].key[0] != '\0' &&
                 strncmp(shelf.objects[i].key, beginning, strlen(beginning)) == 0;
    return count;
}

static inline void shelf_answer(struct remote_exchange *exchange, unsigned status, const char *text,
                                size_t length)
{
    exchange->head.status = status;
    exchange->answer = malloc(length + 1);
    assert_non_null(exchange->answer);
    memcpy(exchange->answer, text, length);
    exchange->answer[length] = '\0';
    exchange->answer_length = length;
}

static inline void shelf_time(int64_t seconds, char *out, size_t size)
{
    const time_t time = (time_t)seconds;
    struct tm parts;

    gmtime_r(&time, &parts);
    strftime(out, size, "%a, %d %b %Y %H:%M:%S GMT", &parts);
}

static inline void shelf_tell(struct remote_exchange *exchange, const struct shelf_object *object)
{
    struct remote_head *head = &exchange->head;

    head->status = 200;
    head->content_length = object->length;
    snprintf(head->etag, sizeof(head->etag), "\"%s\"", object->etag);
    snprintf(head->digest, sizeof(head->digest), "%s", object->sha256);
    shelf_time(object->modified_s, head->last_modified, sizeof(head->last_modified));
    shelf_time(shelf.now_s, head->date, sizeof(head->date));
}

static inline const char *shelf_field(const struct remote_exchange *exchange, const char *name)
{
    for (unsigned i = 0; i < exchange->field_count; i++)
        if (strcmp(exchange->fields[i].name, name) == 0)
            return exchange->fields[i].value;
    return NULL;
}

static inline bool shelf_permits(const struct remote_exchange *exchange, const char *key)
{
    const struct shelf_object *object = shelf_find(key);
    const char *match = shelf_field(exchange, "if-match");

    if (shelf_field(exchange, "if-none-match") != NULL && object != NULL)
        return false;
    return match == NULL || (object != NULL && strcmp(match, object->etag) == 0);
}

static inline size_t shelf_body(const struct remote_exchange *exchange, uint8_t *bytes)
{
    const size_t length = (size_t)exchange->body_length;

    assert_true(length <= SHELF_BYTES);
    if (exchange->body == REMOTE_BODY_MEMORY)
        memcpy(bytes, exchange->body_bytes, length);
    else
        assert_int_equal(
            pread(exchange->body_descriptor, bytes, length, (off_t)exchange->body_offset), length);
    return length;
}

static inline void shelf_take_sha256(struct shelf_object *object,
                                     const struct remote_exchange *exchange)
{
    const char *sha256 = shelf_field(exchange, "x-amz-meta-ztserve-sha256");

    snprintf(object->sha256, sizeof(object->sha256), "%s", sha256 != NULL ? sha256 : "");
}

/* Returns the source of a copy whose condition holds; NULL after an answer that says no. */
static inline const struct shelf_object *shelf_source(struct remote_exchange *exchange)
{
    const char *source = shelf_field(exchange, "x-amz-copy-source");
    const char *match = shelf_field(exchange, "x-amz-copy-source-if-match");
    const struct shelf_object *object;

    assert_int_equal(strncmp(source, "/b/", 3), 0);
    object = shelf_find(source + 3);
    if (object == NULL)
        shelf_answer(exchange, 404, "<Error><Code>NoSuchKey</Code></Error>", 37);
    else if (!shelf.ignores_copy_conditions && match != NULL && strcmp(match, object->etag) != 0) {
        shelf_answer(exchange, 412, "", 0);
        object = NULL;
    }
    shelf.copies += object != NULL;
    return object;
}

static inline void shelf_add_to_upload(const uint8_t *bytes, size_t length)
{
    shelf.upload.bytes = realloc(shelf.upload.bytes, shelf.upload.length + length + 1);
    assert_non_null(shelf.upload.bytes);
    memcpy(shelf.upload.bytes + shelf.upload.length, bytes, length);
    shelf.upload.length += length;
    shelf.parts++;
}

static inline void shelf_copy_part(struct remote_exchange *exchange)
{
    static const char answer[] = "<CopyPartResult><ETag>&quot;part&quot;</ETag></CopyPartResult>";
    const char *range = shelf_field(exchange, "x-amz-copy-source-range");
    const struct shelf_object *source = shelf_source(exchange);
    size_t first;
    size_t last;

    if (source == NULL)
        return;
    assert_int_equal(sscanf(range, "bytes=%zu-%zu", &first, &last), 2);
    assert_true(first <= last && last < source->length);
    shelf_add_to_upload(source->bytes + first, last - first + 1);
    shelf_answer(exchange, 200, answer, strlen(answer));
}

static inline void shelf_take_part(struct remote_exchange *exchange)
{
    static uint8_t bytes[SHELF_BYTES];

    if (shelf_field(exchange, "x-amz-copy-source") != NULL) {
        shelf_copy_part(exchange);
        return;
    }
    shelf_add_to_upload(bytes, shelf_body(exchange, bytes));
    exchange->head.status = 200;
    strcpy(exchange->head.etag, "\"part\"");
}

static inline void shelf_begin(struct remote_exchange *exchange)
{
    static const char answer[] = "<InitiateMultipartUploadResult><UploadId>up/1</UploadId>"
                                 "</InitiateMultipartUploadResult>";

    free(shelf.upload.bytes);
    shelf.upload = (struct shelf_object){.length = 0};
    shelf_take_sha256(&shelf.upload, exchange);
    shelf.has_upload = true;
    shelf.begun++;
    shelf_answer(exchange, 200, answer, strlen(answer));
}

static inline void shelf_complete(struct remote_exchange *exchange, const char *key)
{
    struct shelf_object *object;

    if (!shelf.has_upload) {
        shelf_answer(exchange, 404, "<Error><Code>NoSuchUpload</Code></Error>", 40);
        return;
    }
    if (!shelf.ignores_complete_conditions && !shelf_permits(exchange, key)) {
        shelf_answer(exchange, 412, "", 0);
        return;
    }
    object = shelf_put(key, shelf.upload.bytes, shelf.upload.length);
    strcpy(object->sha256, shelf.upload.sha256);
    shelf.has_upload = false;
    shelf_answer(exchange, 200, "<CompleteMultipartUploadResult/>", 32);
}

/* The source may be the object itself. */
static inline void shelf_copy(struct remote_exchange *exchange, const char *key)
{
    const struct shelf_object *source = shelf_source(exchange);
    uint8_t *bytes;
    size_t length;

    if (source == NULL)
        return;
    length = source->length;
    bytes = malloc(length + 1);
    assert_non_null(bytes);
    memcpy(bytes, source->bytes, length);
    shelf_take_sha256(shelf_put(key, bytes, length), exchange);
    free(bytes);
    shelf_answer(exchange, 200, "<CopyObjectResult/>", 19);
}

static inline void shelf_write(struct remote_exchange *exchange, const char *key)
{
    static uint8_t bytes[SHELF_BYTES];
    struct shelf_object *object;

    if (exchange->query != NULL && strncmp(exchange->query, "partNumber", 10) == 0) {
        shelf_take_part(exchange);
        return;
    }
    if (shelf_field(exchange, "x-amz-copy-source") != NULL) {
        shelf_copy(exchange, key);
        return;
    }
    if (!shelf.ignores_put_conditions && !shelf_permits(exchange, key)) {
        shelf_answer(exchange, 412, "", 0);
        return;
    }
    object = shelf_put(key, bytes, shelf_body(exchange, bytes));
    shelf_take_sha256(object, exchange);
    exchange->head.status = 200;
    snprintf(exchange->head.etag, sizeof(exchange->head.etag), "\"%s\"", object->etag);
}

static inline void shelf_list(struct remote_exchange *exchange)
{
    static char text[SHELF_OBJECTS * 600];
    const char *wanted = strstr(exchange->query, "prefix=") + strlen("prefix=");
    char beginning[300];
    size_t used = 0;

    for (; *wanted != '\0' && *wanted != '&'; wanted++) {
        const bool is_slash = strncmp(wanted, "%2F", 3) == 0;

        beginning[used++] = is_slash ? '/' : *wanted;
        wanted += is_slash ? 2 : 0;
    }
    beginning[used] = '\0';
    strcpy(text, "<ListBucketResult>");
    for (size_t i = 0; i < SHELF_OBJECTS; i++) {
        const struct shelf_object *object = &shelf.objects[i];
        char when[32];
        const time_t time = (time_t)object->modified_s;
        struct tm parts;

        if (object->key[0] == '\0' || strncmp(object->key, beginning, used) != 0)
            continue;
        if (strstr(exchange->query, "delimiter=") != NULL && strchr(object->key + used, '/')) {
            sprintf(text + strlen(text), "<CommonPrefixes><Prefix>%.*s/</Prefix></CommonPrefixes>",
                    (int)(used + strcspn(object->key + used, "/")), object->key);
            continue;
        }
        gmtime_r(&time, &parts);
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S.000Z", &parts);
        sprintf(text + strlen(text),
                "<Contents><Key>%s</Key><LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag>"
                "<Size>%zu</Size></Contents>",
                object->key, when, object->etag, object->length);
    }
    strcat(text, "<IsTruncated>false</IsTruncated></ListBucketResult>");
    shelf_answer(exchange, 200, text, strlen(text));
}

static inline void shelf_read(struct remote_exchange *exchange, const char *key)
{
    const struct shelf_object *object = shelf_find(key);
    const char *known = shelf_field(exchange, "if-none-match");
    const bool is_get = strcmp(exchange->method, "GET") == 0;
    const bool is_known = object != NULL && known != NULL && strcmp(known, object->etag) == 0 &&
                          !shelf.ignores_put_conditions;
    size_t length;

    if (object == NULL) {
        shelf_answer(exchange, 404, "", 0);
        return;
    }
    length = exchange->has_range && exchange->range_last < object->length
                 ? (size_t)exchange->range_last + 1
                 : object->length;
    shelf.gets += is_get && !is_known;
    if (is_get && !is_known)
        shelf_answer(exchange, 200, (const char *)object->bytes, length);
    shelf_tell(exchange, object);
    if (is_known)
        exchange->head.status = 304;
}

static inline void shelf_delete(struct remote_exchange *exchange, const char *key)
{
    if (exchange->query == NULL) {
        shelf_remove(key);
    } else {
        shelf.aborted += shelf.has_upload;
        shelf.has_upload = false;
    }
    exchange->head.status = 204;
}

static inline void shelf_serve(struct remote_exchange *exchange)
{
    const char *key = strncmp(exchange->path, "/b/", 3) == 0 ? exchange->path + 3 : NULL;

    if (key == NULL && strcmp(exchange->method, "HEAD") == 0)
        exchange->head.status = 200;
    else if (key == NULL)
        shelf_list(exchange);
    else if (strcmp(exchange->method, "DELETE") == 0)
        shelf_delete(exchange, key);
    else if (strcmp(exchange->method, "PUT") == 0)
        shelf_write(exchange, key);
    else if (strcmp(exchange->method, "POST") != 0)
        shelf_read(exchange, key);
    else if (strcmp(exchange->query, "uploads=") == 0)
        shelf_begin(exchange);
    else
        shelf_complete(exchange, key);
}

static inline void shelf_lose(struct remote_exchange *exchange)
{
    free(exchange->answer);
    exchange->answer = NULL;
    exchange->failure = REMOTE_FAILURE_TIMEOUT;
    exchange->status = zt_fail(&exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "no answer");
}

/* --- remote.h --- */

enum zt_status remote_run(struct remote *remote, struct remote_exchange *exchange)
{
    const bool is_write =
        strcmp(exchange->method, "GET") != 0 && strcmp(exchange->method, "HEAD") != 0;
    bool fails = is_write && shelf.fail_times > 0 && strstr(exchange->path, shelf.fails) != NULL;

    (void)remote;
    if (fails && strcmp(exchange->method, "POST") == 0)
        fails = strcmp(exchange->query, "uploads=") != 0;
    if (fails && exchange->query != NULL && strncmp(exchange->query, "partNumber", 10) == 0)
        fails = false;
    exchange->tried = 1;
    exchange->status = ZT_OK;
    if (is_write && shelf.before != NULL)
        shelf.before(exchange);
    if (!shelf.is_unreachable && (!fails || shelf.does_them))
        shelf_serve(exchange);
    shelf.fail_times -= fails;
    if (shelf.is_unreachable || fails ||
        (shelf.cannot_tell && strcmp(exchange->method, "HEAD") == 0))
        shelf_lose(exchange);
    return exchange->status;
}

#endif
