/* Visiting elements as doubles, a few at a time, so that they stay in the first-level cache. */
#ifndef ZT_NUMBERS_VALUES_H
#define ZT_NUMBERS_VALUES_H

#include "zt/elements.h"

/* 8 KiB of doubles. */
#define VALUES_MAX 1024

/* count elements, at most VALUES_MAX: as they are stored, and as doubles. An integer past 2^53 is
 * rounded. The values may be changed. Called inside zt_source_touch: it may write to memory that is
 * thrown away if reading fails, and nothing else. */
typedef void (*values_visitor)(void *context, const uint8_t *bytes, double *values, size_t count);

/* Visits count elements from the element first on, in order. ZT_NO_MEMORY, or the source's
 * status. */
enum zt_status zt_values_visit(const struct zt_elements *elements, uint64_t first, uint64_t count,
                               values_visitor visit, void *context, struct zt_error *error);

#endif
