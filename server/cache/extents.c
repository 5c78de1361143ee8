#include "cache/extents.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metrics.h"
#include "cache/files.h"
#include "cache/index_file.h"

/* Extents that are evicted after one look at all of them. */
#define BATCH 32u
/* Looks for one need: a bound on how long a block waits for room. */
#define ROUNDS 64u

struct candidate {
    struct cached_file *file;
    uint32_t extent;
    int64_t rank; /* the least goes first */
    bool is_open;
    bool is_removed; /* the whole file was */
    uint64_t left_bytes;
};

struct batch {
    struct candidate items[BATCH]; /* in rising order of rank */
    size_t count;
};

/* --- how much room there is --- */

uint64_t extents_limit(const struct cache *cache)
{
    uint64_t left =
        cache->free_bytes > cache->reserve_bytes ? cache->free_bytes - cache->reserve_bytes : 0;
    uint64_t most = cache->used_bytes + left;

    return cache->max_bytes != 0 && cache->max_bytes < most ? cache->max_bytes : most;
}

static void look(struct cache *cache)
{
    uint64_t free_bytes;
    uint64_t reserve_bytes;
    bool is_known;

    cache_unlock(cache);
    is_known = folder_space(&cache->folder, &free_bytes, &reserve_bytes);
    cache_lock(cache);
    if (!is_known)
        return;
    /* The cache's claims are counted separately. */
    cache->free_bytes = free_bytes < UINT64_MAX - cache->reserved_bytes
                            ? free_bytes + cache->reserved_bytes
                            : free_bytes;
    cache->reserve_bytes = reserve_bytes;
    metric_set(METRIC_CACHE_LIMIT_BYTES, (int64_t)extents_limit(cache));
}

static uint64_t excess(uint64_t wanted, uint64_t most)
{
    return wanted > most ? wanted - most : 0;
}

/* How much has to go before so many bytes can be written. */
static uint64_t shortfall(const struct cache *cache, uint64_t bytes)
{
    uint64_t coming = cache->reserved_bytes + bytes;
    uint64_t on_disk = excess(coming + cache->reserve_bytes, cache->free_bytes);
    uint64_t in_all =
        cache->max_bytes != 0 ? excess(cache->used_bytes + coming, cache->max_bytes) : 0;

    return on_disk > in_all ? on_disk : in_all;
}

bool extents_make_room(struct cache *cache, const struct cached_file *file, uint64_t bytes)
{
    look(cache);
    if (shortfall(cache, bytes) > 0) {
        extents_evict(cache, file, shortfall(cache, bytes));
        look(cache);
    }
    if (shortfall(cache, bytes) > 0)
        return false;
    cache->reserved_bytes += bytes;
    return true;
}

/* --- choosing --- */

static void batch_add(struct batch *batch, const struct candidate *candidate)
{
    size_t at = batch->count < BATCH ? batch->count : BATCH - 1;

    assert(batch->count <= BATCH && candidate->extent < candidate->file->extent_count);
    if (batch->count == BATCH && batch->items[at].rank <= candidate->rank)
        return;
    for (; at > 0 && batch->items[at - 1].rank > candidate->rank; at--)
        batch->items[at] = batch->items[at - 1];
    batch->items[at] = *candidate;
    if (batch->count < BATCH)
        batch->count++;
}

static bool may_shrink(const struct cached_file *file)
{
    /* One that leaves may be removed as a whole in a moment. */
    if (file->phase == FILE_BUSY || file->is_leaving)
        return false;
    /* Its space cannot be had without removing it. A file without a descriptor is open without its
     * blocks: they could not be opened. */
    return file->phase != FILE_OPEN || (!file->cache->cannot_punch && file->descriptor >= 0);
}

static bool may_go(const struct extent *extent)
{
    return extent->is_used && !extent->is_punching && atomic_load(&extent->pins) == 0;
}

static void batch_add_file(struct batch *batch, struct cached_file *file)
{
    if (!may_shrink(file))
        return;
    for (uint32_t i = 0; i < file->extent_count; i++) {
        struct candidate candidate = {.file = file, .extent = i};

        if (!may_go(&file->extents[i]))
            continue;
        candidate.rank = atomic_load(&file->extents[i].used_ms);
        batch_add(batch, &candidate);
    }
}

