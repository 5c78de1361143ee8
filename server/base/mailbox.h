/* A mailbox: any thread puts mail in, one thread is woken through a descriptor and takes it out.
 *
 * The mail is a lock-free stack that is taken as a whole. Only the thread that finds it empty
 * writes to the eventfd. */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A link inside a structure of the sender's. */
struct mail {
    struct mail *next;
};

struct mailbox {
    int descriptor; /* an eventfd: readable when there is mail, or after a ring; -1 when closed */
    _Atomic(struct mail *) newest;
    atomic_uint senders; /* threads inside mailbox_put */
};

/* False, with errno, when there is no descriptor for it. */
bool mailbox_open(struct mailbox *mailbox);

/* From any thread; never blocks. The owner may take and free the mail before this returns. */
void mailbox_put(struct mailbox *mailbox, struct mail *mail);

/* Wakes the owner without mail. From any thread. */
void mailbox_ring(struct mailbox *mailbox);

/* Owner: makes the descriptor unreadable again. Call before mailbox_take: what is put in between
 * rings again. */
void mailbox_silence(struct mailbox *mailbox);

/* Whether there is no mail, at this moment. */
static inline bool mailbox_is_empty(const struct mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->newest, memory_order_relaxed) == NULL;
}

/* Owner: takes all mail, linked by next, oldest first; NULL when there is none. */
struct mail *mailbox_take(struct mailbox *mailbox);

/* Waits for threads that are still inside mailbox_put, then closes the descriptor. The mailbox is
 * empty, and nobody puts any more mail into it. Also after a failed mailbox_open. */
void mailbox_close(struct mailbox *mailbox);

#endif
