/* HeadObject and GetObject: the file that /files serves at this path, with the tag that lists
 * show. */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "api/file_access.h"
#include "api/stored_reply.h"
#include "base/decimal.h"
#include "http/exchange/s3api_error.h"
#include "s3/handlers.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_request.h"
#include "s3/s3api_xml.h"

/* S3's largest number of a part. */
#define PART_NUMBER_MAX 10000

/* --- the query --- */

/* Query parameters that replace fields of the answer. */
static const struct {
    const char *parameter;
    const char *field;
} overrides[] = {
    {"response-content-type", "Content-Type"},
    {"response-content-encoding", "Content-Encoding"},
    {"response-cache-control", "Cache-Control"},
    {"response-content-language", "Content-Language"},
    {"response-content-disposition", "Content-Disposition"},
    {"response-expires", "Expires"},
};

#define OVERRIDES (sizeof(overrides) / sizeof(overrides[0]))

struct object {
    struct file_search search; /* first, for the worker */
    struct zt_text key;
    const char *overrides[OVERRIDES]; /* NULL: none */
    bool is_part;
};

static bool is_field_value(struct zt_text value)
{
    for (size_t i = 0; i < value.length; i++)
        if (value.bytes[i] < ' ' || value.bytes[i] > '~')
            return false;
    return true;
}

/* Returns false if it has replied. */
static bool read_overrides(struct request *request, struct object *object)
{
    struct zt_text value;

    for (size_t i = 0; i < OVERRIDES; i++) {
        if (!request_query(request, overrides[i].parameter, 0, &value) || value.length == 0)
            continue;
        if (!is_field_value(value)) {
            s3api_problem(request, S3API_INVALID_ARGUMENT,
                          "%s contains a character that a header "
                          "field must not contain",
                          overrides[i].parameter);
            return false;
        }
        object->overrides[i] = request_copy(request, value.bytes, value.length);
    }
    return true;
}

/* Every object is one part. Returns false if it has replied. */
static bool read_part(struct request *request, struct object *object)
{
    struct zt_text value;
    uint64_t number;

    object->is_part = request_query(request, "partNumber", 0, &value);
    if (!object->is_part)
        return true;
    if (!zt_decimal_read(value, PART_NUMBER_MAX, &number) || number == 0)
        s3api_problem(request, S3API_INVALID_ARGUMENT, "partNumber must be from 1 to %d",
                      PART_NUMBER_MAX);
    else if (request_header(request, "Range") != NULL)
        s3api_problem(request, S3API_INVALID_REQUEST,
                      "Range and partNumber must not be sent together");
    else if (number > 1)
        s3api_problem(request, S3API_INVALID_PART_NUMBER, "the object has one part");
    return !request->replied;
}

/* Clients name the version "null" of a bucket without versions. Returns false if it has replied. */
static bool read_version(struct request *request)
{
    struct zt_text value;

    if (!request_query(request, "versionId", 0, &value) || value.length == 0 ||
        zt_text_is(value, "null"))
        return true;
    s3api_problem(request, S3API_NO_SUCH_VERSION, "the bucket has no versions");
    return false;
}

/* Returns false if it has replied. */
static bool begin(struct request *request)
{
    struct object *object = request_allocate(request, sizeof(*object));

    if (object == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    memset(object, 0, sizeof(*object));
    request->context = object;
    return s3api_find_key(request, &object->key) && read_version(request) &&
           read_part(request, object) && read_overrides(request, object) &&
           file_search_init(request, &object->search, object->key);
}

/* --- the answer --- */

/* Returns false if the object has no such field (s3api_meta.h). */
static bool replace_stored(struct representation *reply, const char *field, const char *value)
{
    for (unsigned i = 0; i < reply->more_count; i++)
        if (strcasecmp(reply->more_fields[i].name, field) == 0) {
            reply->more_fields[i].value = value;
            return true;
        }
    return false;
}

static void override(struct representation *reply, const char *field, const char *value)
{
    if (strcmp(field, "Content-Type") == 0)
        reply->media_type = value;
    else if (strcmp(field, "Content-Encoding") == 0)
        reply->coding = value;
    else if (strcmp(field, "Cache-Control") == 0)
        reply->cache_control = value;
    else if (!replace_stored(reply, field, value))
        representation_field(reply, field, value);
}

static enum outcome reply_object(struct request *request, const struct object *object)
{
    const struct file_search *search = &object->search;
    struct representation *reply = &request->reply;
    char etag[S3API_ETAG_SIZE];

    assert(search->identity != NULL);
    s3api_etag(search->path, search->identity, etag);
    reply->etag = request_copy(request, etag, strlen(etag));
    reply->last_modified = stored_modified(search->identity->modified_ns);
    reply->media_type = stored_media_type(object->key);
    s3api_meta_reply(request, search->path, search->identity);
    stored_reply_fields(request);
    if (object->is_part)
        representation_field(reply, "x-amz-mp-parts-count", "1");
    for (size_t i = 0; i < OVERRIDES; i++)
        if (object->overrides[i] != NULL)
            override(reply, overrides[i].field, object->overrides[i]);
    return OUTCOME_READY;
}

enum outcome s3api_get_object(struct request *request)
{
    if (request->context == NULL && !begin(request))
        return OUTCOME_READY;
    switch (file_search_run(request)) {
    case FILE_FOUND_PENDING:
        return OUTCOME_WAITING;
    case FILE_FOUND_FAILED:
        return OUTCOME_READY;
    case FILE_FOUND_FOLDER:
    case FILE_FOUND_NONE:
        return s3api_problem(request, S3API_NO_SUCH_KEY, "no object has this key");
    case FILE_FOUND:
        break;
    }
    return reply_object(request, request->context);
}
