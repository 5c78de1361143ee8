/* The bounds check that every kind of source makes before it reads. */
#ifndef ZT_BYTES_SOURCE_RANGE_H
#define ZT_BYTES_SOURCE_RANGE_H

#include "zt/status.h"

/* ZT_IO unless the range is within size bytes. */
enum zt_status zt_source_check_range(uint64_t size, uint64_t offset, uint64_t length,
                                     struct zt_error *error);

#endif
