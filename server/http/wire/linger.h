/* Closing a connection whose request was refused before its body: what still comes is read and
 * dropped for a while, as a close with unread bytes would reset the connection and take the answer
 * with it (RFC 9112 section 9.6). */
#ifndef HTTP_WIRE_LINGER_H
#define HTTP_WIRE_LINGER_H

#include <stdint.h>

struct linger_set;

/* NULL when memory or descriptors are out. */
struct linger_set *linger_new(void);
/* Closes what is left. Takes NULL. */
void linger_free(struct linger_set *linger);

/* Readable when linger_run has something to do. */
int linger_descriptor(const struct linger_set *linger);

/* Takes over a copy of a connection's descriptor; the descriptor itself may be closed after it. */
void linger_take(struct linger_set *linger, int descriptor, uint64_t now_ms);

void linger_run(struct linger_set *linger, uint64_t now_ms);

/* When linger_run is to be called at the latest; UINT64_MAX: no need. */
uint64_t linger_due_ms(const struct linger_set *linger);

#endif
