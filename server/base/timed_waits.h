/* Ends waits that have lasted long enough, for requests that wait for an event and not for work, so
 * that they occupy no worker. One thread serves all of them; it starts with the first wait. */
#ifndef BASE_TIMED_WAITS_H
#define BASE_TIMED_WAITS_H

#include "base/workers.h"

struct timed_waits;

/* One wait. The owner sets the first members and keeps the structure until timed_waits_remove. */
struct timed_wait {
    struct waiter *waiter; /* already waits for its event */
    int64_t due_ms;        /* clock_ms */
    /* Stops waiting for the event. Returns true if the waiter was waiting: the event then will not
     * wake it, and timed_waits does. May be called on any thread. */
    bool (*forget)(void *context, struct waiter *waiter);
    void *context;

    struct timed_wait *before;
    struct timed_wait *after;
    bool is_listed;
};

/* Returns NULL if out of memory. */
struct timed_waits *timed_waits_new(void);
/* Ends the thread; there must be no more waits. Accepts NULL. */
void timed_waits_free(struct timed_waits *waits);

/* Adds a wait: its waiter is woken by the event, or when the time is over, or soon after its client
 * is gone (is_gone). Returns false if no wait may last any longer, because the server is shutting
 * down, or if there is no thread. */
bool timed_waits_add(struct timed_waits *waits, struct timed_wait *wait);
/* Call it once the waiter was woken. Does nothing if the wait was not added. */
void timed_waits_remove(struct timed_waits *waits, struct timed_wait *wait);

/* Ends all waits now, and refuses new ones. Accepts NULL. */
void timed_waits_end(struct timed_waits *waits);

#endif
