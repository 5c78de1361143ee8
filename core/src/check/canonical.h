/* The canonical check of zTensor 2, which is in two files: what the model tells, and what the bytes
 * tell. */
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
    /* Numbers of the components that first refer to each blob, in the order of the file. */
    uint32_t *blobs;
    uint32_t blob_count;
    uint8_t *chunk; /* two of ZT_CANONICAL_CHUNK_LENGTH */
};

/* Refuses a part by a rule; the offset is that of its name in the manifest. */
enum zt_status zt_canonical_refuse(const struct zt_canonical *check,
                                   const struct zt_component *part, const char *rule,
                                   const char *message);
enum zt_status zt_canonical_no_memory(struct zt_error *error);

/* One pass over the file: each blob has its digest, and what lies between blobs, and the reserved
 * word, is zero. */
enum zt_status zt_canonical_check_bytes(const struct zt_canonical *check);

/* No two blobs are the same bytes. Digests were checked before: equal blobs have equal digests.
 * Puts blobs in another order. */
enum zt_status zt_canonical_check_sharing(const struct zt_canonical *check);

#endif
