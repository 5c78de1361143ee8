/* The library's daemon, and its callbacks for connections; those for requests are in handler.c.
 *
 * The library is driven from outside: its own epoll thread stalls when exactly 128 connections are
 * ready at once. */
#include "http/wire/mhd.h"

#include <assert.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metrics.h"
#include "http/exchange/request_state.h"
#include "http/limits/admission.h"
#include "http/tls/tls.h"
#include "http/wire/bulk.h"
#include "http/wire/bypass.h"
#include "http/wire/handler.h"
#include "http/wire/intake.h"
#include "http/wire/listener.h"
#include "http/wire/loop.h"
#include "http/wire/mhd_state.h"
#include "http/wire/readahead.h"

/* More connections than descriptors can be. */
#define LIBRARY_CONNECTIONS ((unsigned)INT_MAX / 2)
/* A round accepts about ten connections; new ones may keep coming. */
#define ACCEPT_ROUNDS_MAX 1000

/* --- connections --- */

static void on_opened(struct mhd *mhd, struct MHD_Connection *handle, void **socket_context)
{
    /* The library may answer each of these questions in the same place. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    const int descriptor = info != NULL ? info->connect_fd : -1;
    const union MHD_ConnectionInfo *session =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    struct connection *connection =
        connection_open(mhd, descriptor, session != NULL ? session->tls_session : NULL);

    *socket_context = connection;
    /* There was no memory: the connection ends. */
    if (connection == NULL)
        return;
    connection->handle = handle;
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

/* For kept_sockets_readmit. If it fails, the library closes the descriptor. */
static void readmit(struct mhd *mhd, int descriptor, const struct sockaddr *address)
{
    MHD_add_connection(mhd->daemon, descriptor, address, address_length(address));
}

static void on_closed(struct mhd *mhd, struct MHD_Connection *handle, struct connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    if (info != NULL)
        admission_leave_address(info->client_addr);
    if (connection != NULL && connection->kept >= 0)
        kept_sockets_put(connection, info != NULL ? info->client_addr : NULL);
    connection_close(mhd, connection);
}

static void on_connection(void *context, struct MHD_Connection *handle, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct mhd *mhd = context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        on_opened(mhd, handle, socket_context);
        return;
    }
    on_closed(mhd, handle, *socket_context);
    /* When descriptors ran out, the library has stopped listening. It begins again at its next
     * run after the end of a connection, which may be the last one that ever wakes it. */
    mhd->runs_again = true;
}

static enum MHD_Result on_accept(void *context, const struct sockaddr *address, socklen_t length)
{
    const struct mhd *mhd = context;

    (void)length;
    if (kept_sockets_are_readmitting(&mhd->kept_sockets))
        return admission_enter_address(address, UINT_MAX) ? MHD_YES : MHD_NO;
    /* The library closes a connection that is not accepted without an answer. */
    if (!admission_is_open(mhd->connection_limit)) {
        metric_add(METRIC_CONNECTIONS_REFUSED_LIMIT, 1);
        return MHD_NO;
    }
    /* Without a limit they are counted as well, since there may be one later. */
    if (admission_enter_address(address, mhd->address_limit))
        return MHD_YES;
    metric_add(METRIC_CONNECTIONS_REFUSED_ADDRESS, 1);
    return MHD_NO;
}

/* --- suspending and resuming --- */

void mhd_suspend(struct connection *connection)
{
    assert(mhd_is_own_thread(connection->mhd) && !connection->suspended);
    connection->suspended = true;
    connection->mhd->waiting++;
    MHD_suspend_connection(connection->handle);
}

void mhd_resume(struct connection *connection)
{
    assert(mhd_is_own_thread(connection->mhd) && connection->suspended);
    assert(connection->mhd->waiting > 0);
    connection->suspended = false;
    connection->mhd->waiting--;
    MHD_resume_connection(connection->handle);
}

