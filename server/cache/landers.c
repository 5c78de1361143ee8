/* The cache's threads. Landers write what is right, and do everything else that touches the disk,
 * with which they may hang. So another thread compares what was fetched, and begins queued runs:
 * readers that are called back have no thread to do it. */
#include "cache/landers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "cache/extents.h"
#include "cache/files.h"
#include "cache/landing.h"

/* The distance between two looks at the disk. */
#define TICK_MS 10000
/* How often queued runs are looked at. */
#define LOOK_MS 100

/* --- now and then --- */

/* With the lock, which it gives up meanwhile. The kernel says once for each open file that pages of
 * it could not be written; from then on they may read as zeros. */
static void ask_disk(struct cached_file *file)
{
    struct cache *cache = file->cache;
    bool has_failed;

    assert(file->phase == FILE_OPEN && file->checks_left > 0 && file->descriptor >= 0);
    file->checks_left--;
    file->users++;
    cache_unlock(cache);
    has_failed = sync_file_range(file->descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) != 0 &&
                 (errno == EIO || errno == ENOSPC || errno == EDQUOT);
    cache_lock(cache);
    if (has_failed) {
        log_write(LOG_LEVEL_WARN, "the cache's disk has lost blocks; they are fetched again");
        extents_mark_unverified(file);
    }
    file_release(file);
}

static void ask_about_all(struct cache *cache)
{
    for (uint32_t i = 0; i < CACHE_TABLE_SIZE; i++)
        for (struct cached_file *file = cache->table[i]; file != NULL; file = file->next)
            if (file->phase == FILE_OPEN && file->checks_left > 0 && file->users > 0)
                /* It is held while the lock is given up, so it is still in the list; if it was lost
                 * meanwhile, the rest of the list waits for the next time. */
                ask_disk(file);
}

static void drop_kept(struct cache *cache, int64_t before_ms)
{
    struct run *next;

    for (struct run *run = cache->kept; run != NULL; run = next) {
        next = run->next;
        if (run->holders == 1 && run->kept_ms <= before_ms)
            run_drop(run);
    }
}

static void tick(struct cache *cache)
{
    int64_t now_ms = clock_coarse_ms();

    assert(cache->next_tick_ms <= now_ms);
    cache->next_tick_ms = now_ms + TICK_MS;
    drop_kept(cache, now_ms - TICK_MS);
    buffers_trim(&cache->buffers);
    ask_about_all(cache);
    extents_trim(cache);
}

/* --- the threads --- */

static bool has_tick(const struct cache *cache)
{
    return clock_coarse_ms() >= cache->next_tick_ms;
}

/* With the lock, which it gives up meanwhile. False: there is no work. */
static bool work(struct cache *cache)
{
    struct run *run = run_queue_take(&cache->landed);
    struct cached_file *file = cache->leaving;

    if (run != NULL && run->stage == RUN_ARRIVED)
        landing_compare(run);
    else if (run != NULL)
        landing_write(run);
    else if (file != NULL) {
        assert(file->is_leaving);
        cache->leaving = file->next_leaving;
        file_settle(file);
    } else if (cache->is_to_trim) {
        cache->is_to_trim = false;
        extents_trim(cache);
    } else if (has_tick(cache))
        tick(cache);
    else
        return false;
    return true;
}

static void *lander(void *argument)
{
    struct cache *cache = argument;

    cache_lock(cache);
    while (true) {
        if (work(cache)) {
            /* Begins what may begin now. */
            cache_unlock(cache);
            cache_lock(cache);
            continue;
        }
        if (cache->has_ended)
            break;
        cache_wait_until(cache, &cache->work, cache->next_tick_ms);
    }
    cache_unlock(cache);
    return NULL;
}

/* With the lock, which it gives up meanwhile. False: nothing was fetched. Checks are left to the
 * landers, because they read the disk. */
static bool compare_next(struct cache *cache)
{
    struct run *run = cache->landed.first;

    while (run != NULL && (run->stage != RUN_ARRIVED || run->is_check))
        run = run->next;
    if (run == NULL)
        return false;
    run_queue_remove(&cache->landed, run);
    assert(run->holders > 0 && run->next == NULL);
    landing_compare(run);
    return true;
}

static void *comparer(void *argument)
{
    struct cache *cache = argument;

    cache_lock(cache);
    while (true) {
        if (compare_next(cache)) {
            cache_unlock(cache);
            cache_lock(cache);
            continue;
        }
        if (cache->has_ended)
            break;
        if (cache->urgent.first != NULL)
            cache_wait_until(cache, &cache->fetched, clock_coarse_ms() + LOOK_MS);
        else
            cache_wait(cache, &cache->fetched);
    }
    cache_unlock(cache);
    return NULL;
}

int landers_start(struct cache *cache)
{
    assert(cache->lander_count == 0 && !cache->has_ended);
    cache->next_tick_ms = clock_coarse_ms() + TICK_MS;
    for (; cache->lander_count < CACHE_LANDERS; cache->lander_count++) {
        int error = thread_start(&cache->landers[cache->lander_count], "cache",
                                 cache->lander_count == 0 ? comparer : lander, cache);

        if (error != 0)
            return error;
    }
    return 0;
}

void landers_stop(struct cache *cache)
{
    cache_lock(cache);
    cache->is_stopping = true;
    drop_kept(cache, INT64_MAX);
    while (cache->run_count > 0 || cache->job_count > 0) {
        cache_wait(cache, &cache->settled);
        drop_kept(cache, INT64_MAX);
    }
    assert(cache->run_count == 0 && cache->kept == NULL);
    cache->has_ended = true;
    pthread_cond_broadcast(&cache->work);
    pthread_cond_signal(&cache->fetched);
    cache_unlock(cache);
    for (; cache->lander_count > 0; cache->lander_count--)
        pthread_join(cache->landers[cache->lander_count - 1], NULL);
}
