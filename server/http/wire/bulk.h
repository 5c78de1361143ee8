/* Large pieces of files, which the server sends itself by sendfile, behind the library's back.
 *
 * The library sends at most 128 KiB a call by sendfile, as much as the socket takes from memory,
 * and never looks whether a page is in memory. Here a piece is sent only when it is, workers read
 * what is not, and other connections get their turn after each piece.
 *
 * The library writes the head, asks for the body, and is suspended until the body is sent. It would
 * still send the body, so its connection ends then; kept_sockets.h keeps the socket. All functions
 * are for the loop's thread. */
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

/* Those of a loop. NULL if that fails. */
struct bulk_set *bulk_set_new(void);
void bulk_set_free(struct bulk_set *set);

/* Readable when bulk_run has something to do. */
int bulk_descriptor(const struct bulk_set *set);

/* Sends as much as is good for one turn of the loop. context is the loop's struct mhd. */
void bulk_run(void *context);

/* Whether an answer of the request is to be sent here: a large piece of one file, in plain text, on
 * a connection of which nothing else has been read. */
bool bulk_is_worthwhile(const struct request *request);

/* Whether an answer whose bytes are elsewhere can be sent here, part after part. */
bool bulk_can_stream(const struct request *request);

/* Called when a part of such an answer has been brought, or cannot be. */
void bulk_continue(struct bulk *bulk);

/* Called when the library wants the body; suspends the connection until it is sent or cannot be.
 * False if out of memory. */
bool bulk_begin(struct request *request);

/* When the library asks again: whether all was sent. If the socket is to be kept alive, the library
 * may then close its descriptor. */
bool bulk_finish(struct request *request);

/* Takes NULL. The connection is not suspended. */
void bulk_free(struct bulk *bulk);

/* A small answer was given: for a while, shorter pieces are sent in each turn. */
void bulk_make_way(struct bulk_set *set, uint64_t now_ms);

#endif
