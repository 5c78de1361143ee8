/* Keeps findings in order of last use, and has them made by a job that requests wait for.
 *
 * Entries are keyed by the version of the file and what was asked. Only the job holds the
 * generation, which would keep its files open. */
#include "numbers/findings.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/recency.h"
#include "numbers/computation.h"
#include "numbers/decoded_elements.h"
#include "numbers/statistics_json.h"
#include "zt/digest.h"

/* Every request walks the list. */
#define FINDINGS_MAX 512
/* The largest preview takes 4 MiB. */
#define FINDINGS_BYTES_MAX ((uint64_t)32 << 20)
/* After a failure it is tried again after this time. */
#define RETRY_MS 1000
/* How often to check whether the waiting clients are still there: a system call for each. */
#define WAITERS_CHECK_MS 250

enum state { STATE_MAKING, STATE_READY, STATE_FAILED };

struct entry {
    struct recency_link link; /* first: the list's entry is the entry */
    struct finding base;
    struct finding_cache *cache;
    uint64_t key[2];
    enum state state;
    bool listed;
    unsigned references; /* by requests, and one by the job */
    struct job *job;     /* until it runs */
    struct waiter *waiters;
    int64_t waiters_checked_ms;
    int64_t ended_ms;
    struct zt_error error;
    struct entry *next_freed;
};

struct finding_cache {
    struct server *server;
    pthread_mutex_t lock;
    struct recency entries;
    uint64_t bytes; /* of those that are listed and ready */
    atomic_bool stopping;
};

struct making {
    struct job job; /* first: the job is the structure */
    struct entry *entry;
    struct generation *generation;
    struct finding_order order;
    struct zt_slice slice; /* if order.slice points to it */
};

struct finding_cache *finding_cache_new(struct server *server)
{
    struct finding_cache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL)
        return NULL;
    cache->server = server;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void finding_cache_stop(struct finding_cache *cache)
{
    atomic_store(&cache->stopping, true);
}

/* --- the key --- */

#define KEY_NUMBERS (18 + 3 * ZT_SLICE_RANK_MAX)

static size_t describe_slice(const struct zt_slice *slice, uint64_t *out_numbers)
{
    size_t count = 0;

    out_numbers[count++] = (uint64_t)slice->rank << 32 | slice->loop_count;
    out_numbers[count++] = slice->offset;
    out_numbers[count++] = slice->run_bytes;
    out_numbers[count++] = slice->length;
    for (unsigned i = 0; i < slice->rank; i++)
        out_numbers[count++] = slice->shape[i];
    for (unsigned i = 0; i < slice->loop_count; i++) {
        out_numbers[count++] = slice->loops[i].count;
        out_numbers[count++] = slice->loops[i].stride_bytes;
    }
    return count;
}

static void make_key(const struct generation *generation, const struct finding_order *order,
                     uint64_t out_key[2])
{
    const struct zt_preview *preview = &order->preview;
    struct {
        char etag[GENERATION_ETAG_SIZE];
        uint64_t numbers[KEY_NUMBERS];
    } key;
    size_t count = 0;

    memset(&key, 0, sizeof(key));
    memcpy(key.etag, generation->etag, sizeof(key.etag));
    key.numbers[count++] = generation->identity.device;
    key.numbers[count++] = (uint64_t)generation->identity.changed_ns;
    key.numbers[count++] = order->component;
    key.numbers[count++] = order->bins;
    if (order->bins == 0) {
        key.numbers[count++] = (uint64_t)preview->reduction;
        key.numbers[count++] = (uint64_t)preview->out_rows << 32 | preview->out_cols;
        key.numbers[count++] = preview->block_rows;
        key.numbers[count++] = preview->block_cols;
        key.numbers[count++] = preview->cols;
        key.numbers[count++] = preview->first;
        key.numbers[count++] = preview->count;
    }
    if (order->slice != NULL)
        count += describe_slice(order->slice, key.numbers + count);
    assert(count <= KEY_NUMBERS);
    zt_xxh3_128(&key, sizeof(key), out_key);
}

/* --- the list; the lock is held --- */

static struct entry *find(struct finding_cache *cache, const uint64_t key[2])
{
    struct recency_link *link = cache->entries.newest;

    while (link != NULL && memcmp(((struct entry *)link)->key, key, 2 * sizeof(*key)) != 0)
        link = link->older;
    return (struct entry *)link;
}

/* It is no longer found, and freed once nobody holds it. */
static void unlist(struct entry *entry, struct entry **freed)
{
    struct finding_cache *cache = entry->cache;

    if (!entry->listed)
        return;
    entry->listed = false;
    recency_remove(&cache->entries, &entry->link);
    if (entry->state == STATE_READY)
        cache->bytes -= entry->base.length;
    if (entry->references == 0) {
        entry->next_freed = *freed;
        *freed = entry;
    }
}

