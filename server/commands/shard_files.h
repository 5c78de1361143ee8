/* The shards of a zTensor 2 model that lie beside it: "<stem>-<name>.zt" in the same folder. */
#ifndef COMMANDS_SHARD_FILES_H
#define COMMANDS_SHARD_FILES_H

#include "zt/model.h"

/* Opens one shard of the model at model_path and checks that it is the one that is meant: its size, that it is a
 * zTensor 2 container itself, and its digest. ZT_NOT_FOUND when it is not there, ZT_INVALID or ZT_CORRUPT when it is
 * another file, ZT_UNSUPPORTED when its digest cannot be judged, ZT_IO, ZT_NO_MEMORY. */
enum zt_status shard_file_open(const char *model_path, const struct zt_shard *shard, struct zt_source **out_source,
                               struct zt_error *error);

#endif