static void find_oldest(struct cache *cache, struct batch *out_batch)
{
    out_batch->count = 0;
    for (uint32_t i = 0; i < CACHE_TABLE_SIZE; i++)
        for (struct cached_file *file = cache->table[i]; file != NULL; file = file->next)
            batch_add_file(out_batch, file);
}

/* --- evicting --- */

/* Takes the blocks of an extent away from readers. False: it is pinned, and has not changed. A pin
 * counts up, then looks at the states; here it is the other way around, so that one of the two sees
 * the other. */
static bool withdraw(struct cached_file *file, uint32_t index)
{
    uint32_t first = index * CACHE_EXTENT_BLOCKS;
    uint8_t before[CACHE_EXTENT_BYTES / CACHE_BLOCK_BYTES];
    uint32_t count = file->block_count - first;

    assert(file->phase == FILE_OPEN && index < file->extent_count);
    if (count > CACHE_EXTENT_BLOCKS)
        count = CACHE_EXTENT_BLOCKS;
    for (uint32_t i = 0; i < count; i++) {
        before[i] = atomic_load(&file->states[first + i]);
        if ((before[i] & BLOCK_STATE_BITS) != BLOCK_COMING)
            block_set(file, first + i, BLOCK_ABSENT);
    }
    if (atomic_load(&file->extents[index].pins) == 0)
        return true;
    for (uint32_t i = 0; i < count; i++)
        atomic_store(&file->states[first + i], before[i]);
    return false;
}

/* With the lock. Reserves a candidate for this thread. */
static bool claim(struct candidate *candidate)
{
    struct cached_file *file = candidate->file;

    assert(candidate->extent < file->extent_count);
    /* Another extent of a closed file has been claimed a moment ago. */
    if (file->phase == FILE_BUSY)
        return false;
    candidate->is_open = file->phase == FILE_OPEN;
    if (candidate->is_open) {
        if (!withdraw(file, candidate->extent))
            return false;
        file->users++;
    } else
        file->phase = FILE_BUSY;
    file->extents[candidate->extent].is_punching = true;
    return true;
}

static bool is_last(const struct candidate *candidate)
{
    const struct cached_file *file = candidate->file;

    for (uint32_t i = 0; i < file->extent_count; i++)
        if (i != candidate->extent && file->extents[i].is_used)
            return false;
    return true;
}

static bool punch(struct cache *cache, const struct candidate *candidate, int descriptor)
{
    uint64_t offset = candidate->extent * CACHE_EXTENT_BYTES;
    bool is_done = fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                             (off_t)CACHE_EXTENT_BYTES) == 0;

    assert(candidate->extent < candidate->file->extent_count && descriptor >= 0);
    if (!is_done && (errno == EOPNOTSUPP || errno == ENOSYS) && !cache->cannot_punch) {
        cache->cannot_punch = true;
        log_write(LOG_LEVEL_WARN,
                  "the cache's file system cannot punch holes: only whole files are evicted");
    }
    return is_done;
}

/* Without the lock. */
static void evict_closed(struct cache *cache, struct candidate *candidate)
{
    struct cached_file *file = candidate->file;
    int descriptor = -1;

    assert(!candidate->is_open && file->phase == FILE_BUSY);
    if (!is_last(candidate))
        descriptor = folder_file(&cache->folder, file->key, FOLDER_BLOCKS, O_RDWR | O_NONBLOCK);
    candidate->is_removed = descriptor < 0 || !punch(cache, candidate, descriptor);
    if (candidate->is_removed)
        folder_remove(&cache->folder, file->key);
    else {
        index_append_removal(&cache->folder, file->key, candidate->extent);
        candidate->left_bytes = file_disk_bytes(descriptor);
    }
    if (descriptor >= 0)
        close(descriptor);
}

/* Without the lock. */
static void evict_open(struct cache *cache, struct candidate *candidate)
{
    struct cached_file *file = candidate->file;

    assert(candidate->is_open && file->phase == FILE_OPEN);
    if (punch(cache, candidate, file->descriptor) && !file->is_lost)
        index_append_removal(&cache->folder, file->key, candidate->extent);
    candidate->left_bytes = file_disk_bytes(file->descriptor);
}

