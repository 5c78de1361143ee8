/* Workers: a bounded pool of threads for whatever takes longer than about 100 µs.
 *
 * A job is a structure of its owner's with this one inside. run touches only the job. Then the job
 * is put into the mailbox that it names, whose owner calls done: so requests are touched by their
 * own loop alone. Without a mailbox the worker calls done. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mailbox.h"

struct workers;

struct job {
    struct mail mail; /* first, so that one is the other; links queues and the mailbox */
    void (*run)(struct job *job);
    void (*done)(struct job *job); /* may be NULL */
    struct mailbox *mailbox;       /* may be NULL */
};

/* The job of a piece of mail from a mailbox that jobs name. */
static inline struct job *job_of(struct mail *mail)
{
    return (struct job *)mail;
}

/* NULL when no threads can be started. count 0: one for each processor. At least 3. */
struct workers *workers_start(unsigned count);

/* Queues a job, which must live until done is called (without done: until run returns). Never
 * blocks. */
void workers_submit(struct workers *workers, struct job *job);

/* The same for a job that may take longer than about 10 ms. It never takes the last thread, which
 * is left to ordinary jobs. */
void workers_submit_long(struct workers *workers, struct job *job);

/* Queues a job as ordinary or long, by how many bytes it hashes or decodes. */
void workers_submit_sized(struct workers *workers, struct job *job, uint64_t bytes);

/* The same for background work that no request waits for: after all other jobs. It leaves one
 * thread to long jobs and one to ordinary ones. */
void workers_submit_idle(struct workers *workers, struct job *job);

/* Runs all queued jobs, then ends the threads and frees. Takes NULL. */
void workers_stop(struct workers *workers);

/* One of several that wait for the same result. Both functions may be called from any thread; wake
 * is called once, and last. */
struct waiter {
    void (*wake)(struct waiter *waiter);
    /* Whether nobody would take the result any more; NULL: never. */
    bool (*is_gone)(const struct waiter *waiter);
    struct waiter *next;
};

/* Wakes all of a list. */
void waiters_wake(struct waiter *first);

/* Whether there are waiters, and all of them are gone: then the result need not be made. */
bool waiters_are_gone(const struct waiter *first);

/* --- work in many parts --- */

struct crew_work {
    uint32_t count;
    /* Called by several threads at once. False: parts after this index need not be done. */
    bool (*run)(void *context, uint32_t index);
    void *context;
};

/* On a worker. Runs all parts, begun in rising order. Returns the least index whose run returned
 * false, or count. Never waits for a worker to become free; workers may be NULL: then there are no
 * helpers. */
uint32_t crew_run(struct workers *workers, const struct crew_work *work);

#endif
