#include "cache/runs.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "cache/landing.h"

/* Maximum of bytes being fetched: 16 runs, above which more runs are no faster. */
#define ON_THE_WAY_BYTES (16 * CACHE_RUN_BYTES)
/* Of that for reading ahead: the rest is for those who wait. */
#define AHEAD_ALL_BYTES (12 * CACHE_RUN_BYTES)
/* A fetch that takes longer than this may hang, and gives its share to others; as much again in
 * total. */
#define FETCHED_MS    1000
#define HANGING_BYTES ON_THE_WAY_BYTES
/* Bytes that could not be written and were not read for this long are evicted. */
#define KEPT_MS 2000
/* How long bytes that were read wait to be written while others wait for their memory; and how long
 * a pin waits for that. */
#define UNWRITTEN_MS 1000
#define PIN_WAIT_MS  3000
/* How often a waiter for memory checks whether some can be freed. */
#define LOOK_MS 100
/* The coarse clock is late by at most this. */
#define COARSE_MS 10

/* --- queues --- */

void run_queue_put(struct run_queue *queue, struct run *run)
{
    assert((queue->first == NULL) == (queue->last == NULL));
    run->next = NULL;
    if (queue->last != NULL)
        queue->last->next = run;
    else
        queue->first = run;
    queue->last = run;
}

struct run *run_queue_take(struct run_queue *queue)
{
    struct run *run = queue->first;

    if (run == NULL)
        return NULL;
    assert(queue->last != NULL && queue->last->next == NULL);
    queue->first = run->next;
    if (queue->first == NULL)
        queue->last = NULL;
    run->next = NULL;
    return run;
}

bool run_queue_remove(struct run_queue *queue, struct run *run)
{
    struct run *before = NULL;

    for (struct run *at = queue->first; at != run; at = at->next) {
        if (at == NULL)
            return false;
        before = at;
    }
    if (before != NULL)
        before->next = run->next;
    else
        queue->first = run->next;
    if (queue->last == run)
        queue->last = before;
    run->next = NULL;
    return true;
}

/* --- the life of a run --- */

struct run *run_find(const struct cached_file *file, uint32_t block)
{
    struct run *run = file->runs;

    assert(block < file->block_count);
    while (run != NULL && (block < run->first || block - run->first >= run->count))
        run = run->next_of_file;
    return run;
}

static uint64_t length_of(const struct cached_file *file, uint32_t first, uint32_t count)
{
    assert(count > 0 && first + count <= file->block_count);
    return (count - 1) * CACHE_BLOCK_BYTES + block_length(file, first + count - 1);
}

static void set_blocks(struct run *run, enum block_state state)
{
    for (uint32_t i = 0; i < run->count; i++)
        block_set(run->file, run->first + i, state);
}

static bool has_prefix(const struct cached_file *file, uint64_t offset, uint64_t length)
{
    for (const struct cached_prefix *prefix = file->prefixes; prefix != NULL; prefix = prefix->next)
        if (prefix->offset >= offset && prefix->offset - offset < length)
            return true;
    return false;
}

/* Whether nothing is known of a run's bytes, so that there is nothing to compare them with. */
static bool is_new(const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        if ((atomic_load(&run->file->states[run->first + i]) & BLOCK_KNOWN) != 0)
            return false;
    return !has_prefix(run->file, run->fetch.offset, run->fetch.length);
}

static struct run *run_new(struct cache_source *source, uint32_t first, uint32_t count,
                           bool is_urgent, bool is_check)
{
    struct cached_file *file = source->file;
    struct run *run = calloc(1, sizeof(*run));

    assert(file->phase == FILE_OPEN && source->holders > 0);
    assert(count <= CACHE_RUN_BLOCKS &&
           extent_of_block(first) == extent_of_block(first + count - 1));
    if (run == NULL)
        return NULL;
    pthread_cond_init(&run->changed, &source->cache->monotonic);
    run->fetch = (struct cache_fetch){.offset = first * CACHE_BLOCK_BYTES,
                                      .length = length_of(file, first, count),
                                      .is_urgent = is_urgent,
                                      .arrived = landing_progress,
                                      .done = landing_arrived};
    run->source = source;
    run->file = file;
    run->first = first;
    run->count = count;
    run->is_check = is_check;
    run->is_early = !is_check && is_new(run);
    run->holders = 1;
    run->next_of_file = file->runs;
    file->runs = run;
    file->was_asked = true;
    source->holders++;
    source->cache->run_count++;
    set_blocks(run, BLOCK_COMING);
    return run;
}

