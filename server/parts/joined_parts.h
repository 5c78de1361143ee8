/* Models made of several files that are models themselves (zt/join.h). Opens the parts that an
 * index lists, or that a split GGUF has, and joins them. All parts are opened before any is used,
 * and stay open, so that a model never mixes versions. */
#ifndef PARTS_JOINED_PARTS_H
#define PARTS_JOINED_PARTS_H

#include "parts/part_folder.h"
#include "parts/split_path.h"

struct joined_part {
    char *path;
    struct zt_source *source; /* NULL unless joining succeeded */
    struct file_identity identity;
    uint64_t size_bytes;    /* UINT64_MAX: the part could not be opened */
    struct zt_model *model; /* NULL except while parts are joined */
};

struct joined_parts {
    struct zt_model *model; /* NULL: opening failed */
    /* In the order of the model's shards. The first `own` items come before the shards: the first
     * part of a split GGUF, which is the model's own file; none for an index. On failure the items
     * are kept without open files, so that callers know which files the model needs. */
    struct joined_part *items;
    uint32_t count;
    uint32_t own;
    bool has_split_part;    /* an opened file declares itself part of a split GGUF */
    bool states_total_size; /* the index contains a total size */
    uint64_t total_size_bytes;
};

/* Joins the parts that an index lists. folder_path is the index's folder with its '/'; index stays
 * the caller's. Fails with ZT_INVALID or ZT_LIMIT if the file is not an index, if a part is
 * missing, or if the parts do not match it; messages name the part. Otherwise fails as opening a
 * file does. Always fills in out_parts. */
enum zt_status joined_parts_open_index(struct part_folder *folder, struct zt_text folder_path,
                                       struct zt_source *index, struct joined_parts *out_parts,
                                       struct zt_error *error);

/* Joins the parts of a split GGUF. source and model belong to the first part if it is open already,
 * else NULL; they are taken over. Fails in the same ways, and always fills in out_parts. */
enum zt_status joined_parts_open_split(struct part_folder *folder, const struct split_name *name,
                                       struct zt_source *source, struct zt_model *model,
                                       struct joined_parts *out_parts, struct zt_error *error);

/* Returns true if opening failed because a part is missing. */
bool joined_parts_lack_a_part(const struct zt_error *error);

/* Returns true if opening failed because a part exists that the index does not name. */
bool joined_parts_have_another_part(const struct zt_error *error);

/* Closes and frees everything that was not taken over. */
void joined_parts_free(struct joined_parts *parts);

#endif
