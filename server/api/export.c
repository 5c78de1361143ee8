/* Exports: selected objects as a file of another format.
 *
 * The handler waits for the outline of the plan, so that a selection that the format cannot hold is
 * reported before preconditions are checked. Two steps then wait for the whole plan and list its
 * bytes as segments. */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/attachment.h"
#include "api/export_segments.h"
#include "api/handlers.h"
#include "api/parameters.h"
#include "api/reference.h"
#include "api/resolve.h"
#include "http/exchange/problem.h"

/* To be raised when the same query of the same file gives other bytes, so that tags change. */
#define EXPORT_REVISION 1
/* "x", the revision, "-", two words in hex and NUL. */
#define SUFFIX_SIZE 64
/* Listing more pieces takes too long for a loop, so a worker does it. */
#define PIECES_AT_ONCE 512

/* The state of a request, shared by the handler and its steps. */
struct export_view {
    struct export_query query;
    struct export_plan *plan;
    struct export_segments *segments;
};

static const struct kind {
    const char *name;
    const char *extension;
    const char *media_type;
    enum zt_target target;
} kinds[] = {
    {"safetensors", "safetensors", "application/octet-stream", ZT_TARGET_SAFETENSORS},
    {"zt", "zt", "application/octet-stream", ZT_TARGET_ZT1},
    {"zt2", "zt", "application/octet-stream", ZT_TARGET_ZT2_CANONICAL},
    {"npz", "npz", "application/zip", ZT_TARGET_NPZ},
};

/* --- the query --- */

static const struct kind *kind_of(enum zt_target target)
{
    const struct kind *kind = kinds;

    while (kind->target != target)
        kind++;
    assert(kind < kinds + sizeof(kinds) / sizeof(kinds[0]));
    return kind;
}

/* False: replied. */
static bool read_format(struct request *request, enum zt_target *out_target)
{
    struct zt_text text;
    struct zt_text again;
    bool given =
        request_query(request, "format", 0, &text) && !request_query(request, "format", 1, &again);

    for (size_t i = 0; given && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (zt_text_is(text, kinds[i].name)) {
            *out_target = kinds[i].target;
            return true;
        }
    }
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "format must be safetensors, zt, zt2, npz or reference");
    return false;
}

/* False: replied. */
static bool read_query(struct request *request, struct export_query *query)
{
    struct zt_text *globs;
    struct axis_rule *rules;

    if (!read_format(request, &query->target) || !parameter_prefix(request, &query->prefix) ||
        !parameter_matches(request, &globs, &query->match_count) ||
        !parameter_shard_by_rules(request, &query->cut, &rules, &query->rule_count) ||
        !parameter_dtype(request, &query->to_f32))
        return false;
    query->matches = globs;
    query->rules = rules;
    return true;
}

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
            return PROBLEM_STORE_UNAVAILABLE;
        break;
    }
    return PROBLEM_INTERNAL;
}

static enum outcome reply_failure(struct request *request, const struct export_plan *plan)
{
    return problem_reply_error_as(request, problem_of_failure(plan), &plan->error);
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

static enum outcome step_prepare(struct request *request)
{
    const struct export_view *view = request->context;

    switch (export_plan_prepare(view->plan, request_waiter(request))) {
    case EXPORT_PENDING:
        return OUTCOME_WAITING;
    case EXPORT_FAILED:
        return reply_failure(request, view->plan);
    case EXPORT_READY:
        break;
    }
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

/* --- the handler --- */

static const char *make_etag(struct request *request, const struct export_plan *plan)
{
    char suffix[SUFFIX_SIZE];
    char etag[GENERATION_ETAG_SIZE + SUFFIX_SIZE];

    snprintf(suffix, sizeof(suffix), "x%d-%016" PRIx64 "%016" PRIx64, EXPORT_REVISION,
             plan->identity[0], plan->identity[1]);
    generation_etag(request->generation, suffix, etag, sizeof(etag));
    return request_copy(request, etag, strlen(etag));
}

static const char *make_disposition(struct request *request, const struct export_view *view)
{
    const char *extension = kind_of(view->query.target)->extension;
    const struct zt_cut *cut = cut_of(view);
    const char *ending;

    assert(cut == NULL || cut->part < cut->parts);
    ending = cut == NULL ? request_print(request, ".%s", extension)
                         : request_print(request, "-%" PRIu64 "-of-%" PRIu64 ".%s", cut->part,
                                         cut->parts, extension);
    return attachment_of_model(request, generation_name(request->generation), ending);
}

static void set_fields(struct request *request, const struct export_view *view)
{
    struct representation *reply = &request->reply;

    reply->etag = make_etag(request, view->plan);
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    reply->media_type = kind_of(view->query.target)->media_type;
    reply->ranges = true;
    representation_field(reply, "Content-Disposition", make_disposition(request, view));
    representation_step(reply, "plan", step_prepare);
    representation_step(reply, "assemble", step_assemble);
}

/* NULL: replied. */
static struct export_view *view_make(struct request *request)
{
    struct export_view *view = request_allocate(request, sizeof(*view));

    if (view == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    *view = (struct export_view){.segments = NULL};
    if (!read_query(request, &view->query))
        return NULL;
    view->plan = export_plan_find(request->server->exports, request->generation, &view->query);
    if (view->plan == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    request_hold(request, view->plan, export_plan_release);
    return view;
}

enum outcome export_get(struct request *request)
{
    enum outcome outcome;
    struct export_view *view;

    if (reference_is_wanted(request))
        return reference_get(request);
    if (!model_resolve(request, &outcome))
        return outcome;
    view = request->context != NULL ? request->context : view_make(request);
    request->context = view;
    if (view == NULL)
        return OUTCOME_READY;
    switch (export_plan_outline(view->plan, request->generation, request_waiter(request))) {
    case EXPORT_PENDING:
        return OUTCOME_WAITING;
    case EXPORT_FAILED:
        return reply_failure(request, view->plan);
    case EXPORT_READY:
        break;
    }
    set_fields(request, view);
    return OUTCOME_READY;
}
