/* The files of a model's shards (zTensor 2): found beside the model in the store or, unless
 * server->shards_by_name, by their content among the zTensor 2 files of its folder. They are kept
 * open with the model, so replacing or removing a shard never changes a download. */
#ifndef CATALOG_SHARD_FILES_H
#define CATALOG_SHARD_FILES_H

#include "store/store.h"
#include "zt/shards.h"

struct catalog_index;
struct known_digest;

/* Searches for shards by content, among the files of the index. Remembers digests, so that a file
 * is hashed once for all models. For one thread at a time, while the index does not change. */
struct shard_search {
    struct store *store;
    const struct catalog_index *index;
    const struct zt_progress *progress; /* may stop hashing, and with it the search */
    struct known_digest *known;
    size_t known_count;
    size_t next_known;
    bool was_unavailable; /* a file that may be the shard could not be read now */
};

void shard_search_clear(struct shard_search *search);

/* A model whose shards are opened. */
struct shard_owner {
    struct store *store;
    const char *path;
    const struct zt_model *model;
    struct shard_search *search; /* NULL: only siblings */
};

/* More shards than any model has; each of them holds a descriptor. */
#define SHARDS_MAX 1024

struct shard_file {
    char *sibling; /* the path where it is expected */
    char *path;    /* where it was found; NULL if it was not found */
    uint64_t size_bytes;
    struct file_identity identity;
    bool is_data;   /* of ONNX: the store does not list the file, nor tell of its changes */
    bool was_asked; /* whether it was looked for, successfully or not */
};

struct shard_files {
    uint32_t count; /* as many as the model has */
    struct shard_file *items;
    /* All NULL unless every shard was found; NULL while the model is parked. */
    struct zt_source **sources;
};

/* Finds and opens all shards of a model: siblings or, if there is a search, files with the right
 * content in the folder. On failure (ZT_NOT_FOUND, ZT_INVALID, ZT_LIMIT, ZT_IO, ZT_NO_MEMORY)
 * nothing is open, but shard_files_concern still recognises the missing files when they appear. */
enum zt_status shard_files_open(struct shard_files *files, const struct shard_owner *owner,
                                struct zt_error *error);

/* Close the sources of a parked model, and open them again, all or none: false if one cannot be
 * opened (then error says why) or is no longer the same. */
void shard_files_park(struct shard_files *files);
bool shard_files_unpark(struct shard_files *files, struct store *store, struct zt_error *error);

typedef bool identity_comparison(const struct file_identity *a, const struct file_identity *b);

/* Whether all open files are still what they were, according to the comparison. */
bool shard_files_are_same(const struct shard_files *files, struct store *store,
                          identity_comparison *equal);

/* Whether the model must be opened again now that the path has a file with this identity (NULL: the
 * file is gone). */
bool shard_files_concern(const struct shard_files *files, const char *path,
                         const struct file_identity *identity);

/* Whether the store has other data files of a model than those that were found, or missed. The
 * store does not tell of them, so it is asked for each: for a folder, where that costs little. */
bool shard_files_have_new_data(const struct shard_files *files, struct store *store);

void shard_files_free(struct shard_files *files);

#endif
