/* Bytes that turned out to be wrong although their header was right: they leave the cache and are
 * fetched again. */
#include "cache/invalidate.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "cache/index_file.h"
#include "cache/runs.h"

/* How long blocks that are just being written are waited for. */
#define WAIT_MS 3000

static void set_absent(struct cached_file *file, uint32_t first, uint32_t last)
{
    assert(first <= last && last < file->block_count);
    for (uint32_t block = first; block <= last; block++)
        block_set(file, block, BLOCK_ABSENT);
}

static bool is_of_range(const struct run *run, uint32_t first, uint32_t last)
{
    return run->first <= last && run->first + run->count > first;
}

/* The run of a block in the range whose bytes are known to be right, so that they may have been
 * read; NULL: none. */
static struct run *find_read(const struct cached_file *file, uint32_t first, uint32_t last)
{
    struct run *run = file->runs;

    assert(first <= last && last < file->block_count);
    while (run != NULL &&
           (!is_of_range(run, first, last) || run->is_check || run->stage < RUN_READY))
        run = run->next_of_file;
    return run;
}

/* Bytes of runs that are still arriving may have been read too. Any other run fetches bytes that
 * have not been read yet. */
static void void_early(struct cached_file *file, uint32_t first, uint32_t last)
{
    assert(first <= last && last < file->block_count);
    for (struct run *run = file->runs; run != NULL; run = run->next_of_file)
        if (is_of_range(run, first, last) && run->stage < RUN_READY && run->passed > 0)
            run->is_void = true;
}

/* With the lock, which it may give up meanwhile. False: the disk takes too long. */
static bool end_run(struct run *run, int64_t until_ms)
{
    struct cache *cache = run->file->cache;

    assert(!run->is_check && run->stage >= RUN_READY && run->stage < RUN_ENDED);
    if (run->stage == RUN_KEPT) {
        run_drop(run);
        return true;
    }
    if (run->stage == RUN_READY && run_queue_remove(&cache->landed, run)) {
        set_absent(run->file, run->first, run->first + run->count - 1);
        run_end(run, ZT_OK);
        return true;
    }
    if (clock_coarse_ms() >= until_ms)
        return false;
    run_hold(run);
    cache_wait_until(cache, &run->changed, until_ms);
    run_release(run);
    return true;
}

/* With the lock. The blocks' checksums are discarded too, because the next bytes may differ. */
static void invalidate_blocks(struct cached_file *file, uint32_t first, uint32_t last)
{
    struct cached_prefix **link = &file->prefixes;

    assert(first <= last && last < file->block_count);
    while (*link != NULL) {
        struct cached_prefix *prefix = *link;

        if (block_of(prefix->offset) < first || block_of(prefix->offset) > last) {
            link = &prefix->next;
            continue;
        }
        *link = prefix->next;
        free(prefix);
    }
    for (uint32_t block = first; block <= last; block++) {
        const enum block_state state = block_state(file, block);

        atomic_store(&file->states[block],
                     (uint8_t)(state == BLOCK_COMING ? BLOCK_COMING : BLOCK_ABSENT));
    }
}

/* With the lock. The blocks of an extent that the index may still name. */
static size_t collect(const struct cached_file *file, uint32_t extent,
                      struct index_block out_blocks[CACHE_EXTENT_BLOCKS])
{
    uint32_t block = extent * CACHE_EXTENT_BLOCKS;
    size_t count = 0;

    assert(extent < file->extent_count);
    for (uint32_t i = 0; i < CACHE_EXTENT_BLOCKS && block < file->block_count; i++, block++)
        if (block_state(file, block) == BLOCK_HERE || block_state(file, block) == BLOCK_CLAIMED)
            out_blocks[count++] =
                (struct index_block){.checksum = file->checksums[block], .block = block};
    return count;
}

/* With the lock, which it gives up meanwhile. The index can only forget a whole extent; what is
 * right of it is named again. A block that lands in between may be fetched again after a start. */
static void invalidate_in_index(struct cached_file *file, uint32_t extent)
{
    struct cache *cache = file->cache;
    struct index_block blocks[CACHE_EXTENT_BLOCKS];
    const size_t count = collect(file, extent, blocks);

    assert(count <= CACHE_EXTENT_BLOCKS && file->users > 0);
    cache_unlock(cache);
    index_append_removal(&cache->folder, file->key, extent);
    for (size_t i = 0; i < count; i += CACHE_RUN_BLOCKS)
        index_append(&cache->folder, file->key, blocks + i,
                     count - i < CACHE_RUN_BLOCKS ? count - i : CACHE_RUN_BLOCKS);
    cache_lock(cache);
}

void cache_source_invalidate(struct zt_source *given, uint64_t offset, uint64_t length)
{
    struct cache_source *source = (struct cache_source *)given;
    struct cached_file *file = source->file;
    struct cache *cache = source->cache;
    const int64_t until_ms = clock_coarse_ms() + WAIT_MS;
    uint32_t first;
    uint32_t last;
    struct run *run;

    if (offset >= file->size_bytes || length == 0)
        return;
    if (length > file->size_bytes - offset)
        length = file->size_bytes - offset;
    first = block_of(offset);
    last = block_of(offset + length - 1);
    metric_add(METRIC_CACHE_MISMATCHES, 1);
    cache_lock(cache);
    while ((run = find_read(file, first, last)) != NULL && end_run(run, until_ms))
        ;
    void_early(file, first, last);
    invalidate_blocks(file, first, last);
    for (uint32_t extent = extent_of_block(first);
         file->descriptor >= 0 && !file->is_lost && extent <= extent_of_block(last); extent++)
        invalidate_in_index(file, extent);
    cache_unlock(cache);
}
