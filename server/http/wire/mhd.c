/* The library's callbacks: connections and requests come, the exchange decides, the sender makes
 * the response.
 *
 * The library is driven from outside: its own epoll thread stalls when exactly 128 connections are
 * ready at once. A refusal is sent on the handler's first call only when there is a body to refuse,
 * since the library closes the connection after an answer given there; else on the second. */
#include "http/wire/mhd.h"

#include <limits.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/exchange/request_state.h"
#include "http/exchange/trace.h"
#include "http/fields/framing.h"
#include "http/wire/address_limit.h"
#include "http/wire/bare_answer.h"
#include "http/wire/capacity.h"
#include "http/wire/connections.h"
#include "http/wire/hangups.h"
#include "http/wire/intake.h"
#include "http/wire/linger.h"
#include "http/wire/loop.h"
#include "http/wire/readahead.h"
#include "http/wire/sender.h"

/* From 1.0 on the library has levels of strictness, and refuses what header_block.h looks for. */
#define STRICT_PARSER 0x01000000

struct mhd {
    struct MHD_Daemon *daemon;
    struct server *server;
    struct loop *loop;
    struct connections connections;
    struct hangups hangups;
    struct linger_set *linger;
    struct intake_set *intakes;
    uint64_t now_ms;
    unsigned address_limit;
    unsigned waiting; /* suspended connections, and work that outlives its request */
    atomic_uint active;
    bool closed; /* a connection was, in the last run */
    bool draining;
    bool cutting;
};

static uint64_t read_clock_ms(void)
{
    return (uint64_t)clock_coarse_ms();
}

/* --- connections --- */

static void on_opened(struct mhd *mhd, struct MHD_Connection *handle, void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection =
        connections_add(&mhd->connections, info != NULL ? info->connect_fd : -1, mhd->now_ms);

    /* Without memory the connection ends with its first request. */
    *socket_context = connection;
    if (connection == NULL)
        return;
    connection->mhd = mhd;
    connection->handle = handle;
    hangups_add(&mhd->hangups, connection);
}

static void finish_request(struct mhd *mhd, struct request *request, enum ending ending)
{
    struct connection *connection = request->connection;
    const struct request_state *state = request_state(request);

    trace_end(request, ending, ending != ENDING_WHOLE ? connection_sent(connection) : 0);
    connection->request = NULL;
    connection->asked_bytes += state->header_bytes + state->body_received;
    connection->answered_bytes += state->head_bytes;
    if (state->answer.segment_count > 0)
        connection->answered_bytes += state->answer.content_length;
    if (readahead_end(request_state(request)->ahead))
        request_free(request);
    atomic_fetch_sub_explicit(&mhd->active, 1, memory_order_relaxed);
}

/* The library does not tell the end of a request that its memory for a header did not suffice for.
 */
static void finish_forgotten(struct mhd *mhd, struct connection *connection)
{
    struct request *request = connection->request;

    if (request != NULL)
        finish_request(mhd, request,
                       request_state(request)->phase == PHASE_HEADER ? ENDING_REFUSED
                                                                     : ENDING_SERVER);
}

static void on_closed(struct mhd *mhd, struct MHD_Connection *handle, struct connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    if (mhd->address_limit > 0 && info != NULL)
        address_limit_leave(info->client_addr);
    mhd->closed = true;
    if (connection == NULL)
        return;
    finish_forgotten(mhd, connection);
    hangups_remove(&mhd->hangups, connection);
    if (!mhd->cutting && connection_has_unread(connection))
        linger_take(mhd->linger, connection->descriptor, mhd->now_ms);
    connections_remove(&mhd->connections, connection);
}

static void on_connection(void *context, struct MHD_Connection *handle, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        on_opened(context, handle, socket_context);
    else
        on_closed(context, handle, *socket_context);
}

static enum MHD_Result on_accept(void *context, const struct sockaddr *address, socklen_t length)
{
    const struct mhd *mhd = context;

    (void)length;
    return mhd->address_limit == 0 || address_limit_enter(address, mhd->address_limit) ? MHD_YES
                                                                                       : MHD_NO;
}

