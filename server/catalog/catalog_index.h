/* The catalog's generations in two orders: by path, and by name and precedence; and the comparison
 * of a listing of the store with them. Holds a reference to each generation. */
#ifndef CATALOG_CATALOG_INDEX_H
#define CATALOG_CATALOG_INDEX_H

#include "base/name_filter.h"
#include "catalog/generation.h"

/* A file that a joined model needs, whether it is there or not. The path is the model's. */
struct catalog_part {
    const char *path;
    struct generation *joined;
};

struct catalog_index {
    struct generation **by_path;
    struct generation **by_name; /* by name, then precedence of the extension */
    size_t count;
    /* Those whose model is spread over several files, in order of path. */
    struct generation **sharded;
    size_t sharded_count;
    struct catalog_part *parts; /* of all joined models, by path */
    size_t part_count;
};

/* What became of a path: its new generation (the reference belongs to the change), or NULL if the
 * file is gone. */
struct catalog_change {
    char *path;
    struct generation *generation;
};

/* Makes the index as it is after changes, sorted by path, each path once; the generations belong to
 * it from then on. The old index stays as it is, so that it can be read meanwhile. Replaced and
 * removed generations are put into out_dropped (room for count); the caller retires and releases
 * them. False if out of memory. */
bool catalog_index_merge(const struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct catalog_index *out_next,
                         struct generation **out_dropped, size_t *out_dropped_count);

/* Frees an index that was replaced, but none of its generations. */
void catalog_index_free_arrays(struct catalog_index *index);

/* Borrowed; NULL if there is none. A name means the first of its files that is not a data shard. */
struct generation *catalog_index_find_path(const struct catalog_index *index, struct zt_text path);
struct generation *catalog_index_find_name(const struct catalog_index *index, struct zt_text name);

/* The index in by_path of the first file that does not sort before the path. */
size_t catalog_index_path_bound(const struct catalog_index *index, struct zt_text path);

/* The index in by_name of the first generation whose name does not sort before the given one. */
size_t catalog_index_lower_bound(const struct catalog_index *index, struct zt_text name);

/* The first model at or after index at of by_name; *out_next is the index of the next name. NULL at
 * the end. */
struct generation *catalog_index_model_at(const struct catalog_index *index, size_t at,
                                          size_t *out_next);

/* The joined model that the file is a part of, if the model is what its name stands for, and the
 * name passes the filter; of several any one. Borrowed; NULL if there is none. */
struct generation *catalog_index_model_of(const struct catalog_index *index, const char *path,
                                          struct name_filter filter);

/* Of catalog_index_merge: makes the parts of next. False if out of memory. */
bool catalog_parts_merge(const struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct catalog_index *next);

/* Releases everything. */
void catalog_index_clear(struct catalog_index *index);

/* --- listings --- */

struct catalog_file {
    char *path;
    bool listed;
    struct file_identity identity; /* if listed */
};

struct catalog_files {
    struct catalog_file *items;
    size_t count;
    size_t capacity;
};

/* Lists the store, in order of path. On failure out_files stays as it is. */
enum zt_status catalog_files_list(struct store *store, struct catalog_files *out_files,
                                  struct zt_error *error);

/* Looks only at what has changed in the store, in order of path, each file once; those that are
 * gone are not listed. *out_whole: catalog_files_list is necessary. On failure out_files stays as
 * it is. */
enum zt_status catalog_files_look(struct store *store, struct catalog_files *out_files,
                                  bool *out_whole, struct zt_error *error);

/* Removes the files that the index has as they are. */
void catalog_files_drop_known(struct catalog_files *files, const struct catalog_index *index);

/* Finds the files that are new, changed or gone compared with the index, in order of path. False if
 * out of memory. */
bool catalog_files_compare(const struct catalog_files *files, const struct catalog_index *index,
                           struct catalog_files *out_changed);

/* Adds a file at the end; identity is NULL if it was not listed. False when out of memory. */
bool catalog_files_add(struct catalog_files *files, const char *path,
                       const struct file_identity *identity);

void catalog_files_free(struct catalog_files *files);

#endif
