/* Prepares the bytes of a component: verifies them, and finds or makes the source they are read
 * from.
 *
 *   stored bytes, plain components   the file itself
 *   zt.zstd-seekable/1, verified     a source that decodes the frames that a range needs
 *   strides that ascend              a source that gathers runs of the file
 *   every other encoding             decoded once, into the cache
 *
 * Widened elements are a source over one of these, and a slice is one over any of them. */
#include "api/component.h"

#include <assert.h>
#include <string.h>

#include "api/resolve.h"
#include "derived/decoded.h"
#include "disk/disk_space.h"
#include "verify/component_digests.h"
#include "verify/verifier.h"
#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/verify.h"

/* A source of frames that a worker opens while the request waits. */
struct frames_opening {
    struct zt_source *source; /* NULL until it is open */
    enum zt_status status;
    struct zt_error error;
};

/* --- digests --- */

/* Returns true if the response has exactly the stored bytes. */
static bool is_as_stored(const struct component_view *view)
{
    if (view->slice != NULL || view->npy_head != NULL || view->widener != NULL)
        return false;
    return view->form != VIEW_DECODED || zt_component_is_plain(view->component);
}

bool component_sha256(const struct request *request, const struct component_view *view,
                      uint8_t out_sha256[32])
{
    const struct zt_model *model = request->generation->model;
    bool checked = view->state == COMPONENT_VERIFIED;
    struct zt_fingerprint kept;

    if (view->slice != NULL || view->npy_head != NULL || view->widener != NULL)
        return false;
    if (checked && view->form == VIEW_DECODED &&
        zt_component_decoded_sha256(model, view->component, out_sha256))
        return true;
    if (checked && view->form == VIEW_DECODED &&
        decoded_digest_find(request->generation, view->index, ZT_DIGEST_SHA256, &kept)) {
        memcpy(out_sha256, kept.digest.bytes, 32);
        return true;
    }
    return is_as_stored(view) && stored_digest_whole(request->generation, view->index, out_sha256);
}

static bool range_sha256(struct request *request, uint64_t first, uint64_t length,
                         uint8_t out_sha256[32])
{
    const struct component_view *view = request->context;

    return stored_digest_piece(request->generation, view->index, first, length, out_sha256);
}

/* Background hashing only reads cached bytes. This request may just have cached them, so the digest
 * is requested again. */
static void want_again(void *thing)
{
    const struct request *request = thing;
    const struct component_view *view = request->context;

    stored_digest_want(request->server, request->generation, view->index);
}

static void state_digests(struct request *request, const struct component_view *view)
{
    struct representation *reply = &request->reply;

    reply->has_sha256 = component_sha256(request, view, reply->sha256);
    reply->range_sha256 = is_as_stored(view) ? range_sha256 : NULL;
    if (view->state == COMPONENT_VERIFIED || view->state == COMPONENT_UNDIGESTED)
        stored_digest_want(request->server, request->generation, view->index);
    if (request->server->waiters != NULL && request->method == METHOD_GET)
        request_hold(request, request, want_again);
}

/* --- step: verify --- */

/* For a HEAD, a remote component is not fetched only to verify it. The response then has no
 * digests. */
static enum component_state ask(struct request *request, uint32_t component)
{
    const unsigned char known = atomic_load(&request->generation->states[component]);

    if (request->method != METHOD_HEAD ||
        store_has_locally(request->server->store, zt_text_from(request->generation->own_path)))
        return verifier_ask(request->server->verifier, request->generation, component,
                            request_waiter(request));
    return known == COMPONENT_CHECKING ? COMPONENT_UNCHECKED : (enum component_state)known;
}

enum outcome component_verify(struct request *request, struct component_view *view)
{
    view->state = ask(request, view->index);
    switch (view->state) {
    case COMPONENT_CHECKING:
        return OUTCOME_WAITING;
    case COMPONENT_CORRUPT:
        return component_problem(
            request, view, PROBLEM_CORRUPT_COMPONENT, ZT_CORRUPT,
            "the stored bytes do not match the digest stated in the file; they are not served");
    case COMPONENT_UNAVAILABLE:
        return problem_reply_unavailable(request, zt_text_from(request->generation->own_path));
    case COMPONENT_VERIFIED:
    case COMPONENT_UNCHECKED:
    case COMPONENT_UNDIGESTED:
    case COMPONENT_UNSUPPORTED:
        break;
    }
    return OUTCOME_READY;
}