static void leave_file(struct run *run)
{
    struct run **link = &run->file->runs;

    assert(*link != NULL);
    while (*link != run)
        link = &(*link)->next_of_file;
    *link = run->next_of_file;
}

static void give_buffer(struct run *run)
{
    struct cache *cache = run->file->cache;

    if (run->fetch.bytes == NULL)
        return;
    buffer_give(&cache->buffers, run->fetch.bytes, run->fetch.length);
    run->fetch.bytes = NULL;
    assert(cache->on_the_way_bytes >= buffer_bytes(run->fetch.length));
    cache->on_the_way_bytes -= buffer_bytes(run->fetch.length);
}

void run_release(struct run *run)
{
    struct cache *cache = run->file->cache;

    assert(run->holders > 0);
    run->holders--;
    if (run->holders > 0)
        return;
    assert(run->stage == RUN_ENDED);
    assert(cache->run_count > 0 && run->waiting == 0 && run->waiters == NULL);
    give_buffer(run);
    cache->run_count--;
    source_release(run->source);
    pthread_cond_broadcast(&cache->settled);
    pthread_cond_destroy(&run->changed);
    free(run);
}

void run_end(struct run *run, enum zt_status status)
{
    assert(run->stage != RUN_ENDED);
    run->stage = RUN_ENDED;
    run->status = status;
    leave_file(run);
    pthread_cond_broadcast(&run->changed);
    run_wake(run);
    assert(run->waiters == NULL);
    run_release(run);
}

/* --- readers of bytes that arrive --- */

static bool is_right(const struct run *run)
{
    return run->stage >= RUN_READY && (run->stage < RUN_ENDED || run->status == ZT_OK);
}

bool run_has(const struct run *run, uint64_t offset)
{
    assert(run->holders > 0 && offset >= run->fetch.offset &&
           offset < run->fetch.offset + run->fetch.length);
    if (run->is_check || run->is_void)
        return false;
    return is_right(run) || (run->is_early && run->stage < RUN_READY &&
                             offset - run->fetch.offset < atomic_load(&run->arrived));
}

static bool has_for(const struct run *run, const struct zt_source_waiter *waiter)
{
    if (run->stage >= RUN_READY)
        return true;
    return !waiter->is_for_checked && run_has(run, waiter->until - 1);
}

void run_wake(struct run *run)
{
    struct cache *cache = run->file->cache;
    struct zt_source_waiter **link = &run->waiters;

    while (*link != NULL) {
        struct zt_source_waiter *waiter = *link;

        if (!has_for(run, waiter)) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        atomic_fetch_sub(&run->listening, 1);
        if (run->stage == RUN_ENDED && run->status != ZT_OK)
            waiter->error = run->error;
        waiter->next = NULL;
        *cache->woken_end = waiter;
        cache->woken_end = &waiter->next;
    }
}

void run_listen(struct run *run, struct zt_source_waiter *waiter)
{
    const uint64_t end = run->fetch.offset + run->fetch.length;
    struct cache *cache = run->file->cache;

    if (waiter->until > end)
        waiter->until = end;
    assert(waiter->until > run->fetch.offset && run->stage != RUN_ENDED);
    waiter->next = run->waiters;
    run->waiters = waiter;
    /* Before the next look at what has arrived: landing_progress does both the other way around. */
    atomic_fetch_add(&run->listening, 1);
    if (run->stage == RUN_QUEUED)
        pthread_cond_signal(&cache->fetched); /* looks whether it may begin */
    run_wake(run);
}

/* --- those that could not be written --- */

void run_keep(struct run *run)
{
    struct run **link = &run->file->cache->kept;

    assert(run->stage == RUN_WRITING && !run->is_stored && run->fetch.bytes != NULL);
    run->stage = RUN_KEPT;
    run->kept_ms = clock_coarse_ms();
    while (*link != NULL)
        link = &(*link)->next;
    run->next = NULL;
    *link = run;
    pthread_cond_broadcast(&run->changed);
}

void run_drop(struct run *run)
{
    struct run **link = &run->file->cache->kept;

    assert(run->stage == RUN_KEPT && *link != NULL);
    while (*link != run)
        link = &(*link)->next;
    *link = run->next;
    run->next = NULL;
    set_blocks(run, BLOCK_ABSENT);
    run_end(run, ZT_OK);
}

/* Gives up runs that were read to their end and that a slow disk has not got around to writing:
 * what is served must not wait for it. */
