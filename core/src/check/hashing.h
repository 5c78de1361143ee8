/* Hashing runs of a source's bytes, with progress: one, or two side by side. */
#ifndef ZT_CHECK_HASHING_H
#define ZT_CHECK_HASHING_H

#include "zt/digest.h"
#include "zt/source.h"

struct zt_progress;

struct zt_hashing {
    struct zt_source *source;           /* borrowed */
    const struct zt_progress *progress; /* borrowed; may be NULL */
    struct zt_hasher *hasher;
    uint8_t *chunk;
    size_t chunk_size;
    uint64_t reported_bytes; /* reported to progress so far */
    /* The rest of a run: for zt_hashing_pair. */
    uint64_t offset;
    uint64_t left;
};

/* Starts a digest. ZT_NO_MEMORY. zt_hashing_free must be called even after a failure. */
enum zt_status zt_hashing_start(struct zt_hashing *hashing, enum zt_digest_algorithm algorithm,
                                size_t chunk_size, struct zt_error *error);

/* Hashes length bytes at offset and reports them to progress. ZT_IO; ZT_ARGUMENT if progress stops
 * it. */
enum zt_status zt_hashing_run(struct zt_hashing *hashing, uint64_t offset, uint64_t length,
                              struct zt_error *error);

/* Hashes the next bytes of two runs of the same source, equally many of each, and moves offset and
 * left of both. Both runs must have bytes left. Does not report to progress. ZT_IO: the digests of
 * both are lost. */
enum zt_status zt_hashing_pair(struct zt_hashing *first, struct zt_hashing *second,
                               struct zt_error *error);

/* Reports that total_bytes, counted from the start, have been read. ZT_ARGUMENT if progress stops
 * it. */
enum zt_status zt_hashing_report(struct zt_hashing *hashing, uint64_t total_bytes,
                                 struct zt_error *error);

void zt_hashing_free(struct zt_hashing *hashing);

#endif
