/* Finds the shards of a zTensor 2 model in its folder: "<stem>-<name>.zt" if that is a container of
 * the stated size, else any file with the stated size and digest. */
#ifndef FILES_SHARD_FILES_H
#define FILES_SHARD_FILES_H

#include "zt/model.h"

/* Opens a shard of the model at model_path: a zTensor 2 container with the stated size and digest.
 * If the digest cannot be checked, name and size decide. ZT_NOT_FOUND if it is missing, ZT_INVALID
 * if another file has its name, ZT_CORRUPT if its digest is wrong, ZT_IO, ZT_NO_MEMORY. */
enum zt_status shard_file_open(const char *model_path, const struct zt_shard *shard,
                               struct zt_source **out_source, struct zt_error *error);

#endif
