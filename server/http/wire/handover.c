/* Keeps a list of duplicated sockets, and one dead end (a pipe without a writer) that dup3 puts in
 * the place of a socket atomically, so that the descriptor is never free in between. */
#include "http/wire/handover.h"

#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/exchange/request_state.h"
#include "http/fields/framing.h"
#include "http/limits/admission.h"
#include "http/wire/direct_answer.h"
#include "http/wire/intake.h"
#include "http/wire/loop.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"

/* A socket to be given back to the library, with the history that it keeps. Its place in the
 * admission counts goes from one connection of the library to the next, so that no other client can
 * take it in between. */
struct kept_socket {
    struct kept_socket *next;
    int descriptor;
    bool has_place; /* no connection has taken it over */
    struct sockaddr_storage address;
    uint64_t answer_bytes;
    bool is_of_s3; /* as in struct connection */
};

/* --- sockets that outlive their connection --- */

/* The sandbox allows no new sockets, so the dead end is a pipe. Receiving from it fails, and since
 * it has no writer, epoll reports its end at once if the library asks. */
int handover_init(struct handover *handover)
{
    int ends[2];

    *handover = (struct handover){.dead = -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    close(ends[1]);
    handover->dead = ends[0];
    return 0;
}

static void give_up_place(struct kept_socket *one)
{
    assert(one->has_place);
    one->has_place = false;
    admission_leave_address((const struct sockaddr *)&one->address);
    admission_leave(true);
}

void handover_end(struct handover *handover)
{
    while (handover->first != NULL) {
        struct kept_socket *one = handover->first;

        handover->first = one->next;
        give_up_place(one);
        close(one->descriptor);
        free(one);
    }
    if (handover->dead >= 0)
        close(handover->dead);
    handover->dead = -1;
}

/* Searches for "close" anywhere; an option whose name merely contains it costs a connection. */
static bool wants_close(struct request *request)
{
    const char *options = request_header(request, "Connection");

    return options != NULL && strcasestr(options, "close") != NULL;
}

/* Returns true if HTTP and the server's state allow the connection to stay open after the answer to
 * its current request, which must be decided (RFC 9112 section 9.3). */
static bool may_keep(const struct connection *connection)
{
    const struct request_state *state = request_state_const(connection->request);
    const struct mhd *mhd = connection->mhd;

    assert(connection->request != NULL);
    return !mhd->cutting && !mhd->connections.draining && !connection->is_surplus &&
           !state->answer.close && !state->closes && !state->http_1_0 &&
           !wants_close(connection->request);
}

bool handover_keep(struct connection *connection)
{
    assert(connection->kept < 0);
    if (may_keep(connection))
        connection->kept = fcntl(connection->descriptor, F_DUPFD_CLOEXEC, 0);
    return connection->kept >= 0;
}

/* Closes the duplicate, so that the socket ends with the connection. */
static void drop_kept(struct connection *connection)
{
    if (connection->kept >= 0)
        close(connection->kept);
    connection->kept = -1;
}

/* Replaces the socket of a suspended connection by the dead end and resumes the connection. The
 * library finds no bytes to read, not even the client's next request, and ends the connection. The
 * socket itself is closed unless it has a duplicate. */
static void give_back(struct connection *connection)
{
    struct mhd *mhd = connection->mhd;

    assert(connection_is_suspended(connection) && connection->tls == NULL);
    /* The library does not watch the socket of a suspended connection, so no other watch is
     * left. */
    hangups_remove(&mhd->hangups, connection);
    if (dup3(mhd->handover.dead, connection->descriptor, O_CLOEXEC) < 0)
        shutdown(connection->descriptor, SHUT_RDWR);
    mhd_resume(connection, CONNECTION_ENDING);
}

bool handover_put(struct connection *connection, const struct sockaddr *address)
{
    struct handover *handover = &connection->mhd->handover;
    struct kept_socket *one = address != NULL ? calloc(1, sizeof(*one)) : NULL;

    assert(connection->kept >= 0);
    if (one == NULL) {
        close(connection->kept);
        return false;
    }
    one->has_place = true;
    one->next = handover->first;
    one->descriptor = connection->kept;
    memcpy(&one->address, address,
           address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in));
    one->answer_bytes = connection->answer_bytes;
    one->is_of_s3 = connection->is_of_s3;
    handover->first = one;
    return true;
}

void handover_readmit(struct mhd *mhd,
                      void (*add)(struct mhd *mhd, int descriptor, const struct sockaddr *address))
{
    struct handover *handover = &mhd->handover;

    while (handover->first != NULL) {
        struct kept_socket *one = handover->first;

        handover->first = one->next;
        assert(handover->readmitting == NULL && one->descriptor >= 0);
        handover->readmitting = one;
        add(mhd, one->descriptor, (const struct sockaddr *)&one->address);
        handover->readmitting = NULL;
        if (one->has_place)
            give_up_place(one);
        free(one);
    }
}

