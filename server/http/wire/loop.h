/* An event loop: one thread with its own libmicrohttpd daemon. Its epoll set contains the daemon, a
 * mailbox for other threads, and any watched descriptors. */
#ifndef HTTP_WIRE_LOOP_H
#define HTTP_WIRE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "access/lease.h"
#include "base/server.h"
#include "base/workers.h"

/* Starts the thread of a loop and takes ownership of its listening sockets (listener.h): its
 * socket, and its socket for s3.listen, or -1. Its requests use server->access. Returns NULL with a
 * line in error on failure. */
struct loop *loop_start(struct server *server, int listen_socket, int s3_socket, char *error,
                        size_t error_size);

/* Returns the mailbox for jobs whose done must be called on the loop's thread. */
struct mailbox *loop_mailbox(struct loop *loop);

/* Makes new requests use this lease, which the loop takes over. May be called on any thread. */
void loop_set_lease(struct loop *loop, struct lease *lease);

/* Returns the current lease; NULL if the server has no access (tests). For the loop's thread. */
struct lease *loop_lease(const struct loop *loop);

/* Calls ready(context) on the loop's thread whenever a descriptor is readable. May be called on any
 * thread. */
int loop_watch(struct loop *loop, int descriptor, void (*ready)(void *context), void *context);

/* Does the same, but calls ready once each time when more has arrived, for a socket that may stay
 * readable. */
int loop_watch_edges(struct loop *loop, int descriptor, void (*ready)(void *context),
                     void *context);

/* Applies changed limits soon. May be called on any thread. */
void loop_reload(struct loop *loop);

/* Returns true if the loop has completed a turn since the last call, and asks for another turn.
 * Returns true on the first call. For one thread. */
bool loop_has_turned(struct loop *loop);

/* Asks the loop to stop accepting: it closes its listening socket, and idle connections end soon.
 * May be called on any thread. */
void loop_drain(struct loop *loop);

/* Returns true once it has done so. May be called on any thread. */
bool loop_is_drained(const struct loop *loop);

/* Returns the number of requests in progress. May be called on any thread. */
unsigned loop_active(const struct loop *loop);

/* Cuts open connections, ends the thread and frees the loop. Call it on another thread. */
void loop_stop(struct loop *loop);

#endif
