/* A file of the cache as a source: reading, reading ahead, closing. */
#include "cache/source.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/thread.h"
#include "cache/await.h"
#include "cache/cut.h"
#include "cache/files.h"
#include "cache/invalidate.h"
#include "cache/landing.h"
#include "cache/pins.h"
#include "disk/disk_file.h"

static struct cache_source *as_cached(const struct zt_source *source)
{
    union {
        const struct zt_source *given;
        struct cache_source *own;
    } both = {.given = source};

    return both.own;
}

enum zt_status source_check_range(const struct cached_file *file, uint64_t offset, uint64_t length,
                                  struct zt_error *error)
{
    if (offset > file->size_bytes || length > file->size_bytes - offset)
        return zt_fail(error, ZT_IO, NULL, offset,
                       "%" PRIu64 " bytes at %" PRIu64 " are requested, but the source has %" PRIu64
                       " bytes",
                       length, offset, file->size_bytes);
    return ZT_OK;
}

static uint64_t source_size(const struct zt_source *source)
{
    return as_cached(source)->file->size_bytes;
}

static const uint8_t *source_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

/* --- reading --- */

/* Blocks that the disk cannot read are absent. */
static void invalidate_blocks(struct cached_file *file, uint32_t first, uint32_t last)
{
    assert(first <= last && last < file->block_count);
    cache_lock(file->cache);
    for (uint32_t block = first; block <= last; block++)
        if (block_state(file, block) == BLOCK_HERE)
            block_set(file, block, BLOCK_ABSENT);
    metric_add(METRIC_CACHE_MISMATCHES, 1);
    cache_unlock(file->cache);
}

size_t source_read_here(struct cached_file *file, uint64_t offset, uint8_t *buffer, size_t length)
{
    struct extent *extent = &file->extents[offset / CACHE_EXTENT_BYTES];
    uint64_t most = CACHE_EXTENT_BYTES - offset % CACHE_EXTENT_BYTES;
    uint32_t first = block_of(offset);
    uint32_t end = first;
    uint32_t last;

    assert(length > 0 && offset + length <= file->size_bytes);
    if (length > most)
        length = (size_t)most;
    last = block_of(offset + length - 1);
    atomic_fetch_add(&extent->pins, 1);
    while (end <= last && block_state(file, end) == BLOCK_HERE)
        end++;
    if (end <= last && end * CACHE_BLOCK_BYTES < offset + length)
        length = end > first ? (size_t)(end * CACHE_BLOCK_BYTES - offset) : 0;
    if (length > 0 && !disk_read(file->descriptor, buffer, length, offset)) {
        if (!cut_is_detected(file))
            invalidate_blocks(file, first, end - 1);
        length = 0;
    }
    if (length > 0) {
        pins_touch(extent);
        metric_add(METRIC_CACHE_HITS, end - first);
    }
    atomic_fetch_sub(&extent->pins, 1);
    return length;
}

size_t source_copy(struct run *run, uint64_t offset, uint8_t *buffer, size_t length)
{
    struct cache *cache = run->file->cache;
    uint64_t end = run->fetch.offset + run->fetch.length;
    uint64_t most = end - offset;
    uint32_t blocks;

    assert(run_has(run, offset) && run->fetch.bytes != NULL);
    if (run->stage < RUN_READY)
        most = run->fetch.offset + atomic_load(&run->arrived) - offset;
    if (length > most)
        length = (size_t)most;
    blocks = block_of(offset + length - 1) - block_of(offset) + 1;
    /* A block that arrives in pieces is one miss. */
    if (run->stage < RUN_READY && offset % CACHE_BLOCK_BYTES != 0)
        blocks--;
    if (run->stage < RUN_READY && offset + length - run->fetch.offset > run->passed)
        run->passed = offset + length - run->fetch.offset;
    cache_unlock(cache);
    memcpy(buffer, run->fetch.bytes + (offset - run->fetch.offset), length);
    metric_add(METRIC_CACHE_MISSES, blocks);
    cache_lock(cache);
    run->kept_ms = clock_coarse_ms();
    run->was_read = run->was_read || offset + length == end;
    return length;
}

/* With the lock. Waits for the byte at offset of a run. *out_got 0: look again. */
static enum zt_status read_from_run(struct run *run, uint64_t offset, uint8_t *buffer,
                                    size_t length, size_t *out_got, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    assert(offset >= run->fetch.offset && offset < run->fetch.offset + run->fetch.length);
    run_hold(run);
    run_await_byte(run, offset);
    if (run->stage == RUN_ENDED)
        status = run->status;
    if (status != ZT_OK && error != NULL)
        *error = run->error;
    if (status == ZT_OK && run_has(run, offset))
        *out_got = source_copy(run, offset, buffer, length);
    /* Read to its end: it will not be needed again soon. */
    if (run->stage == RUN_KEPT && run->holders == 2 &&
        offset + *out_got == run->fetch.offset + run->fetch.length)
        run_drop(run);
    run_release(run);
    return status;
}

