/* The files of a model's shards (zTensor 2): looked for beside the model in the store, and kept
 * open with it, so that a shard that is replaced or removed never shows under a download. */
#ifndef CATALOG_SHARD_FILES_H
#define CATALOG_SHARD_FILES_H

#include "store/store.h"
#include "zt/shards.h"

struct shard_search;

/* More shards than any model has; each of them holds a descriptor. */
#define SHARDS_MAX 1024

struct shard_file {
    char *sibling; /* where it is looked for first */
    char *path;    /* where it is; NULL when it is not there */
    uint64_t size_bytes;
    struct file_identity identity;
};

struct shard_files {
    uint32_t count; /* as many as the model has */
    struct shard_file *items;
    struct zt_source *
        *sources; /* all NULL unless every shard is there; and while the model is parked */
};

/* Finds and opens all shards of a model: siblings, or else, with search, files of the same content
 * in the folder. On failure (ZT_NOT_FOUND, ZT_INVALID, ZT_LIMIT, ZT_IO) nothing is open, but what
 * was looked for is kept, so that it can be told when it comes; after ZT_NO_MEMORY there is nothing
 * to be told. */
enum zt_status shard_files_open(struct shard_files *files, struct store *store,
                                const char *model_path, const struct zt_model *model,
                                struct shard_search *search, struct zt_error *error);

/* Closes the sources of a model that is parked; opens them again, all or none: false when one is no
 * longer the same. */
void shard_files_park(struct shard_files *files);
bool shard_files_unpark(struct shard_files *files, struct store *store);

typedef bool identity_comparison(const struct file_identity *a, const struct file_identity *b);

/* Whether all files that are open still are what they were, by that comparison. */
bool shard_files_are_same(const struct shard_files *files, identity_comparison *equal);

/* Whether the model may look otherwise now that there is a file of that identity at that path
 * (NULL: no longer any). */
bool shard_files_concern(const struct shard_files *files, const char *path,
                         const struct file_identity *identity);

void shard_files_free(struct shard_files *files);

#endif