bool handover_is_readmitting(const struct handover *handover)
{
    return handover->readmitting != NULL;
}

void handover_take_place(struct handover *handover)
{
    assert(handover->readmitting == NULL || handover->readmitting->has_place);
    if (handover->readmitting != NULL)
        handover->readmitting->has_place = false;
}

void handover_restore(struct connection *connection)
{
    const struct kept_socket *kept = connection->mhd->handover.readmitting;

    if (kept == NULL)
        return;
    assert(connection->answer_bytes == 0);
    connection->answer_bytes = kept->answer_bytes;
    connection->is_of_s3 = kept->is_of_s3;
    connections_idle_begin(&connection->mhd->connections, connection, connection->mhd->now_ms);
}

/* --- answers --- */

void handover_answer_last(struct connection *connection)
{
    exchange_answer(connection->request);
    if (direct_answer_send(connection, true) != DIRECT_SENT)
        return;
    connection->result = RESULT_ANSWERED;
    request_enter(request_state(connection->request), STAGE_QUEUED);
}

/* Lingers, because the client may still be sending: closing the socket at once could reset it and
 * destroy the answer in transit. */
static void end_gently(struct connection *connection)
{
    linger_take(&connection->mhd->linger, connection->descriptor, connection->mhd->now_ms);
    give_back(connection);
}

static void end_answered(struct connection *connection)
{
    assert(connection->unsent_bytes == 0);
    connection->result = RESULT_ANSWERED;
    request_enter(request_state(connection->request), STAGE_QUEUED);
    if (connection->mhd->cutting)
        drop_kept(connection);
    if (connection->kept >= 0)
        give_back(connection);
    else
        end_gently(connection);
}

/* Ends the connection; the client gets no answer, or only part of one. */
static void end_connection(struct connection *connection)
{
    assert(connection_is_suspended(connection));
    drop_kept(connection);
    shutdown(connection->descriptor, SHUT_RDWR);
    mhd_resume(connection, CONNECTION_ENDING);
}

/* The library has not seen the request, and reads the next one. */
static void end_repeated(struct connection *connection, bool whole)
{
    if (whole) {
        mhd_resume(connection, CONNECTION_LIBRARY);
        response_cache_end(connection, true);
        return;
    }
    response_cache_end(connection, false);
    end_connection(connection);
}

void handover_on_answered(struct connection *connection, bool whole)
{
    assert(connection->state == CONNECTION_SENDING);
    if (request_state(connection->request)->kept != NULL)
        end_repeated(connection, whole);
    else if (whole)
        end_answered(connection);
    else
        end_connection(connection);
}

void handover_advance(struct connection *connection)
{
    bool is_kept;

    assert(connection->state == CONNECTION_RECEIVING);
    if (exchange_advance(connection->request) == OUTCOME_WAITING)
        return;
    exchange_answer(connection->request);
    mhd_update_clock(connection->mhd);
    is_kept = handover_keep(connection);
    switch (direct_answer_send(connection, !is_kept)) {
    case DIRECT_SENT:
        end_answered(connection);
        break;
    case DIRECT_WAITS:
        break;
    case DIRECT_FAILED:
        end_connection(connection);
        break;
    }
}

/* --- bytes that the library is about to parse --- */

static void refuse_chunks(struct request *request, const struct chunks *chunks)
{
    assert(chunks->why != NULL);
    request_state(request)->broken = true;
    problem_reply(request,
                  chunks->state == CHUNKS_TRAILERS_LONG ? PROBLEM_HEADERS_TOO_LARGE
                                                        : PROBLEM_INVALID_REQUEST,
                  "%s", chunks->why);
}

bool handover_begin_body(struct connection *connection, const char *behind)
{
    struct request *request = connection->request;
    struct raw_stream *raw = &connection->raw;

    raw_stream_decide(raw, request_state(request)->body_length, behind);
    if (raw->chunks.why == NULL)
        return true;
    refuse_chunks(request, &raw->chunks);
    return false;
}

/* No TLS record begins with a letter, and every method of HTTP does. Such a client would not
 * understand an alert of TLS. */
static bool refuse_plain_text(const struct connection *connection, const char *bytes)
{
    const struct connection plain = {.descriptor = connection->descriptor, .kept = -1};

    if (bytes[0] < 'A' || bytes[0] > 'Z')
        return false;
    direct_problem_send(&plain, PROBLEM_INVALID_REQUEST,
                        "this port accepts only HTTPS: use an address that begins with https://");
    shutdown(connection->descriptor, SHUT_WR);
    return true;
}

/* Checks the bytes, and notes them in case that their answer is cached. */
static enum tap_verdict check(struct connection *connection, const void *bytes, size_t length)
{
    const bool is_start = connection->raw.state == RAW_START;

