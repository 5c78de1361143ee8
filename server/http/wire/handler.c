/* The library's callbacks for requests: a request arrives, the exchange decides, the sender makes
 * the response.
 *
 * A refusal is sent on the first call of the handler only if there is a body to refuse, since the
 * library closes the connection after an answer given there. Otherwise it is sent on the second
 * call. */
#include "http/wire/handler.h"

#include <assert.h>
#include <string.h>

#include "base/changes.h"
#include "http/exchange/request_state.h"
#include "http/fields/framing.h"
#include "http/wire/bulk.h"
#include "http/wire/handover.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/response_cache.h"
#include "http/wire/sender.h"

/* Part of a connection's memory reserved for the head of an answer and, before that, for a line of
 * chunked framing (chunks.c) or of trailers. If the head does not fit, the library closes the
 * connection without an answer; if the line does not fit, the library hangs. */
#define ANSWER_MEMORY 1024u

/* Less time than it takes to rename a file and send a request. */
#define POLL_NS INT64_C(20000)

static struct connection *connection_of(struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static enum MHD_Result suspend(struct connection *connection)
{
    assert(connection->request != NULL);
    mhd_suspend(connection, CONNECTION_WAITING);
    return MHD_YES;
}

/* Hides the query from the library, which would parse it into arguments. They take much more of its
 * small memory than the target and are not needed, since request_query reads our copy. The text is
 * in the library's own buffer: the library has noted the position of the '?' and reads the query
 * after it up to a NUL. Only an empty target is in other memory. */
static void hide_query(const char *target)
{
    char *query = strchr((char *)(uintptr_t)target, '?');

    if (query != NULL)
        query[1] = '\0';
}

/* Monitoring must not take the server for dead because other clients hold all connections. */
static bool is_probe_target(const char *target)
{
    return strcmp(target, "/healthz") == 0 || strcmp(target, "/readyz") == 0;
}

void handler_poll_changes(struct mhd *mhd, int64_t now_ns)
{
    const struct server *server = mhd->server;

    if (server->poll_changes == NULL || now_ns - mhd->polled_ns < POLL_NS)
        return;
    mhd->polled_ns = now_ns;
    server->poll_changes(server->catalog);
}

/* Copies the raw target, which the library does not report later. */
void *handler_on_target(void *context, const char *target, struct MHD_Connection *handle)
{
    struct connection *connection = connection_of(handle);
    struct request *request;

    (void)context;
    if (connection == NULL || (connection->is_surplus && !is_probe_target(target)))
        return NULL;
    connection->mhd->progressed = true;
    request = connection_begin_request(connection, target);
    if (request != NULL)
        handler_poll_changes(connection->mhd, request_state(request)->started_ns);
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

/* Returns true if the library parsed exactly the header. method and version are its pointers into
 * the header in memory. */
static bool block_is_plain(const struct request_state *state, const char *method,
                           const char *version)
{
#if MHD_VERSION >= STRICT_PARSER
    (void)state, (void)method, (void)version;
    return true;
#else
    const struct header_block block = {method, state->header_bytes, state->target_length, version};

    return header_block_is_plain(&block, state->headers, state->header_count);
#endif
}

/* Returns the size of the cookies, which the library copies and splits into fields. */
static size_t cookie_bytes(struct request *request)
{
    const char *cookies = request_header(request, "Cookie");
    size_t bytes = 0;

    if (cookies == NULL)
        return 0;
    for (const char *at = cookies; *at != '\0'; at++)
        bytes += *at == ';' || *at == ',' ? HEADER_FIELD_BYTES + 1 : 1;
    return bytes + 2 * HEADER_FIELD_BYTES;
}

/* Returns true if the library has too little memory left for the head of an answer, or for framing
 * lines of a body. */
static bool header_is_long(struct request *request)
{
    const struct request_state *state = request_state_const(request);

    return state->header_bytes + (size_t)state->header_count * HEADER_FIELD_BYTES +
               cookie_bytes(request) >
           CONNECTION_MEMORY - ANSWER_MEMORY;
}

static enum MHD_Result queue_answer(struct connection *connection, struct request *request)
{
    struct request_state *state = request_state(request);
    struct mhd *mhd = connection->mhd;
    const bool close = connection->is_surplus || atomic_load(&mhd->server->draining);
    struct MHD_Response *response = sender_response(request, close);
    enum MHD_Result result;

    assert(connection->request == request);
    if (response == NULL)
        return MHD_NO;
    if (!close)
        response_cache_offer(&mhd->kept, request, mhd->now_ms);
    request_enter(state, STAGE_QUEUED);
    connections_answer_begin(&mhd->connections, connection, mhd->now_ms);
    result = MHD_queue_response(connection->handle, state->answer.status, response);
    MHD_destroy_response(response);
    return result;
}

/* Queues an answer. The problems of on_header_end, which are in memory, do not come here. */
static enum MHD_Result answer(struct connection *connection, struct request *request)
{
    const bool has_waited = request_state(request)->stage >= STAGE_ANSWER;

    if (!has_waited) {
        if (exchange_advance(request) == OUTCOME_WAITING)
            return suspend(connection);
        exchange_answer(request);
    }
    if (sender_load(request) == OUTCOME_WAITING)
        return suspend(connection);
    /* The file may have been verified in the meantime. */
    if (has_waited)
        exchange_write_fields(request);
    return queue_answer(connection, request);
}

/* A request with a body is not a probe: it would hold the connection for longer than a probe
 * may. */
static bool is_probe(const struct request *request)
{
    return (request->method == METHOD_GET || request->method == METHOD_HEAD) &&
           request_state_const(request)->body_length == 0;
}

/* Returns true if the request is already refused. */
static bool begin(const struct connection *connection, struct request *request)
{
    const bool refused = exchange_begin(request);

    if (!connection->is_surplus || is_probe(request))
        return refused;
    request_state(request)->broken = true;
    problem_reply(request, PROBLEM_OVERLOADED, "all connections are in use");
    return true;
}

/* Sends the answer directly to the socket, because the library accepts none now. The connection
 * ends once the client has had time to read it. */
static enum MHD_Result answer_and_end(struct connection *connection)
{
    assert(connection->request != NULL);
    connection->raw.state = RAW_ENDED;
    connection_enter(connection, CONNECTION_REFUSED);
    handover_answer_last(connection);
    return MHD_NO;
}

/* Answers before the body has been read, after which the connection ends. */
static enum MHD_Result refuse_body(struct connection *connection, struct request *request)
{
    if (request_state(request)->headers_long)
        return answer_and_end(connection);
    connection->raw.state = RAW_ENDED;
    connection_enter(connection, CONNECTION_REFUSED);
    exchange_answer(request);
    return queue_answer(connection, request);
}

static enum MHD_Result on_header_end(struct connection *connection, struct request *request,
                                     const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection->handle, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct request_state *state = request_state(request);
    bool refused;

    assert(connection->request == request && state->stage == STAGE_LINE);
    deadline_clear(&connection->deadline);
    state->header_bytes = info != NULL ? info->header_size : 0;
    request->method = method_parse(method);
    state->method_malformed = !method_is_token(method);
    state->http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    state->changes = changes_count();
    MHD_get_connection_values_n(connection->handle, MHD_HEADER_KIND, on_header, request);
    if (request->access->proxies.count > 0)
        request_find_forwarded(request);
    state->headers_long = header_is_long(request);
    /* The bytes were not plain lines, or the library parsed something different. */
    state->headers_hidden =
        connection->raw.state != RAW_UNDECIDED || !block_is_plain(state, method, version);
    refused = begin(connection, request);
    if ((refused && (state->body_length > 0 || state->broken)) ||
        !handover_begin_body(connection, method + state->header_bytes))
        return refuse_body(connection, request);
    if (state->body_length > 0)
        connections_body_begin(&connection->mhd->connections, connection, connection->mhd->now_ms);
    return MHD_YES;
}

static enum MHD_Result on_body(struct connection *connection, struct request *request,
                               const char *bytes, size_t *length)
{
    const struct request_state *state = request_state_const(request);
    struct mhd *mhd = connection->mhd;

    assert(connection->request == request);
    if (!exchange_receive(request, bytes, *length))
        return answer_and_end(connection);
    /* The loop may have waited for some time. */
    mhd_update_clock(mhd);
    if (!connections_body_piece(&mhd->connections, connection, state->body_received, mhd->now_ms))
        return MHD_NO;
    *length = 0;
    handover_body(connection, request);
    return MHD_YES;
}

/* Called if there was no memory for the request or there are too many connections. */
static enum MHD_Result refuse(struct connection *connection, const char *method)
{
    if (connection == NULL || !connection->is_surplus)
        return MHD_NO;
    connection_refuse(connection);
    /* A body may follow. */
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        connection_enter(connection, CONNECTION_REFUSED);
    return MHD_NO;
}

/* Returns true on the handler's first call at the end of a body, which must give no answer yet. If
 * a request was suspended while the library was reading, the library reads again when it is
 * resumed; if the client has shut down its sending side meanwhile, it closes the connection without
 * the answer. After a call at the end of the body that gave no answer, it stops reading and calls
 * again. */
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
    /* The library may still deliver bytes and ask for an answer; neither matters now. */
    if (connection->state == CONNECTION_ENDING)
        return MHD_NO;
    if (request_state(request)->stage == STAGE_LINE)
        return on_header_end(connection, request, method, version);
    if (*length > 0)
        return on_body(connection, request, bytes, length);
    /* Before 1.0, if a request expects 100 Continue, has no body and is followed by another
     * request, the library delivers an empty piece. It accepts no answer then, and calls again. */
    if (bytes != NULL)
        return MHD_YES;
    deadline_clear(&connection->deadline);
    /* The end of a body that came after the 408. */
    if (connection->state == CONNECTION_REFUSED)
        return MHD_NO;
    if (is_first_end(request_state(request)))
        return MHD_YES;
    return answer(connection, request);
}

static enum ending ending_of(const struct request *request, enum MHD_RequestTerminationCode code)
{
    const struct connection *connection = request->connection;
    const enum request_stage stage = request_state_const(request)->stage;
    const bool is_complete = code == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    enum ending ending;

    if ((is_complete && stage == STAGE_QUEUED) || connection->result == RESULT_ANSWERED)
        return ENDING_WHOLE;
    ending = connection_failure(connection);
    if (ending == ENDING_DRAIN || ending == ENDING_TIMEOUT)
        return ending;
    if (code == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED)
        return ENDING_TIMEOUT;
    if (stage == STAGE_LINE && (is_complete || code == MHD_REQUEST_TERMINATED_WITH_ERROR))
        return ENDING_REFUSED;
    return ending;
}

/* Returns the status of an answer that the library generated itself. */
static unsigned library_status(const struct request *request, struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info;

    if (request_state_const(request)->stage == STAGE_QUEUED)
        return 0;
    info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_HTTP_STATUS);
    return info != NULL ? info->http_status : 0;
}

void handler_on_completed(void *context, struct MHD_Connection *handle, void **request_context,
                          enum MHD_RequestTerminationCode code)
{
    struct mhd *mhd = context;
    struct request *request = *request_context;

    mhd->progressed = true;
    if (request == NULL)
        return;
    *request_context = NULL;
    request_state(request)->library_status = library_status(request, handle);
    connections_idle_begin(&mhd->connections, request->connection, mhd->now_ms);
    connection_end_request(request->connection, ending_of(request, code));
}
