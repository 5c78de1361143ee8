/* The Range field (RFC 9110 section 14), as a pure function over its text and a length. */
#ifndef HTTP_FIELDS_RANGES_H
#define HTTP_FIELDS_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* A field with more ranges than this counts as absent. */
#define RANGES_MAX 64

struct byte_range {
    uint64_t first;
    uint64_t length;
};

enum ranges_outcome {
    RANGES_ABSENT, /* the field is absent, malformed, in another unit, or has too many ranges: send
                    * everything */
    /* The set contains the ranges within bounds, in the order of the field; overlapping and
     * adjacent ranges are merged. */
    RANGES_SATISFIABLE,
    RANGES_UNSATISFIABLE /* 416 */
};

struct range_set {
    struct byte_range ranges[RANGES_MAX];
    unsigned count;
};

enum ranges_outcome ranges_parse(const char *field, uint64_t length, struct range_set *out_set);

#endif
