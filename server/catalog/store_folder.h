/* Implements parts/part_folder.h over the store, to find a model's other files. It also finds
 * shards by content, among the zTensor 2 files of the catalog that are next to the model. */
#ifndef CATALOG_STORE_FOLDER_H
#define CATALOG_STORE_FOLDER_H

#include "parts/part_folder.h"

struct catalog_index;
struct file_hashes;
struct known_digest;

/* Searches for shards by content among the files of the index. It remembers digests, so that a file
 * is hashed once for all models. For one thread, while the index does not change. */
struct shard_search {
    struct store *store;
    struct file_hashes *hashes;
    const struct catalog_index *index;
    const struct zt_progress *progress; /* can stop hashing and thereby the search */
    struct known_digest *known;
    size_t known_count;
    size_t next_known;
};

void shard_search_clear(struct shard_search *search);

struct store_folder {
    struct part_folder base; /* first */
    struct store *store;
    struct shard_search *search; /* NULL: shards are found by name only */
};

struct store_folder store_folder_of(struct store *store, struct shard_search *search);

/* Returns the folder of a path as a prefix of the paths in it: "" for the root, else ending with
 * '/'. */
struct zt_text store_path_folder(const char *path);

#endif
