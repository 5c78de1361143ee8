/* A list of all connections, and lists of their deadlines. */
#include "http/wire/connections.h"

#include <assert.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/exchange/request_state.h"
#include "http/limits/admission.h"
#include "http/tls/tls_session.h"
#include "http/wire/bulk.h"
#include "http/wire/bypass.h"
#include "http/wire/intake.h"
#include "http/wire/loop.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/readahead.h"

/* How long idle connections stay open while the server drains, for requests on their way. */
#define CLOSING_MS 1000
/* The number of looks at a reader within the shorter of its times, and the least time between
 * two. */
#define LOOKS         4
#define LOOK_LEAST_MS 250
/* How long a client over the limit may take to send the header of its request. */
#define TURNED_AWAY_MS 2000
/* As request_bytes: more than anybody sends. */
#define REQUEST_BYTES_UNKNOWN (UINT64_MAX / 2)
/* The time between two warnings of the process that there are too many connections. */
#define WARNING_MS 10000

/* Often enough that a client is cut soon after it may be. */
static uint64_t look_ms(const struct reader_limits *limits)
{
    const uint64_t time_ms =
        limits->grace_ms < limits->stall_ms ? limits->grace_ms : limits->stall_ms;

    return time_ms / LOOKS > LOOK_LEAST_MS ? time_ms / LOOKS : LOOK_LEAST_MS;
}

void connections_configure(struct connections *connections, const struct config *config)
{
    const uint64_t header_ms = (uint64_t)config_number(&config->limits.header_timeout_s) * 1000;
    const uint64_t idle_ms = (uint64_t)config_number(&config->limits.idle_timeout_s) * 1000;

    deadlines_change_time(&connections->header, header_ms);
    deadlines_change_time(&connections->idle, idle_ms);
    deadlines_change_time(&connections->body, idle_ms);
    connections->rate_grace_ms = (uint64_t)config_number(&config->limits.rate_grace_s) * 1000;
    connections->reader_limits = (struct reader_limits){
        .stall_ms = idle_ms,
        .grace_ms = connections->rate_grace_ms,
        .bytes_per_s = (uint64_t)config_number(&config->limits.reader_min_bytes_per_s),
    };
    deadlines_change_time(&connections->answer, look_ms(&connections->reader_limits));
    connections->answer.is_for_reader = true;
    connections->turned_away.time_ms = TURNED_AWAY_MS;
    connections->closing.time_ms = CLOSING_MS;
    connections->body_time_ms = (uint64_t)config_number(&config->upload.body_timeout_s) * 1000;
    connections->body_bytes_per_s = (uint64_t)config_number(&config->limits.body_min_bytes_per_s);
}

struct connection *connections_add(struct connections *connections, int descriptor, uint64_t now_ms)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL)
        return NULL;
    connection->descriptor = descriptor;
    connection->kept = -1;
    connection->after = connections->first;
    if (connections->first != NULL)
        connections->first->before = connection;
    connections->first = connection;
    assert(connection->before == NULL);
    deadline_set(&connection->deadline, &connections->header, now_ms);
    return connection;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
    if (connection == NULL)
        return;
    assert(connection->request == NULL && !connection->suspended);
    assert((connection->before == NULL) == (connections->first == connection));
    deadline_clear(&connection->deadline);
    if (connection->before != NULL)
        connection->before->after = connection->after;
    else
        connections->first = connection->after;
    if (connection->after != NULL)
        connection->after->before = connection->before;
    free(connection);
}

void connection_set_peer(struct connection *connection, const struct sockaddr *address)
{
    connection->has_peer = address_of_socket(address, &connection->peer);
}

/* Warns only once in a while, since clients may keep trying. The clocks of the loops differ a
 * little. */
