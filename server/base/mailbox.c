/* A stack that threads push to without a lock. */
#include "base/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool mailbox_open(struct mailbox *mailbox)
{
    atomic_init(&mailbox->newest, NULL);
    atomic_init(&mailbox->senders, 0);
    mailbox->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return mailbox->descriptor >= 0;
}

void mailbox_ring(struct mailbox *mailbox)
{
    const uint64_t one = 1;
    ssize_t written;

    assert(mailbox->descriptor >= 0);
    do
        written = write(mailbox->descriptor, &one, sizeof(one));
    while (written < 0 && errno == EINTR);
}

void mailbox_put(struct mailbox *mailbox, struct mail *mail)
{
    struct mail *head;

    /* The owner may take the mail, and close, before this function returns. */
    atomic_fetch_add(&mailbox->senders, 1);
    head = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do
        mail->next = head;
    while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &head, mail,
                                                  memory_order_release, memory_order_relaxed));
    /* The thread that made the stack non-empty rings for all that follow. */
    if (head == NULL)
        mailbox_ring(mailbox);
    atomic_fetch_sub(&mailbox->senders, 1);
}

void mailbox_silence(struct mailbox *mailbox)
{
    uint64_t count;

    while (read(mailbox->descriptor, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

struct mail *mailbox_take(struct mailbox *mailbox)
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

void mailbox_close(struct mailbox *mailbox)
{
    while (atomic_load(&mailbox->senders) > 0)
        sched_yield();
    assert(atomic_load(&mailbox->newest) == NULL);
    if (mailbox->descriptor >= 0)
        close(mailbox->descriptor);
    mailbox->descriptor = -1;
}
