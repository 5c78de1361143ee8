/* Exports: selected objects as a file of another format, described by the query of a GET or by the
 * body of a QUERY or POST. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/attachment.h"
#include "api/export_reply.h"
#include "api/handlers.h"
#include "api/parameters.h"
#include "api/resolve.h"
#include "catalog/catalog.h"
#include "derived/export_base.h"
#include "derived/export_body.h"
#include "http/exchange/json_body.h"
#include "http/exchange/problem.h"
#include "http/fields/grammar.h"
#include "http/revisions/revision.h"
#include "store/versions/history.h"

#define BODY_TYPE "application/json"
/* A longer body takes too long to read on a loop, so a worker does it. */
#define INLINE_BODY_BYTES 4096
/* Longer revisions are cut in messages. */
#define SHOWN_MAX 100

static const struct kind {
    const char *name;
    const char *extension;
    enum zt_target target;
} kinds[] = {
    {"safetensors", "safetensors", ZT_TARGET_SAFETENSORS},
    {"zt", "zt", ZT_TARGET_ZT1},
    {"zt2", "zt", ZT_TARGET_ZT2_CANONICAL},
    {"npz", "npz", ZT_TARGET_NPZ},
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

static bool find_target(struct zt_text format, enum zt_target *out_target)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (zt_text_is(format, kinds[i].name)) {
            *out_target = kinds[i].target;
            return true;
        }
    }
    return false;
}

/* Returns false if it has replied. */
static bool read_format(struct request *request, enum zt_target *out_target)
{
    struct zt_text text;
    struct zt_text again;

    if (request_query(request, "format", 0, &text) &&
        !request_query(request, "format", 1, &again) && find_target(text, out_target))
        return true;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "format must be safetensors, zt, zt2, npz or reference");
    return false;
}

/* Returns false if it has replied. */
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

/* --- the handler --- */

static const char *make_disposition(struct request *request, const struct export_view *view)
{
    const char *extension = kind_of(view->query.target)->extension;
    const struct zt_cut *cut = &view->query.cut;
    const char *ending;

    assert(cut->parts == 0 || cut->part < cut->parts);
    ending = cut->parts == 0 ? request_print(request, ".%s", extension)
                             : request_print(request, "-%" PRIu64 "-of-%" PRIu64 ".%s", cut->part,
                                             cut->parts, extension);
    return attachment_of_model(request, generation_name(request->generation), ending);
}

/* Replies with the export of a view. */
static enum outcome reply_view(struct request *request, struct export_view *view)
{
    const enum outcome outcome = export_reply(request, view);

    if (outcome == OUTCOME_READY && !request->replied)
        representation_field(&request->reply, "Content-Disposition",
                             make_disposition(request, view));
    return outcome;
}

/* Returns NULL if it has replied. */
static struct export_view *make_view(struct request *request)
{
    struct export_view *view = request_allocate(request, sizeof(*view));

    if (view == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    *view = (struct export_view){.plan = NULL};
    return read_query(request, &view->query) ? view : NULL;
}

enum outcome export_get(struct request *request)
{
    enum outcome outcome;
    struct export_view *view;

