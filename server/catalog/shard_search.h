/* Finding shards by their content: size first, then digest, among the zTensor 2 files of the
 * model's folder that the catalog knows. What was hashed is remembered, so that a file is read once
 * for all models that ask. */
#ifndef CATALOG_SHARD_SEARCH_H
#define CATALOG_SHARD_SEARCH_H

#include "catalog/catalog_index.h"
#include "zt/shards.h"

/* Digests remembered; the oldest makes room. */
#define KNOWN_DIGESTS_MAX 1024

struct known_digest {
    struct file_identity identity;
    struct zt_digest digest;
};

/* To be used by one thread at a time, while the index does not change. */
struct shard_search {
    struct store *store;
    const struct catalog_index *index;
    const struct zt_progress *progress; /* may stop hashing, and with it the search */
    struct known_digest *known;
    size_t known_count;
    size_t next_known;
};

/* Opens the file that is the shard and tells its path (to be freed). False when there is none. */
bool shard_search_find(struct shard_search *search, const char *model_path,
                       const struct zt_shard *shard, struct zt_source **out_source,
                       struct file_identity *out_identity, char **out_path);

void shard_search_clear(struct shard_search *search);

#endif
