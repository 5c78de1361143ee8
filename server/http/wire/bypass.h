/* What bypasses the HTTP library: long bodies, which it would read in small pieces, the answers to
 * them, and problems at moments when it accepts no answer. The connection ends after each of
 * them. */
#ifndef HTTP_WIRE_BYPASS_H
#define HTTP_WIRE_BYPASS_H

#include <assert.h>
#include <stdbool.h>

#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/wire/connections.h"
#include "http/wire/intake.h"

struct intake_set;
struct mhd;

/* The set of bodies that a loop reads by itself. NULL without memory or descriptors. */
struct intake_set *bypass_intakes_new(struct mhd *mhd);

/* Bytes of a body of known length that the library has not delivered yet. */
static inline uint64_t bypass_body_left(const struct request *request)
{
    const struct request_state *state = request_state_const(request);

    assert(state->body_length != UINT64_MAX && state->body_received <= state->body_length);
    return state->body_length - state->body_received;
}

/* Whether the rest of a body is long, and its operation can take it past the library. With TLS
 * never: the socket does not carry the body, but what GnuTLS makes it from. */
static inline bool bypass_is_worthwhile(const struct request *request)
{
    const struct request_state *state = request_state_const(request);

    return request->connection->tls == NULL && state->body_length != UINT64_MAX &&
           state->operation->store != NULL && bypass_body_left(request) >= INTAKE_LEAST_BYTES;
}

/* To be called when the library has delivered the first piece of a body that is worthwhile. Reads
 * the rest past the library; the connection is then suspended until the body ends. */
void bypass_take_body(struct connection *connection, struct request *request);

/* Continues a request whose body was read past the library, and sends the answer when it is
 * decided. */
void bypass_advance(struct connection *connection);

/* Sends the answer to a request, which must be in memory and a few KiB at most, on a connection
 * without TLS, which must then be ended. */
void bypass_answer(struct connection *connection);

/* A problem as it is sent without a request's reply. */
struct bypass_problem {
    enum problem problem;
    const char *reason; /* the reason phrase of its status */
    const char *fields; /* further header fields, each with its CR LF */
    const char *detail; /* without characters that JSON escapes */
};

/* Sends as much of a problem as fits into the socket's buffer. No part of another answer may be
 * sent before or after it; with TLS, the handshake must be over. */
void bypass_send_problem(const struct connection *connection, const struct bypass_problem *problem,
                         const char *id);

#endif
