/* The canonical check of zTensor 2: canonical.c checks the model and its manifest,
 * canonical_bytes.c the bytes of the file. */
#ifndef ZT_CHECK_CANONICAL_H
#define ZT_CHECK_CANONICAL_H

#include "zt/verify.h"

#define ZT_CANONICAL_FOOTER_LENGTH 40
/* "xxh3:" and 16 digits */
#define ZT_CANONICAL_DIGEST_LENGTH 21
/* Bytes per read. */
#define ZT_CANONICAL_CHUNK_LENGTH ((size_t)256 * 1024)

struct zt_canonical {
    const struct zt_model *model;
    struct zt_source *source;
    struct zt_error *error;
    /* For each blob, in file order, the index of the first component that refers to it. */
    uint32_t *blobs;
    uint32_t blob_count;
    uint8_t *chunk; /* two of ZT_CANONICAL_CHUNK_LENGTH */
};

/* Fails with ZT_INVALID and the rule that a part breaks, at the offset of the part's name in the
 * manifest. */
enum zt_status zt_canonical_fail(const struct zt_canonical *check, const struct zt_component *part,
                                 const char *rule, const char *message);

/* Checks in one pass over the file that each blob has its digest and that the bytes between blobs
 * and the reserved word are zero. */
enum zt_status zt_canonical_check_bytes(const struct zt_canonical *check);

/* Checks that no two blobs are identical. zt_canonical_check_bytes must have passed, so that
 * identical blobs have equal digests. Reorders check->blobs. */
enum zt_status zt_canonical_check_sharing(const struct zt_canonical *check);

#endif
