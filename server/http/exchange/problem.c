/* Problem details (RFC 9457): the table of codes, and how a failure becomes a reply. Replies that
 * are sent before a request has a handler are made in http/wire/direct_answer.c.
 *
 * Disk and memory failures are logged; the client gets only information that it can act on. */
#include "http/exchange/problem.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "base/log.h"
#include "base/server.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/exchange/s3api_error.h"
#include "store/versions/history.h"
#include "upstream/upstream.h"

/* Longer details are truncated. Two names fit. */
#define DETAIL_SIZE 2560
/* Longer messages are truncated in the field, because the space for an answer's fields is
 * limited. */
#define SHOWN_MAX 1024
/* Retry-After of temporary problems. A client with too many uploads waits until one of them may be
 * done. */
#define SOON_S   "1"
#define LATER_S  "5"
#define MS_PER_S 1000u
/* Sent if there is no memory for a better reply. */
#define LAST_RESORT                                          \
    "{\"type\":\"/problems/internal\",\"title\":\"Internal " \
    "error\",\"status\":500,\"code\":\"internal\"}\n"

struct problem_kind {
    unsigned status;
    const char *code;
    const char *title;
    const char *retry_after_s; /* NULL: a retry does not help */
};

static const struct problem_kind kinds[PROBLEM_COUNT] = {
    [PROBLEM_INVALID_NAME] = {400, "invalid-name", "Invalid name", NULL},
    [PROBLEM_INVALID_SLICE] = {400, "invalid-slice", "Invalid slice", NULL},
    [PROBLEM_INVALID_REQUEST] = {400, "invalid-request", "Invalid request", NULL},
    [PROBLEM_UNAUTHORIZED] = {401, "unauthorized", "Unauthorized", NULL},
    [PROBLEM_FORBIDDEN] = {403, "forbidden", "Forbidden", NULL},
    [PROBLEM_READ_ONLY] = {403, "read-only", "This server is read-only", NULL},
    [PROBLEM_NOT_FOUND] = {404, "not-found", "Not found", NULL},
    [PROBLEM_MODEL_NOT_FOUND] = {404, "model-not-found", "No such model", NULL},
    [PROBLEM_OBJECT_NOT_FOUND] = {404, "object-not-found", "No such object", NULL},
    [PROBLEM_COMPONENT_NOT_FOUND] = {404, "component-not-found", "No such component", NULL},
    [PROBLEM_REVISION_NOT_FOUND] = {404, "revision-not-found", "No such revision", NULL},
    [PROBLEM_BASE_NOT_FOUND] = {404, "base-not-found", "No such base", NULL},
    [PROBLEM_UPLOAD_NOT_FOUND] = {404, "upload-not-found", "No such upload", NULL},
    [PROBLEM_METHOD_NOT_ALLOWED] = {405, "method-not-allowed", "Method not allowed", NULL},
    [PROBLEM_NOT_ACCEPTABLE] = {406, "not-acceptable", "Not acceptable", NULL},
    [PROBLEM_TIMEOUT] = {408, "timeout", "Request timeout", NULL},
    [PROBLEM_CONFLICT] = {409, "conflict", "Conflict", NULL},
    [PROBLEM_LOCKED] = {423, "conflict", "Conflict", NULL},
    [PROBLEM_LENGTH_REQUIRED] = {411, "length-required", "Length required", NULL},
    [PROBLEM_PRECONDITION_FAILED] = {412, "precondition-failed", "Precondition failed", NULL},
    [PROBLEM_TOO_LARGE] = {413, "too-large", "Content too large", NULL},
    [PROBLEM_URI_TOO_LONG] = {414, "uri-too-long", "URI too long", NULL},
    [PROBLEM_UNSUPPORTED_MEDIA_TYPE] = {415, "unsupported-media-type", "Unsupported media type",
                                        NULL},
    [PROBLEM_RANGE_NOT_SATISFIABLE] = {416, "range-not-satisfiable", "Range not satisfiable", NULL},
    [PROBLEM_EXPECTATION_FAILED] = {417, "expectation-failed", "Expectation failed", NULL},
    [PROBLEM_INVALID_MODEL] = {422, "invalid-model", "Invalid model file", NULL},
    [PROBLEM_DIGEST_MISMATCH] = {422, "digest-mismatch", "Digest mismatch", NULL},
    [PROBLEM_SIZE_MISMATCH] = {422, "size-mismatch", "Size mismatch", NULL},
    [PROBLEM_UNKNOWN_DTYPE] = {422, "unknown-dtype", "Unknown dtype", NULL},
    [PROBLEM_UNSUPPORTED_ENCODING] = {422, "unsupported-encoding", "Unsupported encoding", NULL},
    [PROBLEM_SLICE_OUT_OF_RANGE] = {422, "slice-out-of-range", "Slice out of range", NULL},
    [PROBLEM_SLICE_NOT_BYTE_ALIGNED] = {422, "slice-not-byte-aligned", "Slice not byte-aligned",
                                        NULL},
    [PROBLEM_SHAPE_NOT_DIVISIBLE] = {422, "shape-not-divisible", "Shape not divisible", NULL},
    [PROBLEM_RULE_UNUSED] = {422, "object-not-found", "No such object", NULL},
    [PROBLEM_NOT_REPRESENTABLE] = {422, "not-representable", "Not representable", NULL},
    [PROBLEM_RATE_LIMITED] = {429, "rate-limited", "Too many requests", LATER_S},
    [PROBLEM_HEADERS_TOO_LARGE] = {431, "headers-too-large", "Header fields too large", NULL},
    [PROBLEM_CHECKSUM_MISMATCH] = {460, "checksum-mismatch", "Checksum mismatch", NULL},
    [PROBLEM_CORRUPT_COMPONENT] = {500, "corrupt-component", "Corrupt component", NULL},
    [PROBLEM_INTERNAL] = {500, "internal", "Internal error", NULL},
    [PROBLEM_NOT_DURABLE] = {500, "not-durable", "Done, but not durably", NULL},
    [PROBLEM_INCOMPLETE] = {500, "incomplete", "Done, but not completely", NULL},
    [PROBLEM_NOT_IMPLEMENTED] = {501, "not-implemented", "Not implemented", NULL},
    [PROBLEM_UPSTREAM_REFUSED] = {502, "upstream-unavailable", "Upstream unavailable", LATER_S},
    [PROBLEM_DRAINING] = {503, "draining", "Shutting down", NULL},
    [PROBLEM_OVERLOADED] = {503, "overloaded", "Overloaded", SOON_S},
    [PROBLEM_STORE_UNAVAILABLE] = {503, "store-unavailable", "Store unavailable", SOON_S},
    [PROBLEM_UPSTREAM_UNAVAILABLE] = {503, "upstream-unavailable", "Upstream unavailable", SOON_S},
    [PROBLEM_INSUFFICIENT_STORAGE] = {507, "insufficient-storage", "Insufficient storage", NULL},
};

