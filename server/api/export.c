/* Exports: selected objects as a file of another format. */
#include <assert.h>
#include <inttypes.h>

#include "api/attachment.h"
#include "api/export_reply.h"
#include "api/handlers.h"
#include "api/parameters.h"
#include "api/reference.h"
#include "api/resolve.h"
#include "http/exchange/problem.h"

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

/* Returns false if it has replied. */
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
    if (view == NULL)
        return OUTCOME_READY;
    outcome = export_reply(request, view);
    if (outcome == OUTCOME_READY && !request->replied)
        representation_field(&request->reply, "Content-Disposition",
                             make_disposition(request, view));
    return outcome;
}
