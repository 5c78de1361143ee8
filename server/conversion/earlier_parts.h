/* Finds parts of another split of the same name, which would be in the same folder as the new
 * ones. */
#ifndef CONVERSION_EARLIER_PARTS_H
#define CONVERSION_EARLIER_PARTS_H

#include "zt/status.h"

/* Looks in the folder of path, the path of a single safetensors file, for a part of its name that
 * is numbered "-of-N" with an N other than count. *out_found is its path, which the caller frees;
 * NULL if there is none, or no such folder. Returns ZT_IO, ZT_NO_MEMORY. */
enum zt_status earlier_parts_find(const char *path, uint32_t count, char **out_found,
                                  struct zt_error *error);

#endif
