#include "cache/landing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cache/cut.h"
#include "cache/extents.h"
#include "cache/files.h"
#include "cache/index_file.h"
#include "disk/disk_file.h"
#include "zt/digest.h"

/* How often the disk is asked whether it has kept what was written (landers.c): pages are written
 * back after about 30 s. */
#define WRITEBACK_CHECKS 6
/* How long a folder that failed is not written to. */
#define BROKEN_MS 30000

void landing_progress(struct cache_fetch *fetch, uint64_t length)
{
    struct run *run = (struct run *)fetch;
    struct cache *cache = run->file->cache;

    assert(length <= fetch->length && length >= atomic_load(&run->arrived));
    atomic_store(&run->arrived, length);
    if (atomic_load(&run->listening) == 0 || !run->is_early)
        return;
    cache_lock(cache);
    if (run->waiting > 0)
        pthread_cond_broadcast(&run->changed);
    run_wake(run);
    cache_unlock(cache);
}

void landing_arrived(struct cache_fetch *fetch, enum zt_status status, const struct zt_error *error)
{
    struct run *run = (struct run *)fetch;
    struct cache *cache = run->file->cache;

    cache_lock(cache);
    assert(!run->is_check && run->fetch.bytes != NULL);
    assert(run->stage == RUN_FETCHING);
    run_fetched(run);
    run->status = status;
    if (status != ZT_OK && error != NULL)
        run->error = *error;
    else if (status != ZT_OK)
        zt_fail(&run->error, status, NULL, ZT_NO_OFFSET, "the bytes cannot be fetched");
    run->stage = RUN_ARRIVED;
    run_queue_put(&cache->landed, run);
    /* A waiting reader takes it, unless it has all the bytes that it wants; otherwise the cache's
     * thread does. */
    if (run->waiting > 0)
        pthread_cond_broadcast(&run->changed);
    if (run->waiting == 0 || run->is_early)
        pthread_cond_signal(&cache->fetched);
    cache_unlock(cache);
}

/* --- comparing --- */

static void set_blocks(struct run *run, enum block_state state)
{
    for (uint32_t i = 0; i < run->count; i++)
        block_set(run->file, run->first + i, state);
}

static void fail(struct run *run, enum zt_status status)
{
    assert(status != ZT_OK);
    set_blocks(run, BLOCK_ABSENT);
    run_end(run, status);
}

/* Without the lock. */
static void hash_blocks(struct run *run)
{
    assert(run->fetch.bytes != NULL && run->count <= CACHE_RUN_BLOCKS);
    for (uint32_t i = 0; i < run->count; i++)
        run->checksums[i] = zt_xxh3(run->fetch.bytes + i * CACHE_BLOCK_BYTES,
                                    (size_t)block_length(run->file, run->first + i));
}

static bool is_of_run(const struct cached_prefix *prefix, const struct run *run)
{
    return prefix->offset >= run->fetch.offset &&
           prefix->offset - run->fetch.offset < run->fetch.length;
}

/* With the lock. Whether the blocks are those that were fetched before, as far as any were. */
static bool is_as_before(const struct run *run)
{
    const struct cached_file *file = run->file;

    for (const struct cached_prefix *prefix = file->prefixes; prefix != NULL; prefix = prefix->next)
        if (is_of_run(prefix, run) &&
            zt_xxh3(run->fetch.bytes + (prefix->offset - run->fetch.offset),
                    (size_t)prefix->length) != prefix->checksum)
            return false;
    for (uint32_t i = 0; i < run->count; i++)
        if ((atomic_load(&file->states[run->first + i]) & BLOCK_KNOWN) != 0 &&
            file->checksums[run->first + i] != run->checksums[i])
            return false;
    return true;
}

static void note_checksums(struct run *run)
{
    struct cached_file *file = run->file;
    struct cached_prefix **link = &file->prefixes;

    assert(run->stage == RUN_TAKEN);
    while (*link != NULL) {
        struct cached_prefix *prefix = *link;

        if (!is_of_run(prefix, run)) {
            link = &prefix->next;
            continue;
        }
        *link = prefix->next;
        free(prefix);
    }
    for (uint32_t i = 0; i < run->count; i++) {
        file->checksums[run->first + i] = run->checksums[i];
        atomic_store(&file->states[run->first + i], BLOCK_KNOWN | BLOCK_COMING);
    }
}

/* With the lock. Remembers the beginning of a block that readers have had. False: no memory. */
static bool note_prefix(struct run *run, uint64_t offset, uint64_t length)
{
    struct cached_prefix *prefix = malloc(sizeof(*prefix));

    assert(length > 0 && length < CACHE_BLOCK_BYTES);
    if (prefix == NULL)
        return false;
    *prefix = (struct cached_prefix){
        .next = run->file->prefixes,
        .offset = offset,
        .length = length,
        .checksum = zt_xxh3(run->fetch.bytes + (offset - run->fetch.offset), (size_t)length)};
    run->file->prefixes = prefix;
    return true;
}