static void warn_of_limit(const struct mhd *mhd)
{
    static _Atomic uint64_t next_ms;
    uint64_t due_ms = atomic_load_explicit(&next_ms, memory_order_relaxed);

    if (mhd->now_ms < due_ms ||
        !atomic_compare_exchange_strong_explicit(&next_ms, &due_ms, mhd->now_ms + WARNING_MS,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    log_write(LOG_LEVEL_WARN,
              "all %u connections are in use (limits.connections, or as many as "
              "descriptors allow): further clients get 503, except for /healthz and /readyz",
              mhd->connection_limit);
}

/* A handshake without a certificate of the server's would fail anyway. */
static void open_session(struct connection *connection, struct gnutls_session_int *session)
{
    connection->tls = tls_session_begin(connection->mhd->server->tls, session);
    if (connection->tls == NULL)
        shutdown(connection->descriptor, SHUT_RDWR);
}

struct connection *connection_open(struct mhd *mhd, int descriptor,
                                   struct gnutls_session_int *session)
{
    /* A socket that the server kept has had its place all the time. */
    const bool is_new = !kept_sockets_are_readmitting(&mhd->kept_sockets);
    const bool is_admitted = admission_enter(is_new ? mhd->connection_limit : UINT_MAX);
    struct connection *connection = connections_add(&mhd->connections, descriptor, mhd->now_ms);

    if (connection == NULL) {
        admission_leave(is_admitted);
        shutdown(descriptor, SHUT_RDWR);
        return NULL;
    }
    connection->mhd = mhd;
    if (mhd->server->tls != NULL)
        open_session(connection, session);
    hangups_add(&mhd->hangups, connection);
    kept_sockets_restore(&mhd->kept_sockets, connection);
    if (is_new)
        metric_add(is_admitted ? METRIC_CONNECTIONS_ACCEPTED : METRIC_CONNECTIONS_REFUSED_LIMIT, 1);
    if (!is_admitted) {
        connections_turn_away(&mhd->connections, connection, mhd->now_ms);
        warn_of_limit(mhd);
    }
    return connection;
}

void connection_close(struct mhd *mhd, struct connection *connection)
{
    if (connection == NULL)
        return;
    admission_leave(!connection->surplus);
    assert(connection->mhd == mhd);
    /* The library has freed its session. */
    tls_session_detach(connection->tls);
    connection_forget_request(connection);
    hangups_remove(&mhd->hangups, connection);
    if (!mhd->cutting && connection->kept < 0 && connection_has_unread(connection))
        linger_take(&mhd->linger, connection->descriptor, mhd->now_ms);
    tls_session_end(connection->tls);
    connections_remove(&mhd->connections, connection);
}

void connections_turn_away(struct connections *connections, struct connection *connection,
                           uint64_t now_ms)
{
    assert(!connection->surplus && connection->request == NULL);
    connection->surplus = true;
    deadline_set(&connection->deadline, &connections->turned_away, now_ms);
}

void connection_refuse(struct connection *connection)
{
    static const struct bypass_problem problem = {PROBLEM_OVERLOADED, "Service Unavailable",
                                                  "Retry-After: 1\r\n",
                                                  "all connections are in use"};
    char id[REQUEST_ID_SIZE];

    assert(connection->surplus);
    deadline_clear(&connection->deadline);
    trace_make_id(id);
    bypass_send_problem(connection, &problem, id);
    shutdown(connection->descriptor, SHUT_WR);
}

bool connection_is_held_up(const struct connection *connection)
{
    return connection->suspended && !connection->streaming;
}

bool connection_awaits_client(const struct connection *connection)
{
    return connection->deadline.list != NULL && !connection->deadline.list->is_for_reader;
}

/* --- requests --- */

/* Called through the loop's mailbox, so the handler that suspended the connection has returned by
 * now, however fast the worker was. */
static void on_wait_ended(struct request *request)
{
    struct connection *connection = request->connection;

    if (!connection->suspended)
        return;
    connection->gone = request_is_abandoned(request);
    if (connection->bypassed)
        bypass_advance(connection);
    else
        mhd_resume(connection);
}

/* It is held first and so released last. */
static void use_access(struct request *request, struct lease *lease)
{
    if (lease == NULL)
        return;
    request->access = lease->access;
    request_state(request)->token_memory = lease->memory;
    request_hold(request, lease_use(lease), lease_end);
}

static const char *const *client_names(const struct connection *connection)
{
    return connection->tls != NULL ? tls_session_client_names(connection->tls) : NULL;
}

struct request *connection_begin_request(struct connection *connection, const char *target)
{
    static const struct transport transport = {on_wait_ended, connection_is_gone,
                                               connection_is_established, client_names};
    struct mhd *mhd = connection->mhd;
    struct request *request;

    connection_forget_request(connection);
    assert(connection->request == NULL);
    request = request_take(&mhd->pool, mhd->server, loop_mailbox(mhd->loop), target);
    if (request == NULL)
        return NULL;
    use_access(request, loop_lease(mhd->loop));
    request->connection = connection;
    request_state(request)->peer = connection->has_peer ? &connection->peer : NULL;
    request_state(request)->transport = &transport;
    request_state(request)->started_ns = clock_ns();
    connection->request = request;
    connection->answer_begun = UINT64_MAX;
    connection->hung_up_ms = 0;
    atomic_fetch_add_explicit(&mhd->active, 1, memory_order_relaxed);
    metric_add(METRIC_REQUESTS_OPEN, 1);
    return request;
}

void connection_end_request(struct connection *connection, enum ending ending)
{
    struct request *request = connection->request;
    const struct request_state *state = request_state(request);

    trace_end(request, ending, ending != ENDING_WHOLE ? connection_sent(connection) : 0);
    connection->request = NULL;
    connection->request_bytes += state->header_bytes + state->body_received;
    /* What the framing took is not known. */
    if (state->body_length == UINT64_MAX)
        connection->request_bytes = REQUEST_BYTES_UNKNOWN;
    connection->answer_bytes += state->head_bytes;
    if (state->answer.segment_count > 0)
        connection->answer_bytes += state->answer.content_length;
    bulk_free(state->bulk);
    mapped_files_leave(&connection->mhd->mapped, request);
    if (state->ahead == NULL || readahead_end(state->ahead))
        request_free(request);
    atomic_fetch_sub_explicit(&connection->mhd->active, 1, memory_order_relaxed);
    metric_subtract(METRIC_REQUESTS_OPEN, 1);
}

void connection_forget_request(struct connection *connection)
{
    if (connection->request != NULL)
        connection_end_request(connection, request_state(connection->request)->phase == PHASE_HEADER
                                               ? ENDING_REFUSED
                                               : ENDING_SERVER);
}

/* --- bodies that take too long --- */

static void cut_body(struct connection *connection)
{
    static const struct bypass_problem problem = {PROBLEM_TIMEOUT, "Request Timeout", "",
                                                  "the body took too long, or arrived too slowly"};

    const bool is_first = !connection->timed_out;

    deadline_clear(&connection->deadline);
    connection->timed_out = true;
    connection->lingers = true;
    if (is_first && connection->request != NULL)
        bypass_send_problem(connection, &problem, connection->request->id);
}

void connections_body_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms)
{
    connection->body_begun_ms = now_ms;
    connection->spared = false;
    deadline_set(&connection->deadline, &connections->body, now_ms);
}

bool connections_body_piece(struct connections *connections, struct connection *connection,
                            uint64_t received, uint64_t now_ms)
{
    const uint64_t taken_ms = now_ms - connection->body_begun_ms;

    assert(now_ms >= connection->body_begun_ms);
    /* This piece was already on its way when the client got its 408. */
    if (connection->timed_out)
        return false;
    connection->spared = false;
    deadline_set(&connection->deadline, &connections->body, now_ms);
    if (taken_ms <= connections->body_time_ms &&
        (taken_ms <= connections->rate_grace_ms ||
         received >= taken_ms / 1000 * connections->body_bytes_per_s))
        return true;
    cut_body(connection);
    return false;
}

void connections_body_pause(struct connection *connection, uint64_t now_ms)
{
    deadline_clear(&connection->deadline);
    if (connection->body_paused_ms == 0)
        connection->body_paused_ms = now_ms;
}

void connections_body_resume(struct connections *connections, struct connection *connection,
                             uint64_t now_ms)
{
    if (connection->body_paused_ms != 0)
        connection->body_begun_ms += now_ms - connection->body_paused_ms;
    connection->body_paused_ms = 0;
    deadline_set(&connection->deadline, &connections->body, now_ms);
}

/* --- other phases --- */

void connections_header_begin(struct connections *connections, struct connection *connection,
                              uint64_t now_ms)
{
    /* The first header's time runs from the beginning of the connection. */
    if (connection->deadline.list != &connections->header && !connection->surplus)
        deadline_set(&connection->deadline, &connections->header, now_ms);
}

void connections_answer_begin(struct connections *connections, struct connection *connection,
                              uint64_t now_ms)
{
    connection->reader = (struct reader){0};
    deadline_set(&connection->deadline, &connections->answer, now_ms);
}

void connections_idle_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms)
{
    connection->spared = false;
    deadline_set(&connection->deadline,
                 connections->draining ? &connections->closing : &connections->idle, now_ms);
}

