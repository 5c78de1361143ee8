/* Removal of bytes that turned out to be wrong. */
#ifndef CACHE_INVALIDATE_H
#define CACHE_INVALIDATE_H

#include "cache/cache_state.h"

/* invalidate of zt/source.h: the blocks of the range leave the cache and its index. */
void cache_source_invalidate(struct zt_source *source, uint64_t offset, uint64_t length);

#endif
