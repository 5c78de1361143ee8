/* Replies with an exported file.
 *
 * The handler waits for the outline of the plan, so that a selection that the format cannot
 * represent is reported before preconditions are checked. Two steps then wait for the whole plan
 * and list its bytes as segments. */
#include "api/export_reply.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "http/exchange/problem.h"

/* "x", the revision, "-", two words in hex and NUL. */
#define SUFFIX_SIZE 64
/* Listing more pieces takes too long on a loop, so a worker does it. */
#define PIECES_AT_ONCE 512

static const struct zt_cut *cut_of(const struct export_view *view)
{
    return view->query.cut.parts > 0 ? &view->query.cut : NULL;
}

/* --- failures --- */

static enum problem problem_of_verdict(enum zt_slice_verdict verdict)
{
    switch (verdict) {
    case ZT_SLICE_NOT_DIVISIBLE:
        return PROBLEM_SHAPE_NOT_DIVISIBLE;
    case ZT_SLICE_NOT_ALIGNED:
        return PROBLEM_SLICE_NOT_BYTE_ALIGNED;
    case ZT_SLICE_OUT_OF_RANGE:
        return PROBLEM_SLICE_OUT_OF_RANGE;
    case ZT_SLICE_FITS:
    case ZT_SLICE_MALFORMED:
        break;
    }
    return PROBLEM_INVALID_REQUEST;
}

static enum problem problem_of_failure(const struct export_plan *plan)
{
    switch (plan->failure) {
    case EXPORT_NO_OBJECT:
        return PROBLEM_OBJECT_NOT_FOUND;
    case EXPORT_RULE_UNUSED:
        return PROBLEM_RULE_UNUSED;
    case EXPORT_NOT_REPRESENTABLE:
        return PROBLEM_NOT_REPRESENTABLE;
    case EXPORT_NOT_CUT:
        return problem_of_verdict(plan->verdict);
    case EXPORT_UNSUPPORTED_ENCODING:
        return PROBLEM_UNSUPPORTED_ENCODING;
    case EXPORT_CORRUPT:
        return PROBLEM_CORRUPT_COMPONENT;
    case EXPORT_INVALID:
        return PROBLEM_INVALID_MODEL;
    case EXPORT_ENDING:
        return PROBLEM_DRAINING;
    case EXPORT_ERROR:
        if (plan->error.status == ZT_UNAVAILABLE || plan->error.status == ZT_STALE)
            return problem_of_error(&plan->error);
        break;
    }
    return PROBLEM_INTERNAL;
}

static enum outcome reply_failure(struct request *request, const struct export_plan *plan)
{
    struct zt_error error = plan->error;
    const size_t length = strlen(error.message);

    if (plan->failure == EXPORT_NOT_CUT && plan->suggestion != NULL)
        snprintf(error.message + length, sizeof(error.message) - length,
                 "; axis=%s has the rules for this model's names", axis_set_name(plan->suggestion));
    return problem_reply_error_as(request, problem_of_failure(plan), &error);
}

/* --- steps --- */

/* A component may have been found corrupt since the plan was made. */
static void reply_if_corrupt(struct request *request, const struct export_plan *plan)
{
    const struct generation *generation = request->generation;
    const struct zt_model *model = generation->model;
    struct zt_error error;

    for (uint32_t i = 0; i < plan->origin_count; i++) {
        const struct export_origin *origin = &plan->origins[i];

        assert(origin->component < model->component_count && origin->object < model->object_count);
        if (atomic_load_explicit(&generation->states[origin->component], memory_order_relaxed) !=
            COMPONENT_CORRUPT)
            continue;
        zt_fail(&error, ZT_CORRUPT, NULL, model->components[origin->component].offset,
                "the stored bytes do not match the digest stated in the file; they are not served");
        zt_error_at(&error, zt_object_name(&model->objects[origin->object]),
                    zt_component_name(&model->components[origin->component]));
        problem_reply_error_as(request, PROBLEM_CORRUPT_COMPONENT, &error);
        return;
    }
}

static void add_left_out(struct request *request, const struct export_view *view)
{
    if (view->query.leaves_out)
        representation_field(&request->reply, "ZT-Left-Out",
                             request_print(request, "%" PRIu32, view->plan->left_out_count));
}

static enum outcome step_prepare(struct request *request)
{
    const struct export_view *view = request->context;
    const enum memo_answer given = export_plan_prepare(view->plan, request_waiter(request));

    if (given == MEMO_PENDING)
        return OUTCOME_WAITING;
    if (given == MEMO_FAILED)
        return reply_failure(request, view->plan);
    add_left_out(request, view);
    reply_if_corrupt(request, view->plan);
    return OUTCOME_READY;
}

static void fill(struct request *request)
{
    const struct export_view *view = request->context;

    export_segments_fill(view->segments);
}

static enum outcome take_segments(struct request *request)
{
    const struct export_segments *segments =
        ((const struct export_view *)request->context)->segments;

    if (segments->failed)
        return problem_reply_no_memory(request);
    representation_segments(&request->reply, segments->list, segments->count);
    return OUTCOME_READY;
}

static enum outcome step_assemble(struct request *request)
{
    struct export_view *view = request->context;

    assert(view->plan->file != NULL);
    if (view->segments != NULL)
        return take_segments(request);
    view->segments = export_segments_new(request->server, view->plan, request->generation,
                                         cut_of(view), view->query.to_f32);
    if (view->segments == NULL)
        return problem_reply_no_memory(request);
    request_hold(request, view->segments, export_segments_free);
    if (view->plan->file->piece_count > PIECES_AT_ONCE)
        return request_work(request, fill);
    fill(request);
    return take_segments(request);
}

/* --- the reply --- */

static const char *make_etag(struct request *request, const struct export_plan *plan)
{
    char suffix[SUFFIX_SIZE];
    char etag[GENERATION_ETAG_SIZE + SUFFIX_SIZE];

    snprintf(suffix, sizeof(suffix), "x%d-%016" PRIx64 "%016" PRIx64, EXPORT_REVISION,
             plan->identity[0], plan->identity[1]);
    generation_etag(request->generation, suffix, etag, sizeof(etag));
    return request_copy(request, etag, strlen(etag));
}

static void set_fields(struct request *request, const struct export_view *view)
{
    struct representation *reply = &request->reply;

    reply->etag = make_etag(request, view->plan);
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->media_type =
        view->query.target == ZT_TARGET_NPZ ? "application/zip" : "application/octet-stream";
    reply->ranges = true;
    if (view->plan->suggestion != NULL)
        representation_field(reply, "Axis-Suggestion", axis_set_name(view->plan->suggestion));
    representation_step(reply, "plan", step_prepare);
    representation_step(reply, "assemble", step_assemble);
}

enum outcome export_reply(struct request *request, struct export_view *view)
{
    enum memo_answer given;

    if (view->plan == NULL) {
        view->plan = export_plan_hold(request->server->exports, request->generation, &view->query);
        request_hold(request, view->plan, memo_release);
    }
    if (view->plan == NULL)
        return problem_reply_no_memory(request);
    given = export_plan_outline(request->server, view->plan, request->generation, &view->query,
                                request_waiter(request));
    if (given == MEMO_PENDING)
        return OUTCOME_WAITING;
    if (given == MEMO_FAILED)
        return reply_failure(request, view->plan);
    request->context = view;
    set_fields(request, view);
    return OUTCOME_READY;
}
