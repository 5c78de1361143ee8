/* The fields of one object, from a request and to a reply. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/stored_reply.h"
#include "base/memory.h"
#include "base/server.h"
#include "http/exchange/s3api_error.h"
#include "s3/s3api_meta.h"

#define META_PREFIX "x-amz-meta-"
/* Replaces an empty value, which the HTTP library does not send. Clients remove the blank. */
#define EMPTY " "

enum { CONTENT_TYPE, CONTENT_ENCODING, CACHE_CONTROL };

static const char *const others[] = {
    [CONTENT_TYPE] = "content-type",
    [CONTENT_ENCODING] = "content-encoding",
    [CACHE_CONTROL] = "cache-control",
    "content-language",
    "content-disposition",
    "expires",
};

/* --- reading --- */

struct reading {
    struct request *request;
    struct zt_buffer text;
    size_t meta_bytes;
    size_t other_bytes;
    unsigned count;
};

/* Names are in lower case, because SDKs expect that of metadata. */
static void add(struct reading *reading, const char *name, const char *value)
{
    for (const char *at = name; *at != '\0'; at++) {
        const char lower = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;

        zt_buffer_append(&reading->text, &lower, 1);
    }
    zt_buffer_append(&reading->text, "\n", 1);
    zt_buffer_append(&reading->text, value, strlen(value));
    zt_buffer_append(&reading->text, "\n", 1);
    reading->count++;
    assert(reading->text.failed || reading->text.length >= 2 * (size_t)reading->count);
}

/* The values of a repeated field are joined at its first occurrence. */
static bool is_first(const struct request *request, unsigned index, const char *name)
{
    struct header_field other;

    for (unsigned i = 0; i < index; i++)
        if (request_header_at(request, i, &other) && strcasecmp(other.name, name) == 0)
            return false;
    return true;
}

static void add_meta(struct reading *reading)
{
    struct header_field field;

    for (unsigned i = 0; request_header_at(reading->request, i, &field); i++) {
        const char *value;

        if (strncasecmp(field.name, META_PREFIX, strlen(META_PREFIX)) != 0 ||
            !is_first(reading->request, i, field.name))
            continue;
        value = request_header(reading->request, field.name);
        if (value == NULL)
            continue;
        reading->meta_bytes += strlen(field.name) - strlen(META_PREFIX) + strlen(value);
        add(reading, field.name, value);
    }
}

/* Returns the codings without aws-chunked, which is not the object's; NULL if none are left. */
static const char *codings_of(struct request *request, const char *value)
{
    static const char ours[] = "aws-chunked";
    const char *rest = NULL;

    while (*value != '\0') {
        const size_t space = strspn(value, " \t,");
        size_t length = strcspn(value += space, ",");
        const char *next = value + length;

        while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
            length--;
        if (length > 0 && (length != sizeof(ours) - 1 || strncasecmp(value, ours, length) != 0))
            rest = rest == NULL ? request_copy(request, value, length)
                                : request_print(request, "%s,%.*s", rest, (int)length, value);
        value = next;
    }
    return rest;
}

static void add_others(struct reading *reading, struct zt_text key)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const char *value = request_header(reading->request, others[i]);

        if (value != NULL && i == CONTENT_ENCODING)
            value = codings_of(reading->request, value);
        /* The type that follows from the key need not be kept. */
        if (value == NULL || value[0] == '\0' ||
            (i == CONTENT_TYPE && strcmp(value, stored_media_type(key)) == 0))
            continue;
        reading->other_bytes += strlen(value);
        add(reading, others[i], value);
    }
}

bool s3api_meta_read(struct request *request, struct zt_text key, char **out_fields)
{
    struct reading reading = {.request = request};

    *out_fields = NULL;
    add_meta(&reading);
    add_others(&reading, key);
    if (reading.count > 0)
        zt_buffer_append(&reading.text, "", 1);
    if (reading.text.failed)
        problem_reply_no_memory(request);
    else if (reading.meta_bytes > S3API_META_MAX || reading.other_bytes > S3API_META_MAX ||
             reading.count > S3API_META_FIELDS_MAX)
        s3api_problem(request, S3API_METADATA_TOO_LARGE,
                      "an object may have %d fields, and %d bytes of metadata",
                      S3API_META_FIELDS_MAX, S3API_META_MAX);
    if (request->replied) {
        zt_buffer_free(&reading.text);
        return false;
    }
    assert((reading.count == 0) == (reading.text.bytes == NULL));
    *out_fields = (char *)reading.text.bytes;
    return true;
}

/* --- replying --- */

static void reply_field(struct request *request, const char *name, const char *value,
                        struct field *more)
{
    struct representation *reply = &request->reply;

    if (strcmp(name, others[CONTENT_TYPE]) == 0)
        reply->media_type = value;
    else if (strcmp(name, others[CONTENT_ENCODING]) == 0)
        reply->coding = value;
    else if (strcmp(name, others[CACHE_CONTROL]) == 0)
        reply->cache_control = value;
    else
        more[reply->more_count++] = (struct field){name, value[0] != '\0' ? value : EMPTY};
}

static void reply_fields(struct request *request, char *text)
{
    struct field *more = request_allocate(request, S3API_META_FIELDS_MAX * sizeof(*more));
    char *name;

    request->reply.more_fields = more;
    while (more != NULL && (name = strsep(&text, "\n")) != NULL && text != NULL) {
        const char *value = strsep(&text, "\n");

        assert(value != NULL && request->reply.more_count < S3API_META_FIELDS_MAX);
        reply_field(request, name, value, more);
    }
}

void s3api_meta_reply(struct request *request, const char *path,
                      const struct file_identity *identity)
{
    char *fields = s3api_meta_find(request->server->s3_meta, path, identity);
    char *text;

    if (fields == NULL)
        return;
    text = request_copy(request, fields, strlen(fields));
    if (text != NULL)
        reply_fields(request, text);
    free(fields);
}