unsigned problem_status(enum problem problem)
{
    assert(problem < PROBLEM_COUNT);
    return kinds[problem].status;
}

const char *problem_code(enum problem problem)
{
    assert(problem < PROBLEM_COUNT);
    return kinds[problem].code;
}

const char *problem_retry_after(enum problem problem)
{
    assert(problem < PROBLEM_COUNT);
    return kinds[problem].retry_after_s;
}

void problem_retry_soon(struct request *request)
{
    assert(request_state(request)->has_problem);
    if (problem_retry_after(request_state(request)->problem) == NULL)
        representation_field(&request->reply, "Retry-After", SOON_S);
}

enum problem problem_of_status(enum zt_status status)
{
    switch (status) {
    case ZT_INVALID:
    case ZT_UNSUPPORTED:
    case ZT_LIMIT:
        return PROBLEM_INVALID_MODEL;
    case ZT_CORRUPT:
        return PROBLEM_CORRUPT_COMPONENT;
    case ZT_NOT_FOUND:
        return PROBLEM_NOT_FOUND;
    case ZT_ARGUMENT:
        return PROBLEM_INVALID_REQUEST;
    case ZT_DATA_SHARD:
        return PROBLEM_MODEL_NOT_FOUND;
    case ZT_UNAVAILABLE:
    case ZT_STALE:
        return PROBLEM_STORE_UNAVAILABLE;
    case ZT_OK:
    case ZT_NO_MEMORY:
    case ZT_IO:
        break;
    }
    return PROBLEM_INTERNAL;
}

static bool has_rule(const struct zt_error *error, const char *rule)
{
    return error->rule != NULL && strcmp(error->rule, rule) == 0;
}

/* Errors of upstreams have their own rules, because their status is also that of a store. */
static bool is_of_upstream(const struct zt_error *error)
{
    return has_rule(error, UPSTREAM_AWAY) || has_rule(error, UPSTREAM_REFUSED);
}

enum problem problem_of_error(const struct zt_error *error)
{
    if (has_rule(error, UPSTREAM_AWAY))
        return PROBLEM_UPSTREAM_UNAVAILABLE;
    return has_rule(error, UPSTREAM_REFUSED) ? PROBLEM_UPSTREAM_REFUSED
                                             : problem_of_status(error->status);
}

