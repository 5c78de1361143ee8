/* libmicrohttpd inside a loop: a daemon that is driven from outside, its connections and their
 * deadlines.
 *
 * mhd.c and sender.c are all that knows the library. Everything here is for the loop's thread. */
#ifndef HTTP_WIRE_MHD_H
#define HTTP_WIRE_MHD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/server.h"

/* Stays with every connection and is cleared after every request, so it is small: the longest
 * target and a header of ordinary size. The answer's head and the list of its parts, if it has
 * several, lie in it too. */
#define CONNECTION_MEMORY ((size_t)16 * 1024)

struct connection;
struct mhd;

/* Takes the listening socket over on success. NULL with a line in error. */
struct mhd *mhd_start(struct server *server, struct loop *loop, int listen_socket, char *error,
                      size_t error_size);

/* Becomes readable when mhd_run has something to do. */
int mhd_descriptor(const struct mhd *mhd);

/* How long the loop may sleep at most. */
int mhd_timeout_ms(struct mhd *mhd);

/* Accepts, reads, answers, sends as far as that goes without waiting; then the deadlines. */
void mhd_run(struct mhd *mhd);

/* Stops accepting and closes the listening socket; answers carry Connection: close from then on. */
void mhd_drain(struct mhd *mhd);

/* Cuts every connection. Requests that wait for a worker must be woken before mhd_stop: mhd_waiting
 * counts them. */
void mhd_cut(struct mhd *mhd);
unsigned mhd_waiting(const struct mhd *mhd);

/* Suspends a connection from a content reader; the request's resume ends it. */
void mhd_suspend(struct connection *connection);

/* Work that ends with a post to this loop, though nobody may be waiting for it: it counts as
 * waiting. */
void mhd_work_begun(struct mhd *mhd);
void mhd_work_ended(struct mhd *mhd);

/* Requests begun and not finished. From any thread. */
unsigned mhd_active(const struct mhd *mhd);

void mhd_stop(struct mhd *mhd);

#endif
