/* Closes connections on which the client may still send, because their request was refused before
 * its body was read, or because they end after an answer. Bytes that still arrive are read and
 * dropped for a while: closing with unread bytes would reset the connection and destroy the answer
 * in transit (RFC 9112 section 9.6). */
#ifndef HTTP_WIRE_LINGER_H
#define HTTP_WIRE_LINGER_H

#include <stdint.h>

#include "http/limits/deadlines.h"

struct linger_set {
    struct deadlines due;
    int epoll;      /* becomes readable when linger_run has work */
    unsigned count; /* number of lingering connections */
};

/* Returns -1 if no descriptors are left; then only linger_end may follow. */
int linger_init(struct linger_set *linger);
/* Closes the remaining connections. */
void linger_end(struct linger_set *linger);

/* Lingers on a duplicate of the descriptor; the caller may close the original. */
void linger_take(struct linger_set *linger, int descriptor, uint64_t now_ms);

/* Drops the bytes that have arrived, and closes connections that have ended or lingered long
 * enough. Not needed while count is 0. */
void linger_run(struct linger_set *linger, uint64_t now_ms);

#endif
