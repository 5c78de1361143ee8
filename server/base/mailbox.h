/* A mailbox: any thread may put mail into it. Its owner, a single thread, is woken through a
 * descriptor and takes the mail.
 *
 * The mail is a lock-free stack that is taken as a whole. Only a thread that puts mail into an
 * empty mailbox writes to the eventfd. */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A link, embedded in the sender's structure. */
struct mail {
    struct mail *next;
};

struct mailbox {
    int descriptor; /* an eventfd: readable if there is mail, or after a ring; -1 when closed */
    _Atomic(struct mail *) newest;
    atomic_uint senders; /* threads inside mailbox_put */
};

/* Returns false with errno if no descriptor is available. */
static inline bool mailbox_open(struct mailbox *mailbox)
{
    atomic_init(&mailbox->newest, NULL);
    atomic_init(&mailbox->senders, 0);
    mailbox->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return mailbox->descriptor >= 0;
}

/* Wakes the owner without mail. May be called on any thread. */
static inline void mailbox_ring(struct mailbox *mailbox)
{
    const uint64_t one = 1;
    ssize_t written;

    assert(mailbox->descriptor >= 0);
    do
        written = write(mailbox->descriptor, &one, sizeof(one));
    while (written < 0 && errno == EINTR);
}

/* For the owner: makes the descriptor unreadable again. Call it before mailbox_take, so that mail
 * added in between rings again. */
static inline void mailbox_silence(struct mailbox *mailbox)
{
    uint64_t count;

    while (read(mailbox->descriptor, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

/* Adds mail. Never blocks; may be called on any thread. The owner may take and free the mail before
 * this returns. */
static inline void mailbox_put(struct mailbox *mailbox, struct mail *mail)
{
    struct mail *head;

    /* The owner may take the mail and close the mailbox before this function returns. */
    atomic_fetch_add(&mailbox->senders, 1);
    head = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do
        mail->next = head;
    while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &head, mail,
                                                  memory_order_release, memory_order_relaxed));
    /* The thread that put mail into the empty mailbox rings for all later ones. */
    if (head == NULL)
        mailbox_ring(mailbox);
    atomic_fetch_sub(&mailbox->senders, 1);
}

/* Returns true if there is no mail at this moment. */
static inline bool mailbox_is_empty(const struct mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->newest, memory_order_relaxed) == NULL;
}

/* For the owner: takes all mail, linked by next, oldest first; NULL if there is none. */
static inline struct mail *mailbox_take(struct mailbox *mailbox)
{
    struct mail *newest = atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
    struct mail *oldest = NULL;

    while (newest != NULL) {
        struct mail *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

/* Waits for threads that are still in mailbox_put, then closes the descriptor. The mailbox must be
 * empty, and no more mail may be put into it. May be called for a mailbox that failed to open. */
static inline void mailbox_close(struct mailbox *mailbox)
{
    while (atomic_load(&mailbox->senders) > 0)
        sched_yield();
    assert(atomic_load(&mailbox->newest) == NULL);
    if (mailbox->descriptor >= 0)
        close(mailbox->descriptor);
    mailbox->descriptor = -1;
}

#endif