void connections_drain(struct connections *connections, uint64_t now_ms)
{
    connections->draining = true;
    for (struct connection *one = connections->first; one != NULL; one = one->after)
        if (one->request == NULL && !one->surplus)
            connections_idle_begin(connections, one, now_ms);
}

/* --- cutting --- */

/* Whether the loop was late, and not the client: what it sent lies unread. Once for each wait,
 * since it may be that nobody is ever going to read it. */
static bool spare(struct deadlines *list, struct connection *connection, uint64_t now_ms)
{
    if (connection->spared || connection->lingers || !connection_has_unread(connection))
        return false;
    connection->spared = true;
    deadline_set(&connection->deadline, list, now_ms);
    return true;
}

static void cut_due(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(list, now_ms)) != NULL) {
        struct connection *connection = (struct connection *)due;

        if (spare(list, connection, now_ms))
            continue;
        connection->timed_out = true;
        shutdown(connection->descriptor, SHUT_RDWR);
    }
}

/* With TLS the handshake may not be over. */
static void cut_due_surplus(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(list, now_ms)) != NULL) {
        struct connection *connection = (struct connection *)due;

        connection->timed_out = true;
        if (connection->tls == NULL && connection->request == NULL)
            connection_refuse(connection);
        shutdown(connection->descriptor, SHUT_RDWR);
    }
}

