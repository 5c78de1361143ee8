/* An object store in the place of the HTTP client (remote/remote.h): a few objects of one bucket
 * "b", lists of them, and what a test wants to go wrong. Answers come before remote_begin
 * returns. */
#ifndef FAKE_REMOTE_H
#define FAKE_REMOTE_H

#include "remote_calls.h"

#include <inttypes.h>

#include "store/s3/bucket.h"

#define FAKE_OBJECTS 16

struct fake_object {
    const char *key;
    const char *etag; /* without quotes */
    const uint8_t *bytes;
    uint64_t length;
};

struct fake {
    struct fake_object objects[FAKE_OBJECTS];
    enum remote_failure failure; /* of every exchange, unless NONE */
    unsigned status;             /* of every answer, if not 0, with this body */
    const char *body;
    bool ignores_conditions;
    bool ignores_ranges; /* 200 and all */
    bool hides_lengths;  /* no Content-Length in answers to HEAD */
    const char *etag;    /* that GETs answer with, whatever the object's */
    /* Lists: these pages, one after another, if there are any. */
    const char *pages[8];
    unsigned page;
    /* What was asked. */
    unsigned asked;
    unsigned gets;
    unsigned lists;
    char last_path[4096];
    char last_query[8192];
    char last_fields[1024];
};

static struct fake fake;

static inline void fake_answer(struct remote_exchange *exchange, unsigned status, const char *text,
                               size_t length)
{
    exchange->head.status = status;
    exchange->answer = malloc(length + 1);
    assert_non_null(exchange->answer);
    memcpy(exchange->answer, text, length);
    exchange->answer[length] = '\0';
    exchange->answer_length = length;
}

static inline void fake_list(struct remote_exchange *exchange)
{
    char text[16384] = "<ListBucketResult>";
    const char *wanted = strstr(exchange->query, "prefix=") + strlen("prefix=");

    fake.lists++;
    if (fake.pages[0] != NULL) {
        assert_non_null(fake.pages[fake.page]);
        fake_answer(exchange, 200, fake.pages[fake.page], strlen(fake.pages[fake.page]));
        fake.page++;
        return;
    }
    for (size_t i = 0; i < FAKE_OBJECTS && fake.objects[i].key != NULL; i++) {
        const struct fake_object *object = &fake.objects[i];
        char line[512];

        if (strncmp(object->key, wanted, strcspn(wanted, "&")) != 0)
            continue;
        snprintf(line, sizeof(line),
                 "<Contents><Key>%s</Key><LastModified>2026-01-02T03:04:05.678Z</LastModified>"
                 "<ETag>&quot;%s&quot;</ETag><Size>%" PRIu64 "</Size></Contents>",
                 object->key, object->etag, object->length);
        strcat(text, line);
    }
    strcat(text, "<IsTruncated>false</IsTruncated></ListBucketResult>");
    fake_answer(exchange, 200, text, strlen(text));
}

static inline const char *fake_field(const struct remote_exchange *exchange, const char *name)
{
    for (unsigned i = 0; i < exchange->field_count; i++)
        if (strcmp(exchange->fields[i].name, name) == 0)
            return exchange->fields[i].value;
    return NULL;
}

static inline void fake_get(struct remote_exchange *exchange, const struct fake_object *object)
{
    const char *condition = fake_field(exchange, "if-match");
    struct remote_head *head = &exchange->head;
    const bool in_part = exchange->has_range && !fake.ignores_ranges;
    const uint64_t first = in_part ? exchange->range_first : 0;
    const uint64_t last = in_part ? exchange->range_last : object->length - 1;

    fake.gets++;
    if (condition != NULL && !fake.ignores_conditions && strcmp(condition, object->etag) != 0) {
        fake_answer(exchange, 412, "", 0);
        return;
    }
    assert_true(last < object->length);
    head->status = in_part ? 206 : 200;
    head->has_range = in_part;
    head->range_first = first;
    head->range_last = last;
    head->range_size = object->length;
    head->content_length = last - first + 1;
    if (fake.hides_lengths && strcmp(exchange->method, "HEAD") == 0)
        head->content_length = UINT64_MAX;
    snprintf(head->etag, sizeof(head->etag), "\"%s\"",
             fake.etag != NULL ? fake.etag : object->etag);
    strcpy(head->last_modified, "Fri, 02 Jan 2026 03:04:05 GMT");
    if (exchange->accept != NULL && !exchange->accept(exchange)) {
        exchange->status = ZT_UNAVAILABLE;
        exchange->failure = REMOTE_FAILURE_REFUSED;
        zt_fail(&exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "refused");
        return;
    }
    if (exchange->into == NULL) {
        fake_answer(exchange, head->status, (const char *)object->bytes + first,
                    (size_t)(last - first + 1));
        return;
    }
    assert_int_equal(exchange->into_length, head->content_length);
    memcpy(exchange->into, object->bytes + first, exchange->into_length);
}

static inline void fake_serve(struct remote_exchange *exchange)
{
    const char *key = strncmp(exchange->path, "/b/", 3) == 0 ? exchange->path + 3 : NULL;

    exchange->tried = 1;
    exchange->status = ZT_OK;
    if (fake.failure != REMOTE_FAILURE_NONE) {
        exchange->failure = fake.failure;
        exchange->status =
            zt_fail(&exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "no answer");
        return;
    }
    if (fake.status != 0) {
        fake_answer(exchange, fake.status, fake.body, strlen(fake.body));
        return;
    }
    if (key == NULL) {
        fake_list(exchange);
        return;
    }
    for (size_t i = 0; i < FAKE_OBJECTS && fake.objects[i].key != NULL; i++)
        if (strcmp(fake.objects[i].key, key) == 0) {
            fake_get(exchange, &fake.objects[i]);
            return;
        }
    fake_answer(exchange, 404, "<Error><Code>NoSuchKey</Code></Error>", 37);
}

/* --- remote.h --- */

enum zt_status remote_run(struct remote *remote, struct remote_exchange *exchange)
{
    (void)remote;
    fake.asked++;
    snprintf(fake.last_path, sizeof(fake.last_path), "%s", exchange->path);
    snprintf(fake.last_query, sizeof(fake.last_query), "%s",
             exchange->query != NULL ? exchange->query : "");
    fake.last_fields[0] = '\0';
    for (unsigned i = 0; i < exchange->field_count; i++)
        snprintf(fake.last_fields + strlen(fake.last_fields),
                 sizeof(fake.last_fields) - strlen(fake.last_fields), "%s: %s;",
                 exchange->fields[i].name, exchange->fields[i].value);
    fake_serve(exchange);
    return exchange->status;
}

/* A bucket "b" of this store. */
static inline void fake_bucket(struct bucket *bucket, const char *prefix)
{
    memset(&fake, 0, sizeof(fake));
    memset(bucket, 0, sizeof(*bucket));
    strcpy(bucket->origin, "http://store.test");
    strcpy(bucket->name, "b");
    strcpy(bucket->prefix, prefix);
    bucket->path_style = true;
}

#endif
