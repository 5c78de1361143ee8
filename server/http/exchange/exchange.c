/* The stages of exchange.h, one function each; answer.c chooses the bytes and the header fields. */
#include "http/exchange/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/nearest.h"
#include "http/exchange/answer.h"
#include "http/exchange/answer_digest.h"
#include "http/exchange/authorize.h"
#include "http/exchange/cors.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/exchange/s3api_fields.h"
#include "http/exchange/timing.h"
#include "http/exchange/trace.h"
#include "http/fields/conditional.h"
#include "http/fields/framing.h"
#include "http/fields/uri.h"
#include "store/store.h"

/* Same limit as nginx and Apache. It fits two names of the maximum length with all bytes
 * percent-encoded. */
#define TARGET_MAX 8192
/* Up to this much of an unwanted body is read and dropped, to keep the connection. */
#define DROPPED_MAX (UINT64_C(1) << 20)
/* Routes that take a revision as a parameter. */
#define FILES_PREFIX "/files"

/* Notes the time of a phase if the client asked for it. */
static void end_phase(struct request *request, const char *name)
{
    if (request_state_const(request)->timing != NULL)
        timing_lap(request, name);
}

/* --- begin --- */

static enum problem problem_of_framing(enum framing_verdict verdict)
{
    switch (verdict) {
    case FRAMING_SOUND:
    case FRAMING_BROKEN:
        break;
    case FRAMING_EXPECTATION:
        return PROBLEM_EXPECTATION_FAILED;
    }
    return PROBLEM_INVALID_REQUEST;
}

static void check_method(struct request *request)
{
    struct request_state *state = request_state(request);

    if (!state->method_malformed)
        return;
    state->broken = true;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "the method is not a token");
}

static void check_framing(struct request *request)
{
    struct request_state *state = request_state(request);
    struct framing framing;

    if (state->headers_cut || state->headers_long) {
        state->broken = true;
        if (state->headers_cut)
            problem_reply(request, PROBLEM_HEADERS_TOO_LARGE,
                          "there are more than %d header fields", REQUEST_FIELDS_MAX);
        else
            problem_reply(request, PROBLEM_HEADERS_TOO_LARGE, "the header is too long");
        return;
    }
    if (state->headers_hidden) {
        state->broken = true;
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "the header must be lines of \"name: value\" that end with CR LF, "
                      "not folded and without NUL");
        return;
    }
    framing_check(state->headers, state->header_count, state->http_1_0, &framing);
    state->body_length = framing.body_length;
    if (framing.verdict == FRAMING_SOUND)
        return;
    state->broken = true;
    problem_reply(request, problem_of_framing(framing.verdict), "%s", framing.why);
}

static bool target_is_text(const char *target)
{
    const char *at = target;

    while ((unsigned char)*at > 0x20 && *at != 0x7F && *at != '#')
        at++;
    return *at == '\0' && at > target;
}

static void check_target(struct request *request)
{
    const char *target = request_target(request);

    /* A proxy in front may have read a shorter target, followed by something else. */
    if (!target_is_text(target)) {
        request_state(request)->broken = true;
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "the target is empty, or contains a space, a '#' or a control character");
        return;
    }
    if (request_state(request)->target_length > TARGET_MAX)
        problem_reply(request, PROBLEM_URI_TOO_LONG, "the target is longer than %d bytes",
                      TARGET_MAX);
}

/* A parameter that cannot be decoded looks absent to a handler, so the handler's reply is
 * discarded. */
static void check_query(struct request *request)
{
    const char *name = request_state(request)->malformed_parameter;

    if (name != NULL && request->reply.status < 400)
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s contains a malformed percent-escape",
                      name);
}

/* Longer names are shortened in messages to the client. */
#define SHOWN_NAME_SIZE 64

static void reply_unknown_parameter(struct request *request, struct zt_text raw, const char *known)
{
    char words[SHOWN_NAME_SIZE * 4];
    char name[SHOWN_NAME_SIZE];
    struct nearest nearest;
    char *rest = words;

    assert(strlen(known) < sizeof(words));
    snprintf(name, sizeof(name), "%.*s", (int)(raw.length < sizeof(name) ? raw.length : 0),
             raw.bytes);
    snprintf(words, sizeof(words), "%s", known);
    nearest_begin(&nearest, name);
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        nearest_offer(&nearest, word);
    if (nearest.word != NULL)
        problem_reply(request, PROBLEM_INVALID_REQUEST, "unknown parameter %s: did you mean %s?",
                      name, nearest.word);
    else
        problem_reply(request, PROBLEM_INVALID_REQUEST, "unknown parameter %.*s; use one of: %s",
                      (int)(raw.length < SHOWN_NAME_SIZE ? raw.length : SHOWN_NAME_SIZE), raw.bytes,
                      known);
}

