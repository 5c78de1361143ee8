/* Which repository a path of the store belongs to. "acme/tiny/model.gguf" is a file of the current
 * commit of acme/tiny; "models--acme--tiny/snapshots/<commit>/model.gguf" one of another commit, as
 * in the cache of the Hub's clients. */
#ifndef STORE_MIRROR_MIRROR_NAME_H
#define STORE_MIRROR_MIRROR_NAME_H

#include "store/store.h"
#include "upstream/upstream.h"

struct mirror_name {
    char repository[UPSTREAM_REPOSITORY_SIZE];
    char commit[STORE_COMMIT_SIZE]; /* empty: the current one */
    size_t skipped; /* bytes of the path up to the path in the repository; more than the path's
                     * length if the path names the repository itself */
};

/* Returns true if an upstream may be asked for a repository of this name: one or two parts of
 * letters, digits, '_', '-' and '.' as the Hub allows them. */
bool mirror_repository_is_valid(struct zt_text name);

/* Splits a path, with the first part_count parts as the repository. Paths of snapshots are split as
 * such. Returns false if it has fewer parts, or they are not a valid repository. */
bool mirror_name_split(struct zt_text path, unsigned part_count, struct mirror_name *out_name);

/* Returns true if the path begins as snapshots do. */
bool mirror_name_is_snapshot(struct zt_text path);

/* Writes the path of a file in a folder of the store. Returns false if it is too long. */
bool mirror_name_join(const char *folder, const char *file, char out_path[MODEL_PATH_SIZE]);

/* Writes the folder of a repository's commit. Returns false if it is too long. */
bool mirror_name_snapshot(const char *repository, const char *commit,
                          char out_path[MODEL_PATH_SIZE]);

#endif
