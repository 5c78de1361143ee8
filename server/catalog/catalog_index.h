/* The catalog's generations in two orders, by path, and by name and precedence; and the comparison
 * of a store listing with them. The index holds a reference to each generation. */
#ifndef CATALOG_CATALOG_INDEX_H
#define CATALOG_CATALOG_INDEX_H

#include "base/name_filter.h"
#include "catalog/generation.h"

struct catalog_index {
    struct generation **by_path;
    struct generation **by_name; /* by name, then precedence of the extension */
    size_t count;
    /* Generations whose model is in several files, in order of path. */
    struct generation **sharded;
    size_t sharded_count;
    struct catalog_part *parts; /* of all joined models, by path (catalog_parts.c) */
    size_t part_count;
};

/* The change of a path: its new generation (the change owns the reference), or NULL if the file is
 * gone. */
struct catalog_change {
    char *path;
    struct generation *generation;
};

/* Makes a new index from an index and changes, which must be sorted by path without duplicates; the
 * new index takes over the references. The old index remains valid and readable. Replaced and
 * removed generations are written to out_dropped (room for count); the caller must retire and
 * release them. Returns false if out of memory. */
bool catalog_index_merge(const struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct catalog_index *out_next,
                         struct generation **out_dropped, size_t *out_dropped_count);

/* Frees an index that was replaced, but not its generations. */
void catalog_index_free_arrays(struct catalog_index *index);

/* Return a generation without a reference, or NULL. A name selects the first of its files that is
 * not a data shard. */
struct generation *catalog_index_find_path(const struct catalog_index *index, struct zt_text path);
struct generation *catalog_index_find_name(const struct catalog_index *index, struct zt_text name);

/* Returns the index in by_path of the first file that does not sort before the path. */
size_t catalog_index_path_bound(const struct catalog_index *index, struct zt_text path);

/* Returns the index in by_name of the first generation whose name does not sort before the given
 * name. */
size_t catalog_index_lower_bound(const struct catalog_index *index, struct zt_text name);

/* Returns the first model at or after index `at` of by_name; *out_next is the index of the next
 * name. Returns NULL at the end. */
struct generation *catalog_index_model_at(const struct catalog_index *index, size_t at,
                                          size_t *out_next);

/* Returns the joined model that has the file as a part, if lookups by its name find it and the name
 * passes the filter. If there are several, returns any. Without a reference; NULL if there is
 * none. */
struct generation *catalog_index_model_of(const struct catalog_index *index, const char *path,
                                          struct name_filter filter);

/* Part of catalog_index_merge: fills the parts of next. Returns false if out of memory. */
bool catalog_parts_merge(const struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct catalog_index *next);

/* Releases everything. */
void catalog_index_clear(struct catalog_index *index);

/* --- listings --- */

struct catalog_file {
    char *path;
    bool listed;
    bool leaves;                   /* an earlier commit's, which no client has used lately */
    struct file_identity identity; /* if listed */
};

struct catalog_files {
    struct catalog_file *items;
    size_t count;
    size_t capacity;
};

/* Lists the store in order of path. On failure out_files is unchanged. */
enum zt_status catalog_files_list(struct store *store, struct catalog_files *out_files,
                                  struct zt_error *error);

/* Checks only the files that have changed in the store, in order of path and without duplicates;
 * files that are gone are marked as not listed. *out_whole: catalog_files_list is necessary. On
 * failure out_files is unchanged. */
enum zt_status catalog_files_stat(struct store *store, struct catalog_files *out_files,
                                  bool *out_whole, struct zt_error *error);

/* Removes the files that match the index. */
void catalog_files_drop_known(struct catalog_files *files, const struct catalog_index *index);

/* Finds the files that are new, changed or gone compared with the index, in order of path. Returns
 * false if out of memory. */
bool catalog_files_compare(const struct catalog_files *files, const struct catalog_index *index,
                           struct catalog_files *out_changed);

/* Appends a file; identity is NULL if it was not listed. Returns false if out of memory. */
bool catalog_files_add(struct catalog_files *files, const char *path,
                       const struct file_identity *identity);

void catalog_files_free(struct catalog_files *files);

/* Returns true if a model in several files must be opened again because of changes to other files.
 * The changes are sorted by path and not empty. */
bool catalog_changes_concern(const struct generation *generation,
                             const struct catalog_change *changes, size_t count);

#endif
