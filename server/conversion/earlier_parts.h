/* Parts of another split of the same name, which would lie beside the new ones. */
#ifndef CONVERSION_EARLIER_PARTS_H
#define CONVERSION_EARLIER_PARTS_H

#include "zt/status.h"

/* Looks in the folder of path, that of a single safetensors file, for a part of its name that is
 * numbered "-of-N" with another N than count. *out_found is its path, which the caller frees; NULL
 * if there is none, or no such folder. ZT_IO, ZT_NO_MEMORY. */
enum zt_status earlier_parts_find(const char *path, uint32_t count, char **out_found,
                                  struct zt_error *error);

#endif
