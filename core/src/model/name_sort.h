/* Arrays of named entries: sorting them by name, bytewise, and searching them. */
#ifndef ZT_MODEL_NAME_SORT_H
#define ZT_MODEL_NAME_SORT_H

#include <assert.h>
#include <stddef.h>

#include "zt/model.h"

/* An array of entries, each of which begins with a pointer to its name (const char *) and has the
 * name's length as uint32_t at offset length_at. */
struct zt_named_array {
    void *entries;
    size_t count; /* fits in 32 bits */
    size_t stride;
    size_t length_at;
};

/* Sorts in place. Takes no memory if the names are already sorted, otherwise 8 bytes for each entry
 * during the sort. ZT_NO_MEMORY. */
enum zt_status zt_names_sort(const struct zt_named_array *array, struct zt_error *error);

/* The first index in a sorted array whose entry has the same name as the previous entry; 0 if all
 * names differ. */
size_t zt_names_duplicate(const struct zt_named_array *array);

/* The entry with that name in a sorted array; NULL if there is none. */
void *zt_names_find(const struct zt_named_array *array, struct zt_text name);

struct zt_text zt_names_at(const struct zt_named_array *array, size_t place);

/* The entries of a model as arrays of named entries. */
static inline struct zt_named_array zt_objects_named(const struct zt_object *objects,
                                                     uint32_t count)
{
    static_assert(offsetof(struct zt_object, name) == 0, "the name comes first");

    return (struct zt_named_array){(void *)(uintptr_t)objects, count, sizeof(*objects),
                                   offsetof(struct zt_object, name_length)};
}

static inline struct zt_named_array zt_components_named(const struct zt_component *components,
                                                        uint32_t count)
{
    static_assert(offsetof(struct zt_component, name) == 0, "the name comes first");

    return (struct zt_named_array){(void *)(uintptr_t)components, count, sizeof(*components),
                                   offsetof(struct zt_component, name_length)};
}

#endif
