/* The canonical check of zTensor 2: canonical.c checks what the model says, canonical_bytes.c what
 * the bytes are. */
#ifndef ZT_CHECK_CANONICAL_H
#define ZT_CHECK_CANONICAL_H

#include "zt/verify.h"

#define ZT_CANONICAL_FOOTER_LENGTH 40
/* "xxh3:" and 16 digits */
#define ZT_CANONICAL_DIGEST_LENGTH 21
/* Read at a time. */
#define ZT_CANONICAL_CHUNK_LENGTH ((size_t)256 * 1024)

struct zt_canonical {
    const struct zt_model *model;
    struct zt_source *source;
    struct zt_error *error;
    /* The first component that refers to each blob, as an index; in the order of the file. */
    uint32_t *blobs;
    uint32_t blob_count;
    uint8_t *chunk; /* two of ZT_CANONICAL_CHUNK_LENGTH */
};

/* ZT_INVALID with the rule that a part breaks; the offset is that of its name in the manifest. */
enum zt_status zt_canonical_fail(const struct zt_canonical *check, const struct zt_component *part,
                                 const char *rule, const char *message);

/* One pass over the file: each blob has its digest; the bytes between blobs and the reserved word
 * are zero. */
enum zt_status zt_canonical_check_bytes(const struct zt_canonical *check);

/* No two blobs are the same bytes. Relies on zt_canonical_check_bytes: equal blobs have equal
 * digests. Reorders blobs. */
enum zt_status zt_canonical_check_sharing(const struct zt_canonical *check);

#endif
