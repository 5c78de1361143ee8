/* An arena: a chain of blocks, each filled from its front. */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>

/* Blocks grow with what the arena holds: a small manifest takes little memory, a large one few
 * blocks. */
#define SMALLEST_BLOCK_BYTES 512
#define LARGEST_BLOCK_BYTES  65536

struct zt_arena_block {
    struct zt_arena_block *previous;
    size_t used_bytes;
    size_t size_bytes;
    alignas(max_align_t) unsigned char bytes[];
};

void zt_arena_init(struct zt_arena *arena, size_t budget_bytes)
{
    arena->last = NULL;
    arena->held_bytes = 0;
    arena->budget_bytes = budget_bytes;
}

static size_t block_bytes(const struct zt_arena *arena, size_t length)
{
    size_t wanted = arena->held_bytes;
    size_t left;
    size_t room;

    assert(arena->held_bytes <= arena->budget_bytes);
    if (wanted < SMALLEST_BLOCK_BYTES)
        wanted = SMALLEST_BLOCK_BYTES;
    if (wanted > LARGEST_BLOCK_BYTES)
        wanted = LARGEST_BLOCK_BYTES;
    left = arena->budget_bytes - arena->held_bytes;
    room = left > sizeof(struct zt_arena_block) ? left - sizeof(struct zt_arena_block) : 0;
    if (wanted > room)
        wanted = room;
    return wanted > length ? wanted : length;
}

static enum zt_status add_block(struct zt_arena *arena, size_t length, struct zt_error *error)
{
    size_t left = arena->budget_bytes - arena->held_bytes;
    size_t size;
    struct zt_arena_block *block;

    if (length > left || left - length < sizeof(struct zt_arena_block)) {
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the manifest takes more memory than its length allows");
    }
    size = block_bytes(arena, length);
    block = malloc(sizeof(*block) + size);
    if (block == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    block->previous = arena->last;
    block->used_bytes = 0;
    block->size_bytes = size;
    arena->last = block;
    arena->held_bytes += sizeof(*block) + size;
    assert(arena->held_bytes <= arena->budget_bytes);
    return ZT_OK;
}

enum zt_status zt_arena_take(struct zt_arena *arena, size_t length, void **out_bytes,
                             struct zt_error *error)
{
    const size_t alignment = alignof(max_align_t);

    if (length > SIZE_MAX - alignment) {
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the manifest takes more memory than its length allows");
    }
    length = (length + alignment - 1) / alignment * alignment;
    if (arena->last == NULL || arena->last->size_bytes - arena->last->used_bytes < length) {
        enum zt_status status = add_block(arena, length, error);

        if (status != ZT_OK)
            return status;
    }
    *out_bytes = arena->last->bytes + arena->last->used_bytes;
    arena->last->used_bytes += length;
    assert(arena->last->used_bytes <= arena->last->size_bytes);
    return ZT_OK;
}

void zt_arena_free(struct zt_arena *arena)
{
    while (arena->last != NULL) {
        struct zt_arena_block *previous = arena->last->previous;

        free(arena->last);
        arena->last = previous;
    }
    arena->held_bytes = 0;
}