/* Without this, a write to a revision would change the current state. */
static void check_revision(struct request *request)
{
    struct zt_text ignored;

    if (request_is_read(request) || request_state_const(request)->operation->needs == NEEDS_READ)
        return;
    if (request->revision.bytes != NULL ||
        (strncmp(request->route->pattern, FILES_PREFIX, sizeof(FILES_PREFIX) - 1) == 0 &&
         request_query(request, "revision", 0, &ignored)))
        problem_reply(request, PROBLEM_CONFLICT,
                      "a revision cannot be changed: write to the name without it");
}

/* Runs before the operation has effects. On a read-only server, the refusals of writes come
 * first. */
static void check_parameters(struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const char *known = state->operation->parameters;
    struct zt_text raw;

    if (request->route->is_page || request->route->ignores_parameters ||
        (!request_is_read(request) && state->operation->begin != NULL &&
         !request->server->config->writable))
        return;
    if (known == NULL)
        known = PARAMETERS_OF_ALL;
    if (query_find_other(state->target, known, &raw))
        reply_unknown_parameter(request, raw, known);
}

static void find_operation(struct request *request)
{
    request_state(request)->operation = router_match(request);
}

static bool store_is_unreachable(const struct server *server)
{
    struct store_report report = {.is_unreachable = false};

    if (server->store != NULL && store_may_wait(server->store))
        server->store->search->report(server->store, &report);
    return report.is_unreachable;
}

/* Until the first scan of the models is complete, only routes that need no models answer. */
static void check_loaded(struct request *request)
{
    const struct server *server = request->server;

    if (request->route->needs_no_models || server->is_loaded == NULL ||
        server->is_loaded(server->catalog))
        return;
    if (store_is_unreachable(server)) {
        problem_reply(request, PROBLEM_STORE_UNAVAILABLE,
                      "the object store that holds the models has not been reached yet");
        return;
    }
    problem_reply(request, PROBLEM_OVERLOADED, "the models are still being read");
}

/* Refuses requests while the queue is long, since every client would wait longer and longer; one
 * client may fill half of the queue. Routes that need no models need no worker either, so they are
 * exempt. */
static void check_load(struct request *request)
{
    const struct server *server = request->server;

    if (request->route->needs_no_models || server->workers == NULL ||
        !workers_are_crowded(server->workers) ||
        !workers_refuse(server->workers, request_client_key(request)))
        return;
    problem_reply(request, PROBLEM_OVERLOADED, "too much work is already waiting");
}

/* Refuses the body of an operation that takes none. */
static void check_unwanted_body(struct request *request)
{
    const struct request_state *state = request_state_const(request);

    if (request->receiver != NULL || state->body_length <= DROPPED_MAX)
        return;
    if (state->operation->ignores_body) {
        const enum outcome outcome = state->operation->handle(request);

        assert(outcome == OUTCOME_READY && request->replied);
        (void)outcome;
    } else if (state->body_length != FRAMING_CHUNKED) {
        problem_reply(request, PROBLEM_TOO_LARGE, "this resource takes no body");
    }
}

static void begin_operation(struct request *request)
{
    const struct request_state *state = request_state_const(request);

    if (state->operation->begin != NULL)
        state->operation->begin(request);
    /* Before a body can have effects. */
    if (!request->replied)
        check_query(request);
    if (!request->replied)
        check_unwanted_body(request);
}

/* What a check is about. It is skipped if the request has none of it. */
enum concern { CONCERNS_ALL = 0, CONCERNS_QUERY = 1, CONCERNS_CLIENTS = 2 };

static unsigned concerns_of(const struct request *request)
{
    return (request_state_const(request)->query_text != NULL ? CONCERNS_QUERY : 0U) |
           (authorize_is_needed(request) ? CONCERNS_CLIENTS : 0U);
}

bool exchange_begin(struct request *request)
{
    static const struct {
        void (*run)(struct request *request);
        enum concern concern;
    } checks[] = {
        {router_find, CONCERNS_ALL},
        {check_method, CONCERNS_ALL},
        {check_framing, CONCERNS_ALL},
        {check_target, CONCERNS_ALL},
        {timing_begin, CONCERNS_QUERY},
        {authorize_client, CONCERNS_CLIENTS},
        {cors_check, CONCERNS_ALL},
        {find_operation, CONCERNS_ALL},
        {authorize_operation, CONCERNS_CLIENTS},
        {check_revision, CONCERNS_ALL},
        {check_parameters, CONCERNS_QUERY},
        {check_loaded, CONCERNS_ALL},
        {check_load, CONCERNS_ALL},
        {begin_operation, CONCERNS_ALL},
    };
    const unsigned concerns = concerns_of(request);

    request_enter(request_state(request), STAGE_BODY);
    /* These come first because every refusal contains the request's id and the fields and members
     * of its route. */
    trace_identify(request);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !request->replied; i++)
        if ((checks[i].concern & ~concerns) == 0)
            checks[i].run(request);
    end_phase(request, "begin");
    assert(request->replied || request_state(request)->operation->handle != NULL);
    return request->replied;
}

