/* Paths of split GGUF models, which have no single file.
 *
 * The parts "stem-00001-of-00003.gguf" … together form the model "stem". Its entry in the catalog
 * has the path "stem-*-of-00003.gguf". No stored file has such a path, since a model's name cannot
 * contain '*'. The extension is spelled as in the parts. */
#ifndef PARTS_SPLIT_PATH_H
#define PARTS_SPLIT_PATH_H

#include "store/store.h"
#include "zt/status.h"

/* Sorts after the extensions of all stored files. */
#define SPLIT_RANK 1000U

/* Finds the path of the model that a file is, by its name, a part of. Returns false for other
 * names, and if the model has more parts than the server supports. */
bool split_path_of_part(const char *path, char out_path[MODEL_PATH_SIZE]);

/* The common elements of the parts' names. They point into the path. */
struct split_name {
    struct zt_text stem; /* including the folders */
    uint32_t count;
    const char *extension; /* including everything after it, such as a URL's query */
};

/* Splits the path that represents all parts. Returns false for any other path. */
bool split_path_read(const char *path, struct split_name *out_name);

/* Splits the path, or URL, of a first part, by its last segment (without a query), which is part of
 * it. Returns false for any other name. */
bool split_path_read_first(const char *path, struct zt_text segment, struct split_name *out_name);

/* Returns the path of one part; number counts from 1. The caller must free it; NULL if out of
 * memory. */
char *split_part_path(const struct split_name *name, uint32_t number);

/* Does the same as model_path_split for all paths in the catalog. */
bool catalog_path_split(const char *path, size_t *out_name_length, unsigned *out_rank);

#endif
