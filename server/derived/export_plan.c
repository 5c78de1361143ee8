/* Keeps the plans of exports in order of last use, within bounds on their number and memory, and
 * shares each plan among the requests that ask for it. Plans in use are never evicted.
 * export_work.c and export_prepare.c make them. */
#include "derived/export_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/recency.h"
#include "derived/export_work.h"
#include "zt/digest.h"

/* Every request walks the list. */
#define PLANS_MAX 256
/* The plan of a file of 100,000 objects takes about 15 MB, most of it the index to be sent. */
#define CACHE_BYTES ((uint64_t)128 << 20)
/* How often to check whether the waiting clients are still there: a system call for each. */
#define WAITERS_CHECK_MS 1000

enum state {
    STATE_NEW,
    STATE_OUTLINING,
    STATE_OUTLINED,
    STATE_PREPARING,
    STATE_READY,
    STATE_FAILED
};

/* Identifies the version of a model's files. A plan must not hold the generation, which would keep
 * them open. */
struct version {
    char etag[GENERATION_ETAG_SIZE];
    uint64_t device;
    int64_t changed_ns;
};

struct plan {
    struct recency_link link; /* first: the list's entry is the plan */
    struct export_plan base;
    struct export_cache *cache;
    struct version version;
    struct export_query query; /* a copy; its lists and texts are one block, `copied` */
    void *copied;
    char *query_text; /* unique description of the query */
    size_t query_length;
    enum state state;
    bool listed;
    unsigned references; /* by requests, and one by the work while a stage runs */
    struct export_work *work;
    struct waiter *waiters;
    int64_t waiters_checked_ms;
    struct plan *next_evicted;
};

