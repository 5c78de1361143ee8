/* Whether a repository has all parts that the indexes of its models name. */
#ifndef TRANSFERS_INDEX_PARTS_H
#define TRANSFERS_INDEX_PARTS_H

#include "zt/status.h"

/* The paths of a repository's files, relative to its folder, in any order. */
struct repository_paths {
    size_t count;
    const char *(*path_at)(const void *list, size_t index);
    const void *list;
};

/* Reads the index in the file at local_path, whose path in the repository is name. ZT_INVALID with
 * a message that names the first missing part. ZT_OK for a file that is no index of a model, and if
 * no part exists but the same folder has other tensor files: tools that download one format also
 * fetch the indexes of the others. Otherwise fails as zt_source_open_file and zt_index_read. */
enum zt_status index_parts_check(const char *local_path, const char *name,
                                 const struct repository_paths *paths, struct zt_error *error);

#endif
