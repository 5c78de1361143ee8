/* Models in several files that are models themselves (zt/join.h): opens the parts that an index
 * lists, or that a split GGUF has, and joins them. All parts are opened before any is used, and
 * stay open with the model, so that it never is of several versions. */
#ifndef CATALOG_JOINED_FILES_H
#define CATALOG_JOINED_FILES_H

#include "catalog/shard_files.h"

/* The files of a joined model. On failure nothing of it is open, but shard_files_concern recognises
 * the files that it needs. */
struct joined_files {
    struct zt_model *model;
    struct shard_files shards;
    /* Of a split GGUF, whose first part is the model's own file: */
    char *own_path;
    struct zt_source *own;
    struct file_identity own_identity;
};

/* Joins the parts that an index lists; own is the index, borrowed. ZT_INVALID, ZT_LIMIT: the index
 * is none, a part is missing, or the parts are not what it says; messages name the part. Fails
 * otherwise as opening a file does. out_files is filled in any case. */
enum zt_status joined_files_open_index(struct store *store, const char *path, struct zt_source *own,
                                       struct joined_files *out_files, struct zt_error *error);

/* Joins the parts that a path of catalog/split_path.h stands for. ZT_NOT_FOUND: no file is such a
 * part, neither in the store nor in the index of the catalog (which may be NULL). */
enum zt_status joined_files_open_split(struct store *store, const char *path,
                                       const struct catalog_index *known,
                                       struct joined_files *out_files, struct zt_error *error);

/* Whether opening failed for want of a part. */
bool joined_files_lack_a_part(const struct zt_error *error);

/* Whether opening failed because there is a part that the index does not name. */
bool joined_files_have_another_part(const struct zt_error *error);

/* Closes and frees what nobody took over. */
void joined_files_free(struct joined_files *files);

#endif
