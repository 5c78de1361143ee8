/* Sorting an index: entries stay where they are, their 32-bit numbers are put in order. */
#ifndef ZT_BASE_INDEX_SORT_H
#define ZT_BASE_INDEX_SORT_H

#include "zt/status.h"

struct zt_index_order {
    /* Whether entry a belongs after entry b: a strict order, false for equal ones. */
    bool (*is_after)(const void *context, uint32_t a, uint32_t b);
    const void *context;
};

/* Sorts stably. Time is linear for an index in order, and count times the logarithm of the number
 * of ascending runs for any other; it takes 4 bytes an entry, none if the index is in order.
 * ZT_NO_MEMORY, and then the index is as it was. */
enum zt_status zt_index_sort(uint32_t *index, uint32_t count, const struct zt_index_order *order);

/* The numbers 0 to count - 1 in order. Freed with free. ZT_NO_MEMORY. */
enum zt_status zt_index_make(uint32_t count, const struct zt_index_order *order,
                             uint32_t **out_index);

#endif
