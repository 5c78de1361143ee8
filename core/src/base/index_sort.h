/* Sorting an index: entries stay where they are, and their 32-bit numbers are sorted. */
#ifndef ZT_BASE_INDEX_SORT_H
#define ZT_BASE_INDEX_SORT_H

#include "zt/status.h"

struct zt_index_order {
    /* Whether entry a belongs after entry b. A strict order: false if they are equal. */
    bool (*is_after)(const void *context, uint32_t a, uint32_t b);
    const void *context;
};

/* Sorts stably. Time is linear for a sorted index, otherwise count times the logarithm of the
 * number of ascending runs. Takes 4 bytes for each entry, and no memory for a sorted index. On
 * failure (ZT_NO_MEMORY) the index is unchanged. */
enum zt_status zt_index_sort(uint32_t *index, uint32_t count, const struct zt_index_order *order);

/* Makes a sorted index of the entries 0 to count - 1. Freed with free. ZT_NO_MEMORY. */
enum zt_status zt_index_make(uint32_t count, const struct zt_index_order *order,
                             uint32_t **out_index);

#endif
