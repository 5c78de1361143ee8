/* Keeps a list of all connections and lists of their deadlines. */
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
#include "http/wire/direct_answer.h"
#include "http/wire/handover.h"
#include "http/wire/intake.h"
#include "http/wire/loop.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/sender.h"

/* How long idle connections stay open while the server drains, for requests in transit. */
#define CLOSING_MS 1000
/* How often a reader is checked within the shorter of its two times, and the minimum time between
 * two checks. */
#define LOOKS         4
#define LOOK_LEAST_MS 250
/* How long a client over the limit may take to send the header of its request. */
#define OVER_LIMIT_MS 2000
/* By how many places the list of descriptors grows. */
#define DESCRIPTORS_STEP ((size_t)256)
/* The minimum time between two warnings of the process about too many connections. */
#define WARNING_MS 10000

/* Returns the time between two checks of a reader: short enough to cut a slow client soon after its
 * limit. */
static uint64_t check_interval_ms(const struct reader_limits *limits)
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
    deadlines_change_time(&connections->answer, check_interval_ms(&connections->reader_limits));
    connections->answer.is_for_reader = true;
    connections->over_limit.time_ms = OVER_LIMIT_MS;
    connections->closing.time_ms = CLOSING_MS;
    connections->body_time_ms = (uint64_t)config_number(&config->upload.body_timeout_s) * 1000;
    connections->body_bytes_per_s = (uint64_t)config_number(&config->limits.body_min_bytes_per_s);
}

/* --- the list --- */

/* Makes room in the list for a descriptor; -1 needs no room. Returns false if out of memory. */
static bool reserve(struct connections *connections, int descriptor)
{
    const size_t wanted = ((size_t)(descriptor + 1) / DESCRIPTORS_STEP + 1) * DESCRIPTORS_STEP;
    struct connection **longer;

    assert(descriptor >= -1);
    if (wanted <= connections->descriptors)
        return true;
    longer = realloc(connections->by_descriptor, wanted * sizeof(struct connection *));
    if (longer == NULL)
        return false;
    memset(longer + connections->descriptors, 0,
           (wanted - connections->descriptors) * sizeof(struct connection *));
    connections->by_descriptor = longer;
    connections->descriptors = wanted;
    return true;
}

struct connection *connections_find(const struct connections *connections, int descriptor)
{
    return descriptor >= 0 && (size_t)descriptor < connections->descriptors
               ? connections->by_descriptor[descriptor]
               : NULL;
}

void connections_end(struct connections *connections)
{
    assert(connections->first == NULL);
    free(connections->by_descriptor);
    connections->by_descriptor = NULL;
    connections->descriptors = 0;
}

struct connection *connections_add(struct connections *connections, int descriptor, uint64_t now_ms)
{
    struct connection *connection =
        reserve(connections, descriptor) ? calloc(1, sizeof(*connection)) : NULL;

    if (connection == NULL)
        return NULL;
    assert(connections_find(connections, descriptor) == NULL);
    if (descriptor >= 0)
        connections->by_descriptor[descriptor] = connection;
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
    assert(connection->request == NULL && !connection_is_suspended(connection));
    assert((connection->before == NULL) == (connections->first == connection));
    deadline_clear(&connection->deadline);
    if (connection->descriptor >= 0)
        connections->by_descriptor[connection->descriptor] = NULL;
    if (connection->before != NULL)
        connection->before->after = connection->after;
    else
        connections->first = connection->after;
    if (connection->after != NULL)
        connection->after->before = connection->before;
    free(connection);
}

void connection_enter(struct connection *connection, enum connection_state state)
{
    static const unsigned edges[] = {
        [CONNECTION_LIBRARY] = 1U << CONNECTION_WAITING | 1U << CONNECTION_SENDING |
                               1U << CONNECTION_RECEIVING | 1U << CONNECTION_REFUSED,
        [CONNECTION_WAITING] =
            1U << CONNECTION_LIBRARY | 1U << CONNECTION_SENDING | 1U << CONNECTION_ENDING,
        [CONNECTION_SENDING] =
            1U << CONNECTION_LIBRARY | 1U << CONNECTION_WAITING | 1U << CONNECTION_ENDING,
        [CONNECTION_RECEIVING] = 1U << CONNECTION_SENDING | 1U << CONNECTION_ENDING,
        [CONNECTION_REFUSED] = 1U << CONNECTION_REFUSED,
        [CONNECTION_ENDING] = 0,
    };

    assert((edges[connection->state] & 1U << state) != 0);
    connection->state = state;
}

