/* The pool: three queues (ordinary, long, idle) under one lock and threads that take from them, and
 * crews, in which one worker shares its task with threads that have nothing else to do.
 *
 * One thread is always left to ordinary jobs, and one of the others to long ones, so that neither
 * exports nor background hashing keep a request waiting. */
#include "base/workers.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "base/processors.h"
#include "base/thread.h"

/* One for each kind of job. */
#define WORKERS_LEAST 3
/* About 10 ms of hashing. */
#define LONG_BYTES ((uint64_t)4 << 20)
/* Some seconds of work, if most of it is short. */
#define QUEUED_PER_THREAD 256u
#define QUEUED_LEAST      1024u
/* More than any configuration allows; bounds the array. */
#define WORKERS_MOST 1024

struct queue {
    struct mail *first;
    struct mail **last;
    size_t length;
};

enum kind { KIND_ORDINARY, KIND_LONG, KIND_IDLE, KINDS };

static_assert((int)KINDS == (int)WORKERS_KINDS, "workers.h counts the kinds");
static_assert((int)METRIC_JOBS_IDLE - (int)METRIC_JOBS_ORDINARY == (int)KIND_IDLE,
              "a counter for each kind, in their order");

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct queue queues[KINDS];
    size_t running[KINDS];
    size_t pending;
    atomic_size_t awaited; /* queued jobs other than idle ones */
    bool stopping;
    unsigned count;
    pthread_t threads[];
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
    queue->length = 0;
}

static void queue_put(struct queue *queue, struct job *job)
{
    assert(*queue->last == NULL);
    job->mail.next = NULL;
    *queue->last = &job->mail;
    queue->last = &job->mail.next;
    queue->length++;
}

static struct job *queue_take(struct queue *queue)
{
    struct mail *first = queue->first;

    if (first == NULL)
        return NULL;
    assert(queue->length > 0);
    queue->length--;
    queue->first = first->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return job_of(first);
}

/* With the lock held. While the pool stops, all kinds may take every thread: no request waits any
 * more. */
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
    struct job *job = may_run(workers, kind) ? queue_take(&workers->queues[kind]) : NULL;

    *out_kind = kind;
    if (job != NULL && kind != KIND_IDLE)
        atomic_fetch_sub_explicit(&workers->awaited, 1, memory_order_relaxed);
    return job;
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
        metric_add(METRIC_JOBS_ORDINARY + (enum metric)kind, 1);
        run_job(job);
        pthread_mutex_lock(&workers->lock);
        assert(workers->running[kind] > 0 && workers->pending > 0);
        workers->running[kind]--;
        workers->pending--;
        /* Other threads may now be allowed to take such a job, or may see that all jobs are
         * done. */
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

bool workers_are_overloaded(const struct workers *workers)
{
    const size_t most = workers->count * QUEUED_PER_THREAD;

    return atomic_load_explicit(&workers->awaited, memory_order_relaxed) >=
           (most > QUEUED_LEAST ? most : QUEUED_LEAST);
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

/* --- crews ---
 *
 * Helpers are idle jobs that do one part at a time, so that other jobs do not wait for them. A
 * helper that first runs when all parts are done only drops its reference to the crew. */

#define HELPERS_MOST 15

struct crew;

struct helper {
    struct job job; /* first: the job is the structure */
    struct crew *crew;
};

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct workers *workers;
    struct crew_work work;
    uint32_t next;
    uint32_t end; /* the count, or the least index that returned false */
    unsigned active;
    unsigned references;
    struct helper helpers[HELPERS_MOST];
};

static bool take_part(struct crew *crew, uint32_t *out_index)
{
    bool taken;

    pthread_mutex_lock(&crew->lock);
    taken = crew->next < crew->end;
    if (taken) {
        *out_index = crew->next++;
        crew->active++;
    }
    pthread_mutex_unlock(&crew->lock);
    return taken;
}

static void end_part(struct crew *crew, uint32_t index, bool proceed)
{
    pthread_mutex_lock(&crew->lock);
    assert(crew->active > 0);
    if (!proceed && index < crew->end)
        crew->end = index;
    if (--crew->active == 0)
        pthread_cond_signal(&crew->idle);
    pthread_mutex_unlock(&crew->lock);
}

static bool do_part(struct crew *crew)
{
    uint32_t index;

    if (!take_part(crew, &index))
        return false;
    end_part(crew, index, crew->work.run(crew->work.context, index));
    return true;
}

static void release(struct crew *crew)
{
    bool is_last;

    pthread_mutex_lock(&crew->lock);
    assert(crew->references > 0);
    is_last = --crew->references == 0;
    pthread_mutex_unlock(&crew->lock);
    if (is_last) {
        pthread_cond_destroy(&crew->idle);
        pthread_mutex_destroy(&crew->lock);
        free(crew);
    }
}

static void run_helper(struct job *job)
{
    struct crew *crew = ((struct helper *)job)->crew;

    if (do_part(crew))
        workers_submit_idle(crew->workers, job);
    else
        release(crew);
}

static unsigned helpers_wanted(uint32_t parts)
{
    const unsigned others = processors_count() - 1;
    const unsigned most = others < HELPERS_MOST ? others : HELPERS_MOST;

    return parts > most ? most : parts - 1;
}

static struct crew *crew_new(struct workers *workers, const struct crew_work *work)
{
    struct crew *crew = calloc(1, sizeof(*crew));

    if (crew == NULL)
        return NULL;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->idle, NULL);
    crew->workers = workers;
    crew->work = *work;
    crew->end = work->count;
    crew->references = 1;
    return crew;
}

static void queue_helpers(struct crew *crew)
{
    unsigned count = helpers_wanted(crew->work.count);

    crew->references += count;
    for (unsigned i = 0; i < count; i++) {
        crew->helpers[i].crew = crew;
        crew->helpers[i].job.run = run_helper;
        workers_submit_idle(crew->workers, &crew->helpers[i].job);
    }
}

static uint32_t run_alone(const struct crew_work *work)
{
    uint32_t at = 0;

    while (at < work->count && work->run(work->context, at))
        at++;
    return at;
}

uint32_t crew_run(struct workers *workers, const struct crew_work *work)
{
    struct crew *crew = workers != NULL && work->count > 1 ? crew_new(workers, work) : NULL;
    uint32_t end;

    if (crew == NULL)
        return run_alone(work);
    queue_helpers(crew);
    while (do_part(crew))
        continue;
    pthread_mutex_lock(&crew->lock);
    while (crew->active > 0)
        pthread_cond_wait(&crew->idle, &crew->lock);
    end = crew->end;
    pthread_mutex_unlock(&crew->lock);
    release(crew);
    return end;
}