    if (reference_is_wanted(request))
        return reference_get(request);
    if (!model_resolve(request, &outcome))
        return outcome;
    view = request->context != NULL ? request->context : make_view(request);
    request->context = view;
    return view != NULL ? reply_view(request, view) : OUTCOME_READY;
}

/* --- the handler of a body --- */

enum progress { BODY_ARRIVES, BODY_IS_READ, QUERY_IS_MADE };

/* The search for the base. */
struct base_search {
    bool is_begun;
    char name[MODEL_PATH_SIZE]; /* of the model, without a revision */
    enum zt_status status;
    struct revision_found found;
    struct zt_error error;
    struct generation *generation; /* held; NULL until it is found */
};

struct described_export {
    struct export_view view; /* first: request->context points to both */
    struct export_body body;
    struct base_search *base; /* NULL: none */
    enum progress progress;
};

static void drop_base(struct described_export *described)
{
    if (described->base == NULL)
        return;
    generation_release(described->base->generation);
    described->base->generation = NULL;
}

static void clear_described(void *thing)
{
    drop_base(thing);
    export_body_clear(&((struct described_export *)thing)->body);
}

/* Returns true if the text is the media type, with or without parameters. */
static bool is_body_type(const char *text)
{
    const size_t length = strlen(BODY_TYPE);

    return text != NULL && strncasecmp(text, BODY_TYPE, length) == 0 &&
           (text[length] == '\0' || is_one_of(text[length], "; \t"));
}

void export_body_begin(struct request *request)
{
    struct described_export *described;

    if (!is_body_type(request_header(request, "Content-Type"))) {
        problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                      "the Content-Type of the body must be " BODY_TYPE);
        return;
    }
    if (json_body_refuse_above(request, EXPORT_BODY_MAX))
        return;
    described = request_allocate(request, sizeof(*described));
    if (described == NULL) {
        problem_reply_no_memory(request);
        return;
    }
    memset(described, 0, sizeof(*described));
    request->context = described;
    request_hold(request, described, clear_described);
}

static void read_body(struct request *request)
{
    struct described_export *described = request->context;

    assert(described->progress == BODY_IS_READ);
    (void)export_body_read(json_body_text(request), &described->body);
}

static bool is_for_reference(const struct export_body *body)
{
    return zt_text_is(body->format, "reference");
}

/* Returns false if it has replied. */
static bool check_body(struct request *request, struct described_export *described)
{
    const struct export_body *body = &described->body;
    const struct export_query *query = &body->query;

    assert(described->view.plan == NULL);
    if (body->is_out_of_memory) {
        problem_reply_no_memory(request);
        return false;
    }
    if (body->why[0] != '\0') {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", body->why);
        return false;
    }
    described->view.query = *query;
    if (find_target(body->format, &described->view.query.target) ||
        (is_for_reference(body) && query->lists == NULL && !query->leaves_out &&
         query->cut.parts == 0))
        return true;
    if (is_for_reference(body))
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "/format: a reference contains no tensors: objects, shard, axis, have and "
                      "base are for other formats");
    else
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "/format: must be safetensors, zt, zt2, npz or reference");
    return false;
}

/* The name of the exported model without its commit. Returns false if it is too long. */
static bool name_model(const struct request *request, char out_name[MODEL_PATH_SIZE])
{
    const struct zt_text name = generation_name(request->generation);
    struct history_path path = {.repo = name};
    const bool has_rest = history_path_split(name, &path) && path.rest.length > 0;

    return snprintf(out_name, MODEL_PATH_SIZE, "%.*s%s%.*s", (int)path.repo.length, path.repo.bytes,
                    has_rest ? "/" : "", has_rest ? (int)path.rest.length : 0,
                    has_rest ? path.rest.bytes : "") < MODEL_PATH_SIZE;
}

static void look_up_base(struct request *request)
{
    const struct described_export *described = request->context;
    struct base_search *search = described->base;

    search->status =
        revision_look_up(request->server, zt_text_from(search->name), REVISION_OF_MODEL,
                         described->body.base, &search->found, &search->error);
}

static enum outcome reply_no_base(struct request *request, const char *why)
{
    const struct described_export *described = request->context;
    const struct zt_text base = described->body.base;

    return problem_reply(request, PROBLEM_REVISION_NOT_FOUND,
                         "/base: %.*s %s; use the ETag of its manifest, or main, for the current "
                         "state",
                         (int)(base.length < SHOWN_MAX ? base.length : SHOWN_MAX), base.bytes, why);
}

/* Opens the model at the base's commit. Returns WAITING while that takes, READY with the model or
 * after replying. */
