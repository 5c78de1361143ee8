/* HeadObject and GetObject: the file that /files serves at this path, with the tag that lists show;
 * else the view of a model. */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "api/file_access.h"
#include "api/resolve.h"
#include "api/stored_reply.h"
#include "base/decimal.h"
#include "http/exchange/s3api_error.h"
#include "s3/handlers.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_request.h"
#include "s3/s3api_view.h"
#include "s3/s3api_xml.h"
#include "views/view_digest.h"
#include "views/view_reply.h"

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
    bool has_no_file; /* the key may be a view's */
    unsigned looks;   /* how often the view was looked up */
    struct model_view *model_view;
    struct view_reply view;
};

/* A model that is replaced continuously may differ from each view. */
#define LOOKS_MAX 3

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

/* Returns false if it has replied. */
static bool begin(struct request *request)
{
    struct object *object = request_new_context(request, sizeof(*object));

    if (object == NULL)
        return false;
    return s3api_find_key(request, &object->key) && s3api_finds_version(request) &&
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

/* Adds the fields that files and views have. */
static enum outcome finish(struct request *request, const struct object *object, const char *etag)
{
    struct representation *reply = &request->reply;

    reply->etag = request_copy(request, etag, strlen(etag));
    stored_reply_fields(request);
    if (object->is_part)
        representation_field(reply, "x-amz-mp-parts-count", "1");
    for (size_t i = 0; i < OVERRIDES; i++)
        if (object->overrides[i] != NULL)
            override(reply, overrides[i].field, object->overrides[i]);
    return OUTCOME_READY;
}

static enum outcome reply_file(struct request *request, const struct object *object)
{
    const struct file_search *search = &object->search;
    char etag[S3API_ETAG_SIZE];

    assert(search->identity != NULL);
    s3api_etag(search->path, search->identity, etag);
    request->reply.last_modified = stored_modified(search->identity->modified_ns);
    request->reply.media_type = stored_media_type(object->key);
    s3api_meta_reply(request, search->path, search->identity);
    return finish(request, object, etag);
}

static enum outcome reply_none(struct request *request)
{
    return s3api_problem(request, S3API_NO_SUCH_KEY, "no object has this key");
}

/* --- views --- */

static void release(void *thing)
{
    model_view_release(((struct object *)thing)->model_view);
}

static void find_view(struct request *request)
{
    struct object *object = request->context;

    assert(object->has_no_file && request->generation == NULL);
    model_view_release(object->model_view);
    object->model_view = s3api_view_find(request->server, object->key, &object->view.part);
}

static bool may_be_view(const struct request *request, struct zt_text key)
{
    return request->server->config->hub.views &&
           (zt_text_ends_with(key, zt_text_from(".safetensors")) ||
            zt_text_ends_with(key, zt_text_from(".safetensors.index.json")));
}

static enum outcome look_for_view(struct request *request, struct object *object)
{
    if (!may_be_view(request, object->key) || ++object->looks > LOOKS_MAX)
        return reply_none(request);
    if (!object->has_no_file)
        request_hold(request, object, release);
    object->has_no_file = true;
    return request_work(request, find_view);
}

static void write_index(struct request *request)
{
    view_reply_write_index(request, &((const struct object *)request->context)->view);
}

/* As with files, a request for a range does not justify reading everything. */
static void add_digest(struct request *request, const struct object *object)
{
    struct representation *reply = &request->reply;

    reply->has_sha256 = view_digest_find(request->server, object->model_view, object->view.part,
                                         request_header(request, "Range") == NULL, reply->sha256);
}

static enum outcome reply_view(struct request *request, struct object *object)
{
    const struct model_view *view = object->model_view;
    char etag[S3API_ETAG_SIZE];

    assert(view != NULL && request->generation != NULL);
    object->view.view = view;
    object->view.write_index = write_index;
    if (view_reply(request, &object->view) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (request->replied)
        return OUTCOME_READY;
    s3api_view_etag(view, object->view.part, etag);
    request->reply.last_modified = stored_modified(view->identity.modified_ns);
    request->reply.cache_control = "no-cache";
    add_digest(request, object);
    return finish(request, object, etag);
}

/* Runs after find_view. */
static enum outcome find_model(struct request *request, struct object *object)
{
    const struct model_view *view = object->model_view;

    assert(object->has_no_file && object->looks > 0);
    if (view == NULL || !client_may_read_file(request, zt_text_from(view->path)))
        return reply_none(request);
    if (request->generation != NULL)
        return reply_view(request, object);
    switch (view_find_model(request, view)) {
    case VIEW_MODEL_FOUND:
        return reply_view(request, object);
    case VIEW_MODEL_PENDING:
        return OUTCOME_WAITING;
    case VIEW_MODEL_STALE:
        return look_for_view(request, object);
    case VIEW_MODEL_UNAVAILABLE:
        break;
    }
    return problem_reply_unavailable(request, zt_text_from(view->path));
}

/* --- the handler --- */

enum outcome s3api_get_object(struct request *request)
{
    struct object *object;

    if (request->context == NULL && !begin(request))
        return OUTCOME_READY;
    object = request->context;
    if (object->has_no_file)
        return find_model(request, object);
    switch (file_search_run(request)) {
    case FILE_FOUND_PENDING:
        return OUTCOME_WAITING;
    case FILE_FOUND_FAILED:
        return OUTCOME_READY;
    case FILE_FOUND_FOLDER:
    case FILE_FOUND_NONE:
        return look_for_view(request, object);
    case FILE_FOUND:
        break;
    }
    return reply_file(request, object);
}
