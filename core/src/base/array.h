/* Growing arrays: how capacities grow, and sizes that do not overflow.
 *
 * The owner keeps a typed pointer, a count and a capacity, which begin as NULL, 0 and 0:
 *
 *     status = zt_array_reserve(&list->items, &list->capacity, list->count + 1,
 *                               sizeof(*list->items), ITEMS_MAX);
 *     if (status != ZT_OK) ...
 *     list->items[list->count++] = item;
 *
 * free(list->items) frees it. */
#ifndef ZT_BASE_ARRAY_H
#define ZT_BASE_ARRAY_H

#include "zt/status.h"

/* Makes room for count elements of element_bytes each; array_at is the address of the array's
 * pointer. Nothing happens if the capacity is enough. It grows geometrically, so that adding one by
 * one takes linear time, but never past count_max. New elements are not cleared. ZT_LIMIT if count
 * exceeds count_max or the address space, ZT_NO_MEMORY; then nothing has changed. */
enum zt_status zt_array_reserve(void *array_at, size_t *capacity, size_t count,
                                size_t element_bytes, size_t count_max);

/* Frees the capacity beyond count elements, and the array if count is 0. If memory cannot be given
 * back, the array stays as it is. */
void zt_array_trim(void *array_at, size_t *capacity, size_t count, size_t element_bytes);

#endif
