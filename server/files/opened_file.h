/* A file named on the command line, opened and validated as a model, with the other files that it
 * needs; and descriptions of its kind, or of why it failed.
 *
 * The index of a model in several files, and the first part of a split GGUF, stand for the model
 * that all parts are together (zt/join.h). Any other part is a model of its own. */
#ifndef FILES_OPENED_FILE_H
#define FILES_OPENED_FILE_H

#include <stdio.h>

#include "zt/model.h"

/* What an index says of all tensors together. */
struct stated_size {
    bool is_stated;
    uint64_t bytes;
};

struct opened_file {
    struct zt_source *source;
    struct zt_model *model;
    /* One for each of the model's shards, NULL for those that are not open; parts are open from the
     * beginning. NULL if the model has no shards. */
    struct zt_source **shards;
    struct stated_size stated_size;
    /* Where the model's own file is, if it was named by another URL; else NULL. */
    char *location;
};

/* path: of a file, or a URL (client/model_source.h). Fails as model_source_find, zt_model_open,
 * zt_index_read and zt_model_join do. On success the caller closes the file. */
enum zt_status opened_file_open(const char *path, struct opened_file *out_file,
                                struct zt_error *error);
/* The same of a source that is open, of a file at this path; takes it over, also on failure. */
enum zt_status opened_file_adopt(const char *path, struct zt_source *source,
                                 struct opened_file *out_file, struct zt_error *error);
/* Opens a shard of the model at path unless it is open. Fails as shard_file_open does. */
enum zt_status opened_file_shard(struct opened_file *file, const char *path, uint32_t shard,
                                 struct zt_error *error);
/* Takes a cleared file. */
void opened_file_close(struct opened_file *file);

/* The name that the model at this path would have: without folders and extension, and without what
 * makes it an index or a first part. Borrowed from path. */
struct zt_text opened_file_name(const struct opened_file *file, const char *path);

/* Of a model in several files: of all parts together, as the server states it. */
uint64_t opened_file_size(const struct opened_file *file, const char *path);
/* Whether the model is that of several files together. */
bool opened_file_is_joined(const struct opened_file *file);
/* False: it is not known. */
bool opened_file_modified_ns(const struct opened_file *file, int64_t *out_time_ns);

/* What the file system says of a file that could not be opened; zeros if it says nothing. */
struct stated_file {
    uint64_t size_bytes;
    int64_t modified_ns;
};
struct stated_file stated_file_of(const char *path);

/* Writes "message [rule, object \"x\", component \"y\", offset 64]", where the brackets hold only
 * what is known. Control characters are escaped, and long names are cut and end in "…". */
void failure_write(FILE *stream, const struct zt_error *error);

/* The format of a model, and its version if it has one: "zt 1.2.0", "npz". */
void model_kind_write(FILE *stream, const struct zt_model *model);

#endif