void mhd_end_soon(struct connection *connection)
{
    if (connection->handle != NULL && !connection->suspended)
        MHD_set_connection_option(connection->handle, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

void mhd_end_now(struct connection *connection)
{
    mhd_end_soon(connection);
    connection->mhd->runs_again = true;
}

/* Path and query stay as they were sent: request.c and the router decode them. */
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

const char *mhd_reason(unsigned status)
{
    return MHD_get_reason_phrase_for(status);
}

/* --- the daemon --- */

#if MHD_VERSION >= STRICT_PARSER
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#else
/* If strict, it closes the connection without an answer when a target has a space, and answers with
 * two heads when Host is missing; it is strict about nothing else. The exchange refuses both. */
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT, 0
#endif

/* Never called: each session gets its certificate from tls_session_begin. */
static int no_certificate(void)
{
    return -1;
}

/* All calls of a loop are made on its thread. Since 1.0 the library would otherwise put off
 * connections that are given to it, so that those of kept_sockets_readmit would count as new. */
#if MHD_VERSION >= STRICT_PARSER
#define NO_THREADS MHD_USE_NO_THREAD_SAFETY
#else
#define NO_THREADS 0u
#endif

/* Also what the library needs only to be told with TLS. In turbo mode it closes connections without
 * the alert that says that nothing is missing (RFC 8446 section 6.1). */
static unsigned daemon_flags(const struct mhd *mhd)
{
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    return flags | (mhd->server->tls != NULL ? MHD_USE_TLS : MHD_USE_TURBO) | NO_THREADS;
}

static struct MHD_Daemon *start_daemon(struct mhd *mhd, int listen_socket)
{
    /* Without TLS the library would complain about these. */
    struct MHD_OptionItem options[] = {
        {mhd->server->tls != NULL ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END, 0,
         (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)no_certificate},
        {MHD_OPTION_END, 0, NULL},
    };

    /* The port is the listening socket's, so the parameter is ignored. Limits and timeouts are the
     * server's own, since they may change: at its own limit the library would stop listening. */
    return MHD_start_daemon(
        daemon_flags(mhd), 0, on_accept, mhd, handler_on_request, mhd, MHD_OPTION_EXTERNAL_LOGGER,
        on_message, NULL, MHD_OPTION_ARRAY, options, MHD_OPTION_LISTEN_SOCKET, listen_socket,
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
    mhd->connection_limit = admission_limit(config);
    mhd->address_limit = per_address > 0 ? (unsigned)per_address : UINT_MAX;
}

static int64_t send_buffer_bytes(const struct mhd *mhd)
{
    return config_number(&mhd->server->config->limits.send_buffer_bytes);
}

/* mhd_run looks at what lingers; the descriptor only ends the loop's sleep. */
static void on_linger(void *context)
{
    (void)context;
}

static void free_mhd(struct mhd *mhd)
{
    if (mhd->daemon != NULL)
        MHD_stop_daemon(mhd->daemon);
    linger_end(&mhd->linger);
    intake_set_free(mhd->intakes);
    bulk_set_free(mhd->bulks);
    kept_sockets_end(&mhd->kept_sockets);
    own_answers_end(&mhd->own_answers);
    hangups_end(&mhd->hangups);
    kept_answers_clear(&mhd->kept);
    request_pool_clear(&mhd->pool);
    free(mhd);
}

struct mhd *mhd_start(struct server *server, struct loop *loop, int listen_socket, char *error,
                      size_t error_size)
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
    take_limits(mhd);
    mhd_update_clock(mhd);
    mhd->intakes = bypass_intakes_new(mhd);
    mhd->bulks = bulk_set_new();
    /* All, since free_mhd ends all. */
    started = linger_init(&mhd->linger) == 0;
    started = hangups_init(&mhd->hangups) == 0 && started;
    started = kept_sockets_init(&mhd->kept_sockets) == 0 && started;
    started = own_answers_init(&mhd->own_answers, bypass_on_answered) == 0 && started;
    if (started && mhd->intakes != NULL && mhd->bulks != NULL)
        mhd->daemon = start_daemon(mhd, listen_socket);
    if (mhd->daemon != NULL)
        listener_cap_send_buffer(listen_socket, send_buffer_bytes(mhd));
    if (mhd->daemon == NULL || loop_watch(loop, mhd->linger.epoll, on_linger, mhd) != 0 ||
        loop_watch(loop, mhd->hangups.epoll, hangups_notice, &mhd->hangups) != 0 ||
        loop_watch(loop, bulk_descriptor(mhd->bulks), bulk_run, mhd) != 0 ||
        loop_watch(loop, mhd->own_answers.epoll, own_answers_run, &mhd->own_answers) != 0 ||
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

    if (mhd->runs_again)
        return 0;
    if (MHD_get_timeout(mhd->daemon, &library_ms) == MHD_YES)
        timeout_ms = library_ms < INT_MAX ? (int)library_ms : INT_MAX;
    timeout_ms = sooner(timeout_ms, connections_due_ms(&mhd->connections), mhd->now_ms);
    timeout_ms = sooner(timeout_ms, deadlines_due_ms(&mhd->hangups.looks), mhd->now_ms);
    timeout_ms = sooner(timeout_ms, intake_parts_due_ms(mhd->intakes), mhd->now_ms);
    return sooner(timeout_ms, deadlines_due_ms(&mhd->linger.due), mhd->now_ms);
}

void mhd_run(struct mhd *mhd)
{
    assert(mhd->running && mhd_is_own_thread(mhd));
    mhd_update_clock(mhd);
    mhd->runs_again = false;
    mapped_files_check(&mhd->mapped, &mhd->connections);
    mhd->turns++;
    MHD_run(mhd->daemon);
    kept_sockets_readmit(mhd, readmit);
    if (hangups_are_due(&mhd->hangups, mhd->now_ms))
        hangups_run(&mhd->hangups, mhd->now_ms);
    intake_store_parts(mhd->intakes, mhd->now_ms);
    connections_cut_due(&mhd->connections, mhd->now_ms);
    if (mhd->linger.count > 0)
        linger_run(&mhd->linger, mhd->now_ms);
}

void mhd_reload(struct mhd *mhd)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(mhd->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    const int64_t send_bytes = send_buffer_bytes(mhd);

    assert(mhd_is_own_thread(mhd));
    take_limits(mhd);
    if (info != NULL && info->listen_fd != MHD_INVALID_SOCKET)
        listener_cap_send_buffer(info->listen_fd, send_bytes);
    for (const struct connection *one = mhd->connections.first; one != NULL; one = one->after)
        listener_cap_send_buffer(one->descriptor, send_bytes);
}

/* Takes the connections that the kernel has accepted: closing the socket would reset them. */
static void accept_waiting(struct mhd *mhd)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(mhd->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    struct pollfd listening = {.fd = info != NULL ? info->listen_fd : -1, .events = POLLIN};

    for (unsigned i = 0; i < ACCEPT_ROUNDS_MAX && poll(&listening, 1, 0) > 0; i++)
        MHD_run(mhd->daemon);
}

void mhd_drain(struct mhd *mhd)
{
    MHD_socket listening;

    mhd_update_clock(mhd);
    accept_waiting(mhd);
    listening = MHD_quiesce_daemon(mhd->daemon);
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
    connections_drain(&mhd->connections, mhd->now_ms);
}

void mhd_cut(struct mhd *mhd)
{
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