/* With the lock. The run failed after readers had the beginning of it: what is fetched next has to
 * agree with that. A block whose checksum is noted here is not in the index. */
static void note_passed(struct run *run)
{
    struct cached_file *file = run->file;
    const uint64_t end = run->fetch.offset + run->passed;
    uint32_t block = run->first;

    assert(run->is_early && run->passed <= run->fetch.length);
    run->is_early = false;
    for (; block * CACHE_BLOCK_BYTES + block_length(file, block) <= end &&
           block < run->first + run->count;
         block++) {
        file->checksums[block] =
            zt_xxh3(run->fetch.bytes + (block - run->first) * CACHE_BLOCK_BYTES,
                    (size_t)block_length(file, block));
        atomic_store(&file->states[block], BLOCK_KNOWN | BLOCK_COMING);
    }
    if (block < run->first + run->count && end > block * CACHE_BLOCK_BYTES &&
        !note_prefix(run, block * CACHE_BLOCK_BYTES, end - block * CACHE_BLOCK_BYTES))
        file_lose(file);
}

/* Whoever waits for the run looks again, and has its blocks fetched. */
static void end_void(struct run *run)
{
    assert(run->is_void && !run->is_stored);
    set_blocks(run, BLOCK_ABSENT);
    run_end(run, ZT_OK);
}

static void compare_fetched(struct run *run)
{
    struct cache *cache = run->file->cache;

    assert(!run->is_check && run->stage == RUN_TAKEN);
    if (run->is_void) {
        end_void(run);
        return;
    }
    if (run->status != ZT_OK) {
        if (run->passed > 0)
            note_passed(run);
        fail(run, run->status);
        return;
    }
    cache_unlock(cache);
    hash_blocks(run);
    metric_add(METRIC_CACHE_FETCHED_BYTES, run->fetch.length);
    cache_lock(cache);
    if (run->is_void) {
        end_void(run);
        return;
    }
    if (run->file->is_lost) {
        fail(run,
             zt_fail(&run->error, ZT_STALE, NULL, ZT_NO_OFFSET, "that version no longer exists"));
        return;
    }
    if (!is_as_before(run)) {
        metric_add(METRIC_CACHE_MISMATCHES, 1);
        if (!run->was_repeated) {
            run_repeat(run);
            return;
        }
        log_write(LOG_LEVEL_WARN, "the store returned different bytes for the same version");
        file_lose(run->file);
        fail(run, zt_fail(&run->error, ZT_STALE, NULL, run->fetch.offset,
                          "the bytes of that version have changed"));
        return;
    }
    note_checksums(run);
    run->stage = RUN_READY;
    run->ready_ms = clock_coarse_ms();
    run_queue_put(&cache->landed, run);
    pthread_cond_broadcast(&run->changed);
    run_wake(run);
    pthread_cond_signal(&cache->work);
}

/* Without the lock. Reads one block of the file and compares it. */
static bool block_is_right(const struct run *run, uint32_t block, uint8_t *buffer)
{
    const struct cached_file *file = run->file;
    size_t length = (size_t)block_length(file, block);

    assert(block >= run->first && block - run->first < run->count);
    return disk_read(file->descriptor, buffer, length, block * CACHE_BLOCK_BYTES) &&
           zt_xxh3(buffer, length) == file->checksums[block];
}

static void compare_claimed(struct run *run)
{
    struct cached_file *file = run->file;
    struct cache *cache = file->cache;
    uint8_t *buffer = buffer_take(&cache->buffers, CACHE_BLOCK_BYTES);

    assert(run->is_check && run->stage == RUN_TAKEN);
    for (uint32_t i = 0; i < run->count && buffer != NULL; i++) {
        bool is_right;

        cache_unlock(cache);
        is_right = block_is_right(run, run->first + i, buffer);
        cache_lock(cache);
        block_set(file, run->first + i,
                  is_right && !file->is_lost && !file->is_cut ? BLOCK_HERE : BLOCK_ABSENT);
        if (!is_right)
            metric_add(METRIC_CACHE_MISMATCHES, 1);
    }
    if (buffer != NULL)
        buffer_give(&cache->buffers, buffer, CACHE_BLOCK_BYTES);
    else
        set_blocks(run, BLOCK_ABSENT);
    assert(atomic_load(&file->extents[extent_of_block(run->first)].pins) > 0);
    atomic_fetch_sub(&file->extents[extent_of_block(run->first)].pins, 1);
    run->is_stored = true;
    run_end(run, ZT_OK);
}