    raw_stream_take(&connection->raw, bytes, length);
    if (is_start && connection->raw.state == RAW_UNDECIDED && connection->raw.undecided == 0)
        response_cache_note(&connection->mhd->kept, connection, bytes, length);
    else
        response_cache_forget(&connection->mhd->kept, connection);
    if (connection->raw.chunks.why == NULL)
        return TAP_PASS;
    refuse_chunks(connection->request, &connection->raw.chunks);
    connection->raw.state = RAW_ENDED;
    connection_enter(connection, CONNECTION_REFUSED);
    handover_answer_last(connection);
    return TAP_END;
}

enum tap_verdict handover_judge(void *context, int descriptor, bool is_plain, const void *bytes,
                                size_t length)
{
    struct mhd *mhd = context;
    struct connection *connection = connections_find(&mhd->connections, descriptor);

    mhd->progressed = true;
    /* GnuTLS receives records with recv, which shows them as plain bytes. */
    if (connection != NULL && connection->tls != NULL && !connection->has_begun && length > 0) {
        connection->has_begun = true;
        if (is_plain && refuse_plain_text(connection, bytes))
            return TAP_END;
    }
    if (connection == NULL || is_plain != (connection->tls == NULL) ||
        connection->raw.state >= RAW_BROKEN)
        return TAP_PASS;
    if (connection->raw.state == RAW_START) {
        const enum tap_verdict verdict = response_cache_answer(connection, bytes, length);

        if (verdict != TAP_PASS)
            return verdict;
    }
    return check(connection, bytes, length);
}

/* --- bodies --- */

static bool on_received(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd_update_clock(mhd);
    return connections_body_piece(&mhd->connections, connection,
                                  request_state(connection->request)->body_received, mhd->now_ms);
}

static void on_paused(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd_update_clock(mhd);
    connections_body_pause(connection, mhd->now_ms);
}

static void on_awaited(void *context, struct connection *connection)
{
    struct mhd *mhd = context;

    mhd_update_clock(mhd);
    connections_body_resume(&mhd->connections, connection, mhd->now_ms);
}

static void on_ended(void *context, struct connection *connection, enum intake_ending ending)
{
    const struct mhd *mhd = context;

    assert(connection->state == CONNECTION_RECEIVING);
    deadline_clear(&connection->deadline);
    /* While all connections are being cut, no client would receive the result. */
    if (mhd->cutting || (ending == INTAKE_BROKEN && connection->result != RESULT_TIMED_OUT)) {
        end_connection(connection);
        return;
    }
    if (ending == INTAKE_BROKEN) {
        /* The client already has its 408. */
        end_gently(connection);
        return;
    }
    if (ending == INTAKE_MALFORMED)
        refuse_chunks(connection->request, &request_state(connection->request)->chunks);
    else
        request_state(connection->request)->chunks_are_whole = true;
    handover_advance(connection);
}

struct intake_set *handover_intakes_new(struct mhd *mhd)
{
    const struct intake_events events = {mhd, on_received, on_paused, on_awaited, on_ended};

    return intake_set_new(loop_mailbox(mhd->loop), &mhd->parts, &events);
}

static bool is_chunked(const struct request_state *state)
{
    return state->body_length == FRAMING_CHUNKED;
}

/* Returns how many bytes of a body of known length the library has not delivered yet. */
static uint64_t body_left(const struct request_state *state)
{
    assert(!is_chunked(state) && state->body_received <= state->body_length);
    return state->body_length - state->body_received;
}

/* Returns true if the rest of the body should be read past the library. It must not hold
 * undelivered bytes. A body of known length is always delivered at once. A chunked body is
 * delivered chunk by chunk: all of it is delivered if the content received equals the content
 * delivered and no framing has followed. */
static bool is_worthwhile(const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct raw_stream *raw = &request->connection->raw;

    if (request->connection->tls != NULL || request->receiver == NULL ||
        !request->receiver->on_workers)
        return false;
    if (!is_chunked(state))
        return body_left(state) >= INTAKE_LEAST_BYTES;
    return raw_stream_is_in_chunk(raw) && raw->content == state->body_received &&
           raw->content + raw->chunks.left >= INTAKE_LEAST_BYTES;
}

void handover_body(struct connection *connection, struct request *request)
{
    struct request_state *state = request_state(request);

    assert(connection->request == request && state->stage == STAGE_BODY);
    if (request->replied || !is_worthwhile(request))
        return;
    state->chunks = connection->raw.chunks;
    if (!intake_begin(connection->mhd->intakes, request,
                      is_chunked(state) ? INTAKE_CHUNKED : body_left(state)))
        return;
    connection->raw.state = RAW_ENDED;
    mhd_suspend(connection, CONNECTION_RECEIVING);
}
