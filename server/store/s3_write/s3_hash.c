/* Computes the SHA-256 of bodies that are sent: the only check of a body that most services
 * make. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "store/s3_write/s3_write.h"
#include "zt/digest.h"

#define PIECE_BYTES 65536

static void finish(struct zt_hasher *hasher, char out_hex[BUCKET_SHA256_SIZE])
{
    struct zt_digest digest;

    zt_hasher_finish(hasher, &digest);
    assert(2 * (size_t)digest.length_bytes + 1 == BUCKET_SHA256_SIZE);
    zt_hex_write(out_hex, digest.bytes, digest.length_bytes);
}

/* Also adds the same bytes to `also`, if it is not NULL. */
static bool hash_all(struct zt_hasher *hasher, struct zt_hasher *also, int descriptor,
                     uint64_t from, uint64_t length)
{
    uint8_t piece[PIECE_BYTES];

    assert(descriptor >= 0 && hasher != also);
    while (length > 0) {
        const size_t most = length < PIECE_BYTES ? (size_t)length : PIECE_BYTES;
        const ssize_t got = pread(descriptor, piece, most, (off_t)from);

        if (got <= 0)
            return false;
        zt_hasher_update(hasher, piece, (size_t)got);
        if (also != NULL)
            zt_hasher_update(also, piece, (size_t)got);
        from += (uint64_t)got;
        length -= (uint64_t)got;
    }
    return true;
}

enum zt_status s3_hash_part(int descriptor, uint64_t from, uint64_t length, struct zt_hasher *whole,
                            char out_hex[BUCKET_SHA256_SIZE], struct zt_error *error)
{
    struct zt_hasher *hasher;
    bool done;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return zt_fail_memory(error, "hashing");
    done = hash_all(hasher, whole, descriptor, from, length);
    if (done)
        finish(hasher, out_hex);
    zt_hasher_free(hasher);
    return done ? ZT_OK : zt_fail(error, ZT_IO, NULL, from, "the staged file cannot be read");
}

enum zt_status s3_hash_end(struct zt_hasher *whole, const char *sha256, struct zt_error *error)
{
    char hex[BUCKET_SHA256_SIZE];

    assert(strlen(sha256) == BUCKET_SHA256_SIZE - 1);
    finish(whole, hex);
    return strcmp(hex, sha256) == 0 ? ZT_OK
                                    : zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                                              "the staged file differs from the received bytes");
}
