/* The catalog's two orders of generations: by path, and by name and precedence. Holds a reference
 * to each. */
#ifndef CATALOG_CATALOG_INDEX_H
#define CATALOG_CATALOG_INDEX_H

#include "catalog/generation.h"

struct catalog_index {
    struct generation **by_path;
    struct generation **by_name; /* by name, then precedence of the extension */
    size_t count;
};

/* What became of a path: its new generation (the reference is the change's), or NULL when it is
 * gone. */
struct catalog_change {
    char *path;
    struct generation *generation;
};

/* Brings changes in, which must be sorted by path, each path once. Takes over their generations;
 * replaced and removed ones are retired and put into out_dropped (room for count), to be released
 * by the caller. False, and nothing happened, when memory is out. */
bool catalog_index_apply(struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct generation **out_dropped, size_t *out_dropped_count);

/* Borrowed; NULL when there is none. A name stands for the first of its files that is not a data
 * shard. */
struct generation *catalog_index_find_path(const struct catalog_index *index, struct zt_text path);
struct generation *catalog_index_find_name(const struct catalog_index *index, struct zt_text name);

/* The place in by_path of the first file that is not before the path. */
size_t catalog_index_path_bound(const struct catalog_index *index, struct zt_text path);

/* The place in by_name of the first generation whose name is not before the given one. */
size_t catalog_index_lower_bound(const struct catalog_index *index, struct zt_text name);

/* The model at or behind a place of by_name that stands for its name; *out_next is the place of the
 * next name. NULL at the end. */
struct generation *catalog_index_model_at(const struct catalog_index *index, size_t at,
                                          size_t *out_next);

/* Releases everything. */
void catalog_index_clear(struct catalog_index *index);

int catalog_text_compare(struct zt_text a, struct zt_text b);

#endif
