/* Moves sockets from the library to the server and back. No other file does.
 *
 * The server itself reads long bodies and sends the answers to them, sends large answers (bulk.c),
 * and sends problems at moments when the library accepts no answer. The library still expects the
 * bytes that the server has read or sent, so its connection must end. The socket stays open: the
 * server duplicates the descriptor first, and gives the duplicate to the library as a new
 * connection when the old one has ended. The new connection inherits the old one's admission, its
 * counts and its peer.
 *
 *   library --long body-----> intake.c --decided--> direct_answer.c --+
 *   library --large answer--> bulk.c ----------------------------------+
 *                                                                      |
 *   new connection of the library <--old one ended-- kept -------------+
 *   closed <--linger.c reads what still comes------- not kept ---------+
 *
 * For the loop's thread. */
#ifndef HTTP_WIRE_HANDOVER_H
#define HTTP_WIRE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "http/tap/tap.h"

struct connection;
struct intake_set;
struct kept_socket;
struct mhd;
struct request;
struct sockaddr;

struct handover {
    int dead;                  /* a pipe without a writer */
    struct kept_socket *first; /* sockets to be given to the library */
    struct kept_socket *readmitting;
};

/* Returns -1 if no descriptors are left; then only handover_end may follow. */
int handover_init(struct handover *handover);
void handover_end(struct handover *handover);

/* Returns a loop's set of body readers; NULL if out of memory or descriptors. */
struct intake_set *handover_intakes_new(struct mhd *mhd);

/* --- from the library --- */

/* Judges the bytes that the library is about to parse (tap.h); context is the mhd. A request with a
 * cached answer is answered at once, and the library does not see it. Malformed or endless chunk
 * framing is answered too, and ends the connection. Header errors are only noted in
 * connection->raw, since the library may answer them itself. */
enum tap_verdict handover_judge(void *context, int descriptor, bool is_plain, const void *bytes,
                                size_t length);

/* Called after the header of the connection's request, before its body is read. behind: the bytes
 * after the header. Returns false if they are malformed; the request then has its reply. */
bool handover_begin_body(struct connection *connection, const char *behind);

/* Called with each piece of a body that the library delivers, after the receiver has got it. If
 * worthwhile, the rest of the body is read past the library, and the connection is RECEIVING until
 * the body ends. This requires that the library has read no more than it has delivered and that the
 * operation accepts pieces on workers. It is never done with TLS, because the socket then carries
 * encrypted bytes. */
void handover_body(struct connection *connection, struct request *request);

/* Continues a request whose body was read past the library, and sends the answer once it is
 * decided. */
void handover_advance(struct connection *connection);

/* Called when an answer of direct_answer.c that could not be sent at once has been sent completely,
 * or has failed. */
void handover_on_answered(struct connection *connection, bool is_whole);

/* Sends the answer to a request; it must be in memory and at most a few KiB. The caller must then
 * end the connection. */
void handover_answer_last(struct connection *connection);

/* --- back to the library --- */

/* Duplicates the socket, so that the library may close its descriptor. The answer to the current
 * request must be decided. Returns false if the connection may not stay open after it, or no
 * descriptors are left. */
bool handover_keep(struct connection *connection);

/* Called when the library has ended a connection whose socket was kept. address is the peer's.
 * Returns true if the socket has taken over the connection's place in the admission counts; false
 * on failure, or if address is NULL: the socket is closed. */
bool handover_put(struct connection *connection, const struct sockaddr *address);

/* Gives the waiting sockets to the library. Call it outside the library's callbacks. add takes
 * ownership of each descriptor. */
void handover_readmit(struct mhd *mhd,
                      void (*add)(struct mhd *mhd, int descriptor, const struct sockaddr *address));

/* Called when the library has opened a connection: if its socket was kept, the place in the
 * admission counts is the connection's from now on. */
void handover_take_place(struct handover *handover);

/* Returns true while handover_readmit gives a socket to the library. */
bool handover_is_readmitting(const struct handover *handover);

/* Restores the history of a kept socket in its new connection, while handover_readmit gives it to
 * the library; does nothing otherwise. */
void handover_restore(struct connection *connection);

#endif