static enum outcome step_verify(struct request *request)
{
    struct component_view *view = request->context;
    const enum outcome outcome = component_verify(request, view);

    if (outcome == OUTCOME_READY && !request->replied)
        state_digests(request, view);
    return outcome;
}

/* --- the bytes --- */

static void close_source(void *source)
{
    zt_source_close(source);
}

/* Adds a slice, or all, of the length bytes at base of a source to the reply. */
static enum outcome place_slice(struct request *request, const struct zt_slice *slice,
                                struct zt_source *source, uint64_t base, uint64_t length)
{
    struct representation *reply = &request->reply;
    struct zt_source *gathered;
    struct zt_error error;

    assert(slice == NULL || slice->length <= length);
    if (slice == NULL) {
        representation_source(reply, source, base, length);
        return OUTCOME_READY;
    }
    if (zt_slice_is_contiguous(slice)) {
        representation_source(reply, source, base + slice->offset, slice->length);
        return OUTCOME_READY;
    }
    if (zt_slice_source(slice, source, base, &gathered, &error) != ZT_OK)
        return problem_reply_error_as(request, PROBLEM_INTERNAL, &error);
    request_hold(request, gathered, close_source);
    representation_source(reply, gathered, 0, slice->length);
    return OUTCOME_READY;
}

/* Does the same for a widened component. */
static enum outcome place_widened(struct request *request, struct zt_source *source, uint64_t base)
{
    const struct component_view *view = request->context;
    const uint64_t length = component_view_widened_bytes(request, view);
    struct zt_source *gathered;
    struct zt_source *widened;
    struct zt_error error;

    assert(view->widener != NULL && length % sizeof(float) == 0);
    if (view->gathered != NULL) {
        if (zt_slice_source(view->gathered, source, base, &gathered, &error) != ZT_OK)
            return problem_reply_error_as(request, PROBLEM_INTERNAL, &error);
        request_hold(request, gathered, close_source);
        source = gathered;
        base = 0;
    }
    if (zt_widened_open(view->widener, source, base, length / sizeof(float), &widened, &error) !=
        ZT_OK)
        return problem_reply_error_as(request, PROBLEM_INTERNAL, &error);
    request_hold(request, widened, close_source);
    return place_slice(request, view->slice, widened, 0, length);
}

/* Adds the selected bytes of a component to the reply. The component is length bytes at base of a
 * source that the request holds. */
static enum outcome place(struct request *request, struct zt_source *source, uint64_t base,
                          uint64_t length)
{
    const struct component_view *view = request->context;

    if (view->npy_head != NULL)
        representation_memory(&request->reply, view->npy_head, view->npy_head_length);
    if (view->widener != NULL)
        return place_widened(request, source, base);
    return place_slice(request, view->gathered != NULL ? view->gathered : view->slice, source, base,
                       length);
}

/* --- step: decode, into the cache --- */

enum outcome component_problem_unreadable(struct request *request,
                                          const struct component_view *view,
                                          const struct zt_error *error)
{
    switch (error->status) {
    case ZT_LIMIT:
        if (disk_space_is_short(error))
            return problem_reply_error_as(request, PROBLEM_INSUFFICIENT_STORAGE, error);
        return component_problem_too_large(request, view);
    case ZT_UNSUPPORTED:
        return component_problem(request, view, PROBLEM_UNSUPPORTED_ENCODING, ZT_UNSUPPORTED,
                                 error->message);
    case ZT_INVALID:
    case ZT_CORRUPT:
        return component_problem(request, view, PROBLEM_CORRUPT_COMPONENT, ZT_CORRUPT,
                                 error->message);
    case ZT_UNAVAILABLE:
    case ZT_STALE:
        return problem_reply_error(request, error);
    default:
        return problem_reply_error_as(request, PROBLEM_INTERNAL, error);
    }
}

