/* A queue in front of that of the workers; it passes on only a few jobs at a time. */
#include "http/exchange/digest_queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/job_queue.h"

struct digest_queue {
    struct workers *workers;
    pthread_mutex_t lock;
    struct job_queue jobs;
    unsigned at_once;
    unsigned running;
    atomic_bool stopped;
};

struct digest_queue *digest_queue_new(struct workers *workers, unsigned at_once)
{
    struct digest_queue *queue = calloc(1, sizeof(*queue));

    if (queue == NULL)
        return NULL;
    queue->workers = workers;
    queue->at_once = at_once > 0 ? at_once : 1;
    job_queue_init(&queue->jobs);
    pthread_mutex_init(&queue->lock, NULL);
    return queue;
}

void digest_queue_free(struct digest_queue *queue)
{
    if (queue == NULL)
        return;
    assert(queue->jobs.length == 0);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

void digest_queue_stop(struct digest_queue *queue)
{
    atomic_store(&queue->stopped, true);
}

bool digest_queue_is_stopped(const struct digest_queue *queue)
{
    return atomic_load(&queue->stopped);
}

static bool may_always_run(const void *context, uint64_t client)
{
    (void)context;
    (void)client;
    return true;
}

static void pass_on(struct digest_queue *queue)
{
    struct job *next;

    pthread_mutex_lock(&queue->lock);
    next = job_queue_take(&queue->jobs, may_always_run, NULL);
    assert(queue->running > 0);
    queue->running -= next == NULL;
    pthread_mutex_unlock(&queue->lock);
    if (next != NULL)
        workers_submit(queue->workers, next);
}

static void run_job(struct job *job)
{
    struct digest_job *digest_job = (struct digest_job *)job;
    struct digest_queue *queue = digest_job->queue;

    digest_job->run(digest_job);
    /* The job may have been freed. */
    pass_on(queue);
}

void digest_queue_submit(struct digest_queue *queue, struct digest_job *digest_job)
{
    bool now;

    digest_job->job = (struct job){.run = run_job, .client = digest_job->client};
    digest_job->queue = queue;
    pthread_mutex_lock(&queue->lock);
    assert(queue->running <= queue->at_once);
    assert(queue->running == queue->at_once || queue->jobs.length == 0);
    now = queue->running < queue->at_once;
    if (now)
        queue->running++;
    else
        job_queue_put(&queue->jobs, &digest_job->job);
    pthread_mutex_unlock(&queue->lock);
    if (now)
        workers_submit(queue->workers, &digest_job->job);
}
