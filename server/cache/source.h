#ifndef CACHE_SOURCE_H
#define CACHE_SOURCE_H

#include "cache/cache_state.h"

/* ZT_IO if a file does not have these bytes. */
enum zt_status source_check_range(const struct cached_file *file, uint64_t offset, uint64_t length,
                                  struct zt_error *error);

#endif
