/* Reading without a thread that waits: readers are called back. */
#ifndef CACHE_AWAIT_H
#define CACHE_AWAIT_H

#include "cache/cache_state.h"

/* zt_source_ops.await and take_arrived. */
void await_bytes(struct zt_source *source, uint64_t offset, uint64_t length, uint64_t least,
                 struct zt_source_waiter *waiter);
size_t await_take(struct zt_source *source, uint64_t offset, void *buffer, size_t length);

#endif
