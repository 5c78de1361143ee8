/* Hashes the bytes of a source on the calling thread. */
#ifndef DIGESTS_HASH_SOURCE_H
#define DIGESTS_HASH_SOURCE_H

#include "zt/digest.h"
#include "zt/source.h"

/* Gives the bytes from *at up to end to the hasher, and moves *at past them. On failure, *at is the
 * end of the bytes that were hashed. ZT_NO_MEMORY, or the errors of the source. */
enum zt_status hash_source(struct zt_source *source, uint64_t *at, uint64_t end,
                           struct zt_hasher *hasher, struct zt_error *error);

#endif