void connection_set_peer(struct connection *connection, const struct sockaddr *address)
{
    struct address peer;

    connection->has_peer = address_of_socket(address, &peer);
    if (connection->has_peer)
        peer_set(&connection->peer, &peer);
}

/* Threads may pass slightly different times, since the loops' clocks differ a little. */
bool connections_warning_is_due(_Atomic uint64_t *next_ms, uint64_t now_ms)
{
    uint64_t due_ms = atomic_load_explicit(next_ms, memory_order_relaxed);

    return now_ms >= due_ms &&
           atomic_compare_exchange_strong_explicit(next_ms, &due_ms, now_ms + WARNING_MS,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static void warn_of_limit(const struct mhd *mhd)
{
    static _Atomic uint64_t next_ms;

    if (!connections_warning_is_due(&next_ms, mhd->now_ms))
        return;
    log_write(LOG_LEVEL_WARN,
              "all %u connections are in use (limits.connections, or as many as descriptors "
              "allow): further requests return 503, except for /healthz and /readyz",
              mhd->connection_limit);
}

/* Attaches our TLS session to the library's. On failure the connection is shut down, because a
 * handshake without our certificate would fail anyway. */
static void open_session(struct connection *connection, struct gnutls_session_int *session)
{
    assert(connection->tls == NULL);
    connection->tls = tls_session_begin(connection->mhd->server->tls, session);
    if (connection->tls == NULL)
        shutdown(connection->descriptor, SHUT_RDWR);
}

struct connection *connection_open(struct mhd *mhd, int descriptor,
                                   struct gnutls_session_int *session)
{
    /* A socket that the server kept holds a place already (handover.h). */
    const bool is_new = !handover_is_readmitting(&mhd->handover);
    const bool is_admitted = is_new ? admission_enter(mhd->connection_limit) : true;
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
    handover_restore(connection);
    if (is_new)
        metric_add(is_admitted ? METRIC_CONNECTIONS_ACCEPTED : METRIC_CONNECTIONS_REFUSED_LIMIT, 1);
    if (!is_admitted) {
        connections_refuse(&mhd->connections, connection, mhd->now_ms);
        warn_of_limit(mhd);
    }
    return connection;
}

void connection_close(struct mhd *mhd, struct connection *connection, bool keeps_place)
{
    if (connection == NULL)
        return;
    assert(!keeps_place || !connection->is_surplus);
    if (!keeps_place)
        admission_leave(!connection->is_surplus);
    assert(connection->mhd == mhd);
    /* The library has freed its TLS session. */
    tls_session_detach(connection->tls);
    connection_drop_request(connection);
    hangups_remove(&mhd->hangups, connection);
    if (!mhd->cutting && connection->kept < 0 && connection_has_unread(connection))
        linger_take(&mhd->linger, connection->descriptor, mhd->now_ms);
    tls_session_end(connection->tls);
    connections_remove(&mhd->connections, connection);
}

void connections_refuse(struct connections *connections, struct connection *connection,
                        uint64_t now_ms)
{
    assert(connection->state == CONNECTION_LIBRARY);
    assert(!connection->is_surplus && connection->request == NULL);
    connection->is_surplus = true;
    deadline_set(&connection->deadline, &connections->over_limit, now_ms);
}

void connection_refuse(struct connection *connection)
{
    assert(connection->is_surplus && connection->request == NULL);
    deadline_clear(&connection->deadline);
    direct_problem_send(connection, PROBLEM_OVERLOADED, "all connections are in use");
    shutdown(connection->descriptor, SHUT_WR);
}

bool connection_is_held_up(const struct connection *connection)
{
    return connection->state == CONNECTION_WAITING || connection->state == CONNECTION_RECEIVING;
}

bool connection_awaits_client(const struct connection *connection)
{
    return connection->deadline.list != NULL && !connection->deadline.list->is_for_reader;
}

/* --- requests --- */

/* Runs through the loop's mailbox, so the handler that suspended the connection has always returned
 * by now, even if the worker was fast. */
static void on_wait_ended(struct request *request)
{
    struct connection *connection = request->connection;

    if (connection->state == CONNECTION_RECEIVING) {
        handover_advance(connection);
    } else if (connection->state == CONNECTION_WAITING) {
        /* If the client is gone, the work that the request waited for may have been skipped. */
        const bool is_useless =
            request_state(request)->stage != STAGE_QUEUED && request_is_abandoned(request);

        mhd_resume(connection, is_useless ? CONNECTION_ENDING : CONNECTION_LIBRARY);
    }
}

/* The lease is the first thing that the request holds, so it is released last. */
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

    connection_drop_request(connection);
    assert(connection->request == NULL);
    request = request_take(&mhd->pool, mhd->server, loop_mailbox(mhd->loop), target);
    if (request == NULL)
        return NULL;
    use_access(request, loop_lease(mhd->loop));
    request->connection = connection;
    request_state(request)->is_of_s3_listener = connection->is_of_s3;
    if (connection->has_peer) {
        request_state(request)->peer = &connection->peer;
        request_state(request)->client_key = connection->peer.key;
    }
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

    assert(atomic_load_explicit(&connection->mhd->active, memory_order_relaxed) > 0);
    assert(request != NULL && request->connection == connection);
    trace_end(request, ending, ending != ENDING_WHOLE ? connection_sent(connection) : 0);
    connection->request = NULL;
    connection->answer_bytes += state->head_bytes;
    if (state->answer.segment_count > 0)
        connection->answer_bytes += state->answer.content_length;
    if (sender_end(request))
        request_free(request);
    atomic_fetch_sub_explicit(&connection->mhd->active, 1, memory_order_relaxed);
    metric_subtract(METRIC_REQUESTS_OPEN, 1);
}

void connection_drop_request(struct connection *connection)
{
    if (connection->request != NULL)
        connection_end_request(connection, request_state(connection->request)->stage == STAGE_LINE
                                               ? ENDING_REFUSED
                                               : ENDING_SERVER);
}

enum ending connection_failure(const struct connection *connection)
{
    if (connection->mhd->cutting)
        return ENDING_DRAIN;
    if (connection->result == RESULT_TIMED_OUT)
        return ENDING_TIMEOUT;
    return connection_is_established(connection) ? ENDING_SERVER : ENDING_CLIENT;
}

/* --- bodies that take too long --- */

static void cut_body(struct connection *connection)
{
    const bool is_first = connection->result == RESULT_OPEN;

    deadline_clear(&connection->deadline);
    connection->result = RESULT_TIMED_OUT;
    if (connection->state == CONNECTION_LIBRARY)
        connection_enter(connection, CONNECTION_REFUSED);
    if (is_first && connection->request != NULL)
        direct_problem_send(connection, PROBLEM_TIMEOUT,
                            "the body took too long, or arrived too slowly");
}

void connections_body_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms)
{
    assert(connection->body_paused_ms == 0);
    connection->body_begun_ms = now_ms;
    connection->has_extension = false;
    deadline_set(&connection->deadline, &connections->body, now_ms);
}

