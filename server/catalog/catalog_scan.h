/* A listing of the store, in order of path, and what differs in it from what the catalog has. */
#ifndef CATALOG_CATALOG_SCAN_H
#define CATALOG_CATALOG_SCAN_H

#include "catalog/catalog_index.h"

struct catalog_file {
    char *path;
    bool listed;
    struct file_identity identity; /* when listed */
};

struct catalog_files {
    struct catalog_file *items;
    size_t count;
    size_t capacity;
};

/* Lists the store. On failure out_files stays as it is. */
enum zt_status catalog_files_list(struct store *store, struct catalog_files *out_files,
                                  struct zt_error *error);

/* The files that are new, changed or gone, compared with the index, in order of path. False when
 * memory is out. */
bool catalog_files_compare(const struct catalog_files *files, const struct catalog_index *index,
                           struct catalog_files *out_changed);

/* Adds a file at the end; identity is NULL for one that is not listed. False when memory is out. */
bool catalog_files_add(struct catalog_files *files, const char *path,
                       const struct file_identity *identity);

void catalog_files_free(struct catalog_files *files);

#endif
