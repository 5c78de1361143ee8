/* The bytes of a component: whole or a slice; plain or as NPY; decoded, as stored, stored and sent
 * as a content coding, or as the difference from a base. This file chooses the content coding and
 * writes the header fields; component_query.c reads the query, component_bytes.c verifies and
 * decodes, component_difference.c finds the base. */
#include "api/component.h"

#include <assert.h>
#include <string.h>

#include "api/attachment.h"
#include "api/handlers.h"
#include "api/resolve.h"
#include "base/decimal.h"
#include "derived/passthrough.h"
#include "http/fields/negotiate.h"
#include "zt/decode.h"

/* Longer texts from a file are left out of header fields: clients and proxies reject long
 * fields. */
#define FIELD_TEXT_MAX 1024

/* --- header fields --- */

/* Returns NULL for a text with which a file could inject header lines. */
static const char *field_text(struct request *request, const char *text, size_t length)
{
    if (length == 0 || length > FIELD_TEXT_MAX)
        return NULL;
    for (size_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] > 0x7E)
            return NULL;
    return request_copy(request, text, length);
}

/* Returns NULL for a scalar, and for a shape that is too long for a field. */
static const char *shape_text(struct request *request, const struct component_view *view)
{
    unsigned rank;
    const uint64_t *shape = component_view_shape(request, view, &rank);
    char text[FIELD_TEXT_MAX];
    char *at = text;

    for (unsigned i = 0; i < rank; i++) {
        if ((size_t)(text + sizeof(text) - at) < sizeof(",") + ZT_DECIMAL_SIZE)
            return NULL;
        if (i > 0)
            *at++ = ',';
        at = zt_decimal_write(at, shape[i]);
    }
    return at > text ? request_copy(request, text, (size_t)(at - text)) : NULL;
}

static const char *vary(const struct component_view *view)
{
    if (view->varies_by_accept)
        return view->varies_by_coding ? "Accept, Accept-Encoding" : "Accept";
    return view->varies_by_coding ? "Accept-Encoding" : NULL;
}

static void add_descriptions(struct request *request, const struct component_view *view)
{
    struct representation *reply = &request->reply;
    const struct zt_component *component = view->component;
    const char *dtype = zt_dtype_name((enum zt_dtype)component->dtype);
    const char *type = component->type != NULL
                           ? field_text(request, component->type, component->type_length)
                           : dtype;
    const char *format = field_text(request, view->object->format, view->object->format_length);

    if (view->widener != NULL) {
        dtype = type = zt_dtype_name(ZT_F32);
        format = "dense";
    }
    representation_field(reply, "ZT-Dtype", dtype);
    representation_field(reply, "ZT-Type", type);
    representation_field(reply, "ZT-Shape", shape_text(request, view));
    representation_field(reply, "ZT-Format", format);
    if (view->npy_head != NULL)
        representation_field(reply, "Content-Disposition",
                             attachment_named(request, zt_object_name(view->object), ".npy"));
}

static void set_fields(struct request *request, const struct component_view *view)
{
    struct representation *reply = &request->reply;
    char suffix[COMPONENT_TAG_SIZE];
    char etag[GENERATION_ETAG_SIZE + COMPONENT_TAG_SIZE];

    assert(!request->replied);
    component_view_tag(view, suffix);
    generation_etag(request->generation, suffix, etag, sizeof(etag));
    reply->etag = request_copy(request, etag, strlen(etag));
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->media_type = view->npy_head != NULL ? "application/x-npy" : "application/octet-stream";
    reply->coding = view->form == VIEW_CODED ? coding_name(CODING_ZSTD) : NULL;
    reply->vary = vary(view);
    reply->ranges = true;
    reply->lasting = true;
    add_descriptions(request, view);
}

/* --- the content coding --- */

static void find_on_worker(struct request *request)
{
    const struct component_view *view = request->context;

    passthrough_find(request->generation, view->index);
}

/* Finds out whether the stored bytes may be sent unchanged. For the first request this is done on a
 * worker. */
static enum outcome find_passthrough(struct request *request, struct component_view *view,
                                     bool *out_fit)
{
    *out_fit = false;
    if (passthrough_is_known(request->generation, view->index, out_fit) || view->passthrough_sought)
        return OUTCOME_READY;
    view->passthrough_sought = true;
    return request_work_long(request, find_on_worker);
}

static enum outcome choose_coding(struct request *request, struct component_view *view)
{
    static const enum coding offered[] = {CODING_ZSTD, CODING_IDENTITY};
    static const enum coding plain[] = {CODING_IDENTITY};
    const char *field = request_header(request, "Accept-Encoding");
    bool fit;

    assert(view->form == VIEW_DECODED && view->slice == NULL && view->npy_head == NULL &&
           view->widener == NULL);
    if (negotiate_coding(field, offered, 2) == CODING_ZSTD) {
        if (find_passthrough(request, view, &fit) == OUTCOME_WAITING)
            return OUTCOME_WAITING;
        if (fit) {
            view->form = VIEW_CODED;
            return OUTCOME_READY;
        }
    }
    if (negotiate_coding(field, plain, 1) == CODING_NONE) {
        problem_reply(request, PROBLEM_NOT_ACCEPTABLE,
                      "the component is available unencoded, and as zstd if every decoder accepts "
                      "its frames");
        request->reply.vary = vary(view);
    }
    return OUTCOME_READY;
}

/* --- the handler --- */

/* A seekable component of any length is decoded one frame after another, as is every component for
 * a difference, and a view may be gathered from the file, so none of these is too large. */
static bool is_too_large(const struct request *request, const struct component_view *view)
{
    const struct zt_component *component = view->component;
    uint64_t limit = (uint64_t)config_number(&request->server->config->limits.decoded_bytes);

    return view->form == VIEW_DECODED && !zt_component_is_plain(component) &&
           view->gathered == NULL && component->encoding != ZT_ENCODING_ZSTD_SEEKABLE &&
           component->decoded_length != ZT_LENGTH_UNKNOWN && component->decoded_length > limit;
}

/* Replies with problems that are known without reading a byte, before preconditions are checked.
 * Returns true if it has replied. */
static bool reply_if_undecodable(struct request *request, const struct component_view *view)
{
    if (view->form != VIEW_DECODED && view->form != VIEW_DIFFERENCE)
        return false;
    if (view->component->encoding == ZT_ENCODING_UNKNOWN) {
        component_problem(
            request, view, PROBLEM_UNSUPPORTED_ENCODING, ZT_UNSUPPORTED,
            "its encoding cannot be decoded here; ?representation=stored gives the stored bytes");
        return true;
    }
    if (is_too_large(request, view)) {
        component_problem_too_large(request, view);
        return true;
    }
    return false;
}

enum outcome component_get(struct request *request)
{
    enum outcome outcome;
    struct component_view *view;

    if (!model_resolve(request, &outcome))
        return outcome;
    view = request->context;
    if (view == NULL) {
        view = component_view_read(request);
        request->context = view;
    }
    if (view == NULL)
        return OUTCOME_READY;
    if (view->varies_by_coding && choose_coding(request, view) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (request->replied || reply_if_undecodable(request, view))
        return OUTCOME_READY;
    set_fields(request, view);
    if (view->form == VIEW_DIFFERENCE)
        component_difference_prepare(request);
    else
        component_prepare(request);
    return OUTCOME_READY;
}
