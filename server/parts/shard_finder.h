/* Finds the files of a model's shards (zTensor 2 section 9) and its external data: a file with the
 * right name next to the model, or else, for a container, any file there with the right content. */
#ifndef PARTS_SHARD_FINDER_H
#define PARTS_SHARD_FINDER_H

#include "parts/part_folder.h"

struct found_shard {
    char *path; /* NULL: not found */
    struct zt_source *source;
    /* Identity of the file that was found or, on failure, of the last file that was opened by
     * name. */
    struct file_identity identity;
};

/* Finds a shard. sibling is its expected path (zt_shard_sibling). Fails with ZT_NOT_FOUND if it is
 * missing, ZT_INVALID if another file has its name, ZT_CORRUPT if its digest is wrong; these errors
 * describe the file at sibling even if other files were tried. Fails with ZT_UNAVAILABLE if a file
 * that may be the shard cannot be read at present. Otherwise fails as opening and reading do. */
enum zt_status shard_find(struct part_folder *folder, const char *model_path, const char *sibling,
                          const struct zt_shard *shard, struct found_shard *out_found,
                          struct zt_error *error);

#endif
