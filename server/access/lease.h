/* A lease: the hold of one loop, and of the requests that began on it, on one version of access.
 *
 * The loop has one current lease. A reload makes a lease for each loop, and sends it through the
 * loop's mailbox; the one before ends with its last request. Only the loop's thread counts, so that
 * requests cost no atomic operations. */
#ifndef ACCESS_LEASE_H
#define ACCESS_LEASE_H

#include "access/access.h"
#include "access/token_memory.h"
#include "base/workers.h"

struct lease {
    struct job job; /* first; carries the lease to its loop */
    struct access *access;
    struct lease **current;      /* the loop's, which this lease replaces when it arrives */
    struct token_memory *memory; /* NULL: none is needed */
    unsigned users;              /* the loop, as long as the lease is current, and requests */
};

/* A lease that is current for nobody yet; it holds access, which is borrowed from the caller until
 * then. NULL if out of memory. */
struct lease *lease_new(struct access *access);

/* Sends a lease to the loop whose current lease is at current. From any thread. */
void lease_send(struct lease *lease, struct mailbox *mailbox, struct lease **current);

/* Begin and end a use; the last one that ends frees the lease. On the loop's thread, or when the
 * loop does not run. A lease that was not sent is freed by one lease_end. */
struct lease *lease_use(struct lease *lease);
void lease_end(void *lease);

#endif