/* --- body --- */

bool exchange_receive(struct request *request, const void *bytes, size_t length)
{
    struct request_state *state = request_state(request);
    const struct body_piece piece = {bytes, length, state->body_received, true, NULL};

    state->body_received += length;
    assert(state->stage == STAGE_BODY);
    /* No answer can be sent in the middle of a body: after a refusal the rest of the body is read
     * and dropped. */
    if (request->receiver != NULL) {
        if (!request->replied)
            request->receiver->receive(request, &piece);
        return true;
    }
    state->body_dropped += length;
    if (state->body_dropped <= DROPPED_MAX)
        return true;
    if (!request->replied)
        problem_reply(request, PROBLEM_TOO_LARGE, "this resource takes no body");
    return false;
}

/* --- handle, preconditions --- */

static const char *read_tags(struct request *request, const char *name)
{
    return request_is_s3(request) ? s3api_tags(request, name) : request_header(request, name);
}

/* Runs before all steps, so that a 304 costs no verification or decoding. */
static void check_preconditions(struct request *request)
{
    const struct representation *reply = &request->reply;
    struct preconditions preconditions;

    if (!request_is_read(request) || reply->status != 200 || reply->etag == NULL)
        return;
    preconditions = (struct preconditions){
        .if_match = read_tags(request, "If-Match"),
        .if_none_match = read_tags(request, "If-None-Match"),
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
        problem_reply(request, PROBLEM_PRECONDITION_FAILED, "the ETag of the representation is %s",
                      reply->etag);
        break;
    }
}

static enum outcome handle(struct request *request)
{
    struct request_state *state = request_state(request);

    if (!request->replied && state->operation->handle(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    end_phase(request, "handle");
    check_query(request);
    check_preconditions(request);
    request_enter(state, STAGE_PREPARE);
    return OUTCOME_READY;
}

/* --- steps --- */

static enum outcome prepare(struct request *request)
{
    struct request_state *state = request_state(request);

    while (!request->replied && !state->not_modified && state->step < request->reply.step_count) {
        const char *name = request->reply.steps[state->step].name;

        /* A failed step removes all steps. */
        if (request->reply.steps[state->step].run(request) == OUTCOME_WAITING)
            return OUTCOME_WAITING;
        end_phase(request, name);
        state->step++;
    }
    if (!state->not_modified)
        answer_choose_ranges(request);
    request_enter(state, STAGE_DIGEST);
    return OUTCOME_READY;
}

/* Returns true if the answer may have digests: whole and partial representations that are read have
 * them, problems and other answers do not. */
static bool has_digests(struct request *request)
{
    return request_is_read(request) && request->reply.status == 200 &&
           !request_state(request)->not_modified;
}

static void note_received(struct request *request)
{
    struct request_state *state = request_state(request);

    if (state->received_ns != 0)
        return;
    state->received_ns = state->body_length > 0 ? clock_ns() : state->started_ns;
    if (state->body_length > 0)
        end_phase(request, "body");
}

static enum outcome advance(struct request *request)
{
    struct request_state *state = request_state(request);

    if (state->stage == STAGE_BODY)
        request_enter(state, STAGE_HANDLE);
    if (state->stage == STAGE_HANDLE && handle(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (state->stage == STAGE_PREPARE && prepare(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (state->stage == STAGE_DIGEST && has_digests(request) &&
        answer_digest_find(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (has_digests(request))
        end_phase(request, "digest");
    request_enter(state, STAGE_ANSWER);
    return OUTCOME_READY;
}

enum outcome exchange_advance(struct request *request)
{
    const struct timing *timing = request_state_const(request)->timing;
    enum outcome outcome;

    note_received(request);
    if (timing != NULL)
        timing_continue(request);
    outcome = advance(request);
    if (outcome == OUTCOME_WAITING && timing != NULL)
        timing_wait(request);
    return outcome;
}

/* --- answer --- */

struct answer *exchange_answer(struct request *request)
{
    struct request_state *state = request_state(request);
    struct answer *answer = &state->answer;

    assert(request->replied || state->stage >= STAGE_ANSWER);
    answer_take_segments(request);
    answer->status = state->not_modified ? 304 : state->ranged ? 206 : request->reply.status;
    /* The library misreads trailers and does not report them
     * (docs/internals/decisions/framing.md). */
    answer->close =
        state->broken || (state->body_length == FRAMING_CHUNKED && !state->chunks_are_whole);
    exchange_write_fields(request);
    return answer;
}

void exchange_write_fields(struct request *request)
{
    struct request_state *state = request_state(request);

    state->answer.fields = state->answer_fields;
    state->answer.field_count = answer_write_fields(request, state->answer_fields);
}