/* Removes entries that nobody holds, oldest first, until the rest is within bounds. */
static void shrink(struct finding_cache *cache, struct entry **freed)
{
    struct recency_link *link = cache->entries.oldest;

    while (link != NULL &&
           (cache->bytes > FINDINGS_BYTES_MAX || cache->entries.count > FINDINGS_MAX)) {
        struct entry *entry = (struct entry *)link;

        link = link->newer;
        if (entry->references == 0)
            unlist(entry, freed);
    }
}

static void free_entries(struct entry *freed)
{
    while (freed != NULL) {
        struct entry *next = freed->next_freed;

        assert(!freed->listed && freed->references == 0 && freed->waiters == NULL);
        free(freed->base.bytes);
        free(freed);
        freed = next;
    }
}

void finding_cache_free(struct finding_cache *cache)
{
    struct entry *freed = NULL;

    if (cache == NULL)
        return;
    while (cache->entries.oldest != NULL)
        unlist((struct entry *)cache->entries.oldest, &freed);
    assert(cache->bytes == 0);
    free_entries(freed);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static void release(struct entry *entry)
{
    struct finding_cache *cache = entry->cache;
    struct entry *freed = NULL;

    pthread_mutex_lock(&cache->lock);
    assert(entry->references > 0);
    entry->references--;
    if (entry->references == 0 && !entry->listed)
        freed = entry;
    shrink(cache, &freed);
    pthread_mutex_unlock(&cache->lock);
    free_entries(freed);
}

void finding_release(void *finding)
{
    release((struct entry *)(void *)((char *)finding - offsetof(struct entry, base)));
}

/* --- making --- */

/* Whether a request waits for it. One that nobody waits for is unlisted, so that no request finds
 * it while the work ends. */
static bool is_wanted(void *context)
{
    struct entry *entry = context;
    struct finding_cache *cache = entry->cache;
    const int64_t now_ms = clock_coarse_ms();
    struct entry *freed = NULL;
    bool wanted;

    if (atomic_load(&cache->stopping))
        return false;
    pthread_mutex_lock(&cache->lock);
    wanted = entry->listed;
    if (wanted && now_ms - entry->waiters_checked_ms >= WAITERS_CHECK_MS) {
        entry->waiters_checked_ms = now_ms;
        wanted = !waiters_are_gone(entry->waiters);
        if (!wanted)
            unlist(entry, &freed);
    }
    pthread_mutex_unlock(&cache->lock);
    /* The job holds it. */
    assert(freed == NULL);
    return wanted;
}

static enum zt_status write_statistics(const struct making *making,
                                       const struct zt_elements *elements,
                                       const struct computing *computing, struct finding *out,
                                       struct zt_error *error)
{
    const struct zt_model *model = making->generation->model;
    const struct statistics_subject subject = {.model = model,
                                               .object = &model->objects[making->order.object],
                                               .component =
                                                   &model->components[making->order.component],
                                               .slice = making->order.slice};
    struct statistics *statistics = malloc(sizeof(*statistics));
    enum zt_status status;
    struct json json;

    if (statistics == NULL)
        return zt_fail_memory(error, "statistics");
    status = statistics_compute(elements, making->order.bins, computing, statistics, error);
    if (status == ZT_OK) {
        json_init(&json, false);
        statistics_write(&json, &subject, statistics);
        if (json.failed) {
            json_free(&json);
            status = zt_fail_memory(error, "statistics");
        } else {
            *out = (struct finding){json.text, json.length};
        }
    }
    free(statistics);
    return status;
}

static enum zt_status make_preview(const struct making *making, const struct zt_elements *elements,
                                   const struct computing *computing, struct finding *out,
                                   struct zt_error *error)
{
    const struct zt_preview *preview = &making->order.preview;
    const size_t cells = (size_t)preview->out_rows * preview->out_cols;
    double *values = calloc(cells + 1, sizeof(*values));
    enum zt_status status;

    if (values == NULL)
        return zt_fail_memory(error, "a preview");
    status = preview_compute(elements, preview, computing, values, error);
    if (status == ZT_OK)
        *out = (struct finding){values, cells * sizeof(*values)};
    else
        free(values);
    return status;
}

static enum zt_status make(const struct making *making, struct finding *out, struct zt_error *error)
{
    const struct finding_order *order = &making->order;
    struct server *server = making->entry->cache->server;
    struct decoded_elements opened;
    struct computing computing = {.wanted = is_wanted, .context = making->entry};
    enum zt_status status = decoded_elements_open(server, making->generation, order->object,
                                                  order->component, order->slice, &opened, error);

    if (status != ZT_OK)
        return status;
    computing.workers = opened.is_sequential ? NULL : server_waiters(server);
    status = order->bins > 0 ? write_statistics(making, &opened.elements, &computing, out, error)
                             : make_preview(making, &opened.elements, &computing, out, error);
    decoded_elements_close(&opened);
    return status;
}

static void run_making(struct job *job)
{
    struct making *making = (struct making *)job;
    struct entry *entry = making->entry;
    struct finding_cache *cache = entry->cache;
    struct finding made = {NULL, 0};
    struct zt_error error;
    enum zt_status status;
    struct waiter *waiters;

    pthread_mutex_lock(&cache->lock);
    entry->job = NULL;
    pthread_mutex_unlock(&cache->lock);
    status = make(making, &made, &error);
    generation_release(making->generation);
    free(making);
    pthread_mutex_lock(&cache->lock);
    assert(entry->state == STATE_MAKING);
    entry->state = status == ZT_OK ? STATE_READY : STATE_FAILED;
    entry->base = made;
    if (status != ZT_OK)
        entry->error = error;
    entry->ended_ms = clock_coarse_ms();
    if (entry->listed)
        cache->bytes += made.length;
    waiters = entry->waiters;
    entry->waiters = NULL;
    pthread_mutex_unlock(&cache->lock);
    waiters_wake(waiters);
    release(entry);
}

/* Lists a new entry and returns its job. The lock is held. NULL if out of memory. */
static struct making *begin(struct finding_cache *cache, struct generation *generation,
                            const struct finding_order *order, const uint64_t key[2])
{
    struct making *making = calloc(1, sizeof(*making));
    struct entry *entry = making != NULL ? calloc(1, sizeof(*entry)) : NULL;

    if (entry == NULL) {
        free(making);
        return NULL;
    }
    entry->cache = cache;
    memcpy(entry->key, key, sizeof(entry->key));
    entry->references = 1;
    entry->listed = true;
    entry->waiters_checked_ms = clock_coarse_ms();
    entry->job = &making->job;
    recency_add(&cache->entries, &entry->link);
    making->job.run = run_making;
    making->entry = entry;
    making->generation = generation_hold(generation);
    making->order = *order;
    if (order->slice != NULL) {
        making->slice = *order->slice;
        making->order.slice = &making->slice;
    }
    return making;
}

/* Answers from an entry, or adds the waiter to it. The lock is held. */
static enum finding_answer answer(struct finding_cache *cache, struct entry *entry,
                                  struct waiter *waiter, struct finding **out_finding,
                                  struct zt_error *error)
{
    if (entry->state == STATE_MAKING) {
        if (entry->job != NULL)
            workers_share(server_waiters(cache->server), entry->job, waiter->client);
        waiter->next = entry->waiters;
        entry->waiters = waiter;
        return FINDING_PENDING;
    }
    if (entry->state == STATE_FAILED) {
        *error = entry->error;
        return FINDING_FAILED;
    }
    recency_touch(&cache->entries, &entry->link);
    entry->references++;
    *out_finding = &entry->base;
    return FINDING_READY;
}

size_t finding_length(struct finding_cache *cache, const struct generation *generation,
                      const struct finding_order *order)
{
    const struct entry *entry;
    size_t length = 0;
    uint64_t key[2];

    make_key(generation, order, key);
    pthread_mutex_lock(&cache->lock);
    entry = find(cache, key);
    if (entry != NULL && entry->state == STATE_READY)
        length = entry->base.length;
    pthread_mutex_unlock(&cache->lock);
    return length;
}

enum finding_answer finding_ask(struct finding_cache *cache, struct generation *generation,
                                const struct finding_order *order, struct waiter *waiter,
                                struct finding **out_finding, struct zt_error *error)
{
    struct making *begun = NULL;
    struct entry *freed = NULL;
    struct entry *entry;
    enum finding_answer said;
    uint64_t key[2];

    if (atomic_load(&cache->stopping)) {
        zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the server is shutting down");
        return FINDING_FAILED;
    }
    make_key(generation, order, key);
    pthread_mutex_lock(&cache->lock);
    entry = find(cache, key);
    if (entry != NULL && entry->state == STATE_FAILED &&
        clock_coarse_ms() - entry->ended_ms > RETRY_MS) {
        unlist(entry, &freed);
        entry = NULL;
    }
    if (entry == NULL) {
        begun = begin(cache, generation, order, key);
        entry = begun != NULL ? begun->entry : NULL;
    }
    if (begun != NULL)
        begun->job.client = waiter->client;
    said = entry != NULL ? answer(cache, entry, waiter, out_finding, error) : FINDING_FAILED;
    /* With the lock, so that whoever joins finds it queued. */
    if (begun != NULL)
        workers_submit_sized(server_waiters(cache->server), &begun->job, order->bytes);
    shrink(cache, &freed);
    pthread_mutex_unlock(&cache->lock);
    free_entries(freed);
    if (entry == NULL)
        zt_fail_memory(error, "statistics");
    return said;
}
