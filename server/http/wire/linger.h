/* Closes connections on which the client may still send: their request was refused before its body
 * was read, or they end after an answer. What still arrives is read and dropped for a while, since
 * closing with unread bytes would reset the connection and destroy the answer on its way (RFC 9112
 * section 9.6). */
#ifndef HTTP_WIRE_LINGER_H
#define HTTP_WIRE_LINGER_H

#include <stdint.h>

#include "http/limits/deadlines.h"

struct linger_set {
    struct deadlines due;
    int epoll;      /* becomes readable when linger_run has something to do */
    unsigned count; /* of lingering connections */
};

/* -1 without descriptors; then only linger_end may follow. */
int linger_init(struct linger_set *linger);
/* Closes the connections that are left. */
void linger_end(struct linger_set *linger);

/* Lingers on a duplicate of the descriptor, which itself may then be closed. */
void linger_take(struct linger_set *linger, int descriptor, uint64_t now_ms);

/* Drops what has arrived, and closes connections that have ended or lingered long enough. Not
 * needed while count is 0. */
void linger_run(struct linger_set *linger, uint64_t now_ms);

#endif