static enum outcome open_base(struct request *request, struct base_search *search)
{
    const struct zt_text name = zt_text_from(search->found.name);

    if (search->status == ZT_NOT_FOUND || search->status == ZT_STALE)
        return reply_no_base(request, "is not a revision that the server keeps for this model");
    if (search->status != ZT_OK)
        return revision_reply_failure(request, &search->error);
    switch (catalog_find(request->server->catalog, name, request_waiter(request),
                         &search->generation)) {
    case CATALOG_PENDING:
        return OUTCOME_WAITING;
    case CATALOG_NOT_FOUND:
        return reply_no_base(request, "does not have the model, or its file is not kept");
    case CATALOG_UNAVAILABLE:
        return problem_reply_unavailable(request, name);
    case CATALOG_FOUND:
        break;
    }
    if (search->generation->model == NULL)
        return reply_no_base(request, "has a file of this name that cannot be read as a model");
    /* Bytes of a mirror that are not verified yet vouch for nothing, and comparing them would fetch
     * all of them. */
    if (generation_is_unverified(search->generation))
        return reply_no_base(request, "is mirrored, and not all of it is here yet");
    return OUTCOME_READY;
}

/* Returns false if it has replied, or waits. */
static bool find_base(struct request *request, struct described_export *described,
                      enum outcome *out_outcome)
{
    const struct zt_text base = described->body.base;
    struct base_search *search = described->base;

    assert(request->generation != NULL && described->progress == QUERY_IS_MADE);
    if (base.length == 0 || (search != NULL && search->generation != NULL))
        return true;
    if (search == NULL) {
        search = described->base = request_allocate(request, sizeof(*search));
        if (search == NULL) {
            *out_outcome = problem_reply_no_memory(request);
            return false;
        }
        *search = (struct base_search){.status = ZT_NOT_FOUND};
    }
    if (export_base_is_named(request->generation, base)) {
        search->generation = generation_hold(request->generation);
    } else if (!search->is_begun && name_model(request, search->name)) {
        search->is_begun = true;
        *out_outcome = request_work(request, look_up_base);
        return false;
    } else {
        *out_outcome = open_base(request, search);
    }
    described->view.query.base = search->generation;
    return *out_outcome == OUTCOME_READY && !request->replied;
}

/* Reads the body once it is complete, on a worker if it is long. Returns OUTCOME_WAITING while
 * that takes. */
static enum outcome take_body(struct request *request, struct described_export *described)
{
    if (described->progress != BODY_ARRIVES || json_body_refuse_received(request))
        return OUTCOME_READY;
    described->progress = BODY_IS_READ;
    if (json_body_text(request).length > INLINE_BODY_BYTES)
        return request_work_here(request, read_body);
    read_body(request);
    return OUTCOME_READY;
}

/* Frees what only the making of a plan needs, since clients may read a file for hours. */
static void drop_description(struct described_export *described)
{
    const struct export_query query = described->view.query;

    described->view.query = (struct export_query){.target = query.target,
                                                  .cut = query.cut,
                                                  .to_f32 = query.to_f32,
                                                  .leaves_out = query.leaves_out};
    drop_base(described);
    export_body_clear(&described->body);
}

enum outcome export_body_handle(struct request *request)
{
    struct described_export *described = request->context;
    enum outcome outcome = take_body(request, described);

    if (outcome == OUTCOME_WAITING || request->replied)
        return outcome;
    if (described->progress == BODY_IS_READ && !check_body(request, described))
        return OUTCOME_READY;
    if (described->progress == BODY_IS_READ)
        json_body_drop(request);
    described->progress = QUERY_IS_MADE;
    if (!model_resolve(request, &outcome) || !find_base(request, described, &outcome))
        return outcome;
    if (is_for_reference(&described->body))
        return reference_reply(request, &described->view.query);
    outcome = reply_view(request, &described->view);
    if (outcome == OUTCOME_READY)
        drop_description(described);
    return outcome;
}