static void shed(struct cache *cache, uint64_t bytes, uint64_t most)
{
    int64_t before_ms = clock_coarse_ms() - UNWRITTEN_MS;
    struct run *next;

    for (struct run *run = cache->landed.first;
         run != NULL && cache->on_the_way_bytes + bytes > most; run = next) {
        next = run->next;
        if (run->stage != RUN_READY || !run->was_read || run->holders > 1 ||
            run->ready_ms > before_ms)
            continue;
        run_queue_remove(&cache->landed, run);
        set_blocks(run, BLOCK_ABSENT);
        run_end(run, ZT_OK);
    }
}

/* Drops kept runs, the oldest first, until so many more bytes may be on the way. */
static bool drop_for(struct cache *cache, uint64_t bytes, uint64_t most, int64_t before_ms)
{
    struct run *next;

    for (struct run *run = cache->kept; run != NULL && cache->on_the_way_bytes + bytes > most;
         run = next) {
        next = run->next;
        /* A reader copies from it: dropping it would not free memory yet. */
        if (run->holders == 1 && run->kept_ms <= before_ms)
            run_drop(run);
    }
    if (cache->on_the_way_bytes + bytes > most)
        shed(cache, bytes, most);
    return cache->on_the_way_bytes + bytes <= most;
}

/* --- fetching --- */

static void begin_fetching(struct run *run)
{
    struct cache *cache = run->file->cache;

    assert(run->stage == RUN_QUEUED || (run->stage == RUN_TAKEN && run->was_repeated));
    assert(run->fetch.bytes != NULL && !run->is_check);
    run->stage = RUN_FETCHING;
    run->fetching_ms = clock_coarse_ms();
    atomic_store(&run->arrived, 0);
    run->next_fetching = cache->fetching;
    cache->fetching = run;
    cache->fetching_count++;
    run_queue_put(&cache->ready, run);
}

void run_fetched(struct run *run)
{
    struct cache *cache = run->file->cache;
    struct run **link = &cache->fetching;

    while (*link != run)
        link = &(*link)->next_fetching;
    *link = run->next_fetching;
    run->next_fetching = NULL;
    assert(cache->fetching_count > 0);
    cache->fetching_count--;
}

static uint64_t hanging_bytes(const struct cache *cache)
{
    const int64_t before_ms = clock_coarse_ms() - FETCHED_MS;
    uint64_t bytes = 0;

    for (const struct run *run = cache->fetching; run != NULL; run = run->next_fetching)
        if (run->fetching_ms <= before_ms)
            bytes += buffer_bytes(run->fetch.length);
    return bytes < HANGING_BYTES ? bytes : HANGING_BYTES;
}

/* Whether so many bytes may be on the way too, if those that hang do not count. */
static bool has_room(struct cache *cache, uint64_t bytes, uint64_t most, int64_t before_ms)
{
    return drop_for(cache, bytes, most, before_ms) ||
           cache->on_the_way_bytes + bytes <= most + hanging_bytes(cache);
}

/* --- beginning --- */

/* Gives a run its buffer, and has it begun as soon as the lock is given up. */
static void choose(struct cache *cache, struct run *run)
{
    assert(run->stage == RUN_QUEUED && run->fetch.bytes == NULL);
    run->fetch.bytes = buffer_take(&cache->buffers, run->fetch.length);
    if (run->fetch.bytes == NULL) {
        set_blocks(run, BLOCK_ABSENT);
        run_end(run, zt_fail_memory(&run->error, "blocks on their way"));
        return;
    }
    cache->on_the_way_bytes += buffer_bytes(run->fetch.length);
    begin_fetching(run);
}

void runs_choose(struct cache *cache)
{
    struct run *run;

    while ((run = cache->urgent.first) != NULL &&
           has_room(cache, buffer_bytes(run->fetch.length), ON_THE_WAY_BYTES, INT64_MAX))
        choose(cache, run_queue_take(&cache->urgent));
}

void run_repeat(struct run *run)
{
    assert(run->stage == RUN_TAKEN && !run->was_repeated);
    run->was_repeated = true;
    begin_fetching(run);
}

void runs_start(struct run *first)
{
    while (first != NULL) {
        struct run *next = first->next;
        struct cache_origin *origin = first->source->origin;

        assert(first->stage == RUN_FETCHING);
        first->next = NULL;
        origin->fetch(origin, &first->fetch);
        first = next;
    }
}

/* How many blocks from this one on can be one run: of the same state, up to a place where runs of
 * the greatest length meet. */
