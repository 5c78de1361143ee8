/* Room on the disk: the bytes that may be written, and the extents that are punched out for
 * them. */
#ifndef CACHE_EXTENTS_H
#define CACHE_EXTENTS_H

#include "cache/cache_state.h"

/* All with the lock, which they give up meanwhile. */

/* Reserves room for bytes of a file (cache.reserved_bytes), evicting others for it. A file of more
 * than half the cache gets only free space. False: there is none. */
bool extents_make_room(struct cache *cache, const struct cached_file *file, uint64_t bytes);

/* Punches out the least recently used unpinned extents until so many bytes are free, for a file
 * (NULL: for none). Returns how many it freed. */
uint64_t extents_evict(struct cache *cache, const struct cached_file *file, uint64_t bytes);

/* The cache's disk_saver. Without the lock. */
uint64_t extents_could_free(void *context, const struct disk_space *space);
bool extents_free_some(void *context, const struct disk_space *space, uint64_t bytes);

/* Shrinks the cache to its limits. */
void extents_trim(struct cache *cache);

/* The disk has lost bytes of a file: its unpinned extents are absent. Does not give up the lock. */
void extents_mark_unverified(struct cached_file *file);

/* Maximum size of the cache. Does not give up the lock. */
uint64_t extents_limit(const struct cache *cache);

#endif
