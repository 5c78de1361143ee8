/* Sources for tests: large ones that are mostly zeros, and ones that count what is read. */
#ifndef ZT_TEST_SOURCES_H
#define ZT_TEST_SOURCES_H

#include "zt/source.h"

/* The map of a source that has no mapping. */
const uint8_t *source_without_map(struct zt_source *source);

/* So many zeros, with bytes at the beginning and at the end. */
struct sparse_source {
    struct zt_source base; /* {&sparse_source_ops} */
    uint64_t size;
    const void *head;
    size_t head_length;
    const void *tail;
    size_t tail_length;
    uint64_t read_bytes;
};
extern const struct zt_source_ops sparse_source_ops;

/* Passes reads on to another source, which it does not close; it has no mapping. For one thread. */
struct counting_source {
    struct zt_source base; /* {&counting_source_ops} */
    struct zt_source *inner;
    uint64_t reads;
    uint64_t bytes;
    uint64_t failing_from; /* reads that end past it fail; 0: none */
};
extern const struct zt_source_ops counting_source_ops;

#endif
