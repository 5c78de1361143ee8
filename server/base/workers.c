/* The pool: three queues (ordinary, long, idle) under one lock, and threads that take jobs from
 * them.
 *
 * One thread is reserved for ordinary jobs, and one of the others for ordinary and long ones, so
 * that neither exports nor background hashing make a request wait. In addition, each client leaves
 * one thread of each kind to other clients. */
#include "base/workers.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/job_queue.h"
#include "base/metrics.h"
#include "base/processors.h"
#include "base/thread.h"

/* Threads in addition to one per processor: the one reserved for ordinary jobs, the one reserved
 * for long ones, and the one that each client leaves to others. So one client's work can keep all
 * processors busy. */
#define WORKERS_LEFT 3u
/* The number for a single processor: with fewer threads, two clients could not run some kind of
 * work at the same time. */
#define WORKERS_LEAST (WORKERS_LEFT + 1)
/* About 10 ms of hashing. */
#define LONG_BYTES ((uint64_t)4 << 20)
/* Some seconds of work, if most jobs are short. */
#define QUEUED_PER_THREAD 256u
#define QUEUED_LEAST      1024u
/* More than any configuration allows; the size of the array. */
#define WORKERS_MOST 1024

enum kind { KIND_ORDINARY, KIND_LONG, KIND_IDLE, KINDS };

static_assert((int)KINDS == (int)WORKERS_KINDS, "workers.h counts the kinds");
static_assert((int)METRIC_JOBS_IDLE - (int)METRIC_JOBS_ORDINARY == (int)KIND_IDLE,
              "a counter for each kind, in their order");

/* The current activity of a thread. */
struct run {
    bool is_busy;
    enum kind kind;
    uint64_t client;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct job_queue queues[KINDS];
    struct run *runs; /* by thread */
    unsigned started; /* number of threads that have taken their place in runs */
    size_t running[KINDS];
    size_t pending;
    atomic_size_t awaited; /* number of queued jobs, except idle ones */
    bool stopping;
    unsigned count;
    pthread_t threads[];
};

/* --- who may run --- */

/* Returns the number of threads that jobs of a kind may use. */
static size_t threads_for(const struct workers *workers, enum kind kind)
{
    return workers->count - (size_t)kind;
}

/* Returns true if a job of this kind leaves the threads reserved for other kinds free. It checks
 * this kind and each earlier kind, whose limit covers it too. While the pool stops, all kinds may
 * use all threads, since no request waits any more. The lock must be held. */
static bool kind_may_run(const struct workers *workers, enum kind wanted)
{
    size_t running = 0;

    if (wanted == KIND_ORDINARY || workers->stopping)
        return true;
    for (unsigned kind = KINDS; kind-- > KIND_LONG;) {
        running += workers->running[kind];
        if (kind <= wanted && running >= threads_for(workers, (enum kind)kind))
            return false;
    }
    return true;
}

/* Returns the number of threads that run jobs of a client, of this kind or a later one. */
static size_t running_for(const struct workers *workers, enum kind kind, uint64_t client)
{
    size_t running = 0;

    for (unsigned i = 0; i < workers->count; i++)
        running += workers->runs[i].is_busy && workers->runs[i].kind >= kind &&
                   workers->runs[i].client == client;
    return running;
}

struct asked {
    const struct workers *workers;
    enum kind kind;
};

/* Returns true if the client leaves a thread to others: of those for each kind, which are at least
 * two, it must leave one. */
static bool client_may_run(const void *context, uint64_t client)
{
    const struct asked *asked = context;

    if (client == JOB_OF_SERVER || asked->workers->stopping)
        return true;
    for (enum kind kind = KIND_ORDINARY; kind <= asked->kind; kind++) {
        const size_t threads = threads_for(asked->workers, kind);

        assert(threads > 1);
        if (running_for(asked->workers, kind, client) >= threads - 1)
            return false;
    }
    return true;
}

static struct job *take_if_may(struct workers *workers, enum kind kind, enum kind *out_kind)
{
    const struct asked asked = {workers, kind};
    struct job *job = kind_may_run(workers, kind)
                          ? job_queue_take(&workers->queues[kind], client_may_run, &asked)
                          : NULL;

    *out_kind = kind;
    if (job != NULL && kind != KIND_IDLE)
        atomic_fetch_sub_explicit(&workers->awaited, 1, memory_order_relaxed);
    return job;
}

/* Returns the next job. One thread prefers long jobs, so that they make progress however many
 * ordinary jobs are queued. The lock must be held. */
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
    /* Without done, the job may be freed before run returns. */
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

static bool any_is_queued(const struct workers *workers)
{
    size_t queued = 0;

    for (enum kind kind = KIND_ORDINARY; kind < KINDS; kind++)
        queued += workers->queues[kind].length;
    return queued > 0;
}