static enum outcome decode_whole(struct request *request)
{
    struct component_view *view = request->context;
    struct decoded_cache *cache = request->server->decoded;
    enum memo_answer given = MEMO_FAILED;
    struct zt_error error;

    if (view->decoded == NULL) {
        view->decoded = decoded_hold(cache, request->generation, view->index);
        request_hold(request, view->decoded, memo_release);
    }
    if (view->decoded == NULL)
        zt_fail_memory(&error, "decoding");
    else
        given = decoded_ask(cache, view->decoded, request->generation, view->index,
                            request_waiter(request), &error);
    if (given == MEMO_PENDING)
        return OUTCOME_WAITING;
    if (given == MEMO_FAILED)
        return component_problem_unreadable(request, view, &error);
    if (view->tensor_bytes != ZT_LENGTH_UNKNOWN && view->tensor_bytes != view->decoded->length) {
        return component_problem(request, view, PROBLEM_CORRUPT_COMPONENT, ZT_CORRUPT,
                                 "its decoded length does not match its shape");
    }
    return place(request, view->decoded->source, 0, view->decoded->length);
}

/* --- step: or decode frame by frame --- */

static void close_frames(void *thing)
{
    struct frames_opening *opening = thing;

    zt_source_close(opening->source);
}

/* Reads the seek table, on a worker. */
static void open_frames(struct request *request)
{
    const struct component_view *view = request->context;
    const struct zt_files files = generation_files(request->generation);
    struct frames_opening *opening = view->opening;

    opening->status = zt_frames_source(view->component, zt_files_source(&files, view->component),
                                       &opening->source, &opening->error);
}

static enum outcome decode_frames(struct request *request)
{
    struct component_view *view = request->context;
    struct frames_opening *opening = view->opening;

    if (opening == NULL) {
        opening = request_allocate(request, sizeof(*opening));
        if (opening == NULL)
            return problem_reply_no_memory(request);
        opening->source = NULL;
        view->opening = opening;
        request_hold(request, opening, close_frames);
        return request_work(request, open_frames);
    }
    if (opening->status != ZT_OK)
        return component_problem_unreadable(request, view, &opening->error);
    return place(request, opening->source, 0, view->component->decoded_length);
}

/* Single frames may be decoded once all of them were verified, or if verification is off. */
static bool may_decode_frames(const struct component_view *view)
{
    return view->component->encoding == ZT_ENCODING_ZSTD_SEEKABLE &&
           view->component->decoded_length != ZT_LENGTH_UNKNOWN && !view->component->big_endian &&
           (view->state == COMPONENT_VERIFIED || view->state == COMPONENT_UNCHECKED);
}

static enum outcome step_decode(struct request *request)
{
    const struct component_view *view = request->context;

    assert(view->form == VIEW_DECODED && !zt_component_is_plain(view->component));
    return may_decode_frames(view) ? decode_frames(request) : decode_whole(request);
}

/* Returns the decoded length; 0 if it is not known before decoding. */
static uint64_t expected_length_of(const struct request *request, const struct component_view *view)
{
    if (view->slice != NULL)
        return view->npy_head_length + view->slice->length;
    if (view->widener != NULL)
        return view->npy_head_length + component_view_widened_bytes(request, view);
    if (view->tensor_bytes != ZT_LENGTH_UNKNOWN)
        return view->npy_head_length + view->tensor_bytes;
    return view->component->decoded_length != ZT_LENGTH_UNKNOWN ? view->component->decoded_length
                                                                : 0;
}

void component_prepare(struct request *request)
{
    const struct component_view *view = request->context;
    const struct zt_component *component = view->component;
    struct zt_files files;

    assert(view->component == &request->generation->model->components[view->index]);
    representation_step(&request->reply, "verify", step_verify);
    if (view->form == VIEW_DECODED && view->gathered == NULL && !zt_component_is_plain(component)) {
        representation_step(&request->reply, "decode", step_decode);
        request->reply.expected_length = expected_length_of(request, view);
        return;
    }
    files = generation_files(request->generation);
    place(request, zt_files_source(&files, component), component->offset, component->length);
}
