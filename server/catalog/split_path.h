/* Paths of split GGUF models, which have no file of their own.
 *
 * The parts "stem-00001-of-00003.gguf" … are together the model "stem". Its entry in the catalog
 * has the path "stem-*-of-00003.gguf": no stored file has such a path, since '*' cannot be in a
 * model's name. The extension is spelled as that of the parts is. */
#ifndef CATALOG_SPLIT_PATH_H
#define CATALOG_SPLIT_PATH_H

#include "store/store.h"

/* Behind every extension of a stored file. */
#define SPLIT_RANK 1000U

/* The path of the model that a file is named as a part of. False if it is not named so, or one of
 * more parts than are served. */
bool split_path_of_part(const char *path, char out_path[MODEL_PATH_SIZE]);

/* Takes such a path apart: the length of the model's name, and the number of parts. False for any
 * other path. */
bool split_path_read(const char *path, size_t *out_name_length, uint32_t *out_count);

/* Writes the path of one part; number counts from 1. */
void split_path_part(const char *split_path, uint32_t number, char out_path[MODEL_PATH_SIZE]);

/* model_path_split for everything that is in the catalog. */
bool catalog_path_split(const char *path, size_t *out_name_length, unsigned *out_rank);

#endif
