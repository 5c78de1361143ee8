/* A read index (zt/join.h), as the functions that join parts see it. */
#ifndef ZT_JOIN_INDEX_H
#define ZT_JOIN_INDEX_H

#include "zt/join.h"

/* A tensor, and the part that has it. The layout that zt_names_sort requires. */
struct zt_index_entry {
    const char *name;
    uint32_t name_length;
    uint32_t part; /* index into the parts */
};

struct zt_index {
    char *bytes; /* the file's, with escapes replaced; texts point into them */
    uint64_t length;
    uint64_t hash;                  /* XXH3-64 of the file */
    struct zt_index_entry *entries; /* sorted by name, bytewise */
    uint32_t entry_count;
    uint32_t part_count;
    struct zt_text *parts; /* sorted bytewise */
    uint64_t total_size_bytes;
    bool has_total_size;
};

/* The entry of a tensor; NULL if the index does not name it. */
const struct zt_index_entry *zt_index_find(const struct zt_index *index, struct zt_text tensor);

/* Position in the file of a tensor's name. */
uint64_t zt_index_position(const struct zt_index *index, const struct zt_index_entry *entry);

/* The number of the part with that name; part_count if there is none. */
uint32_t zt_index_part(const struct zt_index *index, struct zt_text name);

#endif
