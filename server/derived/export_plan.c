/* The plans that there are: a list in order of last use, bounded by their number and by the memory
 * of those that nobody uses. */
#include "derived/export_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "derived/export_question.h"
#include "derived/export_work.h"
#include "zt/digest.h"

/* The list is walked for each request. */
#define PLANS_MAX 256
/* Laid out, a file of 100,000 objects takes about 15 MB, most of it the index that will be sent. */
#define CACHE_BYTES ((uint64_t)128 << 20)

enum state {
    STATE_NEW,
    STATE_OUTLINING,
    STATE_OUTLINED,
    STATE_PREPARING,
    STATE_READY,
    STATE_FAILED
};

struct plan {
    struct export_plan base; /* first: what is handed out is the plan */
    struct export_cache *cache;
    struct export_question question;
    enum state state;
    bool listed;
    unsigned references; /* the work's own is one of them */
    struct export_work *work;
    struct waiter *waiters;
    time_t looked_s; /* when it was last looked whether they are there */
    struct plan *newer;
    struct plan *older;
};

struct export_cache {
    struct server *server;
    pthread_mutex_t lock;
    struct plan *newest;
    struct plan *oldest;
    size_t count;
    uint64_t bytes; /* of plans that are ready */
    atomic_bool stopping;
};

struct export_cache *export_cache_new(struct server *server)
{
    struct export_cache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL)
        return NULL;
    cache->server = server;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void export_cache_stop(struct export_cache *cache)
{
    atomic_store(&cache->stopping, true);
}

/* --- the list; the lock is held --- */

static uint64_t charge(const struct plan *plan)
{
    const struct zt_file_plan *image = plan->base.image;
    uint64_t bytes = sizeof(*plan) + 2 * plan->question.length;

    if (image == NULL)
        return bytes;
    for (size_t i = 0; i < image->piece_count; i++)
        bytes += image->pieces[i].is_component ? 0 : image->pieces[i].length;
    return bytes + image->piece_count * sizeof(*image->pieces) +
           plan->base.part_count * sizeof(*plan->base.parts);
}

static void enlist(struct export_cache *cache, struct plan *plan)
{
    plan->listed = true;
    plan->newer = NULL;
    plan->older = cache->newest;
    if (cache->newest != NULL)
        cache->newest->newer = plan;
    else
        cache->oldest = plan;
    cache->newest = plan;
    cache->count++;
}

static void delist(struct export_cache *cache, struct plan *plan)
{
    if (plan->newer != NULL)
        plan->newer->older = plan->older;
    else
        cache->newest = plan->older;
    if (plan->older != NULL)
        plan->older->newer = plan->newer;
    else
        cache->oldest = plan->newer;
    plan->listed = false;
    cache->count--;
}

/* Takes a plan out of the list; it goes when nobody holds it. */
static void drop(struct export_cache *cache, struct plan *plan)
{
    if (!plan->listed)
        return;
    delist(cache, plan);
    if (plan->state == STATE_READY)
        cache->bytes -= charge(plan);
}

/* Those that nobody holds go, oldest first, until the rest is within bounds; *doomed gathers what
 * is to be freed once the lock is given back. */
static struct plan *shrink(struct export_cache *cache)
{
    struct plan *doomed = NULL;
    struct plan *plan = cache->oldest;

    while (plan != NULL && (cache->bytes > CACHE_BYTES || cache->count > PLANS_MAX)) {
        struct plan *newer = plan->newer;

        if (plan->references == 0) {
            drop(cache, plan);
            plan->older = doomed;
            doomed = plan;
        }
        plan = newer;
    }
    return doomed;
}

static void free_plan(struct plan *plan)
{
    export_work_free(plan->work);
    zt_file_plan_free(plan->base.image);
    free(plan->base.parts);
    export_question_free(&plan->question);
    free(plan);
}

static void free_plans(struct plan *doomed)
{
    while (doomed != NULL) {
        struct plan *next = doomed->older;

        free_plan(doomed);
        doomed = next;
    }
}

void export_cache_free(struct export_cache *cache)
{
    struct plan *doomed = NULL;

    if (cache == NULL)
        return;
    while (cache->oldest != NULL) {
        struct plan *plan = cache->oldest;

        assert(plan->references == 0);
        drop(cache, plan);
        plan->older = doomed;
        doomed = plan;
    }
    free_plans(doomed);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* --- finding --- */

/* NULL when memory is out. */
static struct plan *make_plan(struct export_cache *cache, const struct generation *generation,
                              const struct export_query *query)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL)
        return NULL;
    if (!export_question_init(&plan->question, generation, query)) {
        free_plan(plan);
        return NULL;
    }
    plan->cache = cache;
    plan->references = 1;
    zt_error_clear(&plan->base.error);
    zt_xxh3_128(plan->question.text, plan->question.length, plan->base.identity);
    return plan;
}

struct export_plan *export_plan_find(struct export_cache *cache, struct generation *generation,
                                     const struct export_query *query)
{
    struct plan *made = make_plan(cache, generation, query);
    struct plan *plan;

    if (made == NULL)
        return NULL;
    pthread_mutex_lock(&cache->lock);
    plan = cache->newest;
    while (plan != NULL && !export_question_is_same(&plan->question, &made->question))
        plan = plan->older;
    if (plan != NULL) {
        plan->references++;
        /* It was used now. */
        delist(cache, plan);
        enlist(cache, plan);
    } else {
        enlist(cache, made);
    }
    pthread_mutex_unlock(&cache->lock);
    if (plan == NULL)
        return &made->base;
    free_plan(made);
    return &plan->base;
}

