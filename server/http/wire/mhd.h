/* libmicrohttpd inside a loop: an externally driven daemon with its connections and their
 * deadlines.
 *
 * Only mhd.c, handler.c and sender.c use the library. All functions are for the loop's thread
 * unless stated otherwise. */
#ifndef HTTP_WIRE_MHD_H
#define HTTP_WIRE_MHD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/server.h"
#include "http/wire/connections.h"

/* The library's memory per connection. It stays resident and is cleared after every request, so it
 * is small. It has room for the longest target, a header of ordinary size, the head of the answer,
 * and the list of the answer's parts if there are several. */
#define CONNECTION_MEMORY ((size_t)16 * 1024)
/* How much of it the library needs per header field besides the text, rounded up. */
#define HEADER_FIELD_BYTES 80u

struct mhd;

/* Takes ownership of the listening sockets on success; s3_socket is for s3.listen, or -1. Returns
 * NULL with a line in error on failure. For the starting thread. */
struct mhd *mhd_start(struct server *server, struct loop *loop, int listen_socket, int s3_socket,
                      char *error, size_t error_size);

/* Gives an accepted connection to the library, which takes ownership of it. */
void mhd_add(struct mhd *mhd, int descriptor, const struct sockaddr *address, socklen_t length);

/* Returns a descriptor that is readable when mhd_run has work. */
int mhd_descriptor(const struct mhd *mhd);

/* Returns true if mhd_descriptor is readable only because a client waits to be accepted and the
 * process has no descriptors left. The loop should then not wait for it: mhd_timeout_ms says when
 * to retry. */
bool mhd_is_starved(const struct mhd *mhd);

/* Returns how long the loop may sleep; -1: until the next event. */
int mhd_timeout_ms(struct mhd *mhd);

/* Accepts, reads, answers and sends as far as possible without waiting, then checks the
 * deadlines. */
void mhd_run(struct mhd *mhd);

/* Applies changed limits, also to open connections. */
void mhd_reload(struct mhd *mhd);

/* Stops accepting and closes the listening sockets; idle connections end soon. Answers carry
 * "Connection: close" from the moment when the server drains. */
void mhd_drain(struct mhd *mhd);

/* Cuts all connections. Before mhd_stop, requests that wait for a worker must have ended
 * (mhd_waiting). */
void mhd_cut(struct mhd *mhd);

/* Make the library ignore the connection until it is resumed, and move the connection to the state.
 * Call mhd_suspend in the library's handler or in a content reader. */
void mhd_suspend(struct connection *connection, enum connection_state state);
void mhd_resume(struct connection *connection, enum connection_state state);

/* Makes the library close a connection within about a second, unless it is suspended. This works
 * even if the library does not read because an endless line has filled its buffer. */
void mhd_end_soon(struct connection *connection);

/* Call it in a content reader that fails. The library then considers the connection closed, but
 * removes it only at its next look at it, which without this call comes after all older connections
 * have ended. */
void mhd_end_now(struct connection *connection);

/* Returns the reason phrase of a status. */
const char *mhd_reason(unsigned status);

void mhd_stop(struct mhd *mhd);

#endif
