/* A file named on the command line, opened and validated as a model, with the other files that it
 * needs; and descriptions of its kind, or of a failure.
 *
 * The index of a model in several files, and the first part of a split GGUF, open the model that
 * all parts form together (zt/join.h). Any other part is a separate model; for a split GGUF, only
 * if the file has the part's proper name. */
#ifndef FILES_OPENED_FILE_H
#define FILES_OPENED_FILE_H

#include <stdio.h>

#include "zt/model.h"

struct opened_file {
    struct zt_source *source;
    struct zt_model *model;
    /* One for each of the model's shards, NULL for shards that are not open; parts are open from
     * the beginning. NULL if the model has no shards. */
    struct zt_source **shards;
    bool states_total_size; /* the model has an index that contains the size of all tensors */
    uint64_t total_size_bytes;
    /* The URL of the model's own file, if the model was named by another URL; otherwise NULL. */
    char *location;
    /* The model's name, with the folders above it, if its path does not begin with the name, as for
     * an index with a variant (store/variant_index.h); otherwise NULL. */
    char *variant_name;
};

/* Lets the process open as many files as it may: each part needs a descriptor. If that is not
 * enough, opening fails with an error that says so. */
void opened_files_raise_limit(void);

/* path names a file, or is a URL (client/model_source.h). Fails as model_source_find,
 * zt_model_open, zt_index_read and zt_model_join do. On success the caller closes the file. */
enum zt_status opened_file_open(const char *path, struct opened_file *out_file,
                                struct zt_error *error);
/* Does the same for an open source of a file at this path. Takes over the source, also on
 * failure. */
enum zt_status opened_file_adopt(const char *path, struct zt_source *source,
                                 struct opened_file *out_file, struct zt_error *error);
/* Opens a shard of the model at path unless it is open. Fails as shard_find does. */
enum zt_status opened_file_shard(struct opened_file *file, const char *path, uint32_t shard,
                                 struct zt_error *error);
/* Accepts a cleared file. */
void opened_file_close(struct opened_file *file);

/* Returns the name that the model at this path would have: without folders and extension, and
 * without the suffix of an index or a first part. Borrowed from path, or from the file. */
struct zt_text opened_file_name(const struct opened_file *file, const char *path);

/* Returns the size; for a model in several files, the size of all parts together, as the server
 * states it. */
uint64_t opened_file_size(const struct opened_file *file, const char *path);
/* Returns true if the model consists of several files. */
bool opened_file_is_joined(const struct opened_file *file);
/* Returns false if it is unknown. */
bool opened_file_modified_ns(const struct opened_file *file, int64_t *out_time_ns);

/* Writes "message [rule, object \"x\", component \"y\", offset 64]", with only the known items in
 * the brackets. Control characters are escaped, and long names are cut and end in "…". */
void failure_write(FILE *stream, const struct zt_error *error);

/* Writes the format of a model, and its version if it has one: "zt 1.2.0", "npz". */
void model_kind_write(FILE *stream, const struct zt_model *model);

#endif
