/* The library's callbacks for requests: they arrive, the exchange decides, the sender makes the
 * response.
 *
 * A refusal is sent on the first call of the handler only if there is a body to refuse, since the
 * library closes the connection after an answer that is given there; otherwise on the second. */
#include "http/wire/handler.h"

#include <assert.h>
#include <string.h>

#include "http/exchange/request_state.h"
#include "http/fields/framing.h"
#include "http/wire/bulk.h"
#include "http/wire/bypass.h"
#include "http/wire/kept_answers.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/sender.h"

/* Of a connection's memory, for the head of an answer. If it does not fit, the library closes the
 * connection without an answer. */
#define ANSWER_MEMORY 1024u

/* Less than it takes to rename a file and send a request. */
#define HEED_NS INT64_C(20000)

static struct connection *connection_of(struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static enum MHD_Result suspend(struct connection *connection)
{
    mhd_suspend(connection);
    return MHD_YES;
}

/* The library parses the query into arguments, which take far more of its small memory than the
 * target does and are not needed: request_query reads the copy. The text lies in the library's own
 * buffer; it has noted where the '?' is, and reads the query behind it up to a NUL. Only an empty
 * target lies elsewhere. */
static void hide_query(const char *target)
{
    char *query = strchr((char *)(uintptr_t)target, '?');

    if (query != NULL)
        query[1] = '\0';
}

/* Whoever watches the server must not take it for dead because others hold all connections. */
static bool is_probe_target(const char *target)
{
    return strcmp(target, "/healthz") == 0 || strcmp(target, "/readyz") == 0;
}

/* Whoever changes a file and then asks for it must get the new one, so changes are looked for after
 * the request has come in; requests that come in together share the look. */
static void heed_changes(struct mhd *mhd, const struct request *request)
{
    const struct server *server = mhd->server;
    const int64_t now_ns = request_state_const(request)->started_ns;

    if (server->heed == NULL || now_ns - mhd->heeded_ns < HEED_NS)
        return;
    mhd->heeded_ns = now_ns;
    server->heed(server->catalog);
}

/* The raw target is not reported again later. */
void *handler_on_target(void *context, const char *target, struct MHD_Connection *handle)
{
    struct connection *connection = connection_of(handle);
    struct request *request;

    (void)context;
    if (connection == NULL || (connection->surplus && !is_probe_target(target)))
        return NULL;
    request = connection_begin_request(connection, target);
    if (request != NULL)
        heed_changes(connection->mhd, request);
    connections_header_begin(&connection->mhd->connections, connection, connection->mhd->now_ms);
    hide_query(target);
    return request;
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name,
                                 size_t name_length, const char *value, size_t value_length)
{
    const struct header_field field = {name, value != NULL ? value : "", (uint32_t)name_length,
                                       (uint32_t)value_length};

    (void)kind;
    return request_add_header(context, field) ? MHD_YES : MHD_NO;
}

/* method and version are the library's pointers into the block that it has parsed. */
static bool header_is_hidden(const struct request_state *state, const char *method,
                             const char *version)
{
#if MHD_VERSION >= STRICT_PARSER
    (void)state, (void)method, (void)version;
    return false;
#else
    const struct header_block block = {method, state->header_bytes, state->target_length, version};

    return !header_block_is_plain(&block, state->headers, state->header_count);
#endif
}

static bool header_is_long(const struct request_state *state)
{
    return state->header_bytes + (size_t)state->header_count * HEADER_FIELD_BYTES >
           CONNECTION_MEMORY - ANSWER_MEMORY;
}

static enum MHD_Result queue_answer(struct connection *connection, struct request *request)
{
    struct request_state *state = request_state(request);
    struct mhd *mhd = connection->mhd;
    const bool close = connection->surplus || atomic_load(&mhd->server->draining);
    struct MHD_Response *response = sender_response(request, close);
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    if (!close)
        kept_answers_offer(&mhd->kept, request, mhd->now_ms);
    request_enter_phase(state, PHASE_QUEUED);
    connections_answer_begin(&mhd->connections, connection, mhd->now_ms);
    result = MHD_queue_response(connection->handle, state->answer.status, response);
    MHD_destroy_response(response);
    return result;
}

/* The answer that was given to the same request a moment ago. */
static enum MHD_Result queue_kept(struct connection *connection, struct request *request)
{
    struct mhd *mhd = connection->mhd;
    struct MHD_Response *response = kept_answers_give(request);

    connection_begin_answer(connection, false);
    bulk_make_way(mhd->bulks, mhd->now_ms);
    request_enter_phase(request_state(request), PHASE_QUEUED);
    connections_answer_begin(&mhd->connections, connection, mhd->now_ms);
    return MHD_queue_response(connection->handle, request_state(request)->answer.status, response);
}

/* Queues an answer: every one except those of on_header_end, which are problems in memory. */
static enum MHD_Result answer(struct connection *connection, struct request *request)
{
    struct request_state *state = request_state(request);

    if (state->phase != PHASE_LOADING) {
        exchange_answer(request);
        request_enter_phase(state, PHASE_LOADING);
    }
    if (sender_load(request) == OUTCOME_WAITING)
        return suspend(connection);
    return queue_answer(connection, request);
}

/* A body would hold the connection for longer than a probe may. */
static bool is_probe(const struct request *request)
{
    return (request->method == METHOD_GET || request->method == METHOD_HEAD) &&
           request_state_const(request)->body_length == 0;
}

/* Whether the request is refused already. */
static bool begin(const struct connection *connection, struct request *request)
{
    const bool refused = exchange_begin(request);

    if (!connection->surplus || is_probe(request))
        return refused;
    request_state(request)->broken = true;
    problem_reply(request, PROBLEM_OVERLOADED, "all connections are in use");
    representation_field(&request->reply, "Retry-After", "1");
    return true;
}

static enum MHD_Result on_header_end(struct connection *connection, struct request *request,
                                     const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection->handle, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct request_state *state = request_state(request);
    bool refused;

    deadline_clear(&connection->deadline);
    state->header_bytes = info != NULL ? info->header_size : 0;
    request->method = method_parse(method);
    state->method_malformed = !method_is_token(method);
    state->http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    request_enter_phase(state, PHASE_BODY);
    MHD_get_connection_values_n(connection->handle, MHD_HEADER_KIND, on_header, request);
    state->headers_long = header_is_long(state);
    state->headers_hidden = header_is_hidden(state, method, version);
    if (strcmp(version, MHD_HTTP_VERSION_1_1) == 0 &&
        kept_answers_find(&connection->mhd->kept, request, connection->mhd->now_ms))
        return MHD_YES;
    refused = begin(connection, request);
    if (refused && state->headers_long && connection->tls == NULL) {
        connection->lingers = true;
        bypass_answer(connection);
        return MHD_NO;
    }
    if (refused && (state->body_length > 0 || state->broken)) {
        connection->lingers = true;
        exchange_answer(request);
        return queue_answer(connection, request);
    }
    if (state->body_length > 0)
        connections_body_begin(&connection->mhd->connections, connection, connection->mhd->now_ms);
    bypass_begin_body(request, method + state->header_bytes);
    return MHD_YES;
}

static enum MHD_Result on_body(struct connection *connection, struct request *request,
                               const char *bytes, size_t *length)
{
    const struct request_state *state = request_state_const(request);
    struct mhd *mhd = connection->mhd;

    bypass_follow_body(connection, request, bytes, *length);
    if (!exchange_receive(request, bytes, *length))
        return MHD_NO;
    /* The loop may have been waiting until now. */
    mhd_update_clock(mhd);
    if (!connections_body_piece(&mhd->connections, connection, state->body_received, mhd->now_ms))
        return MHD_NO;
    *length = 0;
    if (!request->replied && bypass_is_worthwhile(request))
        bypass_take_body(connection, request);
    return MHD_YES;
}

/* There was no memory for the request, or there are too many connections. */
static enum MHD_Result refuse(struct connection *connection, const char *method)
{
    if (connection == NULL || !connection->surplus)
        return MHD_NO;
    connection_refuse(connection);
    /* A body may follow. */
    connection->lingers = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
    return MHD_NO;
}

/* The library reads on when a request is resumed that was suspended while it was reading, and if a
 * client has shut down its sending side, closes the connection without the answer. It no longer
 * reads once it has been left without an answer at the end of the body; then it calls again. */
static bool is_first_end(struct request_state *state)
{
    const bool is_first = state->body_length > 0 && !state->body_ended;

    state->body_ended = true;
    return is_first;
}

enum MHD_Result handler_on_request(void *context, struct MHD_Connection *handle, const char *url,
                                   const char *method, const char *version, const char *bytes,
                                   size_t *length, void **request_context)
{
    struct request *request = *request_context;
    struct mhd *mhd = context;
    struct connection *connection;

    (void)url;
    assert(mhd_is_own_thread(mhd));
    if (mhd->cutting)
        return MHD_NO;
    if (request == NULL)
        return refuse(connection_of(handle), method);
    connection = request->connection;
    /* If the client is gone, the work that it waited for may have been skipped. What the library
     * still delivers of a bypassed connection is not the body. */
    if (connection->gone || connection->bypassed)
        return MHD_NO;
    if (request_state(request)->phase == PHASE_HEADER)
        return on_header_end(connection, request, method, version);
    if (*length > 0)
        return on_body(connection, request, bytes, length);
    /* Before 1.0 the library delivers an empty piece if a request that expects 100 Continue has no
     * body and another one follows. It accepts no answer then, and calls once more. */
    if (bytes != NULL)
        return MHD_YES;
    deadline_clear(&connection->deadline);
    if (is_first_end(request_state(request)))
        return MHD_YES;
    if (request_state(request)->kept != NULL)
        return queue_kept(connection, request);
    if (request_state(request)->phase != PHASE_LOADING &&
        exchange_advance(request) == OUTCOME_WAITING)
        return suspend(connection);
    return answer(connection, request);
}

static enum ending ending_of(const struct request *request, enum MHD_RequestTerminationCode code)
{
    const struct connection *connection = request->connection;
    const enum request_phase phase = request_state_const(request)->phase;
    const bool is_complete = code == MHD_REQUEST_TERMINATED_COMPLETED_OK;

    if ((is_complete && phase == PHASE_QUEUED) || connection->answered)
        return ENDING_WHOLE;
    if (connection->mhd->cutting)
        return ENDING_DRAIN;
    if (code == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED || connection->timed_out)
        return ENDING_TIMEOUT;
    if (phase == PHASE_HEADER && (is_complete || code == MHD_REQUEST_TERMINATED_WITH_ERROR))
        return ENDING_REFUSED;
    return connection_is_established(connection) ? ENDING_SERVER : ENDING_CLIENT;
}

/* The status of an answer that the library gave by itself. */
static unsigned library_status(const struct request *request, struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info;

    if (request_state_const(request)->phase == PHASE_QUEUED)
        return 0;
    info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_HTTP_STATUS);
    return info != NULL ? info->http_status : 0;
}

void handler_on_completed(void *context, struct MHD_Connection *handle, void **request_context,
                          enum MHD_RequestTerminationCode code)
{
    struct mhd *mhd = context;
    struct request *request = *request_context;

    if (request == NULL)
        return;
    *request_context = NULL;
    request_state(request)->library_status = library_status(request, handle);
    connections_idle_begin(&mhd->connections, request->connection, mhd->now_ms);
    connection_end_request(request->connection, ending_of(request, code));
}
