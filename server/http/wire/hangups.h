/* Detects clients that have hung up without the HTTP library noticing.
 *
 * The library uses edge-triggered events. An end of the stream that arrives together with the last
 * bytes causes no event of its own: the library reads the bytes and waits for more until its
 * timeout. And while a request waits for a worker, the library ignores its connection. Until
 * something is sent, a client that has closed its socket looks like one that has only shut down its
 * sending side and waits for its answer. For five seconds it is treated as the latter. */
#ifndef HTTP_WIRE_HANGUPS_H
#define HTTP_WIRE_HANGUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/limits/deadlines.h"

struct connection;

struct hangups {
    int epoll; /* becomes readable when a client of the set hangs up */
    bool seen; /* epoll has become readable */
    struct deadlines
        looks; /* when to look again at clients that hung up while they had an answer to
                             * come */
};

int hangups_init(struct hangups *hangups);
void hangups_end(struct hangups *hangups);

/* Without memory a connection is not watched, and ends by its timeout. */
void hangups_add(struct hangups *hangups, struct connection *connection);
/* To be called before the connection's descriptor is closed or copied. */
void hangups_remove(struct hangups *hangups, struct connection *connection);

/* For the loop: the descriptor is readable. */
void hangups_notice(void *hangups);

/* Whether hangups_run has something to do. */
static inline bool hangups_are_due(const struct hangups *hangups, uint64_t now_ms)
{
    return hangups->seen || deadlines_due_ms(&hangups->looks) <= now_ms;
}

/* Shuts down connections whose client sends no more although the server waits for more bytes. Marks
 * a connection as deserted if its client hung up long ago and its request still waits for a worker.
 * Call it after the library has read what has arrived. */
void hangups_run(struct hangups *hangups, uint64_t now_ms);

#endif
