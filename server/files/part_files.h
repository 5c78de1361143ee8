/* The parts of a model in several files: finds and opens them beside the index, or beside the first
 * part of a split GGUF, and joins them. */
#ifndef FILES_PART_FILES_H
#define FILES_PART_FILES_H

#include "files/opened_file.h"

/* The length of ".safetensors.index.json" or ".bin.index.json" at the end of a path; 0 if it has
 * neither, or nothing before it. */
size_t index_extension_length(struct zt_text path);

/* Whether the model is the first part of a split GGUF, and its path has the number of one. */
bool part_files_begin(const char *path, const struct zt_model *model);

/* Each fills in model, shards and stated_size of a file whose source is open. The first takes the
 * index at path; the second takes the first part at path, whose model is open and is replaced. Fail
 * as zt_index_read, zt_source_open_file, zt_model_open and zt_model_join do; messages name the
 * part. On failure the caller closes the file. */
enum zt_status part_files_join_index(const char *path, struct opened_file *file,
                                     struct zt_error *error);
enum zt_status part_files_join_split(const char *path, struct opened_file *file,
                                     struct zt_error *error);

#endif