/* Waits for the block at offset, and copies from it as much as came with it. *out_got 0 with ZT_OK:
 * it is here now. */
static enum zt_status read_awaited(struct cache_source *source, uint64_t offset, uint8_t *buffer,
                                   size_t length, size_t *out_got, struct zt_error *error)
{
    struct cached_file *file = source->file;
    struct cache *cache = source->cache;
    uint32_t block = block_of(offset);
    enum zt_status status = ZT_OK;
    struct run *run;

    assert(length > 0 && offset < file->size_bytes);
    *out_got = 0;
    if (!thread_may_wait())
        return pins_fail_hurried(error);
    cache_lock(cache);
    if (file->is_lost)
        status = pins_fail_lost(error);
    else
        status = runs_begin(source, block, block_of(offset + length - 1), true, error);
    run = status == ZT_OK ? run_find(file, block) : NULL;
    if (run != NULL)
        status = read_from_run(run, offset, buffer, length, out_got, error);
    cache_unlock(cache);
    return status;
}

static enum zt_status source_read_at(struct zt_source *given, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    struct cache_source *source = as_cached(given);
    uint8_t *to = buffer;
    enum zt_status status = source_check_range(source->file, offset, length, error);

    while (status == ZT_OK && length > 0) {
        size_t got = source_read_here(source->file, offset, to, length);

        if (got == 0)
            status = read_awaited(source, offset, to, length, &got, error);
        assert(got <= length);
        to += got;
        offset += got;
        length -= got;
    }
    return status;
}

/* --- reading ahead --- */

static bool is_all_begun(const struct cached_file *file, uint32_t first, uint32_t last)
{
    assert(first <= last && last < file->block_count);
    for (uint32_t block = first; block <= last; block++) {
        enum block_state state = block_state(file, block);

        if (state == BLOCK_ABSENT || state == BLOCK_CLAIMED)
            return false;
    }
    return true;
}

static void source_advise(struct zt_source *given, uint64_t offset, uint64_t length)
{
    struct cache_source *source = as_cached(given);
    struct cached_file *file = source->file;
    uint32_t first;
    uint32_t last;

    if (offset >= file->size_bytes || length == 0)
        return;
    if (length > CACHE_AHEAD_BYTES)
        length = CACHE_AHEAD_BYTES;
    if (length > file->size_bytes - offset)
        length = file->size_bytes - offset;
    first = block_of(offset);
    last = block_of(offset + length - 1);
    if (is_all_begun(file, first, last))
        return;
    cache_lock(source->cache);
    if (!file->is_lost)
        runs_begin(source, first, last, false, NULL);
    cache_unlock(source->cache);
}

/* --- opening and closing --- */

bool cache_has_lost(const struct zt_source *source)
{
    return atomic_load(&as_cached(source)->file->is_lost);
}

static void source_close(struct zt_source *given)
{
    struct cache_source *source = as_cached(given);
    struct cache *cache = source->cache;

    cache_lock(cache);
    source_release(source);
    cache_unlock(cache);
}

static const struct zt_source_ops cached_ops = {.size = source_size,
                                                .read_at = source_read_at,
                                                .map = source_map,
                                                .close = source_close,
                                                .pin = pins_pin,
                                                .advise = source_advise,
                                                .await = await_bytes,
                                                .take_arrived = await_take,
                                                .invalidate = cache_source_invalidate};

enum zt_status cache_file_open(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES],
                               uint64_t size_bytes, struct cache_origin *origin,
                               struct zt_source **out_source, struct zt_error *error)
{
    struct cache_source *source = calloc(1, sizeof(*source));
    enum zt_status status;

    assert(origin->close != NULL);
    if (source == NULL) {
        origin->close(origin);
        return zt_fail_memory(error, "a source of the cache");
    }
    status = file_acquire(cache, key, size_bytes, &source->file, error);
    if (status != ZT_OK) {
        origin->close(origin);
        free(source);
        return status;
    }
    source->base.ops = &cached_ops;
    source->cache = cache;
    source->origin = origin;
    source->holders = 1;
    cache_lock(cache);
    cache->source_count++;
    cache_unlock(cache);
    *out_source = &source->base;
    return ZT_OK;
}
