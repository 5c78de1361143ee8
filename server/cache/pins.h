/* Pins: ranges that stay on the disk, in all their extents, until they are released. */
#ifndef CACHE_PINS_H
#define CACHE_PINS_H

#include "base/clock.h"
#include "cache/cache_state.h"

/* zt_source_ops.pin. Without wait no lock is taken. */
enum zt_status pins_pin(struct zt_source *source, uint64_t offset, uint64_t length, bool wait,
                        struct zt_pin *out_pin, struct zt_error *error);

enum zt_status pins_fail_lost(struct zt_error *error);

/* ZT_UNAVAILABLE, and a line in the log: the caller is on a thread that never waits. A mistake of
 * the program, which costs this answer rather than all others of the loop. */
enum zt_status pins_fail_hurried(struct zt_error *error);

/* Notes that an extent is used now. */
static inline void pins_touch(struct extent *extent)
{
    int64_t now_ms = clock_read_ns(CLOCK_REALTIME_COARSE) / CLOCK_NS_PER_MS;

    /* A store would take the cache line from the other threads each time. */
    if (atomic_load_explicit(&extent->used_ms, memory_order_relaxed) != now_ms)
        atomic_store_explicit(&extent->used_ms, now_ms, memory_order_relaxed);
}

#endif
