/* The pool: two queues (ordinary before idle) under one lock, and threads that take from them.
 *
 * One thread never takes idle jobs, so that background hashing cannot keep a waiting request from its turn. */
#include "runtime/workers.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "http/loop.h"

/* A verification job is of megabytes: fewer than two threads would let one of them hold up every small job. */
#define WORKERS_LEAST 2
/* More than any configuration allows; bounds the array. */
#define WORKERS_MOST 1024

struct queue {
    struct job *first;
    struct job **last;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct queue ordinary;
    struct queue idle;
    size_t pending;
    size_t idle_running;
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
    job->next = NULL;
    *queue->last = job;
    queue->last = &job->next;
}

static struct job *queue_take(struct queue *queue)
{
    struct job *job = queue->first;

    if (job == NULL)
        return NULL;
    queue->first = job->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return job;
}

/* The lock is held. While stopping idle jobs may take every thread: nobody waits any more. */
static struct job *next_job(struct workers *workers, bool *out_idle)
{
    struct job *job = queue_take(&workers->ordinary);

    *out_idle = false;
    if (job != NULL)
        return job;
    if (!workers->stopping && workers->idle_running + 1 >= workers->count)
        return NULL;
    *out_idle = true;
    return queue_take(&workers->idle);
}

static void run_job(struct job *job)
{
    /* Without done the job may be gone as soon as run returns. */
    void (*done)(struct job * job) = job->done;
    struct loop *loop = job->loop;

    job->run(job);
    if (done == NULL)
        return;
    if (loop != NULL)
        loop_post(loop, job);
    else
        done(job);
}

static void *worker_main(void *argument)
{
    struct workers *workers = argument;
    bool idle;

    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct job *job = next_job(workers, &idle);

        if (job == NULL && workers->stopping && workers->pending == 0)
            break;
        if (job == NULL) {
            pthread_cond_wait(&workers->ready, &workers->lock);
            continue;
        }
        workers->idle_running += idle;
        pthread_mutex_unlock(&workers->lock);
        run_job(job);
        pthread_mutex_lock(&workers->lock);
        workers->idle_running -= idle;
        workers->pending--;
        /* Whoever waits for an idle turn, or for the end, looks again. */
        if (idle || workers->stopping)
            pthread_cond_broadcast(&workers->ready);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* Signals are the loops' affair: workers block them all. */
static void start_threads(struct workers *workers, unsigned count)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&workers->lock);
    while (workers->count < count && pthread_create(&workers->threads[workers->count], NULL, worker_main, workers) == 0)
        workers->count++;
    pthread_mutex_unlock(&workers->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static unsigned chosen_count(unsigned count)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (count == 0)
        count = processors > 0 ? (unsigned)processors : 1;
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
    queue_init(&workers->ordinary);
    queue_init(&workers->idle);
    start_threads(workers, count);
    /* One thread alone would never take an idle job. */
    if (workers->count < WORKERS_LEAST) {
        workers_stop(workers);
        return NULL;
    }
    return workers;
}

static void submit(struct workers *workers, struct queue *queue, struct job *job)
{
    assert(job->run != NULL);
    pthread_mutex_lock(&workers->lock);
    queue_put(queue, job);
    workers->pending++;
    /* A thread woken by signal might be the one that may not take an idle job. */
    if (queue == &workers->idle)
        pthread_cond_broadcast(&workers->ready);
    else
        pthread_cond_signal(&workers->ready);
    pthread_mutex_unlock(&workers->lock);
}

void workers_submit(struct workers *workers, struct job *job)
{
    submit(workers, &workers->ordinary, job);
}

void workers_submit_idle(struct workers *workers, struct job *job)
{
    submit(workers, &workers->idle, job);
}

size_t workers_pending(const struct workers *workers)
{
    /* The lock is no part of what a caller may see as changing. */
    struct workers *locked = (struct workers *)(uintptr_t)workers;
    size_t pending;

    pthread_mutex_lock(&locked->lock);
    pending = locked->pending;
    pthread_mutex_unlock(&locked->lock);
    return pending;
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