struct export_cache {
    struct server *server;
    pthread_mutex_t lock;
    struct recency plans;
    uint64_t bytes; /* of the listed plans that are ready */
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

static struct plan *plan_of(struct export_plan *base)
{
    return (struct plan *)(void *)((char *)base - offsetof(struct plan, base));
}

/* --- the query of a plan --- */

/* Every text follows its length, so that different queries have different descriptions. */
static void write_query(FILE *stream, const struct export_query *query)
{
    fprintf(stream, "%d %" PRIu64 "/%" PRIu64 " %zu:", (int)query->target, query->cut.part,
            query->cut.parts, query->prefix.length);
    fwrite(query->prefix.bytes, 1, query->prefix.length, stream);
    for (size_t i = 0; i < query->match_count; i++) {
        fprintf(stream, " %zu:", query->matches[i].length);
        fwrite(query->matches[i].bytes, 1, query->matches[i].length, stream);
    }
    for (size_t i = 0; i < query->rule_count; i++) {
        fprintf(stream, " @%" PRId64 " %zu:", query->rules[i].axis, query->rules[i].glob.length);
        fwrite(query->rules[i].glob.bytes, 1, query->rules[i].glob.length, stream);
    }
    if (query->to_f32)
        fputs(" f32", stream);
    if (query->count > 0)
        fprintf(stream, " %" PRIu32 "+%" PRIu32, query->first, query->count);
    if (query->is_for_torch)
        fputs(" torch", stream);
}

static bool describe_query(struct plan *plan)
{
    FILE *stream = open_memstream(&plan->query_text, &plan->query_length);

    if (stream == NULL)
        return false;
    write_query(stream, &plan->query);
    return fclose(stream) == 0;
}

static char *copy_text(char *at, struct zt_text *text)
{
    if (text->length > 0)
        memcpy(at, text->bytes, text->length);
    text->bytes = at;
    return at + text->length;
}

static size_t length_of_texts(const struct export_query *query)
{
    size_t length = query->prefix.length;

    for (size_t i = 0; i < query->match_count; i++)
        length += query->matches[i].length;
    for (size_t i = 0; i < query->rule_count; i++)
        length += query->rules[i].glob.length;
    return length;
}

static bool copy_query(struct plan *plan, const struct export_query *query)
{
    const size_t length = length_of_texts(query);
    struct axis_rule *rules = malloc(query->rule_count * sizeof(*rules) +
                                     query->match_count * sizeof(struct zt_text) + length + 1);
    struct zt_text *matches;
    char *at;

    if (rules == NULL)
        return false;
    matches = (struct zt_text *)(void *)(rules + query->rule_count);
    plan->copied = rules;
    plan->query = *query;
    plan->query.rules = rules;
    plan->query.matches = matches;
    at = copy_text((char *)(matches + query->match_count), &plan->query.prefix);
    for (size_t i = 0; i < query->match_count; i++) {
        matches[i] = query->matches[i];
        at = copy_text(at, &matches[i]);
    }
    for (size_t i = 0; i < query->rule_count; i++) {
        rules[i] = query->rules[i];
        at = copy_text(at, &rules[i].glob);
    }
    assert(at == (char *)(matches + query->match_count) + length);
    return true;
}

static bool is_same(const struct plan *a, const struct plan *b)
{
    return a->query_length == b->query_length &&
           memcmp(a->query_text, b->query_text, a->query_length) == 0 &&
           strcmp(a->version.etag, b->version.etag) == 0 &&
           a->version.device == b->version.device && a->version.changed_ns == b->version.changed_ns;
}

/* --- the list; the lock is held --- */

static uint64_t charge(const struct plan *plan)
{
    const struct zt_file_plan *file = plan->base.file;
    uint64_t bytes = sizeof(*plan) + 2 * plan->query_length;

    if (file == NULL)
        return bytes;
    for (size_t i = 0; i < file->piece_count; i++)
        bytes += file->pieces[i].is_component ? 0 : file->pieces[i].length;
    return bytes + file->piece_count * sizeof(*file->pieces) +
           plan->base.origin_count * sizeof(*plan->base.origins);
}

static void list(struct plan *plan)
{
    assert(!plan->listed);
    plan->listed = true;
    recency_add(&plan->cache->plans, &plan->link);
}

/* The plan is no longer found, and is freed once nobody holds it. */
static void unlist(struct plan *plan)
{
    if (!plan->listed)
        return;
    plan->listed = false;
    recency_remove(&plan->cache->plans, &plan->link);
    if (plan->state == STATE_READY) {
        assert(plan->cache->bytes >= charge(plan));
        plan->cache->bytes -= charge(plan);
    }
}

/* Unlists a plan that nobody holds and adds it to *evicted, to be freed without the lock. */
static void evict(struct plan *plan, struct plan **evicted)
{
    assert(plan->references == 0 && plan->listed);
    unlist(plan);
    plan->next_evicted = *evicted;
    *evicted = plan;
}

/* Evicts plans that nobody holds, oldest first, until the rest is within bounds. */
static void shrink(struct export_cache *cache, struct plan **evicted)
{
    struct recency_link *link = cache->plans.oldest;

    while (link != NULL && (cache->bytes > CACHE_BYTES || cache->plans.count > PLANS_MAX)) {
        struct plan *plan = (struct plan *)link;

        link = link->newer;
        if (plan->references == 0)
            evict(plan, evicted);
    }
}

static void free_plan(struct plan *plan)
{
    assert(!plan->listed && plan->waiters == NULL);
    export_work_free(plan->work);
    zt_file_plan_free(plan->base.file);
    free(plan->base.origins);
    free(plan->query_text);
    free(plan->copied);
    free(plan);
}

static void free_plans(struct plan *evicted)
{
    while (evicted != NULL) {
        struct plan *next = evicted->next_evicted;

        free_plan(evicted);
        evicted = next;
    }
}

void export_cache_free(struct export_cache *cache)
{
    struct plan *evicted = NULL;

    if (cache == NULL)
        return;
    while (cache->plans.oldest != NULL)
        evict((struct plan *)cache->plans.oldest, &evicted);
    free_plans(evicted);
    assert(cache->bytes == 0);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* --- finding --- */

/* NULL if out of memory. */
static struct plan *make_plan(struct export_cache *cache, const struct generation *generation,
                              const struct export_query *query)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL)
        return NULL;
    if (!copy_query(plan, query) || !describe_query(plan)) {
        free_plan(plan);
        return NULL;
    }
    memcpy(plan->version.etag, generation->etag, sizeof(plan->version.etag));
    plan->version.device = generation->identity.device;
    plan->version.changed_ns = generation->identity.changed_ns;
    plan->cache = cache;
    plan->references = 1;
    zt_error_clear(&plan->base.error);
    zt_xxh3_128(plan->query_text, plan->query_length, plan->base.identity);
    return plan;
}

struct export_plan *export_plan_find(struct export_cache *cache, struct generation *generation,
                                     const struct export_query *query)
{
    struct plan *made = make_plan(cache, generation, query);
    struct recency_link *link;
    struct plan *found;

    if (made == NULL)
        return NULL;
    pthread_mutex_lock(&cache->lock);
    link = cache->plans.newest;
    while (link != NULL && !is_same((struct plan *)link, made))
        link = link->older;
    found = (struct plan *)link;
    if (found != NULL) {
        found->references++;
        recency_touch(&cache->plans, link);
    } else {
        list(made);
    }
    pthread_mutex_unlock(&cache->lock);
    if (found == NULL)
        return &made->base;
    free_plan(made);
    return &found->base;
}

/* Drops a reference. An unfinished plan that nobody holds is freed at once, since its work keeps
 * files open. */
static void release(struct plan *plan)
{
    struct export_cache *cache = plan->cache;
    struct plan *evicted = NULL;

    pthread_mutex_lock(&cache->lock);
    assert(plan->references > 0);
    plan->references--;
    if (plan->references == 0 && plan->state != STATE_READY)
        unlist(plan);
    if (plan->references == 0 && !plan->listed)
        evicted = plan;
    shrink(cache, &evicted);
    pthread_mutex_unlock(&cache->lock);
    free_plans(evicted);
}

