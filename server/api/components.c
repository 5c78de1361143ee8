/* A component's bytes, decoded or as stored. The handler says which; two steps make sure of them before the first byte
 * is sent: they are verified against the digest that the file states, and they are decoded. */
#include "api/components.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/resolve.h"
#include "model/decoded.h"
#include "model/verifier.h"
#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/verify.h"

/* Texts from a file that are longer are left out of header fields: clients and proxies refuse long fields. */
#define FIELD_TEXT_MAX 1024
/* "-" and an index, "s" and NUL. */
#define TAG_SUFFIX_SIZE 16

/* What the request is about, from the handler to its steps. */
struct view {
    const struct zt_object *object;
    const struct zt_component *component;
    uint32_t index;
    bool stored;
};

static enum outcome refuse(struct request *request, enum problem problem, enum zt_status status, const char *message)
{
    const struct view *view = request->context;
    struct zt_error error;
    zt_fail(&error, status, NULL, view->component->offset, "%s", message);
    zt_error_at(&error, zt_object_name(view->object), zt_component_name(view->component));
    return problem_reply_error_as(request, problem, &error);
}

/* --- step: verified --- */

/* The file's own SHA-256, where it covers the very bytes that are sent. */
static void state_digest(struct request *request)
{
    const struct view *view = request->context;
    const struct zt_model *model = request->generation->model;
    const struct zt_component *component = view->component;
    struct representation *reply = &request->reply;
    if (!view->stored) {
        reply->has_sha256 = zt_component_decoded_sha256(model, component, reply->sha256);
        return;
    }
    struct zt_digest digest;
    struct zt_error error;
    bool covered = zt_digest_covers_stored(model) || zt_component_is_plain(component);
    if (!covered || component->digest == NULL ||
        zt_digest_parse((struct zt_text){component->digest, component->digest_length}, &digest, &error) != ZT_OK ||
        digest.algorithm != ZT_DIGEST_SHA256) {
        return;
    }
    memcpy(reply->sha256, digest.bytes, sizeof reply->sha256);
    reply->has_sha256 = true;
}

static enum outcome step_verify(struct request *request)
{
    const struct view *view = request->context;
    struct server *server = request->server;
    switch (verifier_ask(server->verifier, request->generation, view->index, request_waiter(request))) {
    case COMPONENT_CHECKING:
        return OUTCOME_WAITING;
    case COMPONENT_CORRUPT:
        return refuse(request, PROBLEM_CORRUPT_COMPONENT, ZT_CORRUPT,
                      "the stored bytes do not agree with the digest that the file states; they are not served");
    case COMPONENT_VERIFIED:
        state_digest(request);
        return OUTCOME_READY;
    case COMPONENT_UNCHECKED:
        /* verify: off. What the file says is all that is known. */
        state_digest(request);
        return OUTCOME_READY;
    case COMPONENT_UNDIGESTED:
    case COMPONENT_UNSUPPORTED:
        break;
    }
    return OUTCOME_READY;
}

/* --- step: decoded --- */

static enum outcome refuse_too_large(struct request *request)
{
    return refuse(request, PROBLEM_UNSUPPORTED_ENCODING, ZT_LIMIT,
                  "decoded it would be larger than limits.decoded_bytes of this server allows; "
                  "?representation=stored gives the stored bytes");
}

static enum outcome refuse_decoding(struct request *request, const struct zt_error *error)
{
    switch (error->status) {
    case ZT_LIMIT:
        return refuse_too_large(request);
    case ZT_UNSUPPORTED:
        return refuse(request, PROBLEM_UNSUPPORTED_ENCODING, ZT_UNSUPPORTED, error->message);
    case ZT_INVALID:
    case ZT_CORRUPT:
        return refuse(request, PROBLEM_CORRUPT_COMPONENT, ZT_CORRUPT, error->message);
    default:
        return problem_reply_error_as(request, PROBLEM_INTERNAL, error);
    }
}

static enum outcome step_decode(struct request *request)
{
    const struct view *view = request->context;
    struct decoded *decoded;
    struct zt_error error;
    switch (decoded_ask(request->server->decoded, request->generation, view->index, request_waiter(request), &decoded,
                        &error)) {
    case DECODED_PENDING:
        return OUTCOME_WAITING;
    case DECODED_FAILED:
        return refuse_decoding(request, &error);
    case DECODED_READY:
        break;
    }
    request_hold(request, decoded, decoded_release);
    representation_source(&request->reply, decoded->source, 0, decoded->length);
    return OUTCOME_READY;
}

/* --- the handler --- */

