/* Workers: a bounded pool of threads for whatever takes longer than about 100 µs.
 *
 * The owner of a job embeds struct job in a structure of its own. run touches nothing but that
 * structure. Afterwards the job is put into its mailbox, and the mailbox's owner calls done: so
 * only its own loop touches a request. Without a mailbox the worker calls done. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mailbox.h"

struct workers;

/* The client of jobs that the server does for itself. */
#define JOB_OF_SERVER ((uint64_t)0)

struct job_line;

struct job {
    struct mail mail; /* first, for job_of; links queues and the mailbox */
    void (*run)(struct job *job);
    void (*done)(struct job *job); /* may be NULL */
    struct mailbox *mailbox;       /* may be NULL */
    /* Who waits for it (request_client_key): clients take turns, and one alone cannot occupy all
     * threads. */
    uint64_t client;
    struct job_line *line; /* the pool's: where it is queued; NULL: nowhere */
};

/* The job in a mailbox that holds only jobs. */
static inline struct job *job_of(struct mail *mail)
{
    return (struct job *)mail;
}

/* Starts count threads, but at least 4; if count is 0, three more than there are processors. NULL
 * if that fails. */
struct workers *workers_start(unsigned count);

/* Queues a job, which must live until done is called (without done: until run returns). Never
 * blocks. */
void workers_submit(struct workers *workers, struct job *job);

/* The same for a job that may take longer than about 10 ms. Such jobs leave one thread to ordinary
 * ones. */
void workers_submit_long(struct workers *workers, struct job *job);

/* Queues a job as ordinary or long, according to the number of bytes that it hashes or decodes. */
void workers_submit_sized(struct workers *workers, struct job *job, uint64_t bytes);

/* The same for background work that no request waits for. It runs after all other jobs, and leaves
 * one thread to long jobs and one to ordinary ones. */
void workers_submit_idle(struct workers *workers, struct job *job);

/* How busy the pool is, by kind of job: ordinary, long, idle. */
#define WORKERS_KINDS 3

struct workers_load {
    unsigned threads;
    size_t queued[WORKERS_KINDS];
    size_t running[WORKERS_KINDS];
};

void workers_load(struct workers *workers, struct workers_load *out_load);

/* Whether so many ordinary and long jobs are queued that no new request should add to them: 256 for
 * each thread, or 1024 if that is more. Takes no lock. */
bool workers_are_overloaded(const struct workers *workers);

/* Whether half as many are. Takes no lock. */
bool workers_are_crowded(const struct workers *workers);

/* Whether no new request of this client should add to the queues: they are overloaded, or half of
 * that many jobs are its own. */
bool workers_refuse(struct workers *workers, uint64_t client);

/* To be called when one more client waits for what a job gives, and the job cannot be freed yet. If
 * it is still queued and would have its turn earlier as a job of this client, it becomes one. */
void workers_share(struct workers *workers, struct job *job, uint64_t client);

/* How many idle jobs can run at a time. */
unsigned workers_for_idle(const struct workers *workers);

const char *workers_kind_name(unsigned kind);

/* Runs all queued jobs, then ends the threads and frees the pool. Takes NULL. */
void workers_stop(struct workers *workers);

/* One of several waiters for the same result. Both functions may be called from any thread; wake is
 * called once, after all other calls. */
struct waiter {
    void (*wake)(struct waiter *waiter);
    /* Whether the result is no longer wanted; NULL: it always is. */
    bool (*is_gone)(const struct waiter *waiter);
    struct waiter *next;
    uint64_t client; /* who waits (job.client) */
};

/* Wakes every waiter of a list. */
void waiters_wake(struct waiter *first);

/* Whether there are waiters and all of them are gone, so that the result need not be made. */
bool waiters_are_gone(const struct waiter *first);

/* --- work in many parts --- */

struct crew_work {
    uint32_t count;
    /* Called by several threads at once. False: parts after this index need not be done. */
    bool (*run)(void *context, uint32_t index);
    void *context;
};

/* Runs all parts, which begin in rising order. To be called on a worker. Returns the least index
 * whose run returned false, or count. Never waits for a worker to become free. workers may be NULL:
 * then this thread does everything. */
uint32_t crew_run(struct workers *workers, const struct crew_work *work);

#endif
