/* The stages of exchange.h, one function each; the answer's header fields stand in answer_fields.c.
 */
#include "http/exchange/exchange.h"

#include <string.h>

#include "catalog/catalog.h"
#include "http/exchange/answer_body.h"
#include "http/exchange/answer_digest.h"
#include "http/exchange/answer_fields.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/trace.h"
#include "http/fields/conditional.h"
#include "http/fields/framing.h"
#include "http/fields/target.h"

/* As nginx and Apache have it: twice the longest name, every byte percent-encoded, fits. */
#define TARGET_MAX 8192
/* A body nobody asked for is read up to this, so that the connection can go on. */
#define DROPPED_MAX (UINT64_C(1) << 20)

/* --- begin --- */

static void check_framing(struct request *request)
{
    struct request_state *state = request_state(request);
    struct framing framing;

    if (state->headers_cut) {
        state->broken = true;
        problem_reply(request, PROBLEM_HEADERS_TOO_LARGE, "there are more than %d header fields",
                      REQUEST_FIELDS_MAX);
        return;
    }
    if (state->headers_hidden) {
        state->broken = true;
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "the header is not lines of \"name: value\" with CR LF at their ends, "
                      "without NUL and not folded");
        return;
    }
    framing_check(state->headers, state->header_count, state->http_1_0, &framing);
    state->body_length = framing.body_length;
    if (framing.verdict == FRAMING_SOUND)
        return;
    state->broken = true;
    problem_reply(request,
                  framing.verdict == FRAMING_EXPECTATION ? PROBLEM_EXPECTATION_FAILED
                                                         : PROBLEM_INVALID_REQUEST,
                  "%s", framing.why);
}

static bool target_is_text(const char *target)
{
    for (; *target != '\0'; target++)
        if ((unsigned char)*target <= 0x20 || *target == 0x7F || *target == '#')
            return false;
    return true;
}

static void check_target(struct request *request)
{
    const char *target = request_target(request);

    if (request_state(request)->target_length > TARGET_MAX)
        problem_reply(request, PROBLEM_URI_TOO_LONG, "the target is longer than %d bytes",
                      TARGET_MAX);
    if (request->replied || target_is_text(target))
        return;
    /* Others may see a shorter target with something behind it. */
    request_state(request)->broken = true;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "the target holds a blank, a '#' or a control character");
}

/* What can be answered by a server whose catalog is not there yet; targets that lead nowhere too.
 */
static bool needs_no_catalog(const char *target)
{
    static const char *const paths[] = {"/healthz", "/readyz", "/version", "/openapi.json"};
    struct zt_text path;

    if (target_path(target, &path) != TARGET_PATH)
        return true;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (strlen(paths[i]) == path.length && memcmp(paths[i], path.bytes, path.length) == 0)
            return true;
    return false;
}

static void check_loaded(struct request *request)
{
    struct catalog *catalog = request->server->catalog;

    if (catalog == NULL || needs_no_catalog(request_target(request)) || catalog_is_loaded(catalog))
        return;
    problem_reply(request, PROBLEM_OVERLOADED, "the models are still being read");
    representation_field(&request->reply, "Retry-After", "1");
}

/* A handler takes a parameter that cannot be decoded for an absent one; what it made of that is not
 * the answer. */
static void check_query(struct request *request)
{
    const char *name = request_state(request)->malformed_parameter;

    if (name != NULL && request->reply.status < 400)
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s holds a malformed percent-encoding",
                      name);
}

static void find_operation(struct request *request)
{
    struct request_state *state = request_state(request);

    state->operation = router_match(request);
    if (state->operation == NULL)
        return;
    if (state->operation->begin != NULL)
        state->operation->begin(request);
    /* Before a body can have effects. */
    if (!request->replied)
        check_query(request);
    if (!request->replied && state->operation->receive == NULL &&
        state->body_length > DROPPED_MAX && state->body_length != UINT64_MAX)
        problem_reply(request, PROBLEM_TOO_LARGE, "this resource takes no body");
}

bool exchange_begin(struct request *request)
{
    static void (*const checks[])(struct request * request) = {check_framing, check_target,
                                                               check_loaded, find_operation};

    /* First, since a refusal names the request too. */
    trace_identify(request);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !request->replied; i++)
        checks[i](request);
    return request->replied;
}

/* --- body --- */

bool exchange_receive(struct request *request, const void *bytes, size_t length)
{
    struct request_state *state = request_state(request);

    state->body_received += length;
    /* No answer can be sent in the middle of a body: after a refusal the rest is read and dropped.
     */
    if (!request->replied && state->operation != NULL && state->operation->receive != NULL) {
        state->operation->receive(request, bytes, length);
        return true;
    }
    state->body_dropped += length;
    return state->body_dropped <= DROPPED_MAX ||
           (state->operation != NULL && state->operation->receive != NULL);
}

/* --- handle, preconditions --- */

static bool is_read(const struct request *request)
{
    return request->method == METHOD_GET || request->method == METHOD_HEAD;
}

/* Before any step, so that a 304 costs no verification. */
static void check_preconditions(struct request *request)
{
    const struct representation *reply = &request->reply;
    struct preconditions preconditions;

    if (!is_read(request) || reply->status != 200 || reply->etag == NULL)
        return;
    preconditions = (struct preconditions){
        .if_match = request_header(request, "If-Match"),
        .if_none_match = request_header(request, "If-None-Match"),
        .if_modified_since = request_header(request, "If-Modified-Since"),
        .if_unmodified_since = request_header(request, "If-Unmodified-Since"),
    };
    switch (precondition_check(&preconditions, reply->etag, reply->last_modified, true)) {
    case PRECONDITION_PASS:
        break;
    case PRECONDITION_NOT_MODIFIED:
        request_state(request)->not_modified = true;
        break;
    case PRECONDITION_FAILED:
        problem_reply(request, PROBLEM_PRECONDITION_FAILED, "the representation's tag is %s",
                      reply->etag);
        break;
    }
}

static enum outcome handle(struct request *request)
{
    struct request_state *state = request_state(request);

    if (!request->replied && state->operation->handle(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    check_query(request);
    check_preconditions(request);
    state->stage = EXCHANGE_PREPARE;
    return OUTCOME_READY;
}

/* --- preparation --- */

static enum outcome prepare(struct request *request)
{
    struct request_state *state = request_state(request);

    while (!request->replied && !state->not_modified && state->step < request->reply.step_count) {
        if (request->reply.steps[state->step](request) == OUTCOME_WAITING)
            return OUTCOME_WAITING;
        state->step++;
    }
    if (!state->not_modified)
        answer_body_choose(request);
    state->stage = EXCHANGE_DIGEST;
    return OUTCOME_READY;
}

enum outcome exchange_advance(struct request *request)
{
    struct request_state *state = request_state(request);

    if (state->stage == EXCHANGE_HANDLE && handle(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (state->stage == EXCHANGE_PREPARE && prepare(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (state->stage == EXCHANGE_DIGEST && answer_digest_find(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    state->stage = EXCHANGE_ANSWER;
    return OUTCOME_READY;
}

/* --- answer --- */

struct answer *exchange_answer(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;

    answer_body_settle(request);
    answer->status = state->not_modified ? 304 : state->ranged ? 206 : request->reply.status;
    /* The library takes trailers for what they are not, and shows nothing of them
     * (docs/decisions/framing.md). */
    answer->close = state->broken || state->body_length == UINT64_MAX;
    answer->fields = state->answer_fields;
    answer->field_count = answer_fields_write(request, state->answer_fields);
    return answer;
}
