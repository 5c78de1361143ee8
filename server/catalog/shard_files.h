/* The files of a model's shards (zTensor 2). They are found next to the model in the store or,
 * unless server->shards_by_name is set, by content among the zTensor 2 files of its folder. They
 * stay open with the model, so that replacing or removing a shard never changes a download. */
#ifndef CATALOG_SHARD_FILES_H
#define CATALOG_SHARD_FILES_H

#include "store/store.h"
#include "zt/shards.h"

struct joined_parts;
struct store_folder;

/* More shards than any model has; each holds a descriptor. */
#define SHARDS_MAX 1024

struct shard_file {
    char *sibling; /* the expected path */
    char *path;    /* the path where it was found, or NULL */
    uint64_t size_bytes;
    struct file_identity identity;
    bool is_data;   /* external ONNX data: the store neither lists the file nor reports its
                     * changes */
    bool was_asked; /* it was searched for, successfully or not */
};

struct shard_files {
    uint32_t count; /* number of the model's shards */
    struct shard_file *items;
    /* All NULL unless every shard was found; NULL while the model is parked. */
    struct zt_source **sources;
};

/* Finds and opens all shards of a model (parts/shard_finder.h). On failure (ZT_NOT_FOUND,
 * ZT_INVALID, ZT_LIMIT, ZT_IO, ZT_NO_MEMORY) no file is open, but shard_files_concern still
 * recognises missing files when they appear. */
enum zt_status shard_files_open(struct shard_files *files, const char *model_path,
                                const struct zt_model *model, struct store_folder *folder,
                                struct zt_error *error);

/* Takes over the parts that are a joined model's shards; if joining failed, takes only their paths.
 * Fails with ZT_NO_MEMORY. */
enum zt_status shard_files_take_parts(struct shard_files *files, struct joined_parts *parts,
                                      struct zt_error *error);

/* Close the sources of a parked model, and open all of them again. shard_files_unpark returns false
 * if a file cannot be opened (see error) or has changed; no file is open then. */
void shard_files_park(struct shard_files *files);
bool shard_files_unpark(struct shard_files *files, struct store *store, struct zt_error *error);

typedef bool identity_comparison(const struct file_identity *a, const struct file_identity *b);

/* Returns true if all open files are unchanged according to the comparison. */
bool shard_files_are_same(const struct shard_files *files, struct store *store,
                          identity_comparison *equal);

/* Returns true if the model must be opened again because the path now has a file with this identity
 * (NULL: the file is gone). */
bool shard_files_concern(const struct shard_files *files, const char *path,
                         const struct file_identity *identity);

/* Returns true if the store has other external data for a model than was found, or missed, when it
 * was opened. The store does not report such changes, so each file is checked; use this for local
 * folders, where that is cheap. */
bool shard_files_have_new_data(const struct shard_files *files, struct store *store);

void shard_files_free(struct shard_files *files);

#endif