static uint32_t stretch(const struct cached_file *file, uint32_t block, uint32_t last)
{
    enum block_state state = block_state(file, block);
    uint32_t count = 1;

    assert(block <= last && last < file->block_count);
    while (block + count <= last && (block + count) % CACHE_RUN_BLOCKS != 0 &&
           block_state(file, block + count) == state)
        count++;
    return count;
}

static bool begin_check(struct cache_source *source, uint32_t first, uint32_t count)
{
    struct cache *cache = source->cache;
    struct run *run = run_new(source, first, count, false, true);

    if (run == NULL)
        return false;
    /* So that compared blocks are not punched out meanwhile. */
    atomic_fetch_add(&source->file->extents[extent_of_block(first)].pins, 1);
    run->stage = RUN_ARRIVED;
    run_queue_put(&cache->landed, run);
    pthread_cond_signal(&cache->work);
    return true;
}

static bool begin_fetch(struct cache_source *source, uint32_t first, uint32_t count, bool is_urgent)
{
    struct cache *cache = source->cache;
    uint64_t bytes = buffer_bytes(length_of(source->file, first, count));
    struct run *run;

    assert(block_state(source->file, first) == BLOCK_ABSENT);
    if (!is_urgent && (cache->urgent.first != NULL ||
                       !has_room(cache, bytes, AHEAD_ALL_BYTES, clock_coarse_ms() - KEPT_MS)))
        return false;
    run = run_new(source, first, count, is_urgent, false);
    if (run == NULL)
        return false;
    run->stage = RUN_QUEUED;
    if (is_urgent)
        run_queue_put(&cache->urgent, run);
    else
        choose(cache, run);
    return true;
}

enum zt_status runs_begin(struct cache_source *source, uint32_t first, uint32_t last,
                          bool is_urgent, struct zt_error *error)
{
    struct cached_file *file = source->file;
    uint32_t count;

    assert(first <= last && last < file->block_count);
    for (uint32_t block = first; block <= last; block += count) {
        bool is_awaited = is_urgent && block == first;
        enum block_state state = block_state(file, block);
        bool has_begun = true;

        count = 1;
        if (state == BLOCK_ABSENT) {
            /* The first bytes of a file are its header: few, and wanted soon. */
            if (file->was_asked)
                count = stretch(file, block, last);
            has_begun = begin_fetch(source, block, count, is_awaited);
        } else if (state == BLOCK_CLAIMED) {
            count = stretch(file, block, last);
            has_begun = begin_check(source, block, count);
        }
        if (!has_begun && is_awaited)
            return zt_fail_memory(error, "a fetch");
        if (!has_begun)
            break;
    }
    return ZT_OK;
}

/* What a thread waits for. */
struct awaited {
    bool until_stored;
    bool has_offset;
    uint64_t offset; /* of a byte */
};

static bool is_over(const struct run *run, const struct awaited *awaited)
{
    if (awaited->has_offset && run_has(run, awaited->offset))
        return true;
    if (run->stage == RUN_KEPT || run->stage == RUN_ENDED)
        return true;
    if (run->stage < RUN_READY)
        return false;
    return !awaited->until_stored || clock_coarse_ms() - run->ready_ms > PIN_WAIT_MS;
}

static void await(struct run *run, const struct awaited *awaited)
{
    struct cache *cache = run->file->cache;

    assert(run->holders > 0);
    while (!is_over(run, awaited)) {
        if (run->stage == RUN_ARRIVED && run_queue_remove(&cache->landed, run)) {
            landing_compare(run);
            continue;
        }
        run->waiting++;
        if (run->stage >= RUN_READY)
            cache_wait_until(cache, &run->changed, run->ready_ms + PIN_WAIT_MS + COARSE_MS);
        else if (run->stage == RUN_QUEUED)
            /* The landers, who would otherwise give memory back, may hang with the disk. */
            cache_wait_until(cache, &run->changed, clock_coarse_ms() + LOOK_MS);
        else
            cache_wait(cache, &run->changed);
        assert(run->waiting > 0);
        run->waiting--;
    }
}

void run_await(struct run *run, bool until_stored)
{
    await(run, &(struct awaited){.until_stored = until_stored});
}

void run_await_byte(struct run *run, uint64_t offset)
{
    atomic_fetch_add(&run->listening, 1);
    await(run, &(struct awaited){.has_offset = true, .offset = offset});
    atomic_fetch_sub(&run->listening, 1);
}