/* With the lock. Returns what became free. */
static uint64_t settle(struct candidate *candidate)
{
    struct cached_file *file = candidate->file;
    uint64_t before = file->disk_bytes;
    uint64_t left = candidate->is_removed ? 0 : candidate->left_bytes;

    assert(file->phase == FILE_OPEN ? file->users > 0 : file->phase == FILE_BUSY);
    assert(file->extents[candidate->extent].is_punching);
    file->extents[candidate->extent].is_punching = false;
    file->extents[candidate->extent].is_used = false;
    file_measured(file, left);
    if (file->phase == FILE_OPEN)
        file_release(file);
    else {
        file->phase = FILE_CLOSED;
        assert(!file->is_leaving);
        if (candidate->is_removed)
            cached_file_remove(file);
    }
    return before > left ? before - left : 0;
}

/* With the lock. Claims as many of a batch as are expected to free so many bytes, and moves them to
 * its beginning. */
static void claim_batch(struct batch *batch, uint64_t bytes)
{
    uint64_t expected = 0;
    size_t count = 0;

    for (size_t i = 0; i < batch->count && expected < bytes; i++)
        if (claim(&batch->items[i])) {
            uint64_t most = batch->items[i].file->disk_bytes;

            expected += most < CACHE_EXTENT_BYTES ? most : CACHE_EXTENT_BYTES;
            batch->items[count++] = batch->items[i];
        }
    assert(count <= batch->count);
    batch->count = count;
}

/* Returns what became free. */
static uint64_t evict_batch(struct cache *cache, struct batch *batch)
{
    uint64_t freed = 0;

    cache_unlock(cache);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->items[i].is_open)
            evict_open(cache, &batch->items[i]);
        else
            evict_closed(cache, &batch->items[i]);
    cache_lock(cache);
    for (size_t i = 0; i < batch->count; i++)
        freed += settle(&batch->items[i]);
    pthread_cond_broadcast(&cache->settled);
    metric_add(METRIC_CACHE_EVICTED_BYTES, freed);
    return freed;
}

uint64_t extents_evict(struct cache *cache, const struct cached_file *file, uint64_t bytes)
{
    uint64_t freed = 0;
    struct batch batch = {.count = 1};

    /* A file that takes most of the cache does not evict the others. */
    if (file != NULL && file->size_bytes > extents_limit(cache) / 2)
        return 0;
    for (unsigned round = 0; round < ROUNDS && freed < bytes && batch.count > 0; round++) {
        find_oldest(cache, &batch);
        claim_batch(&batch, bytes - freed);
        freed += evict_batch(cache, &batch);
    }
    return freed;
}

/* Only the size of the whole file on the disk is known. */
static uint64_t file_could_free(const struct cached_file *file)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; may_shrink(file) && i < file->extent_count; i++)
        bytes += may_go(&file->extents[i]) ? CACHE_EXTENT_BYTES : 0;
    return bytes < file->disk_bytes ? bytes : file->disk_bytes;
}

uint64_t extents_could_free(void *context, const struct disk_space *space)
{
    struct cache *cache = context;
    const int descriptor = atomic_load(&cache->folder.descriptor);
    uint64_t bytes = 0;

    if (descriptor < 0 || disk_space_of(descriptor) != space)
        return 0;
    cache_lock(cache);
    for (uint32_t i = 0; i < CACHE_TABLE_SIZE; i++)
        for (const struct cached_file *file = cache->table[i]; file != NULL; file = file->next)
            bytes += file_could_free(file);
    assert(bytes <= cache->used_bytes);
    cache_unlock(cache);
    return bytes;
}

bool extents_free_some(void *context, const struct disk_space *space, uint64_t bytes)
{
    struct cache *cache = context;
    const int descriptor = atomic_load(&cache->folder.descriptor);
    uint64_t freed;

    if (descriptor < 0 || disk_space_of(descriptor) != space)
        return false;
    cache_lock(cache);
    freed = extents_evict(cache, NULL, bytes);
    cache_unlock(cache);
    return freed > 0;
}

void extents_mark_unverified(struct cached_file *file)
{
    assert(file->phase == FILE_OPEN);
    for (uint32_t i = 0; i < file->extent_count; i++)
        if (atomic_load(&file->extents[i].pins) == 0)
            withdraw(file, i);
}

void extents_trim(struct cache *cache)
{
    look(cache);
    if (shortfall(cache, 0) > 0)
        extents_evict(cache, NULL, shortfall(cache, 0));
}