bool connections_body_piece(struct connections *connections, struct connection *connection,
                            uint64_t received, uint64_t now_ms)
{
    const uint64_t taken_ms = now_ms - connection->body_begun_ms;

    assert(now_ms >= connection->body_begun_ms);
    /* This piece was already in transit when the client got its 408. */
    if (connection->result == RESULT_TIMED_OUT)
        return false;
    connection->has_extension = false;
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
    assert(now_ms >= connection->body_paused_ms);
    if (connection->body_paused_ms != 0)
        connection->body_begun_ms += now_ms - connection->body_paused_ms;
    connection->body_paused_ms = 0;
    deadline_set(&connection->deadline, &connections->body, now_ms);
}

/* --- other phases --- */

void connections_header_begin(struct connections *connections, struct connection *connection,
                              uint64_t now_ms)
{
    /* The first header's time runs from the start of the connection. */
    if (connection->deadline.list != &connections->header && !connection->is_surplus)
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
    connection->has_extension = false;
    deadline_set(&connection->deadline,
                 connections->draining ? &connections->closing : &connections->idle, now_ms);
}

void connections_drain(struct connections *connections, uint64_t now_ms)
{
    connections->draining = true;
    for (struct connection *one = connections->first; one != NULL; one = one->after)
        if (one->request == NULL && !one->is_surplus)
            connections_idle_begin(connections, one, now_ms);
}

/* --- cutting --- */

