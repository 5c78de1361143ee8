/* Memory that grows: arrays of any type, runs of bytes, and arenas, which are freed all at once. */
#ifndef ZT_BASE_MEMORY_H
#define ZT_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/status.h"

/* --- arrays: how capacities grow, and sizes that do not overflow ---
 *
 * The owner keeps a typed pointer, a count and a capacity, which begin as NULL, 0 and 0:
 *
 *     status = zt_array_reserve(&list->items, &list->capacity, list->count + 1,
 *                               sizeof(*list->items), ITEMS_MAX);
 *     if (status != ZT_OK) ...
 *     list->items[list->count++] = item;
 *
 * free(list->items) frees it. */

/* Makes room for count elements of element_bytes each; array_at is the address of the array's
 * pointer. Does nothing if the capacity suffices. The capacity grows geometrically, so that adding
 * elements one by one takes linear time, but never past count_max. New elements are not zeroed.
 * ZT_LIMIT if count exceeds count_max or the address space; ZT_NO_MEMORY. On failure nothing
 * changes. */
enum zt_status zt_array_reserve(void *array_at, size_t *capacity, size_t count,
                                size_t element_bytes, size_t count_max);

/* Releases the capacity beyond count elements, and the whole array if count is 0. If that fails,
 * the array is unchanged. */
void zt_array_trim(void *array_at, size_t *capacity, size_t count, size_t element_bytes);

/* --- runs of bytes ---
 *
 * Once growth has failed it stays failed and ignores further writes, so that a sequence of writes
 * is checked once, at its end. Starts out cleared. */

struct zt_buffer {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool failed;
};

void zt_buffer_append(struct zt_buffer *buffer, const void *bytes, size_t length);
void zt_buffer_append_le16(struct zt_buffer *buffer, uint16_t value);
void zt_buffer_append_le32(struct zt_buffer *buffer, uint32_t value);
void zt_buffer_append_le64(struct zt_buffer *buffer, uint64_t value);

/* Makes room for length more bytes and returns their address; NULL on failure. The caller fills
 * them and then adds their number to buffer->length. */
uint8_t *zt_buffer_reserve(struct zt_buffer *buffer, size_t length);

/* Frees the bytes and zeroes the buffer. */
void zt_buffer_free(struct zt_buffer *buffer);

/* --- arenas: what a parsed manifest needs beyond the manifest's own bytes ---
 *
 * An arena has a budget, so that the size of a file bounds the memory it can make the library hold
 * (docs/rules/, Memory). */

struct zt_arena_block;

struct zt_arena {
    struct zt_arena_block *last;
    size_t held_bytes;
    size_t budget_bytes;
};

void zt_arena_init(struct zt_arena *arena, size_t budget_bytes);
/* Allocates length bytes, aligned for any type and not zeroed, which are valid until zt_arena_free.
 * ZT_LIMIT if the budget would be exceeded; ZT_NO_MEMORY. */
enum zt_status zt_arena_take(struct zt_arena *arena, size_t length, void **out_bytes,
                             struct zt_error *error);
void zt_arena_free(struct zt_arena *arena);

#endif
