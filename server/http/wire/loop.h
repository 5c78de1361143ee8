/* An event loop: one thread with a libmicrohttpd daemon of its own, in an outer epoll over the
 * daemon's descriptor, an eventfd for posts from other threads, and whatever descriptors are
 * watched. */
#ifndef HTTP_WIRE_LOOP_H
#define HTTP_WIRE_LOOP_H

#include <stdint.h>

#include "base/server.h"
#include "base/workers.h"

/* Makes a loop over a listening socket of its own (SO_REUSEPORT; see listener.h), which it takes
 * over, and starts its thread. NULL with a line in error when the daemon cannot be started. */
struct loop *loop_start(struct server *server, int listen_socket, char *error, size_t error_size);

/* For jobs whose done is to be called on the loop's thread. */
struct mailbox *loop_mailbox(struct loop *loop);

/* Watches a descriptor for reading: ready(context) is called on the loop's thread. Call before or
 * on the loop's thread. */
int loop_watch(struct loop *loop, int descriptor, void (*ready)(void *context), void *context);

/* Stops accepting: the listening socket is closed, answers carry Connection: close. From any
 * thread. */
void loop_drain(struct loop *loop);

/* Requests begun and not finished. From any thread. */
unsigned loop_active(const struct loop *loop);

/* Cuts what is still open, ends the thread, frees. */
void loop_stop(struct loop *loop);

#endif
