/* Memory that grows: arrays, runs of bytes (arrays of bytes), and arenas (chains of blocks that are
 * filled from the front). */
#include "base/memory.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"

/* --- arenas --- */

/* Blocks grow with the arena, so that a small manifest takes little memory and a large one few
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

/* --- arrays --- */

/* Arrays double up to this size. From there on they grow by an eighth, so that a large array wastes
 * little; realloc then remaps pages. */
#define DOUBLING_LIMIT_BYTES ((size_t)256 << 10)
#define SMALLEST_CAPACITY    8

/* The address of a typed pointer is read and written as bytes: a void ** would alias it. */
static void *pointer_at(const void *array_at)
{
    void *array;

    memcpy(&array, array_at, sizeof(array));
    return array;
}

/* The result is at least count and at most count_max. The size of count_max elements must not
 * overflow. */
static size_t next_capacity(size_t capacity, size_t count, size_t element_bytes, size_t count_max)
{
    size_t step = capacity < DOUBLING_LIMIT_BYTES / element_bytes ? capacity : capacity / 8;
    size_t next = capacity > count_max - step ? count_max : capacity + step;

    assert(capacity < count && count <= count_max);
    if (next < SMALLEST_CAPACITY)
        next = SMALLEST_CAPACITY < count_max ? SMALLEST_CAPACITY : count_max;
    return next > count ? next : count;
}

enum zt_status zt_array_reserve(void *array_at, size_t *capacity, size_t count,
                                size_t element_bytes, size_t count_max)
{
    size_t addressable;
    size_t wanted;
    void *array;

    assert(element_bytes > 0);
    if (count <= *capacity)
        return ZT_OK;
    addressable = PTRDIFF_MAX / element_bytes;
    if (count_max > addressable)
        count_max = addressable;
    if (count > count_max)
        return ZT_LIMIT;
    wanted = next_capacity(*capacity, count, element_bytes, count_max);
    assert(wanted >= count && wanted <= count_max);
    array = realloc(pointer_at(array_at), wanted * element_bytes);
    if (array == NULL)
        return ZT_NO_MEMORY;
    memcpy(array_at, &array, sizeof(array));
    *capacity = wanted;
    return ZT_OK;
}

void zt_array_trim(void *array_at, size_t *capacity, size_t count, size_t element_bytes)
{
    void *array = pointer_at(array_at);

    assert(element_bytes > 0 && count <= *capacity);
    if (count == 0) {
        free(array);
        array = NULL;
    } else if (count < *capacity) {
        void *smaller = realloc(array, count * element_bytes);

        if (smaller == NULL)
            return;
        array = smaller;
    }
    memcpy(array_at, &array, sizeof(array));
    *capacity = count;
}

/* --- runs of bytes --- */

#define SMALLEST_BUFFER_BYTES 64

uint8_t *zt_buffer_reserve(struct zt_buffer *buffer, size_t length)
{
    size_t needed;

    assert(buffer->length <= buffer->capacity);
    if (buffer->failed || length > SIZE_MAX - buffer->length) {
        buffer->failed = true;
        return NULL;
    }
    needed = buffer->length + length;
    if (needed < SMALLEST_BUFFER_BYTES)
        needed = SMALLEST_BUFFER_BYTES;
    if (zt_array_reserve(&buffer->bytes, &buffer->capacity, needed, 1, SIZE_MAX) != ZT_OK) {
        buffer->failed = true;
        return NULL;
    }
    assert(buffer->capacity - buffer->length >= length);
    return buffer->bytes + buffer->length;
}

void zt_buffer_append(struct zt_buffer *buffer, const void *bytes, size_t length)
{
    uint8_t *room = length > 0 ? zt_buffer_reserve(buffer, length) : NULL;

    if (room == NULL)
        return;
    memcpy(room, bytes, length);
    buffer->length += length;
    assert(buffer->length <= buffer->capacity);
}

void zt_buffer_append_le16(struct zt_buffer *buffer, uint16_t value)
{
    uint8_t bytes[2];

    zt_store_le16(bytes, value);
    zt_buffer_append(buffer, bytes, sizeof(bytes));
}

void zt_buffer_append_le32(struct zt_buffer *buffer, uint32_t value)
{
    uint8_t bytes[4];

    zt_store_le32(bytes, value);
    zt_buffer_append(buffer, bytes, sizeof(bytes));
}

void zt_buffer_append_le64(struct zt_buffer *buffer, uint64_t value)
{
    uint8_t bytes[8];

    zt_store_le64(bytes, value);
    zt_buffer_append(buffer, bytes, sizeof(bytes));
}

void zt_buffer_free(struct zt_buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof(*buffer));
}
