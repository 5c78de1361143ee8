/* Growing arrays: one place that decides how capacities grow and checks that sizes do not overflow.
 *
 * The owner keeps a typed pointer, a count and a capacity:
 *
 *     if (list->count == list->capacity)
 *         status = zt_array_reserve(&list->items, &list->capacity, list->count + 1,
 *                                   sizeof(*list->items), ITEMS_MAX);
 *     ...
 *     list->items[list->count++] = item;
 */
#ifndef ZT_BASE_ARRAY_H
#define ZT_BASE_ARRAY_H

#include "zt/status.h"

/* Makes room for count elements of element_bytes each. array_at is the address of the array's
 * pointer, which starts out NULL with capacity 0 and is freed by free. Grows geometrically, so that
 * a run of single additions costs linear time, but never past count_max. Takes the shortcut when
 * the capacity suffices. New elements are not cleared.
 *
 * ZT_LIMIT if count exceeds count_max (or memory's addresses), ZT_NO_MEMORY; then nothing changes.
 */
enum zt_status zt_array_reserve(void *array_at, size_t *capacity, size_t count,
                                size_t element_bytes, size_t count_max);

/* Returns what growth left over beyond count elements; frees the array if count is 0. An array that
 * cannot be made smaller stays as it is. */
void zt_array_trim(void *array_at, size_t *capacity, size_t count, size_t element_bytes);

#endif
