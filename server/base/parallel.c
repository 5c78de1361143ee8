/* Helpers on workers are idle jobs that run one iteration each, so that other jobs do not wait for
 * them. A helper that first runs after the loop has ended only drops its reference. */
#include "base/parallel.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/processors.h"
#include "base/thread.h"
#include "base/workers.h"

#define HELPERS_MOST 15

struct loop {
    struct parallel_work work;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    uint32_t next;
    uint32_t end; /* the count, or the lowest index that returned false */
    unsigned active;
};

/* Runs the next iteration. Returns false if none is left. */
static bool run_next(struct loop *loop)
{
    uint32_t index;
    bool proceed;

    pthread_mutex_lock(&loop->lock);
    if (loop->next >= loop->end) {
        pthread_mutex_unlock(&loop->lock);
        return false;
    }
    index = loop->next++;
    loop->active++;
    pthread_mutex_unlock(&loop->lock);

    proceed = loop->work.run(loop->work.context, index);

    pthread_mutex_lock(&loop->lock);
    assert(loop->active > 0 && loop->end <= loop->work.count);
    if (!proceed && index < loop->end)
        loop->end = index;
    if (--loop->active == 0)
        pthread_cond_signal(&loop->idle);
    pthread_mutex_unlock(&loop->lock);
    return true;
}

static void loop_init(struct loop *loop, const struct parallel_work *work)
{
    *loop = (struct loop){.work = *work, .end = work->count};
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->idle, NULL);
}

static void loop_destroy(struct loop *loop)
{
    assert(loop->active == 0);
    pthread_cond_destroy(&loop->idle);
    pthread_mutex_destroy(&loop->lock);
}

static uint32_t run_alone(const struct parallel_work *work)
{
    uint32_t at = 0;

    while (at < work->count && work->run(work->context, at))
        at++;
    return at;
}

/* --- on workers --- */

struct helper {
    struct job job; /* first: the job is the structure */
    struct shared_loop *shared;
};

struct shared_loop {
    struct loop loop;
    struct workers *workers;
    unsigned references; /* under the loop's lock: the caller and all queued helpers */
    struct helper helpers[HELPERS_MOST];
};

static void release(struct shared_loop *shared)
{
    bool is_last;

    pthread_mutex_lock(&shared->loop.lock);
    assert(shared->references > 0);
    is_last = --shared->references == 0;
    pthread_mutex_unlock(&shared->loop.lock);
    if (is_last) {
        loop_destroy(&shared->loop);
        free(shared);
    }
}

static void run_helper(struct job *job)
{
    struct shared_loop *shared = ((struct helper *)job)->shared;

    if (run_next(&shared->loop))
        workers_submit_idle(shared->workers, job);
    else
        release(shared);
}

uint32_t parallel_for(struct workers *workers, const struct parallel_work *work)
{
    const unsigned others = processors_count() - 1;
    const unsigned most = others < HELPERS_MOST ? others : HELPERS_MOST;
    const unsigned wanted = work->count > most ? most : work->count - 1;
    struct shared_loop *shared = NULL;
    uint32_t end;

    if (workers != NULL && work->count > 1)
        shared = calloc(1, sizeof(*shared));
    if (shared == NULL)
        return run_alone(work);
    loop_init(&shared->loop, work);
    shared->workers = workers;
    shared->references = 1 + wanted;
    for (unsigned i = 0; i < wanted; i++) {
        shared->helpers[i].shared = shared;
        shared->helpers[i].job.run = run_helper;
        workers_submit_idle(workers, &shared->helpers[i].job);
    }
    while (run_next(&shared->loop))
        continue;
    pthread_mutex_lock(&shared->loop.lock);
    while (shared->loop.active > 0)
        pthread_cond_wait(&shared->loop.idle, &shared->loop.lock);
    end = shared->loop.end;
    pthread_mutex_unlock(&shared->loop.lock);
    release(shared);
    return end;
}

/* --- on threads --- */

static void *run_thread(void *loop)
{
    while (run_next(loop))
        continue;
    return NULL;
}

uint32_t parallel_for_threads(const char *name, unsigned threads, const struct parallel_work *work)
{
    pthread_t others[PARALLEL_THREADS_MAX];
    unsigned started = 0;
    struct loop loop;

    assert(threads > 0 && threads <= PARALLEL_THREADS_MAX);
    loop_init(&loop, work);
    while (started + 1 < threads && started + 1 < work->count &&
           thread_start(&others[started], name, run_thread, &loop) == 0)
        started++;
    run_thread(&loop);
    while (started > 0)
        pthread_join(others[--started], NULL);
    loop_destroy(&loop);
    return loop.end;
}
