/* Sorting arrays of named entries by name, bytewise, and finding names that occur twice. */
#ifndef ZT_MODEL_NAME_SORT_H
#define ZT_MODEL_NAME_SORT_H

#include "zt/status.h"

/* Entries that begin with their name's pointer (const char *) and hold its length as uint32_t at
 * length_at. */
struct zt_named_array {
    void *entries;
    size_t count; /* fits in 32 bits */
    size_t stride;
    size_t length_at;
};

/* Sorts in place. Costs nothing when the names ascend already, else 8 bytes an entry for the time
 * of the sort. ZT_NO_MEMORY. */
enum zt_status zt_names_sort(const struct zt_named_array *array, struct zt_error *error);

/* The first place whose name is that of the entry before it, or 0 when all names of the sorted
 * array differ. */
size_t zt_names_duplicate(const struct zt_named_array *array);

/* The entry of that name in the sorted array, or NULL. */
void *zt_names_find(const struct zt_named_array *array, struct zt_text name);

struct zt_text zt_names_at(const struct zt_named_array *array, size_t place);

#endif
