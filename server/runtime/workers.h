/* Workers: a bounded pool of threads for whatever takes longer than about 100 µs.
 *
 * A job is a structure of its owner's with this one inside. run touches only the job; done is called on the loop that
 * the job names (or, without a loop, on the worker), so that requests are touched by their own loop alone. */
#ifndef RUNTIME_WORKERS_H
#define RUNTIME_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct workers;

struct job {
    void (*run)(struct job *job);
    void (*done)(struct job *job); /* may be NULL */
    struct loop *loop;             /* may be NULL */
    struct job *next;              /* the queue's */
};

/* NULL when no thread can be started. count 0: as many as processors, at least 2. */
struct workers *workers_start(unsigned count);

/* Queues a job, which must live until done was called (or run returned, without done). Never blocks. */
void workers_submit(struct workers *workers, struct job *job);

/* The same, behind every ordinary job: for background work that no request waits for. */
void workers_submit_idle(struct workers *workers, struct job *job);

/* Jobs waiting or running. */
size_t workers_pending(const struct workers *workers);

/* Runs what is queued, then stops and frees. Takes NULL. */
void workers_stop(struct workers *workers);

/* Somebody who waits for a result that several may wait for. wake is called once, from any thread. */
struct waiter {
    void (*wake)(struct waiter *waiter);
    struct waiter *next;
};

#endif
