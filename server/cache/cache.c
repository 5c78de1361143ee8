/* The cache as a whole: opening, closing, its lock, its figures. */
#include "cache/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/extents.h"
#include "cache/files.h"
#include "cache/landers.h"
#include "cache/landing.h"

void cache_lock(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock);
}

static void close_ended(struct cache_source *source)
{
    while (source != NULL) {
        struct cache_source *next = source->next_ended;

        assert(source->holders == 0);
        source->origin->close(source->origin);
        free(source);
        source = next;
    }
}

static void wake_all(struct zt_source_waiter *waiter)
{
    while (waiter != NULL) {
        struct zt_source_waiter *next = waiter->next;

        waiter->wake(waiter);
        waiter = next;
    }
}

void cache_unlock(struct cache *cache)
{
    struct run *starting;
    struct cache_source *ended;
    struct zt_source_waiter *woken;

    runs_choose(cache);
    starting = cache->ready.first;
    ended = cache->ended;
    cache->ready = (struct run_queue){0};
    cache->ended = NULL;
    woken = cache->woken;
    cache->woken = NULL;
    cache->woken_end = &cache->woken;
    pthread_mutex_unlock(&cache->lock);
    runs_start(starting);
    wake_all(woken);
    close_ended(ended);
}

/* False: the lock was given up, and taken again, to do what was due. */
static bool nothing_is_due(struct cache *cache)
{
    if (cache->urgent.first != NULL)
        runs_choose(cache);
    if (cache->ready.first == NULL && cache->ended == NULL && cache->woken == NULL)
        return true;
    cache_unlock(cache);
    cache_lock(cache);
    return false;
}

void cache_wait(struct cache *cache, pthread_cond_t *condition)
{
    if (nothing_is_due(cache))
        pthread_cond_wait(condition, &cache->lock);
}

void cache_wait_until(struct cache *cache, pthread_cond_t *condition, int64_t until_ms)
{
    const struct timespec until = {.tv_sec = until_ms / 1000,
                                   .tv_nsec = until_ms % 1000 * CLOCK_NS_PER_MS};

    if (nothing_is_due(cache))
        pthread_cond_timedwait(condition, &cache->lock, &until);
}

void source_release(struct cache_source *source)
{
    struct cache *cache = source->cache;

    assert(source->holders > 0);
    source->holders--;
    if (source->holders > 0)
        return;
    assert(cache->source_count > 0);
    file_release(source->file);
    source->next_ended = cache->ended;
    cache->ended = source;
    cache->source_count--;
}

/* --- opening and closing --- */

static void init_lock(struct cache *cache)
{
    pthread_mutex_init(&cache->lock, NULL);
    pthread_condattr_init(&cache->monotonic);
    pthread_condattr_setclock(&cache->monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&cache->settled, &cache->monotonic);
    pthread_cond_init(&cache->work, &cache->monotonic);
    pthread_cond_init(&cache->fetched, &cache->monotonic);
}

static void cache_free(struct cache *cache)
{
    assert(cache->run_count == 0 && cache->job_count == 0 && cache->fetching_count == 0);
    for (uint32_t i = 0; i < CACHE_TABLE_SIZE; i++)
        while (cache->table[i] != NULL)
            cached_file_remove(cache->table[i]);
    assert(cache->file_count == 0 && cache->used_bytes == 0);
    buffers_free(&cache->buffers);
    folder_close(&cache->folder);
    pthread_cond_destroy(&cache->fetched);
    pthread_cond_destroy(&cache->work);
    pthread_cond_destroy(&cache->settled);
    pthread_condattr_destroy(&cache->monotonic);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

enum zt_status cache_open(const struct cache_options *options, struct cache **out_cache,
                          struct zt_error *error)
{
    struct cache *cache = calloc(1, sizeof(*cache));
    enum zt_status status;

    if (cache == NULL)
        return zt_fail_memory(error, "the block cache");
    status = folder_open(&cache->folder, options->folder, error);
    if (status != ZT_OK) {
        free(cache);
        return status;
    }
    init_lock(cache);
    cache->workers = options->workers;
    cache->woken_end = &cache->woken;
    cache->max_bytes = options->max_bytes;
    files_scan(cache);
    cache_lock(cache);
    extents_trim(cache);
    cache_unlock(cache);
    if (landers_start(cache) != 0) {
        cache_close(cache);
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "cannot start the cache's threads");
    }
    cache->saver = (struct disk_saver){
        .could_free = extents_could_free, .free_some = extents_free_some, .context = cache};
    disk_saver_add(&cache->saver);
    *out_cache = cache;
    return ZT_OK;
}

void cache_close(struct cache *cache)
{
    if (cache == NULL)
        return;
    disk_saver_remove(&cache->saver);
    landers_stop(cache);
    assert(cache->source_count == 0 && cache->leaving == NULL);
    assert(cache->lander_count == 0 && cache->on_the_way_bytes == 0);
    cache_free(cache);
}

void cache_interrupt(struct cache *cache)
{
    atomic_store(&cache->is_stopping, true);
}

void cache_set_limit(struct cache *cache, uint64_t max_bytes)
{
    cache_lock(cache);
    cache->max_bytes = max_bytes;
    cache->is_to_trim = true;
    pthread_cond_signal(&cache->work);
    cache_unlock(cache);
}

/* --- figures --- */

void cache_room(struct cache *cache, uint64_t *out_used, uint64_t *out_limit)
{
    cache_lock(cache);
    *out_used = cache->used_bytes;
    *out_limit = extents_limit(cache);
    cache_unlock(cache);
}
