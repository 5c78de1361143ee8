/* For tests: what a cache has, read from its own structures. */
#ifndef CACHE_INSIDE_H
#define CACHE_INSIDE_H

#include "cache/extents.h"
#include "cache/files.h"

struct cache_figures {
    uint64_t used_bytes; /* on the disk */
    uint64_t limit_bytes;
    uint64_t pinned_bytes;
    uint64_t files;
    uint64_t fetches_running;
};

static inline uint64_t cache_pinned_bytes(const struct cached_file *file)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < file->extent_count; i++) {
        uint64_t left = file->size_bytes - i * CACHE_EXTENT_BYTES;

        if (atomic_load(&file->extents[i].pins) > 0)
            sum += left < CACHE_EXTENT_BYTES ? left : CACHE_EXTENT_BYTES;
    }
    return sum;
}

static inline struct cache_figures cache_figures_of(struct cache *cache)
{
    struct cache_figures figures = {0};

    cache_lock(cache);
    figures.used_bytes = cache->used_bytes;
    figures.limit_bytes = extents_limit(cache);
    figures.files = cache->file_count;
    figures.fetches_running = cache->fetching_count;
    for (uint32_t i = 0; i < CACHE_TABLE_SIZE; i++)
        for (const struct cached_file *file = cache->table[i]; file != NULL; file = file->next)
            figures.pinned_bytes += cache_pinned_bytes(file);
    cache_unlock(cache);
    return figures;
}

/* Whether any block of the version is in the folder. */
static inline bool cache_knows(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES])
{
    const struct cached_file *file;
    bool is_known = false;

    cache_lock(cache);
    file = file_find(cache, key);
    for (uint32_t i = 0; file != NULL && i < file->extent_count; i++)
        is_known = is_known || file->extents[i].is_used;
    cache_unlock(cache);
    return is_known;
}

#endif
