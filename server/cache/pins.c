#include "cache/pins.h"

#include <assert.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "cache/cut.h"
#include "cache/extents.h"
#include "cache/runs.h"
#include "cache/source.h"

enum zt_status pins_fail_lost(struct zt_error *error)
{
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "that version no longer exists");
}

enum zt_status pins_fail_hurried(struct zt_error *error)
{
    log_write(LOG_LEVEL_ERROR, "an event loop would have waited for the store");
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the bytes are not cached");
}

static void hold(struct cached_file *file, uint64_t first, uint64_t last)
{
    assert(first <= last && last < file->extent_count);
    for (uint64_t i = first; i <= last; i++)
        atomic_fetch_add(&file->extents[i].pins, 1);
}

static void let_go(struct cached_file *file, uint64_t first, uint64_t last)
{
    assert(first <= last && last < file->extent_count);
    for (uint64_t i = first; i <= last; i++) {
        const unsigned before = atomic_fetch_sub(&file->extents[i].pins, 1);

        assert(before > 0);
        (void)before;
    }
}

static void release(struct zt_pin *pin)
{
    assert(pin->held != NULL);
    let_go(pin->held, pin->first, pin->last);
}

/* The first block of a range that is not here; last + 1: all are. */
static uint32_t first_missing(const struct cached_file *file, uint32_t first, uint32_t last)
{
    while (first <= last && block_state(file, first) == BLOCK_HERE)
        first++;
    return first;
}

static enum zt_status fail_full(struct zt_error *error)
{
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the cache has no room for the range");
}

/* With the lock, which it gives up meanwhile. Waits until the run of a block was written. */
static enum zt_status await_block(struct cached_file *file, uint32_t block, struct zt_error *error)
{
    struct run *run = run_find(file, block);
    enum zt_status status = ZT_OK;

    assert(block < file->block_count);
    if (run == NULL)
        return ZT_OK;
    run_hold(run);
    run_await(run, true);
    if (run->stage == RUN_ENDED)
        status = run->status;
    if (status != ZT_OK && error != NULL)
        *error = run->error;
    if (status == ZT_OK && !run->is_stored && !run->is_void)
        status = file->is_lost ? pins_fail_lost(error) : fail_full(error);
    run_release(run);
    return status;
}

/* Fetches the missing blocks of pinned extents. Blocks that arrived meanwhile are kept. */
static enum zt_status bring(struct cache_source *source, uint32_t first, uint32_t last,
                            struct zt_error *error)
{
    struct cached_file *file = source->file;
    struct cache *cache = source->cache;
    enum zt_status status = ZT_OK;

    assert(first <= last && last < file->block_count);
    if (!thread_may_wait())
        return pins_fail_hurried(error);
    if (file->view == NULL)
        return fail_full(error);
    cache_lock(cache);
    /* It would push out everything else, and might not fit in the end. */
    if ((uint64_t)(last - first) * CACHE_BLOCK_BYTES > extents_limit(cache) / 2)
        status = fail_full(error);
    while (status == ZT_OK && (first = first_missing(file, first, last)) <= last) {
        uint64_t ahead = first + CACHE_AHEAD_BYTES / CACHE_BLOCK_BYTES - 1;

        if (file->is_lost)
            status = pins_fail_lost(error);
        else
            status = runs_begin(source, first, ahead < last ? (uint32_t)ahead : last, true, error);
        if (status == ZT_OK)
            status = await_block(file, first, error);
    }
    cache_unlock(cache);
    return status;
}

/* Before anything is pinned, which would prevent the repair of the file. */
static enum zt_status note_cut(struct cached_file *file, uint64_t length, bool wait,
                               struct zt_error *error)
{
    if (!cut_is_detected_by_pin(file, length))
        return ZT_OK;
    if (!wait)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the bytes are not cached");
    if (!thread_may_wait())
        return pins_fail_hurried(error);
    return cut_mend(file) ? ZT_OK : fail_full(error);
}

enum zt_status pins_pin(struct zt_source *given, uint64_t offset, uint64_t length, bool wait,
                        struct zt_pin *out_pin, struct zt_error *error)
{
    struct cache_source *source = (struct cache_source *)given;
    struct cached_file *file = source->file;
    enum zt_status status = source_check_range(file, offset, length, error);
    uint64_t first = offset / CACHE_EXTENT_BYTES;
    uint64_t last = (offset + length - 1) / CACHE_EXTENT_BYTES;
    uint32_t last_block = block_of(offset + length - 1);
    uint32_t missing;

    if (status == ZT_OK)
        status = note_cut(file, length, wait, error);
    if (status != ZT_OK)
        return status;
    hold(file, first, last);
    missing = first_missing(file, block_of(offset), last_block);
    if (missing <= last_block)
        status = wait ? bring(source, missing, last_block, error)
                      : zt_fail(error, ZT_UNAVAILABLE, NULL, offset, "the bytes are not cached");
    if (status != ZT_OK) {
        let_go(file, first, last);
        return status;
    }
    for (uint64_t i = first; i <= last; i++)
        pins_touch(&file->extents[i]);
    metric_add(METRIC_CACHE_HITS, last_block - block_of(offset) + 1);
    *out_pin = (struct zt_pin){
        .view = file->view, .release = release, .held = file, .first = first, .last = last};
    return ZT_OK;
}