enum problem problem_of_write(const struct zt_error *error)
{
    bool forbidden;

    if (is_of_upstream(error))
        return problem_of_error(error);
    if (error->status == ZT_LIMIT)
        return PROBLEM_INSUFFICIENT_STORAGE;
    if (error->os_error == EMFILE || error->os_error == ENFILE)
        return PROBLEM_OVERLOADED;
    if (error->status == ZT_UNAVAILABLE || error->status == ZT_STALE)
        return PROBLEM_STORE_UNAVAILABLE;
    forbidden = error->os_error == EROFS || error->os_error == EACCES || error->os_error == EPERM;
    return error->status == ZT_IO && forbidden ? PROBLEM_READ_ONLY : PROBLEM_INTERNAL;
}

static void write_member(struct json *json, const char *name, const char *text)
{
    if (text != NULL && text[0] != '\0')
        json_string_member(json, name, text);
}

static void write_error_members(struct json *json, const struct zt_error *error)
{
    write_member(json, "rule", error->rule);
    if (error->has_object) {
        json_key_string(json, "object");
        json_text(json, (struct zt_text){error->object, error->object_length});
    }
    if (error->component_length > 0) {
        json_key_string(json, "component");
        json_text(json, (struct zt_text){error->component, error->component_length});
    }
    if (error->offset != ZT_NO_OFFSET)
        json_uint_member(json, "offset", error->offset);
}

void problem_write(struct json *json, enum problem problem, const char *detail, const char *id,
                   enum problem_form form)
{
    char type[64];

    assert(problem < PROBLEM_COUNT && json->depth == 1);
    snprintf(type, sizeof(type), "/problems/%s", kinds[problem].code);
    write_member(json, "type", type);
    write_member(json, "title", kinds[problem].title);
    json_uint_member(json, "status", kinds[problem].status);
    write_member(json, "detail", detail);
    write_member(json, "code", kinds[problem].code);
    write_member(json, "request_id", id);
    if (form == PROBLEM_FORM_HUB)
        write_member(json, "error", detail);
}

/* Sets X-Error-Message. Each multi-byte UTF-8 character becomes one question mark. */
static void show_message(struct request *request, const char *text)
{
    char *shown = request_allocate(request, SHOWN_MAX + 1);
    size_t length = 0;

    if (shown == NULL)
        return;
    for (; *text != '\0' && length < SHOWN_MAX; text++)
        if ((*text & 0xC0) != 0x80)
            shown[length++] = *text < ' ' || *text > '~' ? '?' : *text;
    shown[length] = '\0';
    representation_field(&request->reply, "X-Error-Message", shown);
}

enum problem_form problem_form_of(const struct request *request)
{
    return request->route != NULL ? request->route->problems : PROBLEM_FORM_PLAIN;
}

void problem_reply_body(struct request *request, enum problem problem,
                        const struct problem_body *body)
{
    static const struct problem_body last_resort = {500, PROBLEM_MEDIA_TYPE, LAST_RESORT,
                                                    sizeof(LAST_RESORT) - 1};
    const struct problem_body *sent = body->text != NULL ? body : &last_resort;
    struct representation *reply = &request->reply;

    assert(problem < PROBLEM_COUNT);
    request_state(request)->has_problem = true;
    request_state(request)->problem = problem;
    representation_init(reply);
    reply->status = sent->status;
    reply->media_type = sent->media_type;
    reply->cache_control = "no-store";
    representation_memory(reply, sent->text, sent->length);
    if (kinds[problem].retry_after_s != NULL)
        representation_field(reply, "Retry-After", kinds[problem].retry_after_s);
    request->replied = true;
}

/* S3's XML has no members: the rule follows the detail. */
static enum outcome reply_s3(struct request *request, enum problem problem, const char *detail,
                             const struct zt_error *error)
{
    const char *rule = error != NULL ? error->rule : NULL;
    const char *message = rule != NULL ? request_print(request, "%s (%s)", detail, rule) : detail;

    return s3api_problem_of(request, problem, message != NULL ? message : detail);
}

/* members and error may be NULL. */
static enum outcome reply(struct request *request, enum problem problem, const char *detail,
                          const char *const *members, const struct zt_error *error)
{
    const enum problem_form form = problem_form_of(request);
    struct problem_body body = {kinds[problem].status, PROBLEM_MEDIA_TYPE, NULL, 0};
    struct json json;

    assert(problem < PROBLEM_COUNT);
    if (form == PROBLEM_FORM_S3)
        return reply_s3(request, problem, detail, error);
    json_init(&json, false);
    json_object_begin(&json);
    problem_write(&json, problem, detail, request->id, form);
    for (; members != NULL && members[0] != NULL; members += 2)
        write_member(&json, members[0], members[1]);
    if (error != NULL)
        write_error_members(&json, error);
    json_object_end(&json);
    body.length = json.length;
    body.text = json.failed ? NULL : request_copy(request, json.text, json.length);
    problem_reply_body(request, problem, &body);
    json_free(&json);
    if (form == PROBLEM_FORM_HUB)
        show_message(request, detail);
    return OUTCOME_READY;
}