static struct connection *connection_of(struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

/* --- suspending and resuming --- */

static void resume_library(struct connection *connection)
{
    connection->suspended = false;
    connection->mhd->waiting--;
    MHD_resume_connection(connection->handle);
}

/* The library finds the stream at its end, in the middle of the body as it knows it, and closes the
 * connection. */
static void end_past_library(struct connection *connection)
{
    shutdown(connection->descriptor, SHUT_RDWR);
    resume_library(connection);
}

/* The body went past the library, which takes no answer in the middle of one. */
static void answer_past_library(struct connection *connection)
{
    struct request *request = connection->request;
    struct request_state *state = request_state(request);

    if (exchange_advance(request) == OUTCOME_WAITING)
        return;
    exchange_answer(request);
    connection->answered =
        bare_answer_send(request, MHD_get_reason_phrase_for(state->answer.status));
    if (connection->answered)
        state->phase = PHASE_QUEUED;
    end_past_library(connection);
}

/* On the loop's thread, by a post: the handler that suspended has returned long since, however fast
 * the worker was. */
static void resume(struct request *request)
{
    struct connection *connection = request->connection;

    if (!connection->suspended)
        return;
    connection->gone = request_is_abandoned(request);
    if (connection->past_library)
        answer_past_library(connection);
    else
        resume_library(connection);
}

void mhd_suspend(struct connection *connection)
{
    connection->suspended = true;
    connection->mhd->waiting++;
    MHD_suspend_connection(connection->handle);
}

static enum MHD_Result suspend(struct connection *connection)
{
    mhd_suspend(connection);
    return MHD_YES;
}

void mhd_work_begun(struct mhd *mhd)
{
    mhd->waiting++;
}

void mhd_work_ended(struct mhd *mhd)
{
    mhd->waiting--;
}

/* --- requests --- */

/* The library parses arguments, which take far more of its small memory than the target does, and
 * nobody asks it for them: request_query reads the copy. The text is in the library's own buffer,
 * and what it reads of the query ends at a NUL: the cut is behind the '?', whose place it has noted
 * already. The one target that is not in the buffer is the empty one. */
static void hide_query(const char *target)
{
    char *query = strchr((char *)(uintptr_t)target, '?');

    if (query != NULL)
        query[1] = '\0';
}

static const struct transport transport = {resume, connection_is_gone, connection_is_established};

/* The request line is in; the raw target is not seen again later. */
static void *on_target(void *context, const char *target, struct MHD_Connection *handle)
{
    struct mhd *mhd = context;
    struct connection *connection = connection_of(handle);
    struct request *request;

    if (connection == NULL)
        return NULL;
    finish_forgotten(mhd, connection);
    request = request_new(mhd->server, loop_mailbox(mhd->loop), target);
    hide_query(target);
    if (request == NULL)
        return NULL;
    request->connection = connection;
    connection->request = request;
    connection->hung_up_ms = 0;
    request_state(request)->transport = &transport;
    request_state(request)->started_ns = clock_ns();
    atomic_fetch_add_explicit(&mhd->active, 1, memory_order_relaxed);
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

/* method and version are the library's pointers into the block that it parsed. */
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

static enum MHD_Result queue_answer(struct connection *connection, struct request *request)
{
    struct request_state *state = request_state(request);
    struct MHD_Response *response = sender_response(request, connection->mhd->draining);
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    state->phase = PHASE_QUEUED;
    result = MHD_queue_response(connection->handle, state->answer.status, response);
    MHD_destroy_response(response);
    return result;
}

/* Only on_header_end's answers, which are problems in memory, go out without passing sender_load.
 */
static enum MHD_Result answer(struct connection *connection, struct request *request)
{
    struct request_state *state = request_state(request);

    if (state->phase != PHASE_LOADING) {
        exchange_answer(request);
        state->phase = PHASE_LOADING;
    }
    if (sender_load(request) == OUTCOME_WAITING)
        return suspend(connection);
    return queue_answer(connection, request);
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
    state->http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    state->phase = PHASE_BODY;
    MHD_get_connection_values_n(connection->handle, MHD_HEADER_KIND, on_header, request);
    state->headers_hidden = header_is_hidden(state, method, version);
    refused = exchange_begin(request);
    if (refused && (state->body_length > 0 || state->broken)) {
        connection->refused_early = true;
        exchange_answer(request);
        return queue_answer(connection, request);
    }
    if (state->body_length > 0)
        connections_body_begin(&connection->mhd->connections, connection, connection->mhd->now_ms);
    return MHD_YES;
}

static bool note_piece(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    /* The loop may have slept until now. */
    mhd->now_ms = read_clock_ms();
    return connections_body_piece(&mhd->connections, connection,
                                  request_state(connection->request)->body_received, mhd->now_ms);
}

static void note_pause(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd->now_ms = read_clock_ms();
    connections_body_pause(connection, mhd->now_ms);
}

static void note_wait(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd->now_ms = read_clock_ms();
    connections_body_resume(&mhd->connections, connection, mhd->now_ms);
}

static void on_taken_in(void *context, struct connection *connection, bool whole)
{
    const struct mhd *mhd = context;

    deadline_clear(&connection->deadline);
    /* Nobody would learn of what is begun now. */
    if (whole && !mhd->cutting)
        answer_past_library(connection);
    else
        end_past_library(connection);
}

/* What the library has read of a body is delivered: nothing of the rest is in its hands. */
static void take_in(struct connection *connection, struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const uint64_t left =
        state->body_length != UINT64_MAX ? state->body_length - state->body_received : 0;

    if (left < INTAKE_LEAST_BYTES || state->operation->store == NULL ||
        !intake_begin(connection->mhd->intakes, request, left))
        return;
    connection->past_library = true;
    mhd_suspend(connection);
}

static enum MHD_Result on_body(struct connection *connection, struct request *request,
                               const char *bytes, size_t *length)
{
    bool is_first = request_state(request)->body_received == 0;

    if (!exchange_receive(request, bytes, *length))
        return MHD_NO;
    if (!note_piece(connection->mhd, connection))
        return MHD_NO;
    *length = 0;
    if (is_first && !request->replied)
        take_in(connection, request);
    return MHD_YES;
}

/* The library calls it with the header, with each piece of the body, at its end, and after each
 * resume. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *handle, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *length, void **request_context)
{
    struct request *request = *request_context;
    struct mhd *mhd = context;
    struct connection *connection;

    (void)handle;
    (void)url;
    if (request == NULL || mhd->cutting)
        return MHD_NO;
    connection = request->connection;
    /* What it waited for may not have been done; and what is left past the library is no part of
     * the body. */
    if (connection->gone || connection->past_library)
        return MHD_NO;
    if (request_state(request)->phase == PHASE_HEADER)
        return on_header_end(connection, request, method, version);
    if (*length > 0)
        return on_body(connection, request, bytes, length);
    deadline_clear(&connection->deadline);
    if (request_state(request)->phase != PHASE_LOADING &&
        exchange_advance(request) == OUTCOME_WAITING)
        return suspend(connection);
    return answer(connection, request);
}

static enum ending ending_of(const struct request *request, enum MHD_RequestTerminationCode code)
{
    const struct connection *connection = request->connection;

    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK || connection->answered)
        return ENDING_WHOLE;
    if (connection->mhd->cutting)
        return ENDING_DRAIN;
    if (code == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED || connection->timed_out)
        return ENDING_TIMEOUT;
    if (code == MHD_REQUEST_TERMINATED_WITH_ERROR &&
        request_state_const(request)->phase == PHASE_HEADER)
        return ENDING_REFUSED;
    return connection_is_established(connection) ? ENDING_SERVER : ENDING_CLIENT;
}