void landing_compare(struct run *run)
{
    assert(run->holders > 0);
    assert(run->stage == RUN_ARRIVED);
    run->stage = RUN_TAKEN;
    if (run->is_check)
        compare_claimed(run);
    else
        compare_fetched(run);
}

/* --- writing --- */

static bool may_write(const struct run *run)
{
    const struct cached_file *file = run->file;

    return file->descriptor >= 0 && !file->is_lost && !file->is_cut &&
           file->cache->broken_until_ms <= clock_coarse_ms();
}

/* With the lock. */
static void note_outcome(struct cache *cache, int failure)
{
    bool is_broken = failure != 0 && failure != ENOSPC && failure != EDQUOT;

    if (is_broken)
        cache->broken_until_ms = clock_coarse_ms() + BROKEN_MS;
    if (is_broken == cache->is_broken || (!is_broken && failure != 0))
        return;
    cache->is_broken = is_broken;
    if (is_broken)
        log_write(LOG_LEVEL_WARN, "the cache folder cannot be written to, blocks are not kept: %s",
                  strerrordesc_np(failure));
    else
        log_write(LOG_LEVEL_INFO, "the cache folder can be written to again");
}

/* Without the lock. 0, or an error number. */
static int write_blocks(const struct run *run)
{
    return disk_write(run->file->descriptor, run->fetch.bytes, (size_t)run->fetch.length,
                      run->fetch.offset)
               ? 0
               : errno;
}

static void append_index(const struct run *run)
{
    struct index_block blocks[CACHE_RUN_BYTES / CACHE_BLOCK_BYTES];

    assert(run->count <= CACHE_RUN_BLOCKS);
    for (uint32_t i = 0; i < run->count; i++)
        blocks[i] = (struct index_block){.checksum = run->checksums[i], .block = run->first + i};
    index_append(&run->file->cache->folder, run->file->key, blocks, run->count);
}

/* With the lock, which it gives up meanwhile. Room is taken, and the extent is pinned. */
static bool write_run(struct run *run)
{
    struct cached_file *file = run->file;
    struct cache *cache = file->cache;
    uint64_t disk_bytes;
    int failure;

    assert(run->stage == RUN_WRITING && file->descriptor >= 0);
    cache_unlock(cache);
    /* Writing after the end would hide that it is too short. */
    if (cut_is_detected(file)) {
        cache_lock(cache);
        return false;
    }
    failure = write_blocks(run);
    if (failure == ENOSPC || failure == EDQUOT) {
        cache_lock(cache);
        extents_evict(cache, file, CACHE_EXTENT_BYTES);
        cache_unlock(cache);
        failure = write_blocks(run);
    }
    if (failure == 0)
        append_index(run);
    disk_bytes = file_disk_bytes(file->descriptor);
    cache_lock(cache);
    note_outcome(cache, failure);
    file->checks_left = WRITEBACK_CHECKS;
    file_measured(file, disk_bytes);
    return failure == 0 && !file->is_cut;
}

static void store(struct run *run)
{
    struct cached_file *file = run->file;
    struct cache *cache = file->cache;
    struct extent *extent = &file->extents[extent_of_block(run->first)];
    struct disk_claim space;

    assert(run->stage == RUN_READY && !run->is_check && !run->is_stored);
    run->stage = RUN_WRITING;
    if (file->is_cut) {
        cache_unlock(cache);
        cut_mend(file);
        cache_lock(cache);
    }
    while (extent->is_punching)
        cache_wait(cache, &cache->settled);
    /* So that it is not evicted to make room for itself. */
    atomic_fetch_add(&extent->pins, 1);
    if (may_write(run) && extents_make_room(cache, file, run->fetch.length)) {
        extent->is_used = true;
        disk_claim_init(&space, file->descriptor, 0);
        disk_claim_note(&space, run->fetch.length);
        run->is_stored = write_run(run);
        disk_claim_spend(&space, 0, run->is_stored ? run->fetch.length : 0);
        disk_claim_end(&space);
        assert(cache->reserved_bytes >= run->fetch.length);
        cache->reserved_bytes -= run->fetch.length;
    }
    atomic_store(&extent->used_ms, clock_read_ns(CLOCK_REALTIME_COARSE) / CLOCK_NS_PER_MS);
    atomic_fetch_sub(&extent->pins, 1);
}

void landing_write(struct run *run)
{
    assert(run->stage == RUN_READY && run->holders > 0);
    store(run);
    if (run->file->is_lost) {
        set_blocks(run, BLOCK_ABSENT);
        run_end(run, ZT_OK);
    } else if (run->is_stored) {
        set_blocks(run, BLOCK_HERE);
        run_end(run, ZT_OK);
    } else {
        metric_add(METRIC_CACHE_UNCACHED_BYTES, run->fetch.length);
        run_keep(run);
    }
}
