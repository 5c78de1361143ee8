/* A queue before the workers' own, from which only so many turns are with them at a time. */
#include "http/exchange/digest_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct digest_queue {
    struct workers *workers;
    pthread_mutex_t lock;
    struct digest_turn *first;
    struct digest_turn **last;
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
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    return queue;
}

void digest_queue_free(struct digest_queue *queue)
{
    if (queue == NULL)
        return;
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

/* The lock is held. */
static struct digest_turn *take_first(struct digest_queue *queue)
{
    struct digest_turn *turn = queue->first;

    if (turn == NULL)
        return NULL;
    queue->first = turn->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return turn;
}

static void pass_on(struct digest_queue *queue)
{
    struct digest_turn *next;

    pthread_mutex_lock(&queue->lock);
    next = take_first(queue);
    queue->running -= next == NULL;
    pthread_mutex_unlock(&queue->lock);
    if (next != NULL)
        workers_submit(queue->workers, &next->job);
}

static void run_turn(struct job *job)
{
    struct digest_turn *turn = (struct digest_turn *)job;
    struct digest_queue *queue = turn->queue;

    turn->run(turn);
    /* The turn may be gone. */
    pass_on(queue);
}

void digest_queue_submit(struct digest_queue *queue, struct digest_turn *turn)
{
    bool now;

    turn->job = (struct job){.run = run_turn};
    turn->queue = queue;
    turn->next = NULL;
    pthread_mutex_lock(&queue->lock);
    now = queue->running < queue->at_once;
    if (now) {
        queue->running++;
    } else {
        *queue->last = turn;
        queue->last = &turn->next;
    }
    pthread_mutex_unlock(&queue->lock);
    if (now)
        workers_submit(queue->workers, &turn->job);
}