static void on_completed(void *context, struct MHD_Connection *handle, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    struct mhd *mhd = context;
    struct request *request = *request_context;

    (void)handle;
    if (request == NULL)
        return;
    *request_context = NULL;
    deadline_set(&request->connection->deadline, &mhd->connections.next_header, mhd->now_ms);
    finish_request(mhd, request, ending_of(request, code));
}

/* Names and query stay as they came: request.c and the router decode them. */
static size_t leave_escaped(void *context, struct MHD_Connection *handle, char *text)
{
    (void)context;
    (void)handle;
    return strlen(text);
}

__attribute__((format(printf, 2, 0))) static void on_message(void *context, const char *format,
                                                             va_list arguments)
{
    char text[512];

    (void)context;
    if (!log_enabled(LOG_LEVEL_DEBUG))
        return;
    vsnprintf(text, sizeof(text), format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_write(LOG_LEVEL_DEBUG, "http: %s", text);
}

/* --- the daemon --- */

#if MHD_VERSION >= STRICT_PARSER
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#else
/* Strict, it closes the connection without an answer where a target has a blank, and answers in its
 * own words, with two heads, where Host is missing; it is strict about nothing else. Both are
 * refused by the exchange instead. */
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT, 0
#endif

static struct MHD_Daemon *start_daemon(struct mhd *mhd, int listen_socket)
{
    const struct config *config = mhd->server->config;

    /* The port is the listening socket's; with the option the parameter is not looked at. */
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, on_accept,
        mhd, on_request, mhd, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, listen_socket, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, STRICTNESS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT,
        capacity_connections(mhd->server), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)config->limits.idle_timeout_s, MHD_OPTION_URI_LOG_CALLBACK, on_target, mhd,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, mhd, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        mhd, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_END);
}

