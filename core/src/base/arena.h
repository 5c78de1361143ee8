/* Memory that is freed all at once: what a parsed manifest needs beyond the manifest's own bytes.
 *
 * An arena has a budget, so that the size of a file bounds the memory it can make the library hold
 * (docs/rules/, Memory). */
#ifndef ZT_BASE_ARENA_H
#define ZT_BASE_ARENA_H

#include "zt/status.h"

struct zt_arena_block;

struct zt_arena {
    struct zt_arena_block *last;
    size_t held_bytes;
    size_t budget_bytes;
};

void zt_arena_init(struct zt_arena *arena, size_t budget_bytes);
/* Takes length bytes, aligned for any type and not cleared; they live until zt_arena_free. ZT_LIMIT
 * past the budget, ZT_NO_MEMORY. */
enum zt_status zt_arena_take(struct zt_arena *arena, size_t length, void **out_bytes,
                             struct zt_error *error);
void zt_arena_free(struct zt_arena *arena);

#endif
