/* libmicrohttpd inside a loop: an externally driven daemon, its connections and their deadlines.
 *
 * Only mhd.c, handler.c and sender.c see the library. Everything here is for the loop's thread,
 * except where stated otherwise. */
#ifndef HTTP_WIRE_MHD_H
#define HTTP_WIRE_MHD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/server.h"

/* The library's memory for each connection. It stays resident and is cleared after every request,
 * so it is small. It holds the longest target and a header of ordinary size, the head of the
 * answer, and the list of the answer's parts if there are several. */
#define CONNECTION_MEMORY ((size_t)16 * 1024)
/* What the library needs in it for a header field besides its text, rounded up. */
#define HEADER_FIELD_BYTES 80u

struct connection;
struct mhd;

/* Takes over the listening socket on success. NULL with a line in error. On the starting thread. */
struct mhd *mhd_start(struct server *server, struct loop *loop, int listen_socket, char *error,
                      size_t error_size);

/* Readable when mhd_run has something to do. */
int mhd_descriptor(const struct mhd *mhd);

/* How long the loop may sleep; -1: until something happens. */
int mhd_timeout_ms(struct mhd *mhd);

/* Accepts, reads, answers and sends as far as possible without waiting; then looks at the
 * deadlines. */
void mhd_run(struct mhd *mhd);

/* Takes over changed limits, for the connections that are open as well. */
void mhd_reload(struct mhd *mhd);

/* Stops accepting and closes the listening socket; idle connections end soon. Answers carry
 * Connection: close from the moment when the server drains. */
void mhd_drain(struct mhd *mhd);

/* Cuts every connection. Requests that wait for a worker must have ended (mhd_waiting) before
 * mhd_stop. */
void mhd_cut(struct mhd *mhd);

/* Makes the library ignore the connection until it is resumed. To be called in the library's
 * handler or a content reader. */
void mhd_suspend(struct connection *connection);
void mhd_resume(struct connection *connection);

/* Makes the library close a connection, unless it is suspended, within about a second, even if it
 * does not read: its buffer may be full of a line that does not end. */
void mhd_end_soon(struct connection *connection);

/* To be called by a content reader that ends with an error. The library then takes the connection
 * for closed, but removes it only when it looks at it again; without this, when all older ones have
 * ended. */
void mhd_end_now(struct connection *connection);

/* The reason phrase of a status. */
const char *mhd_reason(unsigned status);

void mhd_stop(struct mhd *mhd);

#endif
