/* The pool: three queues (ordinary, long, idle) under one lock, and threads that take from them.
 *
 * One thread is always left to ordinary jobs, and one of the others to long ones, so that neither
 * exports nor background hashing keep a request waiting. */
#include "base/workers.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/processors.h"
#include "base/thread.h"

/* One for each kind of job. */
#define WORKERS_LEAST 3
/* About 10 ms of hashing. */
#define LONG_BYTES ((uint64_t)4 << 20)
/* More than any configuration allows; bounds the array. */
#define WORKERS_MOST 1024

struct queue {
    struct mail *first;
    struct mail **last;
};

enum kind { KIND_ORDINARY, KIND_LONG, KIND_IDLE, KINDS };

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct queue queues[KINDS];
    size_t running[KINDS];
    size_t pending;
    bool stopping;
    unsigned count;
    pthread_t threads[];
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static void queue_put(struct queue *queue, struct job *job)
{
    assert(*queue->last == NULL);
    job->mail.next = NULL;
    *queue->last = &job->mail;
    queue->last = &job->mail.next;
}

static struct job *queue_take(struct queue *queue)
{
    struct mail *first = queue->first;

    if (first == NULL)
        return NULL;
    queue->first = first->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return job_of(first);
}

/* With the lock held. While the pool stops they may take every thread: nothing waits any more. */
static bool may_run(const struct workers *workers, enum kind kind)
{
    const size_t lengthy = workers->running[KIND_LONG] + workers->running[KIND_IDLE];

    if (kind == KIND_ORDINARY || workers->stopping)
        return true;
    return lengthy + 1 < workers->count &&
           (kind == KIND_LONG || workers->running[KIND_IDLE] + 2 < workers->count);
}

static struct job *take_if_may(struct workers *workers, enum kind kind, enum kind *out_kind)
{
    *out_kind = kind;
    return may_run(workers, kind) ? queue_take(&workers->queues[kind]) : NULL;
}

/* With the lock held. One thread prefers long jobs, so that they make progress however many
 * ordinary ones there are. */
static struct job *next_job(struct workers *workers, enum kind *out_kind)
{
    struct job *job =
        workers->running[KIND_LONG] == 0 ? take_if_may(workers, KIND_LONG, out_kind) : NULL;

    for (enum kind kind = KIND_ORDINARY; job == NULL && kind < KINDS; kind++)
        job = take_if_may(workers, kind, out_kind);
    return job;
}

static void run_job(struct job *job)
{
    /* Without done the job may be freed before run returns. */
    void (*done)(struct job * job) = job->done;
    struct mailbox *mailbox = job->mailbox;

    job->run(job);
    if (done == NULL)
        return;
    if (mailbox != NULL)
        mailbox_put(mailbox, &job->mail);
    else
        done(job);
}

static void *worker_main(void *argument)
{
    struct workers *workers = argument;
    enum kind kind;

    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct job *job = next_job(workers, &kind);

        if (job == NULL && workers->stopping && workers->pending == 0)
            break;
        if (job == NULL) {
            pthread_cond_wait(&workers->ready, &workers->lock);
            continue;
        }
        workers->running[kind]++;
        pthread_mutex_unlock(&workers->lock);
        run_job(job);
        pthread_mutex_lock(&workers->lock);
        assert(workers->running[kind] > 0 && workers->pending > 0);
        workers->running[kind]--;
        workers->pending--;
        /* Threads that may not have been allowed to take such a job, or wait for the end, look
         * again. */
        if (kind != KIND_ORDINARY || workers->stopping)
            pthread_cond_broadcast(&workers->ready);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static void start_threads(struct workers *workers, unsigned count)
{
    pthread_mutex_lock(&workers->lock);
    while (workers->count < count &&
           thread_start(&workers->threads[workers->count], "worker", worker_main, workers) == 0)
        workers->count++;
    pthread_mutex_unlock(&workers->lock);
}

static unsigned chosen_count(unsigned count)
{
    if (count == 0)
        count = processors_count();
    if (count < WORKERS_LEAST)
        count = WORKERS_LEAST;
    return count < WORKERS_MOST ? count : WORKERS_MOST;
}

struct workers *workers_start(unsigned count)
{
    struct workers *workers;

    count = chosen_count(count);
    workers = calloc(1, sizeof(*workers) + count * sizeof(workers->threads[0]));
    if (workers == NULL)
        return NULL;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->ready, NULL);
    for (enum kind kind = KIND_ORDINARY; kind < KINDS; kind++)
        queue_init(&workers->queues[kind]);
    start_threads(workers, count);
    /* With fewer, jobs of some kind would never run. */
    if (workers->count < WORKERS_LEAST) {
        workers_stop(workers);
        return NULL;
    }
    return workers;
}

static void submit(struct workers *workers, enum kind kind, struct job *job)
{
    assert(job->run != NULL);
    pthread_mutex_lock(&workers->lock);
    queue_put(&workers->queues[kind], job);
    workers->pending++;
    pthread_cond_signal(&workers->ready);
    pthread_mutex_unlock(&workers->lock);
}

void workers_submit(struct workers *workers, struct job *job)
{
    submit(workers, KIND_ORDINARY, job);
}

void workers_submit_long(struct workers *workers, struct job *job)
{
    submit(workers, KIND_LONG, job);
}

void workers_submit_sized(struct workers *workers, struct job *job, uint64_t bytes)
{
    submit(workers, bytes > LONG_BYTES ? KIND_LONG : KIND_ORDINARY, job);
}

void workers_submit_idle(struct workers *workers, struct job *job)
{
    submit(workers, KIND_IDLE, job);
}

void workers_stop(struct workers *workers)
{
    if (workers == NULL)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->ready);
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->ready);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void waiters_wake(struct waiter *first)
{
    while (first != NULL) {
        /* Once woken, a waiter may be freed. */
        struct waiter *next = first->next;

        first->wake(first);
        first = next;
    }
}

bool waiters_are_gone(const struct waiter *first)
{
    const struct waiter *waiter = first;

    while (waiter != NULL && waiter->is_gone != NULL && waiter->is_gone(waiter))
        waiter = waiter->next;
    return first != NULL && waiter == NULL;
}
