/* The library's daemon and its callbacks for connections; handler.c has the callbacks for requests.
 *
 * We drive the library from outside because its own epoll thread stalls when exactly 128
 * connections are ready at once. */
#include "http/wire/mhd.h"
#include "disk/open_files.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metrics.h"
#include "http/exchange/request_state.h"
#include "http/exchange/trace.h"
#include "http/limits/admission.h"
#include "http/tls/tls.h"
#include "http/wire/accepting.h"
#include "http/wire/bulk.h"
#include "http/wire/direct_answer.h"
#include "http/wire/handler.h"
#include "http/wire/handover.h"
#include "http/wire/intake.h"
#include "http/wire/listener.h"
#include "http/wire/loop.h"
#include "http/wire/mhd_state.h"
#include "http/wire/readahead.h"

/* More connections than there can be descriptors. */
#define LIBRARY_CONNECTIONS ((unsigned)INT_MAX / 2)
/* After this many runs in a row without visible progress, the loop waits before the next run, each
 * time twice as long, up to a maximum. An event ends the wait. */
#define IDLE_RUNS     32u
#define PAUSE_DOUBLED 6u
/* The maximum number of rounds: one accepts about ten connections, and new ones may keep coming. */
#define ACCEPT_ROUNDS_MAX 1000
/* The time between two attempts to accept a connection while no descriptors are left. */
#define STARVED_TRY_MS 20

/* --- connections --- */

static void on_opened(struct mhd *mhd, struct MHD_Connection *handle, void **socket_context)
{
    /* Each call may overwrite the result of the previous one. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    const int descriptor = info != NULL ? info->connect_fd : -1;
    const union MHD_ConnectionInfo *session =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    struct connection *connection =
        connection_open(mhd, descriptor, session != NULL ? session->tls_session : NULL);

    assert(mhd_is_own_thread(mhd));
    handover_take_place(&mhd->handover);
    *socket_context = connection;
    mhd->progressed = true;
    /* Without memory, the connection ends. */
    if (connection == NULL)
        return;
    connection->handle = handle;
    connection->is_of_s3 = connection->is_of_s3 || mhd->is_accepting_s3;
    info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info != NULL)
        connection_set_peer(connection, info->client_addr);
    connection_suit_peer(connection);
}

static socklen_t address_length(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

/* On failure the library closes the descriptor. */
void mhd_add(struct mhd *mhd, int descriptor, const struct sockaddr *address, socklen_t length)
{
    MHD_add_connection(mhd->daemon, descriptor, address, length);
}

/* Called by handover_readmit. */
static void readmit(struct mhd *mhd, int descriptor, const struct sockaddr *address)
{
    mhd_add(mhd, descriptor, address, address_length(address));
}

static void on_closed(struct mhd *mhd, struct MHD_Connection *handle, struct connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    const bool keeps_place = connection != NULL && connection->kept >= 0 &&
                             handover_put(connection, info != NULL ? info->client_addr : NULL);

    if (info != NULL && !keeps_place)
        admission_leave_address(info->client_addr);
    connection_close(mhd, connection, keeps_place);
}

static void on_connection(void *context, struct MHD_Connection *handle, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct mhd *mhd = context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        on_opened(mhd, handle, socket_context);
        return;
    }
    mhd->progressed = true;
    on_closed(mhd, handle, *socket_context);
    /* When descriptors run out, the library stops listening. It starts again at its first run after
     * a connection has ended, and if this was the last connection, no other event would wake it. */
    mhd->runs_again = true;
    mhd->starved_ms = 0;
}

static enum MHD_Result on_accept(void *context, const struct sockaddr *address, socklen_t length)
{
    const struct mhd *mhd = context;

    (void)length;
    if (handover_is_readmitting(&mhd->handover))
        return MHD_YES; /* it has its place */
    /* The library closes a rejected connection without an answer. */
    if (!admission_is_open(mhd->connection_limit)) {
        metric_add(METRIC_CONNECTIONS_REFUSED_LIMIT, 1);
        return MHD_NO;
    }
    /* Count addresses even without a limit, since a reload may set one. */
    if (admission_enter_address(address, mhd->address_limit))
        return MHD_YES;
    metric_add(METRIC_CONNECTIONS_REFUSED_ADDRESS, 1);
    return MHD_NO;
}

/* --- the listening sockets --- */

static int listening_socket(const struct mhd *mhd)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(mhd->daemon, MHD_DAEMON_INFO_LISTEN_FD);

    return info != NULL ? info->listen_fd : MHD_INVALID_SOCKET;
}

