/* What bypasses the HTTP library: long bodies, which it would read in small pieces, the answers to
 * them, and problems at moments when it accepts no answer. The library's connection ends after each
 * of them; the socket lives on after the answer to a body, if HTTP lets it (kept_sockets.h). */
#ifndef HTTP_WIRE_BYPASS_H
#define HTTP_WIRE_BYPASS_H

#include <stdbool.h>
#include <stddef.h>

#include "http/exchange/problem.h"

struct connection;
struct intake_set;
struct mhd;

/* The set of bodies that a loop reads by itself. NULL without memory or descriptors. */
struct intake_set *bypass_intakes_new(struct mhd *mhd);

/* To be called when a request is begun that is not refused; bytes: where the library's memory
 * holds, or will hold, what comes behind the header. */
void bypass_begin_body(struct request *request, const char *bytes);

/* To be called first with each piece of a body that the library delivers. */
void bypass_follow_body(const struct connection *connection, struct request *request,
                        const char *bytes, size_t length);

/* To be called after that: whether the rest of the body is worth to be read past the library, and
 * can be: the library has read no more than it has delivered, and the operation takes pieces on
 * workers. With TLS never: the socket does not carry the body, but what GnuTLS makes it from. */
bool bypass_is_worthwhile(const struct request *request);

/* Reads the rest of such a body past the library; the connection is then suspended until the body
 * ends. */
void bypass_take_body(struct connection *connection, struct request *request);

/* Continues a request whose body was read past the library, and sends the answer when it is
 * decided. */
void bypass_advance(struct connection *connection);

/* Sends the answer to a request, which must be in memory and a few KiB at most, on a connection
 * without TLS, which must then be ended. */
void bypass_answer(struct connection *connection);

/* For own_answers_init. */
void bypass_on_answered(struct connection *connection, bool whole);

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
