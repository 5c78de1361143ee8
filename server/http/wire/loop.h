/* An event loop: one thread with its own libmicrohttpd daemon, in an outer epoll set over the
 * descriptors of the daemon, of a mailbox for other threads, and of whatever is watched. */
#ifndef HTTP_WIRE_LOOP_H
#define HTTP_WIRE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "access/lease.h"
#include "base/server.h"
#include "base/workers.h"

/* Starts the thread of a loop that takes over a listening socket of its own (listener.h). Its
 * requests use server->access. NULL with a line in error if it cannot be started. */
struct loop *loop_start(struct server *server, int listen_socket, char *error, size_t error_size);

/* For jobs whose done is to be called on the loop's thread. */
struct mailbox *loop_mailbox(struct loop *loop);

/* Requests that begin from now on use the lease, which the loop takes over. From any thread. */
void loop_set_lease(struct loop *loop, struct lease *lease);

/* The current lease, for the loop's thread; NULL if the server has no access (tests). */
struct lease *loop_lease(const struct loop *loop);

/* Calls ready(context) on the loop's thread whenever a descriptor is readable. From any thread. */
int loop_watch(struct loop *loop, int descriptor, void (*ready)(void *context), void *context);

/* Takes over changed limits soon. From any thread. */
void loop_reload(struct loop *loop);

/* Whether the loop has turned since the last call; asks it to turn again. True for the first call.
 * For one thread. */
bool loop_has_turned(struct loop *loop);

/* Asks the loop to stop accepting: it closes its listening socket, and idle connections end soon.
 * From any thread. */
void loop_drain(struct loop *loop);

/* Whether it has done so. From any thread. */
bool loop_is_drained(const struct loop *loop);

/* Number of requests in progress. From any thread. */
unsigned loop_active(const struct loop *loop);

/* Cuts open connections, ends the thread and frees the loop. To be called on another thread. */
void loop_stop(struct loop *loop);

#endif