/* Called by a thread that has ended a job and taken the next. The end may have let another job run
 * than the one that it took, for which one more thread is enough. To wake all would take longer
 * than most jobs: server_waiters has many. The lock must be held. */
static void share_end(struct workers *workers)
{
    if (any_is_queued(workers))
        pthread_cond_signal(&workers->ready);
}

static void *worker_main(void *argument)
{
    struct workers *workers = argument;
    bool has_ended = false; /* a job, just now */
    struct run *run;
    enum kind kind;

    pthread_mutex_lock(&workers->lock);
    run = &workers->runs[workers->started++];
    for (;;) {
        struct job *job = next_job(workers, &kind);

        if (job == NULL && workers->stopping && workers->pending == 0)
            break;
        if (job == NULL) {
            has_ended = false;
            pthread_cond_wait(&workers->ready, &workers->lock);
            continue;
        }
        workers->running[kind]++;
        *run = (struct run){true, kind, job->client};
        if (has_ended)
            share_end(workers);
        pthread_mutex_unlock(&workers->lock);
        metric_add(METRIC_JOBS_ORDINARY + (enum metric)kind, 1);
        run_job(job);
        pthread_mutex_lock(&workers->lock);
        assert(workers->running[kind] > 0 && workers->pending > 0);
        workers->running[kind]--;
        workers->pending--;
        run->is_busy = false;
        has_ended = true;
        /* Other threads may find that all jobs are done. */
        if (workers->stopping)
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
        count = processors_count() + WORKERS_LEFT;
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
    workers->runs = calloc(count, sizeof(*workers->runs));
    if (workers->runs == NULL) {
        free(workers);
        return NULL;
    }
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->ready, NULL);
    for (enum kind kind = KIND_ORDINARY; kind < KINDS; kind++)
        job_queue_init(&workers->queues[kind]);
    start_threads(workers, count);
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
    job_queue_put(&workers->queues[kind], job);
    workers->pending++;
    if (kind != KIND_IDLE)
        atomic_fetch_add_explicit(&workers->awaited, 1, memory_order_relaxed);
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

void workers_load(struct workers *workers, struct workers_load *out_load)
{
    pthread_mutex_lock(&workers->lock);
    out_load->threads = workers->count;
    for (enum kind kind = KIND_ORDINARY; kind < KINDS; kind++) {
        out_load->queued[kind] = workers->queues[kind].length;
        out_load->running[kind] = workers->running[kind];
    }
    pthread_mutex_unlock(&workers->lock);
}

static size_t queued_most(const struct workers *workers)
{
    const size_t most = workers->count * QUEUED_PER_THREAD;

    return most > QUEUED_LEAST ? most : QUEUED_LEAST;
}

bool workers_are_overloaded(const struct workers *workers)
{
    return atomic_load_explicit(&workers->awaited, memory_order_relaxed) >= queued_most(workers);
}

bool workers_are_crowded(const struct workers *workers)
{
    return atomic_load_explicit(&workers->awaited, memory_order_relaxed) >=
           queued_most(workers) / 2;
}

bool workers_refuse(struct workers *workers, uint64_t client)
{
    size_t queued;

    if (workers_are_overloaded(workers))
        return true;
    pthread_mutex_lock(&workers->lock);
    queued = job_queue_count(&workers->queues[KIND_ORDINARY], client) +
             job_queue_count(&workers->queues[KIND_LONG], client);
    pthread_mutex_unlock(&workers->lock);
    return queued >= queued_most(workers) / 2;
}

void workers_share(struct workers *workers, struct job *job, uint64_t client)
{
    if (client == JOB_OF_SERVER)
        return;
    pthread_mutex_lock(&workers->lock);
    for (enum kind kind = KIND_ORDINARY; job->line != NULL && kind < KINDS; kind++) {
        const struct asked asked = {workers, kind};

        if (job_queue_has(&workers->queues[kind], job))
            job_queue_move(&workers->queues[kind], job, client, client_may_run, &asked);
    }
    /* A thread may be idle because the job's client could have no more running jobs. */
    pthread_cond_signal(&workers->ready);
    pthread_mutex_unlock(&workers->lock);
}

unsigned workers_for_idle(const struct workers *workers)
{
    return (unsigned)threads_for(workers, KIND_IDLE);
}

const char *workers_kind_name(unsigned kind)
{
    static const char *const names[] = {
        [KIND_ORDINARY] = "ordinary", [KIND_LONG] = "long", [KIND_IDLE] = "idle"};

    assert(kind < KINDS);
    return names[kind];
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
    free(workers->runs);
    free(workers);
}

void waiters_wake(struct waiter *first)
{
    while (first != NULL) {
        /* Read this first: a waiter may be freed once it is woken. */
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
