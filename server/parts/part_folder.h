/* A folder in which the other files of a model are found. The server implements it over its store,
 * the commands over local folders and URLs, so that all find the files of a model in the same way.
 *
 * The implementation defines the form of paths. Functions that open or read a file may take
 * long. */
#ifndef PARTS_PART_FOLDER_H
#define PARTS_PART_FOLDER_H

#include "store/store.h"
#include "zt/digest.h"
#include "zt/shards.h"

struct part_folder;

/* Called with the path of each candidate until it returns true. */
typedef bool part_visitor(void *context, const char *path);

struct part_folder_ops {
    /* Opens a file. Fails with ZT_NOT_FOUND if no regular file has the path. Implementations
     * without identities may leave *out_identity unchanged. */
    enum zt_status (*open)(struct part_folder *folder, const char *path,
                           struct zt_source **out_source, struct file_identity *out_identity,
                           struct zt_error *error);
    /* Looks a path up again after ZT_STALE: the listed version is gone. May be NULL. */
    void (*refresh)(struct part_folder *folder, const char *path);
    /* Returns true if a part may have this path. NULL: any path is allowed. */
    bool (*may_be_part)(const char *path);
    /* Returns true if a file with folders in its name is below the model's folder after links are
     * followed. Otherwise sets error with the status ZT_NOT_FOUND. NULL: links cannot exist. */
    bool (*is_below)(struct part_folder *folder, const char *model_path, const char *path,
                     const struct zt_shard *shard, struct zt_error *error);
    /* Visits the files next to the model that have the shard's size and may have its digest. NULL:
     * shards are found by name only. */
    void (*visit_candidates)(struct part_folder *folder, const char *model_path,
                             const struct zt_shard *shard, const struct zt_digest *wanted,
                             part_visitor *visit, void *context);
    /* Computes the digest of an open file. NULL: use zt_source_digest. */
    enum zt_status (*digest)(struct part_folder *folder, struct zt_source *source,
                             const struct file_identity *identity,
                             enum zt_digest_algorithm algorithm, struct zt_digest *out_digest,
                             struct zt_error *error);
};

struct part_folder {
    const struct part_folder_ops *ops;
    /* Missing parts are skipped when parts are joined: the error then names the tensor that lacks
     * its part. Otherwise opening stops at the first missing part. */
    bool skips_missing_parts;
    /* A shard found by name must have the stated digest. Otherwise callers compare it later. */
    bool compares_digests;
    /* Shards with shorter digests are not searched by content. */
    size_t searched_digest_bytes_min;
};

#endif
