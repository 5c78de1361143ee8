/* The shards of a zTensor 2 model, looked for in its folder: "<stem>-<name>.zt" beside it, when
 * that is a container of the stated size, else whichever file has the size and the digest. */
#ifndef COMMANDS_SHARD_FILES_H
#define COMMANDS_SHARD_FILES_H

#include "zt/model.h"

/* Opens one shard of the model at model_path; it has the stated size and digest and is a zTensor 2
 * container itself. A digest that cannot be judged is passed over: then it is the sibling, by its
 * size. ZT_NOT_FOUND when it is not there, ZT_INVALID when another file has its name, ZT_CORRUPT
 * when the sibling has another digest, ZT_IO, ZT_NO_MEMORY. */
enum zt_status shard_file_open(const char *model_path, const struct zt_shard *shard,
                               struct zt_source **out_source, struct zt_error *error);

#endif
