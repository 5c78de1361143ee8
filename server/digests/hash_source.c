#include "digests/hash_source.h"

#include <assert.h>
#include <stdlib.h>

#define PIECE_BYTES ((size_t)256 << 10)

enum zt_status hash_source(struct zt_source *source, uint64_t *at, uint64_t end,
                           struct zt_hasher *hasher, struct zt_error *error)
{
    uint8_t *buffer = malloc(PIECE_BYTES);
    enum zt_status status = buffer != NULL ? ZT_OK : zt_fail_memory(error, "hashing");

    assert(hasher != NULL);
    while (status == ZT_OK && *at < end) {
        const uint64_t left = end - *at;
        const size_t length = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

        status = zt_source_read_at(source, *at, buffer, length, error);
        if (status != ZT_OK)
            break;
        zt_hasher_update(hasher, buffer, length);
        *at += length;
    }
    free(buffer);
    return status;
}
