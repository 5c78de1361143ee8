#include "cache/cut.h"

#include <assert.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cache/runs.h"

/* A range as long as this costs far more than a look. */
#define LONG_BYTES ((uint64_t)1 << 20)
/* Between two looks for shorter ones. */
#define LOOK_MS 100

/* With the lock. As at the start, a file of another length is not believed in any part: a block
 * written just now may have made it longer again. */
static void note(struct cached_file *file, uint64_t length)
{
    assert(file->phase == FILE_OPEN && length < file->size_bytes);
    if (file->is_cut)
        return;
    file->is_cut = true;
    for (uint32_t block = 0; block < file->block_count; block++)
        if (block_state(file, block) != BLOCK_COMING)
            block_set(file, block, BLOCK_ABSENT);
    metric_add(METRIC_CACHE_MISMATCHES, 1);
    log_write(LOG_LEVEL_WARN,
              "a cache file was truncated from %" PRIu64 " to %" PRIu64
              " bytes; its blocks are fetched again",
              file->size_bytes, length);
}

bool cut_is_detected(struct cached_file *file)
{
    struct stat facts;

    assert(file->descriptor >= 0);
    if (atomic_load(&file->is_cut))
        return true;
    if (fstat(file->descriptor, &facts) != 0 || (uint64_t)facts.st_size >= file->size_bytes)
        return false;
    cache_lock(file->cache);
    note(file, (uint64_t)facts.st_size);
    cache_unlock(file->cache);
    return true;
}

bool cut_is_detected_by_pin(struct cached_file *file, uint64_t length)
{
    int64_t now_ms;

    if (file->view == NULL)
        return false;
    now_ms = clock_coarse_ms();
    if (length < LONG_BYTES && !atomic_load(&file->is_cut) &&
        now_ms - atomic_load_explicit(&file->checked_ms, memory_order_relaxed) < LOOK_MS)
        return false;
    atomic_store_explicit(&file->checked_ms, now_ms, memory_order_relaxed);
    return cut_is_detected(file);
}

static bool is_pinned(const struct cached_file *file)
{
    for (uint32_t i = 0; i < file->extent_count; i++)
        if (atomic_load(&file->extents[i].pins) > 0)
            return true;
    return false;
}

/* With the lock. What could not be written meanwhile would keep its blocks from being pinned. */
static void drop_kept(struct cached_file *file)
{
    struct run *next;

    assert(!file->is_cut);
    for (struct run *run = file->runs; run != NULL; run = next) {
        next = run->next_of_file;
        if (run->stage == RUN_KEPT && run->holders == 1)
            run_drop(run);
    }
}

/* With the lock, which it gives up meanwhile. */
static void lengthen(struct cached_file *file)
{
    struct cache *cache = file->cache;
    bool is_long;

    assert(file->is_cut && !file->is_mending);
    file->is_mending = true;
    cache_unlock(cache);
    is_long = ftruncate(file->descriptor, (off_t)file->size_bytes) == 0;
    cache_lock(cache);
    assert(file->is_mending && file->descriptor >= 0);
    file->is_mending = false;
    if (is_long) {
        file->is_cut = false;
        drop_kept(file);
    }
    pthread_cond_broadcast(&cache->settled);
}

bool cut_mend(struct cached_file *file)
{
    struct cache *cache = file->cache;
    bool is_mended;

    assert(file->view != NULL);
    cache_lock(cache);
    while (file->is_mending)
        cache_wait(cache, &cache->settled);
    /* A pin counts up, then looks at the states, which are absent by now. */
    if (file->is_cut && !is_pinned(file))
        lengthen(file);
    is_mended = !file->is_cut;
    cache_unlock(cache);
    return is_mended;
}