void export_plan_release(void *base)
{
    release(plan_of(base));
}

/* --- stages --- */

/* Whether every request that holds the plan waits for it and has lost its client. The lock is
 * held. */
static bool is_abandoned(struct plan *plan)
{
    const int64_t now_ms = clock_coarse_ms();
    unsigned waiting = 0;

    if (now_ms - plan->waiters_checked_ms < WAITERS_CHECK_MS)
        return false;
    plan->waiters_checked_ms = now_ms;
    for (const struct waiter *waiter = plan->waiters; waiter != NULL; waiter = waiter->next)
        waiting++;
    return waiting + 1 == plan->references && waiters_are_gone(plan->waiters);
}

/* Whether a request, not only the work, wants the plan. A plan that nobody wants is unlisted, so
 * that no request finds it while its work ends. */
static bool is_wanted(void *context)
{
    struct plan *plan = context;
    bool wanted;

    if (atomic_load(&plan->cache->stopping))
        return false;
    pthread_mutex_lock(&plan->cache->lock);
    wanted = plan->references > 1 && !is_abandoned(plan);
    if (!wanted)
        unlist(plan);
    pthread_mutex_unlock(&plan->cache->lock);
    return wanted;
}

/* A failed plan is unlisted: the failure may pass, so the next request starts over. */
static void fail(struct plan *plan, const struct export_result *result)
{
    plan->base.failure = result->failure;
    plan->base.verdict = result->verdict;
    plan->base.error = result->error;
    unlist(plan);
    plan->state = STATE_FAILED;
}

/* Records the result of a stage. The lock is held. */
static void record(struct plan *plan, const struct export_result *result)
{
    assert(plan->state == STATE_OUTLINING || plan->state == STATE_PREPARING);
    if (result->failed) {
        fail(plan, result);
    } else if (plan->state == STATE_OUTLINING) {
        plan->state = STATE_OUTLINED;
    } else {
        assert(result->file != NULL && result->origins != NULL);
        plan->base.file = result->file;
        plan->base.origins = result->origins;
        plan->base.origin_count = result->origin_count;
        plan->state = STATE_READY;
        if (plan->listed)
            plan->cache->bytes += charge(plan);
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
    record(plan, &result);
    if (plan->state != STATE_OUTLINED) {
        done = plan->work;
        plan->work = NULL;
    }
    waiter = plan->waiters;
    plan->waiters = NULL;
    pthread_mutex_unlock(&plan->cache->lock);
    export_work_free(done);
    waiters_wake(waiter);
    release(plan);
}

/* Makes the work of a new plan. */
static void make_work(struct plan *plan, struct generation *generation, uint64_t client)
{
    const struct export_order order = {.server = plan->cache->server,
                                       .generation = generation,
                                       .client = client,
                                       .query = &plan->query,
                                       .ended = stage_ended,
                                       .wanted = is_wanted,
                                       .context = plan};
    struct export_result failed = {.failed = true, .failure = EXPORT_ERROR};

    pthread_mutex_lock(&plan->cache->lock);
    if (plan->state == STATE_NEW && plan->work == NULL)
        plan->work = export_work_new(&order);
    if (plan->state == STATE_NEW && plan->work == NULL) {
        zt_fail(&failed.error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an export");
        fail(plan, &failed);
    }
    pthread_mutex_unlock(&plan->cache->lock);
}

/* Begins a stage unless it has begun, and adds the waiter unless it has ended. before: the state in
 * which the stage begins; while the stage runs, the plan is held and in the state after before. */
static enum export_answer ask(struct plan *plan, enum state before,
                              void (*begin)(struct export_work *work), struct waiter *waiter)
{
    const enum state doing = before + 1;
    enum state state;

    pthread_mutex_lock(&plan->cache->lock);
    state = plan->state;
    assert(state >= before);
    if (state == before || state == doing) {
        waiter->next = plan->waiters;
        plan->waiters = waiter;
    }
    if (state == before) {
        plan->state = doing;
        plan->references++;
    } else if (state == doing) {
        export_work_share(plan->work, waiter->client);
    }
    pthread_mutex_unlock(&plan->cache->lock);
    if (state == before)
        begin(plan->work);
    if (state == before || state == doing)
        return EXPORT_PENDING;
    return state == STATE_FAILED ? EXPORT_FAILED : EXPORT_READY;
}

enum export_answer export_plan_outline(struct export_plan *base, struct generation *generation,
                                       struct waiter *waiter)
{
    struct plan *plan = plan_of(base);

    make_work(plan, generation, waiter->client);
    return ask(plan, STATE_NEW, export_work_outline, waiter);
}

enum export_answer export_plan_prepare(struct export_plan *base, struct waiter *waiter)
{
    return ask(plan_of(base), STATE_OUTLINED, export_work_prepare, waiter);
}
