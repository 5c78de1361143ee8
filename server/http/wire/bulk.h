/* Sends large pieces of files with sendfile directly on the socket, past the HTTP library.
 *
 * The library sends at most 128 KiB per sendfile call (for memory, as much as the socket takes) and
 * never checks whether a page is in memory. Here a piece is sent only if it is in memory, workers
 * read missing pages, and other connections get a turn after each piece.
 *
 * The library writes the head and asks for the body; it is then suspended until the body is sent.
 * It would still send the body itself, so its connection must end; handover.h keeps the socket
 * open. All functions are for the loop's thread. */
#ifndef HTTP_WIRE_BULK_H
#define HTTP_WIRE_BULK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "http/exchange/exchange.h"

struct bulk;
struct bulk_set;
struct connection;
struct mhd;

/* Creates and frees a loop's set of streams. bulk_set_new returns NULL on failure. */
struct bulk_set *bulk_set_new(void);
void bulk_set_free(struct bulk_set *set);

/* Returns a descriptor that is readable when bulk_run has work. */
int bulk_descriptor(const struct bulk_set *set);

/* Sends as much as one turn of the loop allows. context is the loop's struct mhd. */
void bulk_run(void *context);

/* Called when a part of an answer from a remote store has been fetched, or the fetch has failed. */
void bulk_continue(struct bulk *bulk);

/* Called when the library asks for the body; suspends the connection until the body is sent or has
 * failed. Returns false if out of memory. */
bool bulk_begin(struct request *request);

/* Called when the library asks for the body again. Returns true if all of it was sent. If the
 * socket is kept alive, the library may close its descriptor afterwards. */
bool bulk_finish(struct request *request);

/* Frees a stream whose connection is not suspended. */
void bulk_free(struct bulk *bulk);

/* Called after a small answer: for a while, streams send shorter pieces per turn. */
void bulk_make_way(struct bulk_set *set, uint64_t now_ms);

#endif
