/* Detects clients that have hung up without the library noticing.
 *
 * The library uses edge-triggered events. If the end of the stream arrives together with the last
 * bytes, it causes no separate event: the library reads the bytes and waits for more until its
 * timeout. And while a request waits for a worker, the library ignores its connection. Until
 * something is sent, a client that has closed its socket looks like one that has only shut down its
 * sending side and waits for its answer. For five seconds the server assumes the second case. */
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
        looks; /* when to check again clients that hung up while waiting for an answer */
};

int hangups_init(struct hangups *hangups);
void hangups_end(struct hangups *hangups);

/* If out of memory, the connection is not watched and ends by its timeout. */
void hangups_add(struct hangups *hangups, struct connection *connection);
/* Call it before the connection's descriptor is closed or replaced. */
void hangups_remove(struct hangups *hangups, struct connection *connection);

/* The loop calls this when the descriptor is readable. */
void hangups_notice(void *hangups);

/* Returns true if hangups_run has work. */
static inline bool hangups_are_due(const struct hangups *hangups, uint64_t now_ms)
{
    return hangups->seen || deadlines_due_ms(&hangups->looks) <= now_ms;
}

/* Shuts down connections whose client has stopped sending although the server needs more bytes.
 * Marks a connection as deserted if its client hung up long ago and its request still waits for a
 * worker. Call it after the library has read the bytes that have arrived. */
void hangups_run(struct hangups *hangups, uint64_t now_ms);

#endif
