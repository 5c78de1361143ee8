/* A body that bypasses the library: read by intake.c, answered by own_answers.c; kept_sockets.c
 * then lets the socket live on. */
#include "http/wire/bypass.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "http/exchange/request_metrics.h"
#include "http/exchange/request_state.h"
#include "http/fields/framing.h"
#include "http/tls/tls_session.h"
#include "http/wire/intake.h"
#include "http/wire/kept_sockets.h"
#include "http/wire/loop.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/own_answers.h"

/* --- problems --- */

static void send_last(const struct connection *connection, const char *text, size_t length)
{
    if (connection->tls != NULL)
        tls_session_send_last(connection->tls, text, length);
    else
        (void)send(connection->descriptor, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What clients of the Hub show (problem.h). */
static bool is_for_hub(const struct connection *connection)
{
    const struct request *request = connection->request;

    return request != NULL && request->route != NULL && request->route->is_hub;
}

void bypass_send_problem(const struct connection *connection, const struct bypass_problem *problem,
                         const char *id)
{
    static const char head[] = "HTTP/1.1 %u %s\r\n"
                               "Connection: close\r\n"
                               "Cache-Control: no-store\r\n"
                               "Content-Type: application/problem+json\r\n"
                               "X-Request-Id: %s\r\n"
                               "%s%s%s%s"
                               "Content-Length: %zu\r\n\r\n";
    static const char body[] = "{\"type\":\"/problems/%s\",\"title\":\"%s\",\"status\":%u,"
                               "\"detail\":\"%s\",\"code\":\"%s\",\"request_id\":\"%s\"%s%s%s}\n";
    const bool is_hub = is_for_hub(connection);
    const char *shown = is_hub ? problem->detail : "";
    const unsigned status = problem_status(problem->problem);
    const char *code = problem_code(problem->problem);
    char json[512];
    char text[1024];
    const int json_length = snprintf(json, sizeof(json), body, code,
                                     problem_title(problem->problem), status, problem->detail, code,
                                     id, is_hub ? ",\"error\":\"" : "", shown, is_hub ? "\"" : "");
    int length;

    assert(json_length > 0 && (size_t)json_length < sizeof(json));
    request_metrics_problem(problem->problem);
    length = snprintf(text, sizeof(text), head, status, problem->reason, id, problem->fields,
                      is_hub ? "X-Error-Message: " : "", shown, is_hub ? "\r\n" : "",
                      (size_t)json_length);
    assert(length > 0 && (size_t)length + (size_t)json_length < sizeof(text));
    memcpy(text + length, json, (size_t)json_length);
    send_last(connection, text, (size_t)length + (size_t)json_length);
}

/* --- answers --- */

void bypass_answer(struct connection *connection)
{
    exchange_answer(connection->request);
    connection->answered = own_answer_send(connection, true) == OWN_ANSWER_SENT;
    if (connection->answered)
        request_enter_phase(request_state(connection->request), PHASE_QUEUED);
}

/* Closing the socket at once could reset it, and so destroy the answer that went out: the client
 * may send on. */
static void end_gently(struct connection *connection)
{
    linger_take(&connection->mhd->linger, connection->descriptor, connection->mhd->now_ms);
    connection->lingers = false;
    kept_sockets_detach(connection);
}

static void end_answered(struct connection *connection)
{
    connection->answered = true;
    request_enter_phase(request_state(connection->request), PHASE_QUEUED);
    if (connection->mhd->cutting)
        kept_sockets_drop(connection);
    if (connection->kept >= 0)
        kept_sockets_detach(connection);
    else
        end_gently(connection);
}

/* The client gets no answer, or only a part. */
static void end_connection(struct connection *connection)
{
    kept_sockets_drop(connection);
    shutdown(connection->descriptor, SHUT_RDWR);
    mhd_resume(connection);
}

void bypass_on_answered(struct connection *connection, bool whole)
{
    if (whole)
        end_answered(connection);
    else
        end_connection(connection);
}

void bypass_advance(struct connection *connection)
{
    bool is_kept;

    assert(connection->bypassed && connection->suspended);
    if (exchange_advance(connection->request) == OUTCOME_WAITING)
        return;
    exchange_answer(connection->request);
    mhd_update_clock(connection->mhd);
    is_kept = kept_sockets_may_keep(connection) && kept_sockets_take(connection);
    switch (own_answer_send(connection, !is_kept)) {
    case OWN_ANSWER_SENT:
        end_answered(connection);
        break;
    case OWN_ANSWER_WAITS:
        break;
    case OWN_ANSWER_FAILED:
        end_connection(connection);
        break;
    }
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

static void refuse_chunks(struct request *request)
{
    struct request_state *state = request_state(request);

    state->broken = true;
    problem_reply(request,
                  state->chunks.state == CHUNKS_TRAILERS_LONG ? PROBLEM_HEADERS_TOO_LARGE
                                                              : PROBLEM_INVALID_REQUEST,
                  "%s", state->chunks.why);
}

static void on_ended(void *context, struct connection *connection, enum intake_ending ending)
{
    const struct mhd *mhd = context;

    deadline_clear(&connection->deadline);
    /* While all connections are being cut, nobody would receive the result. */
    if (mhd->cutting || (ending == INTAKE_BROKEN && !connection->timed_out)) {
        end_connection(connection);
        return;
    }
    if (ending == INTAKE_BROKEN) {
        /* It has its 408. */
        end_gently(connection);
        return;
    }
    if (ending == INTAKE_MALFORMED)
        refuse_chunks(connection->request);
    else
        request_state(connection->request)->chunks_are_whole = true;
    bypass_advance(connection);
}

struct intake_set *bypass_intakes_new(struct mhd *mhd)
{
    const struct intake_events events = {mhd, on_received, on_paused, on_awaited, on_ended};

    return intake_set_new(loop_mailbox(mhd->loop), &events);
}

/* --- when the library has delivered all that it has read ---
 *
 * Of a body of known length it delivers everything at once. Of a chunked body it delivers one chunk
 * after another, and whether more is in its buffer is known only within a chunk: then nothing is.
 * So its way through the buffer is followed, and each size that it has read is read again. */

static bool is_chunked(const struct request_state *state)
{
    return state->body_length == FRAMING_CHUNKED;
}

void bypass_begin_body(struct request *request, const char *bytes)
{
    struct request_state *state = request_state(request);

    if (!is_chunked(state))
        return;
    chunks_begin(&state->chunks);
    state->chunks_base = state->chunks_at = bytes;
    state->chunks_turn = request->connection->mhd->turns;
}

/* In a new turn the library has read on, to the beginning of its buffer, where it also moves what
 * it could not use. If the CR LF behind the last chunk is not there, it was used before. */
static void begin_turn(struct request_state *state, const struct mhd *mhd)
{
    state->chunks_turn = mhd->turns;
    state->chunks_at = state->chunks_base;
    if (state->chunks.state == CHUNKS_CR && *state->chunks_base != '\r')
        chunks_skip_end(&state->chunks);
}

/* Whether the bytes before a piece are the framing before it, and nothing else: none if the piece
 * goes on with a chunk. */
static bool framing_fits(struct request_state *state, const char *bytes)
{
    size_t length;

    if (bytes < state->chunks_at || bytes - state->chunks_at > (ptrdiff_t)CONNECTION_MEMORY)
        return false;
    length = (size_t)(bytes - state->chunks_at);
    if (state->chunks.state == CHUNKS_DATA)
        return length == 0;
    return chunks_take(&state->chunks, state->chunks_at, length) == length &&
           state->chunks.state == CHUNKS_DATA;
}

void bypass_follow_body(const struct connection *connection, struct request *request,
                        const char *bytes, size_t length)
{
    struct request_state *state = request_state(request);

    if (!is_chunked(state) || state->chunks_at == NULL)
        return;
    if (state->chunks_turn != connection->mhd->turns)
        begin_turn(state, connection->mhd);
    if (framing_fits(state, bytes) && length <= state->chunks.left) {
        chunks_take_data(&state->chunks, length);
        state->chunks_at = bytes + length;
    } else {
        state->chunks_at = NULL;
    }
}

/* Bytes of a body of known length that the library has not delivered yet. */
static uint64_t body_left(const struct request_state *state)
{
    assert(!is_chunked(state) && state->body_received <= state->body_length);
    return state->body_length - state->body_received;
}

bool bypass_is_worthwhile(const struct request *request)
{
    const struct request_state *state = request_state_const(request);

    if (request->connection->tls != NULL || state->operation->store == NULL)
        return false;
    if (!is_chunked(state))
        return body_left(state) >= INTAKE_LEAST_BYTES;
    return state->chunks_at != NULL && state->chunks.state == CHUNKS_DATA &&
           state->body_received + state->chunks.left >= INTAKE_LEAST_BYTES;
}

void bypass_take_body(struct connection *connection, struct request *request)
{
    struct request_state *state = request_state(request);

    assert(bypass_is_worthwhile(request));
    if (!intake_begin(connection->mhd->intakes, request,
                      is_chunked(state) ? INTAKE_CHUNKED : body_left(state))) {
        state->chunks_at = NULL;
        return;
    }
    connection->bypassed = true;
    mhd_suspend(connection);
}
