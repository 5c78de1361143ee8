/* Bytes for readers that do not wait on a thread: senders take bytes as they arrive, and the
 * check of a whole file takes only bytes that will not change. */
#include "cache/await.h"

#include <assert.h>
#include <string.h>

#include "cache/files.h"
#include "cache/pins.h"
#include "cache/source.h"
#include "zt/digest.h"

static void wake_now(struct cache *cache, struct zt_source_waiter *waiter)
{
    waiter->next = NULL;
    *cache->woken_end = waiter;
    cache->woken_end = &waiter->next;
}

/* With the lock. The run of a block that is not here; NULL with ZT_OK: look again. */
static enum zt_status find_run(struct cache_source *source, uint64_t offset, uint64_t length,
                               struct run **out_run, struct zt_error *error)
{
    const uint32_t block = block_of(offset);
    enum zt_status status;

    *out_run = NULL;
    if (source->file->is_lost)
        return pins_fail_lost(error);
    status = runs_begin(source, block, block_of(offset + length - 1), true, error);
    if (status == ZT_OK)
        *out_run = run_find(source->file, block);
    return status;
}

void await_bytes(struct zt_source *given, uint64_t offset, uint64_t length, uint64_t least,
                 struct zt_source_waiter *waiter)
{
    struct cache_source *source = (struct cache_source *)given;
    struct cache *cache = source->cache;
    struct run *run;

    waiter->is_for_checked = false;
    waiter->until = offset + least;
    cache_lock(cache);
    if (source_check_range(source->file, offset, length, &waiter->error) != ZT_OK ||
        find_run(source, offset, length, &run, &waiter->error) != ZT_OK || run == NULL)
        wake_now(cache, waiter);
    else
        run_listen(run, waiter);
    cache_unlock(cache);
}

size_t await_take(struct zt_source *given, uint64_t offset, void *buffer, size_t length)
{
    struct cache_source *source = (struct cache_source *)given;
    struct cache *cache = source->cache;
    struct run *run;
    size_t taken = 0;

    if (source_check_range(source->file, offset, length, NULL) != ZT_OK)
        return 0;
    cache_lock(cache);
    run = source->file->is_lost ? NULL : run_find(source->file, block_of(offset));
    if (run != NULL) {
        run_hold(run);
        if (run_has(run, offset))
            taken = source_copy(run, offset, buffer, length);
        run_release(run);
    }
    cache_unlock(cache);
    return taken;
}

/* --- bytes that will not change --- */

size_t cache_read_settled(struct zt_source *given, uint64_t offset, void *buffer, size_t length)
{
    struct cache_source *source = (struct cache_source *)given;
    struct cache *cache = source->cache;
    size_t taken = source_read_here(source->file, offset, buffer, length);
    struct run *run;

    if (taken > 0)
        return taken;
    cache_lock(cache);
    run = source->file->is_lost ? NULL : run_find(source->file, block_of(offset));
    if (run != NULL) {
        run_hold(run);
        if (!run->is_check && run->stage >= RUN_READY)
            taken = source_copy(run, offset, buffer, length);
        run_release(run);
    }
    cache_unlock(cache);
    return taken;
}

bool cache_await_settled(struct zt_source *given, uint64_t offset, uint64_t length, bool fetch,
                         struct zt_source_waiter *waiter)
{
    struct cache_source *source = (struct cache_source *)given;
    struct cache *cache = source->cache;
    const uint32_t block = block_of(offset);
    bool will_wake = true;
    struct run *run;

    assert(offset + length <= source->file->size_bytes && length > 0);
    zt_error_clear(&waiter->error);
    waiter->is_for_checked = true;
    waiter->until = offset + 1;
    cache_lock(cache);
    if (!fetch && block_state(source->file, block) == BLOCK_ABSENT && !source->file->is_lost)
        will_wake = false;
    /* Claimed blocks are compared, which asks no origin, but what follows may be absent. */
    else if (find_run(source, offset, fetch ? length : 1, &run, &waiter->error) != ZT_OK ||
             run == NULL)
        wake_now(cache, waiter);
    else
        run_listen(run, waiter);
    cache_unlock(cache);
    return will_wake;
}

static bool is_known(const struct cached_file *file, uint32_t block)
{
    return (atomic_load(&file->states[block]) & BLOCK_KNOWN) != 0;
}

bool cache_is_settled(const struct zt_source *given, uint64_t offset)
{
    const struct cached_file *file = ((const struct cache_source *)given)->file;

    assert(offset < file->size_bytes);
    return is_known(file, block_of(offset));
}

uint64_t cache_bytes_here(const struct zt_source *given)
{
    const struct cached_file *file = ((const struct cache_source *)given)->file;
    uint64_t bytes = 0;

    for (uint32_t block = 0; block < file->block_count; block++)
        if (block_state(file, block) == BLOCK_HERE || block_state(file, block) == BLOCK_CLAIMED)
            bytes += block_length(file, block);
    assert(bytes <= file->size_bytes);
    return bytes;
}

bool cache_proof(struct zt_source *given, uint8_t out_proof[CACHE_PROOF_BYTES])
{
    struct cached_file *file = ((struct cache_source *)given)->file;
    uint64_t words[2];
    bool is_whole = true;

    static_assert(sizeof(words) == CACHE_PROOF_BYTES, "one hash");
    cache_lock(file->cache);
    for (uint32_t block = 0; is_whole && block < file->block_count; block++)
        is_whole = is_known(file, block);
    is_whole = is_whole && !file->is_lost;
    if (is_whole) {
        zt_xxh3_128(file->checksums, file->block_count * sizeof(file->checksums[0]), words);
        memcpy(out_proof, words, sizeof(words));
    }
    cache_unlock(file->cache);
    return is_whole;
}

void cache_recheck(struct zt_source *given, uint64_t offset, uint64_t length)
{
    struct cached_file *file = ((struct cache_source *)given)->file;

    if (offset >= file->size_bytes || length == 0)
        return;
    if (length > file->size_bytes - offset)
        length = file->size_bytes - offset;
    cache_lock(file->cache);
    for (uint32_t block = block_of(offset); block <= block_of(offset + length - 1); block++)
        if (block_state(file, block) == BLOCK_HERE && is_known(file, block))
            block_set(file, block, BLOCK_CLAIMED);
    cache_unlock(file->cache);
}

void cache_lose(struct zt_source *given)
{
    struct cached_file *file = ((struct cache_source *)given)->file;

    cache_lock(file->cache);
    file_lose(file);
    cache_unlock(file->cache);
}

bool cache_has_all(const struct zt_source *given)
{
    const struct cached_file *file = ((const struct cache_source *)given)->file;
    uint32_t block = 0;

    while (block < file->block_count && block_state(file, block) != BLOCK_ABSENT)
        block++;
    return block == file->block_count;
}