/* What waits in the send buffer would stay there until the client takes it or the system gives up:
 * it is thrown away when the connection is closed. */
static void cut_reader(struct connection *connection)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    connection->timed_out = true;
    setsockopt(connection->descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    shutdown(connection->descriptor, SHUT_RDWR);
}

static void cut_slow_readers(struct connections *connections, uint64_t now_ms)
{
    const struct reader_limits *limits = &connections->reader_limits;
    struct deadline *due;

    while ((due = deadlines_take_due(&connections->answer, now_ms)) != NULL) {
        struct connection *connection = (struct connection *)due;

        const struct reader_progress progress = connection_progress(connection, now_ms);

        if (reader_is_too_slow(&connection->reader, limits, progress) ||
            reader_gets_nothing(&connection->reader, limits, progress,
                                connection_is_held_up(connection) ? 0 : now_ms))
            cut_reader(connection);
        else
            deadline_set(due, &connections->answer, now_ms);
    }
}

/* The connection lingers, so that the client can read the answer: to end the receiving side would
 * make the system reset it when more comes. */
static void cut_due_bodies(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(list, now_ms)) != NULL) {
        struct connection *connection = (struct connection *)due;

        if (spare(list, connection, now_ms))
            continue;
        cut_body(connection);
        if (connection->bypassed) {
            intake_cut(request_state(connection->request)->intake);
            continue;
        }
        shutdown(connection->descriptor, SHUT_WR);
        mhd_end_soon(connection);
    }
}

void connections_cut(const struct connections *connections)
{
    for (const struct connection *one = connections->first; one != NULL; one = one->after)
        shutdown(one->descriptor, SHUT_RDWR);
}

void connections_cut_due(struct connections *connections, uint64_t now_ms)
{
    cut_due(&connections->header, now_ms);
    cut_due(&connections->idle, now_ms);
    cut_due(&connections->closing, now_ms);
    cut_due_surplus(&connections->turned_away, now_ms);
    cut_slow_readers(connections, now_ms);
    cut_due_bodies(&connections->body, now_ms);
}

uint64_t connections_due_ms(const struct connections *connections)
{
    const struct deadlines *const lists[] = {&connections->header,      &connections->idle,
                                             &connections->body,        &connections->answer,
                                             &connections->turned_away, &connections->closing};
    uint64_t due_ms = UINT64_MAX;

    for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (deadlines_due_ms(lists[i]) < due_ms)
            due_ms = deadlines_due_ms(lists[i]);
    return due_ms;
}