/* Drops a hold. What is not whole and nobody wants is begun anew by the next who asks: its outline
 * holds files open. */
static void release(struct plan *plan)
{
    struct export_cache *cache = plan->cache;
    struct plan *doomed;

    pthread_mutex_lock(&cache->lock);
    assert(plan->references > 0);
    plan->references--;
    if (plan->references == 0 && plan->state != STATE_READY)
        drop(cache, plan);
    doomed = shrink(cache);
    if (plan->references == 0 && !plan->listed && plan->state != STATE_READY) {
        plan->older = doomed;
        doomed = plan;
    }
    pthread_mutex_unlock(&cache->lock);
    free_plans(doomed);
}

void export_plan_release(void *thing)
{
    release(thing);
}

/* --- stages --- */

/* Whether the requests that hold the plan all wait for it, and are all gone. Not looked at each
 * time: it costs a call for each of them. The lock is held. */
static bool is_abandoned(struct plan *plan)
{
    struct timespec now;
    unsigned waiting = 0;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec == plan->looked_s)
        return false;
    plan->looked_s = now.tv_sec;
    for (const struct waiter *waiter = plan->waiters; waiter != NULL; waiter = waiter->next)
        waiting++;
    return waiting + 1 == plan->references && waiters_are_gone(plan->waiters);
}

/* Whether a request, not only the work itself, holds the plan. One that nobody wants is found by
 * nobody else. */
static bool is_wanted(void *context)
{
    struct plan *plan = context;
    bool wanted;

    if (atomic_load(&plan->cache->stopping))
        return false;
    pthread_mutex_lock(&plan->cache->lock);
    wanted = plan->references > 1 && !is_abandoned(plan);
    if (!wanted)
        drop(plan->cache, plan);
    pthread_mutex_unlock(&plan->cache->lock);
    return wanted;
}

/* Takes the outcome of a stage in. The lock is held. */
static void settle(struct plan *plan, const struct export_result *result)
{
    struct export_cache *cache = plan->cache;

    if (result->failed) {
        plan->base.failure = result->failure;
        plan->base.verdict = result->verdict;
        plan->base.error = result->error;
        /* Whoever asks next begins anew: what failed may pass. */
        drop(cache, plan);
        plan->state = STATE_FAILED;
    } else if (plan->state == STATE_OUTLINING) {
        plan->state = STATE_OUTLINED;
    } else {
        plan->base.image = result->image;
        plan->base.parts = result->parts;
        plan->base.part_count = result->part_count;
        plan->state = STATE_READY;
        if (plan->listed)
            cache->bytes += charge(plan);
    }
}

static void stage_ended(void *context)
{
    struct plan *plan = context;
    struct export_work *done = NULL;
    struct export_result result;
    struct waiter *waiter;

    export_work_take(plan->work, &result);
    pthread_mutex_lock(&plan->cache->lock);
    settle(plan, &result);
    if (plan->state != STATE_OUTLINED) {
        done = plan->work;
        plan->work = NULL;
    }
    waiter = plan->waiters;
    plan->waiters = NULL;
    pthread_mutex_unlock(&plan->cache->lock);
    export_work_free(done);
    while (waiter != NULL) {
        struct waiter *next = waiter->next;

        waiter->wake(waiter);
        waiter = next;
    }
    release(plan);
}

/* The lock is held; true when the stage is to be begun, for which the plan is held. */
static bool join(struct plan *plan, enum state before, enum state doing, struct waiter *waiter)
{
    waiter->next = plan->waiters;
    plan->waiters = waiter;
    if (plan->state != before)
        return false;
    plan->state = doing;
    plan->references++;
    return true;
}

enum export_answer export_plan_outline(struct export_plan *base, struct generation *generation,
                                       struct waiter *waiter)
{
    struct plan *plan = (struct plan *)base;
    const struct export_order order = {.server = plan->cache->server,
                                       .generation = generation,
                                       .query = &plan->question.query,
                                       .ended = stage_ended,
                                       .wanted = is_wanted,
                                       .context = plan};
    bool begun = false;
    enum state state;

    pthread_mutex_lock(&plan->cache->lock);
    if (plan->state == STATE_NEW && plan->work == NULL)
        plan->work = export_work_new(&order);
    if (plan->state == STATE_NEW && plan->work == NULL) {
        zt_fail(&plan->base.error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an export");
        plan->base.failure = EXPORT_ERROR;
        drop(plan->cache, plan);
        plan->state = STATE_FAILED;
    }
    if (plan->state == STATE_NEW || plan->state == STATE_OUTLINING)
        begun = join(plan, STATE_NEW, STATE_OUTLINING, waiter);
    state = plan->state;
    pthread_mutex_unlock(&plan->cache->lock);
    if (begun)
        export_work_outline(plan->work);
    if (state == STATE_OUTLINING)
        return EXPORT_PENDING;
    return state == STATE_FAILED ? EXPORT_FAILED : EXPORT_READY;
}

enum export_answer export_plan_prepare(struct export_plan *base, struct waiter *waiter)
{
    struct plan *plan = (struct plan *)base;
    bool begun = false;
    enum state state;

    pthread_mutex_lock(&plan->cache->lock);
    assert(plan->state >= STATE_OUTLINED);
    if (plan->state == STATE_OUTLINED || plan->state == STATE_PREPARING)
        begun = join(plan, STATE_OUTLINED, STATE_PREPARING, waiter);
    state = plan->state;
    pthread_mutex_unlock(&plan->cache->lock);
    if (begun)
        export_work_prepare(plan->work);
    if (state == STATE_PREPARING)
        return EXPORT_PENDING;
    return state == STATE_FAILED ? EXPORT_FAILED : EXPORT_READY;
}