/* False: replied. What later versions of the contract read is refused, never passed over: the bytes would be others. */
static bool read_query(struct request *request, bool *out_stored)
{
    static const char *const unsupported[] = {"slice", "shard", "axis", "format"};
    struct zt_text value;
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) {
        if (request_query(request, unsupported[i], 0, &value)) {
            problem_reply(request, PROBLEM_INVALID_REQUEST, "%s is not supported yet", unsupported[i]);
            return false;
        }
    }
    *out_stored = false;
    if (!request_query(request, "representation", 0, &value)) {
        return true;
    }
    *out_stored = value.length == 6 && memcmp(value.bytes, "stored", 6) == 0;
    if (!*out_stored && !(value.length == 7 && memcmp(value.bytes, "decoded", 7) == 0)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "representation is stored or decoded");
        return false;
    }
    return true;
}

/* Field values must not carry what a file could use to write header lines of its own. */
static const char *field_text(struct request *request, const char *text, size_t length)
{
    if (length == 0 || length > FIELD_TEXT_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] < 0x20 || text[i] > 0x7E) {
            return NULL;
        }
    }
    return request_print(request, "%.*s", (int)length, text);
}

/* NULL for a scalar, and for a shape too long to be told. */
static const char *shape_text(struct request *request, const struct zt_object *object)
{
    const uint64_t *shape = zt_object_shape(request->generation->model, object);
    char text[FIELD_TEXT_MAX];
    size_t length = 0;
    for (unsigned i = 0; i < object->rank; i++) {
        int written = snprintf(text + length, sizeof text - length, i > 0 ? ",%" PRIu64 : "%" PRIu64, shape[i]);
        length += (size_t)written;
        if (length >= sizeof text) {
            return NULL;
        }
    }
    return length > 0 ? request_print(request, "%s", text) : NULL;
}

static void add_field(struct request *request, const char *name, const char *value)
{
    if (value != NULL) {
        representation_field(&request->reply, name, value);
    }
}

static void set_fields(struct request *request, const struct view *view)
{
    const struct zt_component *component = view->component;
    struct representation *reply = &request->reply;
    char suffix[TAG_SUFFIX_SIZE];
    char etag[GENERATION_ETAG_SIZE + TAG_SUFFIX_SIZE];
    snprintf(suffix, sizeof suffix, "%" PRIu32 "%s", view->index, view->stored ? "-s" : "");
    generation_etag(request->generation, suffix, etag, sizeof etag);
    reply->etag = request_print(request, "%s", etag);
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->media_type = "application/octet-stream";
    reply->ranges = true;
    const char *dtype = zt_dtype_name(component->dtype);
    add_field(request, "ZT-Dtype", dtype);
    add_field(request, "ZT-Type",
              component->type != NULL ? field_text(request, component->type, component->type_length) : dtype);
    add_field(request, "ZT-Shape", shape_text(request, view->object));
    add_field(request, "ZT-Format", field_text(request, view->object->format, view->object->format_length));
}

/* What can be told without reading a byte. True: replied. */
static bool refuse_early(struct request *request, const struct view *view)
{
    const struct zt_component *component = view->component;
    if (view->stored) {
        return false;
    }
    if (component->encoding == ZT_ENCODING_UNKNOWN) {
        refuse(request, PROBLEM_UNSUPPORTED_ENCODING, ZT_UNSUPPORTED,
               "its encoding cannot be decoded here; ?representation=stored gives the stored bytes");
        return true;
    }
    uint64_t limit = (uint64_t)request->server->config->limits.decoded_bytes;
    if (!zt_component_is_plain(component) && component->decoded_length != ZT_LENGTH_UNKNOWN &&
        component->decoded_length > limit) {
        refuse_too_large(request);
        return true;
    }
    return false;
}

/* NULL: replied. */
static struct view *view_find(struct request *request)
{
    const struct zt_object *object = object_resolve(request);
    const struct zt_component *component = object != NULL ? component_resolve(request, object) : NULL;
    bool stored;
    if (component == NULL || !read_query(request, &stored)) {
        return NULL;
    }
    struct view *view = request_allocate(request, sizeof *view);
    if (view == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    uint32_t index = zt_component_index(request->generation->model, component);
    *view = (struct view){.object = object, .component = component, .index = index, .stored = stored};
    return view;
}

enum outcome component_get(struct request *request)
{
    enum outcome outcome;
    if (!model_resolve(request, &outcome)) {
        return outcome;
    }
    struct view *view = view_find(request);
    request->context = view;
    if (view == NULL || refuse_early(request, view)) {
        return OUTCOME_READY;
    }
    const struct zt_component *component = view->component;
    set_fields(request, view);
    representation_step(&request->reply, step_verify);
    if (view->stored || zt_component_is_plain(component)) {
        const struct zt_files files = generation_files(request->generation);
        representation_source(&request->reply, zt_files_source(&files, component), component->offset,
                              component->length);
    } else {
        representation_step(&request->reply, step_decode);
    }
    return OUTCOME_READY;
}