/* mhd_run does what there is to do; the descriptor only ends the loop's sleep. */
static void on_linger(void *context)
{
    (void)context;
}

static void free_mhd(struct mhd *mhd)
{
    if (mhd->daemon != NULL)
        MHD_stop_daemon(mhd->daemon);
    linger_free(mhd->linger);
    intake_set_free(mhd->intakes);
    hangups_end(&mhd->hangups);
    free(mhd);
}

struct mhd *mhd_start(struct server *server, struct loop *loop, int listen_socket, char *error,
                      size_t error_size)
{
    struct mhd *mhd = calloc(1, sizeof(*mhd));

    if (mhd == NULL) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    capacity_cap_send_buffer(listen_socket, server->config->limits.send_buffer_bytes);
    connections_init(&mhd->connections, server->config);
    mhd->address_limit = (unsigned)server->config->limits.connections_per_address;
    mhd->server = server;
    mhd->loop = loop;
    mhd->now_ms = read_clock_ms();
    mhd->linger = linger_new();
    mhd->intakes = intake_set_new(
        loop, &(struct intake_events){mhd, note_piece, note_pause, note_wait, on_taken_in});
    if (hangups_init(&mhd->hangups) == 0 && mhd->linger != NULL && mhd->intakes != NULL)
        mhd->daemon = start_daemon(mhd, listen_socket);
    if (mhd->daemon == NULL ||
        loop_watch(loop, linger_descriptor(mhd->linger), on_linger, mhd) != 0 ||
        loop_watch(loop, mhd->hangups.epoll, hangups_notice, &mhd->hangups) != 0 ||
        loop_watch(loop, intake_descriptor(mhd->intakes), intake_run, mhd->intakes) != 0) {
        snprintf(error, error_size, "the HTTP library cannot be started");
        free_mhd(mhd);
        return NULL;
    }
    return mhd;
}

int mhd_descriptor(const struct mhd *mhd)
{
    return MHD_get_daemon_info(mhd->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

static int sooner(int timeout_ms, uint64_t due_ms, uint64_t now_ms)
{
    const uint64_t left = due_ms > now_ms ? due_ms - now_ms : 0;

    if (due_ms == UINT64_MAX || (timeout_ms >= 0 && (uint64_t)timeout_ms < left))
        return timeout_ms;
    return left < INT_MAX ? (int)left : INT_MAX;
}

int mhd_timeout_ms(struct mhd *mhd)
{
    MHD_UNSIGNED_LONG_LONG library_ms;
    int timeout_ms = -1;

    /* At its limit the library does not listen, and begins again only when it runs after a
     * connection was closed. */
    if (mhd->closed)
        return 0;
    if (MHD_get_timeout(mhd->daemon, &library_ms) == MHD_YES)
        timeout_ms = library_ms < INT_MAX ? (int)library_ms : INT_MAX;
    timeout_ms = sooner(timeout_ms, connections_due_ms(&mhd->connections), mhd->now_ms);
    timeout_ms = sooner(timeout_ms, hangups_due_ms(&mhd->hangups), mhd->now_ms);
    return sooner(timeout_ms, linger_due_ms(mhd->linger), mhd->now_ms);
}

void mhd_run(struct mhd *mhd)
{
    mhd->now_ms = read_clock_ms();
    mhd->closed = false;
    MHD_run(mhd->daemon);
    hangups_run(&mhd->hangups, mhd->now_ms);
    connections_cut_due(&mhd->connections, mhd->now_ms);
    linger_run(mhd->linger, mhd->now_ms);
}

void mhd_drain(struct mhd *mhd)
{
    const MHD_socket listening = MHD_quiesce_daemon(mhd->daemon);

    mhd->draining = true;
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
}

void mhd_cut(struct mhd *mhd)
{
    mhd->cutting = true;
    for (const struct connection *one = mhd->connections.first; one != NULL; one = one->after)
        if (one->request != NULL)
            readahead_cancel(request_state(one->request)->ahead);
    connections_cut(&mhd->connections);
}

unsigned mhd_waiting(const struct mhd *mhd)
{
    return mhd->waiting;
}

unsigned mhd_active(const struct mhd *mhd)
{
    return atomic_load_explicit(&mhd->active, memory_order_relaxed);
}

void mhd_stop(struct mhd *mhd)
{
    free_mhd(mhd);
}
