/* Room on the disk: what may be written, and what is punched out for it. */
#ifndef CACHE_EXTENTS_H
#define CACHE_EXTENTS_H

#include "cache/cache_state.h"

/* All with the lock, which they give up meanwhile. */

/* Reserves room for bytes of a file (cache.reserved_bytes), evicting others for it. A file of more
 * than half the cache gets only what is free or retired. False: there is none. */
bool extents_make_room(struct cache *cache, const struct cached_file *file, uint64_t bytes);

/* Punches out the least recently used extents that nobody pins until so many bytes are free, for a
 * file (NULL: for none). Returns how many it freed. */
uint64_t extents_evict(struct cache *cache, const struct cached_file *file, uint64_t bytes);

/* Shrinks the cache to its limits. */
void extents_trim(struct cache *cache);

/* The disk has failed to keep what was written to a file: what nobody has pinned is absent. Does
 * not give up the lock. */
void extents_doubt(struct cached_file *file);

/* What the cache may take in all. Does not give up the lock. */
uint64_t extents_limit(const struct cache *cache);

#endif
