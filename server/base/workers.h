/* Workers: a bounded pool of threads for all work that takes longer than about 100 µs.
 *
 * The owner of a job embeds struct job in its own structure. run may use only that structure.
 * Afterwards the job is put into its mailbox, and the mailbox's owner calls done, so that only its
 * own loop touches a request. Without a mailbox the worker calls done. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mailbox.h"

struct workers;

/* The client of the server's own jobs. */
#define JOB_OF_SERVER ((uint64_t)0)

struct job_line;

struct job {
    struct mail mail; /* first, for job_of; used by queues and the mailbox */
    void (*run)(struct job *job);
    void (*done)(struct job *job); /* may be NULL */
    struct mailbox *mailbox;       /* may be NULL */
    /* The client that waits for it (request_client_key): clients take turns, and a single client
     * cannot occupy all threads. */
    uint64_t client;
    struct job_line *line; /* for the pool: where it is queued; NULL: not queued */
};

/* Returns the job of a mail, for a mailbox that contains only jobs. */
static inline struct job *job_of(struct mail *mail)
{
    return (struct job *)mail;
}

/* Starts count threads, but at least 4; if count is 0, three more than there are processors.
 * Returns NULL on failure. */
struct workers *workers_start(unsigned count);

/* Queues a job, which must stay valid until done is called (without done: until run returns). Never
 * blocks. */
void workers_submit(struct workers *workers, struct job *job);

/* Does the same for a job that may take longer than about 10 ms. Such jobs leave one thread to
 * ordinary jobs. */
void workers_submit_long(struct workers *workers, struct job *job);

/* Queues a job as ordinary or long, depending on the number of bytes that it hashes or decodes. */
void workers_submit_sized(struct workers *workers, struct job *job, uint64_t bytes);

/* Does the same for background work that no request waits for. It runs after all other jobs, and
 * leaves one thread to long jobs and one to ordinary jobs. */
void workers_submit_idle(struct workers *workers, struct job *job);

/* The load of the pool by kind of job: ordinary, long, idle. */
#define WORKERS_KINDS 3

struct workers_load {
    unsigned threads;
    size_t queued[WORKERS_KINDS];
    size_t running[WORKERS_KINDS];
};

void workers_load(struct workers *workers, struct workers_load *out_load);

/* Returns true if so many ordinary and long jobs are queued that no new request should add to them:
 * 256 per thread, or 1024 if that is more. Takes no lock. */
bool workers_are_overloaded(const struct workers *workers);

/* Returns true if half as many are queued. Takes no lock. */
bool workers_are_crowded(const struct workers *workers);

/* Returns true if no new request of this client should add to the queues: they are overloaded, or
 * this client has half of the jobs at which they would be. */
bool workers_refuse(struct workers *workers, uint64_t client);

/* Call it when another client waits for the result of a job; the job must not have been freed. If
 * it is still queued and would run earlier as a job of this client, it becomes this client's
 * job. */
void workers_share(struct workers *workers, struct job *job, uint64_t client);

/* Returns how many idle jobs can run at the same time. */
unsigned workers_for_idle(const struct workers *workers);

const char *workers_kind_name(unsigned kind);

/* Runs all queued jobs, then ends the threads and frees the pool. Accepts NULL. */
void workers_stop(struct workers *workers);

/* One of several waiters for the same result. Both functions may be called on any thread; wake is
 * called once, after all other calls. */
struct waiter {
    void (*wake)(struct waiter *waiter);
    /* Returns true if the result is no longer wanted; NULL: it is always wanted. */
    bool (*is_gone)(const struct waiter *waiter);
    struct waiter *next;
    uint64_t client; /* the waiting client (job.client) */
};

/* Wakes all waiters of a list. */
void waiters_wake(struct waiter *first);

/* Returns true if there are waiters and all of them are gone, so that the result need not be
 * made. */
bool waiters_are_gone(const struct waiter *first);

#endif