/* Returns true if the loop was late and not the client: bytes from the client are unread. The
 * deadline is then extended, but only once per wait, since the bytes may never be read. */
static bool extend_deadline(struct deadlines *list, struct connection *connection, uint64_t now_ms)
{
    assert(connection->deadline.list == NULL);
    if (connection->has_extension || connection->state == CONNECTION_REFUSED ||
        !connection_has_unread(connection))
        return false;
    connection->has_extension = true;
    deadline_set(&connection->deadline, list, now_ms);
    return true;
}

/* The functions below cut a connection whose deadline in a list has passed. */
static void cut_waiting(struct connections *connections, struct deadlines *list,
                        struct connection *connection, uint64_t now_ms)
{
    (void)connections;
    if (extend_deadline(list, connection, now_ms))
        return;
    connection->result = RESULT_TIMED_OUT;
    shutdown(connection->descriptor, SHUT_RDWR);
}

/* With TLS the handshake may be incomplete, so the client gets no answer. */
static void cut_surplus(struct connections *connections, struct deadlines *list,
                        struct connection *connection, uint64_t now_ms)
{
    (void)connections, (void)list, (void)now_ms;
    connection->result = RESULT_TIMED_OUT;
    if (connection->tls == NULL && connection->request == NULL)
        connection_refuse(connection);
    shutdown(connection->descriptor, SHUT_RDWR);
}

/* Closing the connection discards the send buffer. Otherwise its bytes would stay until the client
 * reads them or the kernel gives up. */
static void cut_slow_reader(struct connections *connections, struct deadlines *list,
                            struct connection *connection, uint64_t now_ms)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    const struct reader_limits *limits = &connections->reader_limits;
    const struct reader_progress progress = connection_progress(connection, now_ms);

    if (!reader_is_too_slow(&connection->reader, limits, progress) &&
        !reader_is_starved(&connection->reader, limits, progress,
                           connection_is_held_up(connection) ? 0 : now_ms)) {
        deadline_set(&connection->deadline, list, now_ms);
        return;
    }
    connection->result = RESULT_TIMED_OUT;
    setsockopt(connection->descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    shutdown(connection->descriptor, SHUT_RDWR);
}

/* The connection lingers, so that the client can read the answer. Shutting down the receiving side
 * would make the kernel reset the connection when more bytes arrive. */
static void cut_slow_body(struct connections *connections, struct deadlines *list,
                          struct connection *connection, uint64_t now_ms)
{
    (void)connections;
    if (extend_deadline(list, connection, now_ms))
        return;
    cut_body(connection);
    if (connection->state == CONNECTION_RECEIVING) {
        intake_cut(request_state(connection->request)->intake);
        return;
    }
    shutdown(connection->descriptor, SHUT_WR);
    mhd_end_soon(connection);
}

void connections_cut(const struct connections *connections)
{
    for (const struct connection *one = connections->first; one != NULL; one = one->after)
        shutdown(one->descriptor, SHUT_RDWR);
}

void connections_cut_due(struct connections *connections, uint64_t now_ms)
{
    const struct {
        struct deadlines *list;
        void (*cut)(struct connections *connections, struct deadlines *list,
                    struct connection *connection, uint64_t now_ms);
    } kinds[] = {
        {&connections->header, cut_waiting},     {&connections->idle, cut_waiting},
        {&connections->closing, cut_waiting},    {&connections->over_limit, cut_surplus},
        {&connections->answer, cut_slow_reader}, {&connections->body, cut_slow_body},
    };

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct deadline *due;

        while ((due = deadlines_take_due(kinds[i].list, now_ms)) != NULL)
            kinds[i].cut(connections, kinds[i].list, (struct connection *)due, now_ms);
    }
}

uint64_t connections_sent(const struct connections *connections)
{
    uint64_t sent = 0;

    for (const struct deadline *one = connections->answer.first; one != NULL; one = one->after)
        sent += connection_written((const struct connection *)one);
    return sent;
}

uint64_t connections_due_ms(const struct connections *connections)
{
    const struct deadlines *const lists[] = {&connections->header,     &connections->idle,
                                             &connections->body,       &connections->answer,
                                             &connections->over_limit, &connections->closing};
    uint64_t due_ms = UINT64_MAX;

    for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (deadlines_due_ms(lists[i]) < due_ms)
            due_ms = deadlines_due_ms(lists[i]);
    return due_ms;
}
