/* Computing digests: OpenSSL for SHA-1 and SHA-2, ISA-L for CRC-32C, xxHash for XXH3, zlib for
 * CRC-32. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <xxhash.h>
#include <zlib.h>

#include "zt/digest.h"

struct zt_hasher {
    enum zt_digest_algorithm algorithm;
    uint32_t crc;
    EVP_MD_CTX *sha;
    XXH3_state_t *xxh3;
    bool is_finished;
};

/* ISA-L counts in int; a power of two keeps its inner loop aligned. */
#define CRC_CHUNK_MAX ((size_t)1 << 30)

/* ISA-L's wide kernels leave the upper halves of the vector registers in use, which slows down
 * every later SSE instruction of the thread: after one CRC, XXH3 ran at a quarter of its speed and
 * SHA-256 at four fifths. */
#ifdef __x86_64__
__attribute__((target("avx"))) static void clear_upper_halves(void)
{
    _mm256_zeroupper();
}

static void end_wide_code(void)
{
    if (__builtin_cpu_supports("avx"))
        clear_upper_halves();
}
#else
static void end_wide_code(void)
{
}
#endif

uint32_t zt_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    uintptr_t at = (uintptr_t)bytes;

    /* ISA-L leaves the two inversions to the caller, and takes bytes that it only reads as
     * non-const. */
    crc = ~crc;
    while (length > 0) {
        size_t part = length < CRC_CHUNK_MAX ? length : CRC_CHUNK_MAX;

        crc = crc32_iscsi((unsigned char *)at, (int)part, crc);
        at += part;
        length -= part;
    }
    end_wide_code();
    return ~crc;
}

uint32_t zt_crc32(uint32_t crc, const void *bytes, size_t length)
{
    return (uint32_t)crc32_z(crc, bytes, length);
}

uint32_t zt_crc32_combine(uint32_t first, uint32_t second, uint64_t second_length)
{
    return (uint32_t)crc32_combine(first, second, (z_off_t)second_length);
}

uint64_t zt_xxh3(const void *bytes, size_t length)
{
    return XXH3_64bits(bytes, length);
}

void zt_xxh3_128(const void *bytes, size_t length, uint64_t out_words[2])
{
    XXH128_hash_t hash = XXH3_128bits(bytes, length);

    out_words[0] = hash.high64;
    out_words[1] = hash.low64;
}

static bool start_sha(struct zt_hasher *hasher, const EVP_MD *kind)
{
    hasher->sha = EVP_MD_CTX_new();
    return hasher->sha != NULL && EVP_DigestInit_ex(hasher->sha, kind, NULL) == 1;
}

static bool start(struct zt_hasher *hasher)
{
    switch (hasher->algorithm) {
    case ZT_DIGEST_SHA256:
        return start_sha(hasher, EVP_sha256());
    case ZT_DIGEST_SHA512:
        return start_sha(hasher, EVP_sha512());
    case ZT_DIGEST_SHA1:
        return start_sha(hasher, EVP_sha1());
    case ZT_DIGEST_XXH3:
        hasher->xxh3 = XXH3_createState();
        return hasher->xxh3 != NULL && XXH3_64bits_reset(hasher->xxh3) == XXH_OK;
    case ZT_DIGEST_CRC32C:
    case ZT_DIGEST_CRC32:
        return true;
    }
    return false;
}

enum zt_status zt_hasher_new(enum zt_digest_algorithm algorithm, struct zt_hasher **out_hasher)
{
    struct zt_hasher *hasher = calloc(1, sizeof(*hasher));

    if (hasher == NULL)
        return ZT_NO_MEMORY;
    hasher->algorithm = algorithm;
    if (!start(hasher)) {
        zt_hasher_free(hasher);
        return ZT_NO_MEMORY;
    }
    *out_hasher = hasher;
    return ZT_OK;
}

void zt_hasher_update(struct zt_hasher *hasher, const void *bytes, size_t length)
{
    int updated = 1;

    assert(!hasher->is_finished);
    if (length == 0)
        return;
    switch (hasher->algorithm) {
    case ZT_DIGEST_SHA256:
    case ZT_DIGEST_SHA512:
    case ZT_DIGEST_SHA1:
        updated = EVP_DigestUpdate(hasher->sha, bytes, length);
        break;
    case ZT_DIGEST_XXH3:
        updated = XXH3_64bits_update(hasher->xxh3, bytes, length) == XXH_OK;
        break;
    case ZT_DIGEST_CRC32C:
        hasher->crc = zt_crc32c(hasher->crc, bytes, length);
        break;
    case ZT_DIGEST_CRC32:
        hasher->crc = zt_crc32(hasher->crc, bytes, length);
        break;
    }
    /* Once started, neither library can fail here. */
    assert(updated == 1);
}

static void put_big_endian(struct zt_digest *digest, uint64_t value, uint8_t length_bytes)
{
    digest->length_bytes = length_bytes;
    for (unsigned i = 0; i < length_bytes; i++)
        digest->bytes[i] = (uint8_t)(value >> (8 * (length_bytes - 1u - i)));
}

void zt_hasher_finish(struct zt_hasher *hasher, struct zt_digest *out_digest)
{
    unsigned length = 0;
    int finished = 1;

    assert(!hasher->is_finished);
    hasher->is_finished = true;
    memset(out_digest, 0, sizeof(*out_digest));
    out_digest->algorithm = hasher->algorithm;
    switch (hasher->algorithm) {
    case ZT_DIGEST_SHA256:
    case ZT_DIGEST_SHA512:
    case ZT_DIGEST_SHA1:
        finished = EVP_DigestFinal_ex(hasher->sha, out_digest->bytes, &length);
        out_digest->length_bytes = (uint8_t)length;
        break;
    case ZT_DIGEST_XXH3:
        put_big_endian(out_digest, XXH3_64bits_digest(hasher->xxh3), 8);
        break;
    case ZT_DIGEST_CRC32C:
    case ZT_DIGEST_CRC32:
        put_big_endian(out_digest, hasher->crc, 4);
        break;
    }
    assert(finished == 1);
    assert(out_digest->length_bytes > 0 && out_digest->length_bytes <= ZT_DIGEST_MAX_BYTES);
}

void zt_hasher_free(struct zt_hasher *hasher)
{
    if (hasher == NULL)
        return;
    EVP_MD_CTX_free(hasher->sha);
    XXH3_freeState(hasher->xxh3);
    free(hasher);
}