enum outcome problem_reply(struct request *request, enum problem problem, const char *detail_format,
                           ...)
{
    char detail[DETAIL_SIZE];
    va_list arguments;

    va_start(arguments, detail_format);
    vsnprintf(detail, sizeof(detail), detail_format, arguments);
    va_end(arguments);
    return reply(request, problem, detail, NULL, NULL);
}

enum outcome problem_reply_members(struct request *request, enum problem problem,
                                   const char *detail, const char *const *members)
{
    return reply(request, problem, detail, members, NULL);
}

const char *problem_explain(const struct request *request, enum problem problem,
                            const struct zt_error *error)
{
    if (problem == PROBLEM_STORE_UNAVAILABLE) {
        log_write(LOG_LEVEL_INFO, "request %s: %s", request->id, error->message);
        return error->status == ZT_STALE ? "the model has just been replaced: try again"
               /* Our own message, meant for the client. */
               : error->status == ZT_ARGUMENT
                   ? error->message
                   : "the object store that holds the model cannot be reached now";
    }
    if (is_of_upstream(error))
        log_write(LOG_LEVEL_INFO, "request %s: %s", request->id, error->message);
    if (problem != PROBLEM_INTERNAL && problem != PROBLEM_READ_ONLY)
        return error->message;
    log_write(LOG_LEVEL_ERROR, "request %s: %s", request->id, error->message);
    /* The message names the file, which can then be made readable, or was written into. */
    if (problem == PROBLEM_READ_ONLY ||
        (error->status == ZT_IO && (error->os_error == EACCES || error->os_error == EBADMSG)))
        return error->message;
    if (has_rule(error, HISTORY_DAMAGED))
        return "the history of the repository is damaged, and the server's operator must repair it";
    return error->status == ZT_NO_MEMORY ? "the server is out of memory"
           : error->status == ZT_IO      ? "stored bytes could not be read or written"
                                         : "the server failed to respond";
}

/* Replaces the Retry-After of a reply, which has one. */
static void set_retry_after(struct request *request, uint32_t pause_ms)
{
    struct representation *reply = &request->reply;
    const char *seconds = request_print(request, "%u", (pause_ms + MS_PER_S - 1) / MS_PER_S);

    for (unsigned i = 0; seconds != NULL && i < reply->field_count; i++)
        if (strcmp(reply->fields[i].name, "Retry-After") == 0)
            reply->fields[i].value = seconds;
}

enum outcome problem_reply_error_as(struct request *request, enum problem problem,
                                    const struct zt_error *error)
{
    const char *detail = problem_explain(request, problem, error);

    if (problem == PROBLEM_READ_ONLY)
        return problem_reply(request, problem,
                             "the server may not write to the folder of models: %s", detail);
    /* The cause is for the log only; an upstream's rule is for us only. */
    if (problem == PROBLEM_STORE_UNAVAILABLE || problem == PROBLEM_INTERNAL)
        return reply(request, problem, detail, NULL, NULL);
    if (!is_of_upstream(error))
        return reply(request, problem, detail, NULL, error);
    reply(request, problem, detail, NULL, NULL);
    if (error->pause_ms > 0)
        set_retry_after(request, error->pause_ms);
    return OUTCOME_READY;
}

enum outcome problem_reply_no_memory(struct request *request)
{
    return problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
}

enum outcome problem_reply_error(struct request *request, const struct zt_error *error)
{
    return problem_reply_error_as(request, problem_of_error(error), error);
}

enum outcome problem_reply_unavailable(struct request *request, struct zt_text path)
{
    struct store *store = request->server->store;
    struct zt_error error;

    if (store != NULL && store->revisions != NULL && store->revisions->explain != NULL &&
        store->revisions->explain(store, path, &error))
        return problem_reply_error(request, &error);
    if (store_mirrors(store) && !store_may_wait(store->inner))
        return problem_reply(request, PROBLEM_UPSTREAM_UNAVAILABLE,
                             "the upstream does not answer; only files that are complete here are "
                             "served");
    return problem_reply(request, PROBLEM_STORE_UNAVAILABLE,
                         "the object store does not respond; only cached data is served");
}