bool mhd_is_starved(const struct mhd *mhd)
{
    return mhd->starved_ms != 0 && mhd->connections.first == NULL;
}

/* --- suspending and resuming --- */

void mhd_suspend(struct connection *connection, enum connection_state state)
{
    assert(mhd_is_own_thread(connection->mhd) && !connection_is_suspended(connection));
    connection_enter(connection, state);
    assert(connection_is_suspended(connection));
    connection->mhd->waiting++;
    MHD_suspend_connection(connection->handle);
}

void mhd_resume(struct connection *connection, enum connection_state state)
{
    assert(mhd_is_own_thread(connection->mhd) && connection_is_suspended(connection));
    assert(connection->mhd->waiting > 0);
    connection_enter(connection, state);
    assert(!connection_is_suspended(connection));
    connection->mhd->progressed = true;
    connection->mhd->waiting--;
    MHD_resume_connection(connection->handle);
}

void mhd_end_soon(struct connection *connection)
{
    if (connection->handle != NULL && !connection_is_suspended(connection))
        MHD_set_connection_option(connection->handle, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

void mhd_end_now(struct connection *connection)
{
    assert(mhd_is_own_thread(connection->mhd));
    mhd_end_soon(connection);
    connection->mhd->runs_again = true;
}

/* Does not decode path and query: request.c and the router decode them. */
static size_t leave_escaped(void *context, struct MHD_Connection *handle, char *text)
{
    (void)context;
    (void)handle;
    return strlen(text);
}

__attribute__((format(printf, 2, 0))) static void on_message(void *context, const char *format,
                                                             va_list arguments)
{
    struct mhd *mhd = context;
    char text[512];

    /* The library reports this in no other way. */
    if (strstr(format, "resource limit") != NULL)
        accepting_note_starved(mhd);
    if (!log_enabled(LOG_LEVEL_DEBUG))
        return;
    vsnprintf(text, sizeof(text), format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_write(LOG_LEVEL_DEBUG, "http: %s", text);
}

const char *mhd_reason(unsigned status)
{
    return MHD_get_reason_phrase_for(status);
}

/* --- the daemon --- */

#if MHD_VERSION >= STRICT_PARSER
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#else
/* In strict mode the library closes the connection without an answer if a target has a space, and
 * answers with two heads if Host is missing. It has no other effect, and the exchange refuses
 * both. */
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT, 0
#endif

/* Never called: each session gets its certificate from tls_session_begin. */
static int no_certificate(void)
{
    return -1;
}

/* A loop calls the library on one thread only. Without this flag, since 1.0, the library would
 * defer connections that are added to it, and connections of handover_readmit would count as
 * new. */
#if MHD_VERSION >= STRICT_PARSER
#define NO_THREADS MHD_USE_NO_THREAD_SAFETY
#else
#define NO_THREADS 0u
#endif

/* Includes the options that the library needs only with TLS. Turbo mode is for plain text only: it
 * closes connections without the alert that marks a complete stream (RFC 8446 section 6.1). */
static unsigned daemon_flags(const struct mhd *mhd)
{
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    return flags | (mhd->server->tls != NULL ? MHD_USE_TLS : MHD_USE_TURBO) | NO_THREADS;
}

static struct MHD_Daemon *start_daemon(struct mhd *mhd, int listen_socket)
{
    /* Without TLS the library would warn about these options. */
    struct MHD_OptionItem options[] = {
        {mhd->server->tls != NULL ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END, 0,
         (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)no_certificate},
        {MHD_OPTION_END, 0, NULL},
    };

    /* The listening socket has the port, so the parameter is ignored. The server applies limits and
     * timeouts itself, because they may change, and because the library stops listening at its own
     * limit. */
    return MHD_start_daemon(
        daemon_flags(mhd), 0, on_accept, mhd, handler_on_request, mhd, MHD_OPTION_EXTERNAL_LOGGER,
        on_message, mhd, MHD_OPTION_ARRAY, options, MHD_OPTION_LISTEN_SOCKET, listen_socket,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, STRICTNESS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_MEMORY, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_LIMIT, LIBRARY_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, 0u,
        MHD_OPTION_URI_LOG_CALLBACK, handler_on_target, mhd, MHD_OPTION_NOTIFY_COMPLETED,
        handler_on_completed, mhd, MHD_OPTION_NOTIFY_CONNECTION, on_connection, mhd,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_END);
}

static void take_limits(struct mhd *mhd)
{
    const struct config *config = mhd->server->config;
    const int64_t per_address = config_number(&config->limits.connections_per_address);

    connections_configure(&mhd->connections, config);
    mhd->connection_limit = open_files_for_connections(config);
    mhd->address_limit = per_address > 0 ? (unsigned)per_address : UINT_MAX;
}

static int64_t send_buffer_bytes(const struct mhd *mhd)
{
    return config_number(&mhd->server->config->limits.send_buffer_bytes);
}

/* Wakes the loop; mhd_run then looks at the lingering connections. */
static void on_linger(void *context)
{
    (void)context;
}

static void free_mhd(struct mhd *mhd)
{
    assert(mhd->waiting == 0);
    if (mhd->daemon != NULL)
        MHD_stop_daemon(mhd->daemon);
    linger_end(&mhd->linger);
    intake_set_free(mhd->intakes);
    bulk_set_free(mhd->bulks);
    handover_end(&mhd->handover);
    reserve_end(&mhd->reserve);
    if (mhd->direct_epoll >= 0)
        close(mhd->direct_epoll);
    if (mhd->s3_socket >= 0)
        close(mhd->s3_socket);
    connections_end(&mhd->connections);
    hangups_end(&mhd->hangups);
    response_cache_clear(&mhd->kept);
    request_pool_clear(&mhd->pool);
    free(mhd);
}

/* Returns false on failure. */
static bool watch_all(struct mhd *mhd, struct loop *loop)
{
    return loop_watch(loop, mhd->linger.epoll, on_linger, mhd) == 0 &&
           loop_watch(loop, mhd->hangups.epoll, hangups_notice, &mhd->hangups) == 0 &&
           loop_watch(loop, bulk_descriptor(mhd->bulks), bulk_run, mhd) == 0 &&
           loop_watch(loop, mhd->direct_epoll, direct_answers_run, mhd) == 0 &&
           loop_watch(loop, intake_descriptor(mhd->intakes), intake_run, mhd->intakes) == 0;
}

struct mhd *mhd_start(struct server *server, struct loop *loop, int listen_socket, int s3_socket,
                      char *error, size_t error_size)
{
    struct mhd *mhd = calloc(1, sizeof(*mhd));
    bool started;

    if (mhd == NULL) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    if (server->tls != NULL && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        snprintf(error, error_size, "tls.cert: this libmicrohttpd was built without TLS");
        free(mhd);
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    mhd->server = server;
    mhd->loop = loop;
    mhd->s3_socket = -1;
    mhd->reserve.descriptor = -1;
    reserve_fill(&mhd->reserve);
    mhd->tap = (struct tap){mhd, handover_judge};
    take_limits(mhd);
    mhd_update_clock(mhd);
    mhd->intakes = handover_intakes_new(mhd);
    mhd->bulks = bulk_set_new();
    /* Initialize all of them even after a failure, since free_mhd frees all. */
    started = linger_init(&mhd->linger) == 0;
    started = hangups_init(&mhd->hangups) == 0 && started;
    started = handover_init(&mhd->handover) == 0 && started;
    mhd->direct_epoll = epoll_create1(EPOLL_CLOEXEC);
    if (started && mhd->direct_epoll >= 0 && mhd->intakes != NULL && mhd->bulks != NULL)
        mhd->daemon = start_daemon(mhd, listen_socket);
    if (mhd->daemon != NULL)
        listener_cap_send_buffer(listen_socket, send_buffer_bytes(mhd));
    if (s3_socket >= 0)
        listener_cap_send_buffer(s3_socket, send_buffer_bytes(mhd));
    if (mhd->daemon == NULL || !watch_all(mhd, loop) ||
        (s3_socket >= 0 && loop_watch_edges(loop, s3_socket, accepting_on_s3_client, mhd) != 0)) {
        snprintf(error, error_size, "the HTTP library cannot be started");
        free_mhd(mhd);
        return NULL;
    }
    mhd->s3_socket = s3_socket;
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

/* Detects runs without progress. The library asks to run again immediately while it considers a
 * connection ready, even if that connection cannot progress because a line exceeds its memory or a
 * handshake is incomplete. Bytes that the library sends show only in the sockets. */
static void look_for_progress(struct mhd *mhd)
{
    uint64_t sent_bytes;

    if (mhd->progressed)
        mhd->idle_runs = 0;
    mhd->progressed = false;
    if (++mhd->idle_runs <= IDLE_RUNS)
        return;
    sent_bytes = connections_sent(&mhd->connections);
    if (sent_bytes != mhd->sent_bytes)
        mhd->idle_runs = 0;
    mhd->sent_bytes = sent_bytes;
}

static int pause_ms(const struct mhd *mhd)
{
    const unsigned more = mhd->idle_runs > IDLE_RUNS ? mhd->idle_runs - IDLE_RUNS : 0;

    return more == 0 ? 0 : 1 << (more < PAUSE_DOUBLED ? more : PAUSE_DOUBLED);
}

int mhd_timeout_ms(struct mhd *mhd)
{
    MHD_UNSIGNED_LONG_LONG library_ms;
    int timeout_ms = -1;

    if (mhd->runs_again || (mhd->s3_is_awaited && mhd->starved_ms == 0))
        return 0;
    if (MHD_get_timeout(mhd->daemon, &library_ms) == MHD_YES)
        timeout_ms = library_ms < INT_MAX ? (int)library_ms : INT_MAX;
    if (timeout_ms == 0)
        timeout_ms = pause_ms(mhd);
    timeout_ms = sooner(timeout_ms, connections_due_ms(&mhd->connections), mhd->now_ms);
    timeout_ms = sooner(timeout_ms, deadlines_due_ms(&mhd->hangups.looks), mhd->now_ms);
    if (mhd->starved_ms != 0)
        timeout_ms = sooner(timeout_ms, mhd->now_ms + STARVED_TRY_MS, mhd->now_ms);
    timeout_ms = sooner(timeout_ms, deadlines_due_ms(&mhd->parts), mhd->now_ms);
    return sooner(timeout_ms, deadlines_due_ms(&mhd->linger.due), mhd->now_ms);
}

void mhd_run(struct mhd *mhd)
{
    assert(mhd->running && mhd_is_own_thread(mhd));
    mhd_update_clock(mhd);
    mhd->runs_again = false;
    mapped_files_check(&mhd->mapped, &mhd->connections);
    look_for_progress(mhd);
    tap_open(&mhd->tap);
    MHD_run(mhd->daemon);
    if (mhd->starved_ms != 0 || mhd->connections.first == NULL)
        accepting_serve(mhd, listening_socket(mhd));
    if (mhd->s3_is_awaited)
        accepting_take_s3(mhd);
    tap_open(NULL);
    handover_readmit(mhd, readmit);
    if (hangups_are_due(&mhd->hangups, mhd->now_ms))
        hangups_run(&mhd->hangups, mhd->now_ms);
    if (deadlines_due_ms(&mhd->parts) <= mhd->now_ms)
        intake_store_parts(mhd->intakes, mhd->now_ms);
    connections_cut_due(&mhd->connections, mhd->now_ms);
    if (mhd->linger.count > 0)
        linger_run(&mhd->linger, mhd->now_ms);
}

void mhd_reload(struct mhd *mhd)
{
    const int64_t send_bytes = send_buffer_bytes(mhd);
    const int listening = listening_socket(mhd);

    assert(mhd_is_own_thread(mhd));
    take_limits(mhd);
    if (listening != MHD_INVALID_SOCKET)
        listener_cap_send_buffer(listening, send_bytes);
    if (mhd->s3_socket >= 0)
        listener_cap_send_buffer(mhd->s3_socket, send_bytes);
    for (const struct connection *one = mhd->connections.first; one != NULL; one = one->after)
        listener_cap_send_buffer(one->descriptor, send_bytes);
}

/* Accepts the connections that the kernel has already established; closing the socket would reset
 * them. */
static void accept_waiting(struct mhd *mhd)
{
    const int listening = listening_socket(mhd);

    tap_open(&mhd->tap);
    for (unsigned i = 0; i < ACCEPT_ROUNDS_MAX && reserve_is_awaited(listening); i++)
        MHD_run(mhd->daemon);
    tap_open(NULL);
}

void mhd_drain(struct mhd *mhd)
{
    MHD_socket listening;

    assert(mhd_is_own_thread(mhd));
    mhd_update_clock(mhd);
    accept_waiting(mhd);
    listening = MHD_quiesce_daemon(mhd->daemon);
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
    if (mhd->s3_socket >= 0) {
        for (unsigned i = 0; i < ACCEPT_ROUNDS_MAX && reserve_is_awaited(mhd->s3_socket); i++)
            accepting_take_s3(mhd);
        close(mhd->s3_socket);
        mhd->s3_socket = -1;
        mhd->s3_is_awaited = false;
    }
    connections_drain(&mhd->connections, mhd->now_ms);
}

void mhd_cut(struct mhd *mhd)
{
    assert(!mhd->cutting);
    mhd->cutting = true;
    for (const struct connection *one = mhd->connections.first; one != NULL; one = one->after)
        if (one->request != NULL)
            readahead_cancel(request_state(one->request)->ahead);
    connections_cut(&mhd->connections);
}

void mhd_stop(struct mhd *mhd)
{
    free_mhd(mhd);
}
