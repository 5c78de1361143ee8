/* Digests: their text and their comparison (zTensor 1.2 section 1, zTensor 2 parts), and computing
 * them with the processor's instructions (SHA-256 and CRC-64, core/src/hash), OpenSSL (MD5, SHA-1,
 * SHA-512, and SHA-256 elsewhere), ISA-L (CRC-32 and CRC-32C), xxHash (XXH3) and zlib. */
#include "zt/digest.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/hex.h"
#include "hash/crc64.h"
#include "hash/sha256.h"

/* --- text --- */

/* The algorithms of digests in files. CRC-32 occurs only in ZIP archives, and those that are not
 * here only in requests; in other files they are unknown. */
struct spelling {
    const char *prefix;
    enum zt_digest_algorithm algorithm;
    uint8_t length_bytes;
    /* Whether the hex is a number, which may begin with 0x and lack leading zeros. */
    bool is_number;
};

static const struct spelling spellings[] = {
    {"sha256:", ZT_DIGEST_SHA256, 32, false},
    {"crc32c:", ZT_DIGEST_CRC32C, 4, true},
    {"xxh3:", ZT_DIGEST_XXH3, 8, false},
};

static const struct spelling zip_spelling = {"crc32:", ZT_DIGEST_CRC32, 4, false};

static const struct spelling *find_spelling(struct zt_text text)
{
    for (size_t i = 0; i < sizeof(spellings) / sizeof(*spellings); i++) {
        size_t length = strlen(spellings[i].prefix);

        if (text.length >= length && strncasecmp(text.bytes, spellings[i].prefix, length) == 0)
            return &spellings[i];
    }
    return NULL;
}

/* Fills bytes from the right, so that a number with fewer digits keeps its value. False for
 * anything except hex digits. */
static bool read_hex(const char *hex, size_t digits, uint8_t *bytes, size_t length_bytes)
{
    assert(digits <= 2 * length_bytes);
    memset(bytes, 0, length_bytes);
    for (size_t i = 0; i < digits; i++) {
        int value = zt_hex_value(hex[digits - 1 - i]);

        if (value < 0)
            return false;
        bytes[length_bytes - 1 - i / 2] |= (uint8_t)(value << (i % 2 * 4));
    }
    return true;
}

/* Parses the hex of a text that begins with the spelling's prefix. */
static enum zt_status parse_hex(struct zt_text text, const struct spelling *spelling,
                                struct zt_digest *out_digest, struct zt_error *error)
{
    struct zt_digest digest = {0};
    const char *hex;
    size_t digits;

    assert(text.length >= strlen(spelling->prefix));
    assert(spelling->length_bytes > 0 && spelling->length_bytes <= ZT_DIGEST_MAX_BYTES);
    hex = text.bytes + strlen(spelling->prefix);
    digits = text.length - strlen(spelling->prefix);
    if (spelling->is_number && digits > 2 && hex[0] == '0' && (hex[1] == 'x' || hex[1] == 'X')) {
        hex += 2;
        digits -= 2;
    }
    if (spelling->is_number ? digits == 0 || digits > 2u * spelling->length_bytes
                            : digits != 2u * spelling->length_bytes)
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET,
                       "a digest of %zu hex digits cannot be %.*s", digits,
                       (int)strlen(spelling->prefix) - 1, spelling->prefix);
    digest.algorithm = spelling->algorithm;
    digest.length_bytes = spelling->length_bytes;
    if (!read_hex(hex, digits, digest.bytes, digest.length_bytes))
        return zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "the digest is not hexadecimal");
    *out_digest = digest;
    return ZT_OK;
}

enum zt_status zt_digest_parse(struct zt_text text, struct zt_digest *out_digest,
                               struct zt_error *error)
{
    const struct spelling *spelling = find_spelling(text);

    if (spelling == NULL)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "the digest's algorithm is not known");
    return parse_hex(text, spelling, out_digest, error);
}

bool zt_digest_algorithm(struct zt_text text, enum zt_digest_algorithm *out_algorithm)
{
    const struct spelling *spelling = find_spelling(text);

    if (spelling != NULL)
        *out_algorithm = spelling->algorithm;
    return spelling != NULL;
}

enum zt_status zt_digest_parse_zip(struct zt_text text, struct zt_digest *out_digest,
                                   struct zt_error *error)
{
    if (!zt_text_starts_with(text, zt_text_from(zip_spelling.prefix)))
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "the digest's algorithm is not known");
    return parse_hex(text, &zip_spelling, out_digest, error);
}

enum zt_status zt_digest_parse_sha1(struct zt_text text, struct zt_digest *out_digest,
                                    struct zt_error *error)
{
    static const struct spelling spelling = {"sha1:", ZT_DIGEST_SHA1, 20, false};

    if (zt_text_starts_with(text, zt_text_from(spelling.prefix)) &&
        parse_hex(text, &spelling, out_digest, NULL) == ZT_OK)
        return ZT_OK;
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                   "the checksum is not a hexadecimal SHA-1");
}

bool zt_digest_equal(const struct zt_digest *a, const struct zt_digest *b)
{
    return a->algorithm == b->algorithm && a->length_bytes == b->length_bytes &&
           memcmp(a->bytes, b->bytes, a->length_bytes) == 0;
}

static const char *format_prefix(enum zt_digest_algorithm algorithm)
{
    switch (algorithm) {
    case ZT_DIGEST_SHA256:
        return "sha256:";
    case ZT_DIGEST_CRC32C:
        return "crc32c:0x";
    case ZT_DIGEST_XXH3:
        return "xxh3:";
    case ZT_DIGEST_CRC32:
        return "crc32:";
    case ZT_DIGEST_SHA1:
        return "sha1:";
    case ZT_DIGEST_MD5:
        return "md5:";
    case ZT_DIGEST_CRC64:
        return "crc64:";
    case ZT_DIGEST_SHA512:
        break;
    }
    return "sha512:";
}

void zt_digest_format(const struct zt_digest *digest, char out_text[ZT_DIGEST_TEXT_SIZE])
{
    bool upper = digest->algorithm == ZT_DIGEST_CRC32C;
    char *at = stpcpy(out_text, format_prefix(digest->algorithm));

    assert(digest->length_bytes <= ZT_DIGEST_MAX_BYTES);
    at = zt_hex_put(at, digest->bytes, digest->length_bytes, upper ? ZT_HEX_UPPER : ZT_HEX_LOWER);
    assert(at < out_text + ZT_DIGEST_TEXT_SIZE);
    *at = '\0';
}

/* --- computing --- */

struct zt_hasher {
    enum zt_digest_algorithm algorithm;
    uint64_t crc;
    struct zt_sha256 sha256; /* used if has_sha256 */
    bool has_sha256;
    EVP_MD_CTX *evp; /* MD5 and any other SHA */
    XXH3_state_t *xxh3;
    bool is_finished;
};

/* ISA-L takes lengths as int; a power of two keeps its inner loop aligned. */
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

    /* ISA-L leaves both inversions to the caller, and takes a non-const pointer to bytes that it
     * only reads. */
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

/* Five times as fast as zlib's. */
uint32_t zt_crc32(uint32_t crc, const void *bytes, size_t length)
{
    crc = crc32_gzip_refl(crc, bytes, length);
    end_wide_code();
    return crc;
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

static bool start_evp(struct zt_hasher *hasher, const EVP_MD *kind)
{
    hasher->evp = EVP_MD_CTX_new();
    return hasher->evp != NULL && EVP_DigestInit_ex(hasher->evp, kind, NULL) == 1;
}

static bool start_sha256(struct zt_hasher *hasher)
{
    hasher->has_sha256 = zt_sha256_is_native();
    if (!hasher->has_sha256)
        return start_evp(hasher, EVP_sha256());
    zt_sha256_begin(&hasher->sha256);
    return true;
}

static bool start(struct zt_hasher *hasher)
{
    switch (hasher->algorithm) {
    case ZT_DIGEST_SHA256:
        return start_sha256(hasher);
    case ZT_DIGEST_SHA512:
        return start_evp(hasher, EVP_sha512());
    case ZT_DIGEST_SHA1:
        return start_evp(hasher, EVP_sha1());
    case ZT_DIGEST_MD5:
        return start_evp(hasher, EVP_md5());
    case ZT_DIGEST_XXH3:
        hasher->xxh3 = XXH3_createState();
        return hasher->xxh3 != NULL && XXH3_64bits_reset(hasher->xxh3) == XXH_OK;
    case ZT_DIGEST_CRC32C:
    case ZT_DIGEST_CRC32:
    case ZT_DIGEST_CRC64:
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
    if (hasher->has_sha256) {
        zt_sha256_update(&hasher->sha256, bytes, length);
        return;
    }
    switch (hasher->algorithm) {
    case ZT_DIGEST_SHA256:
    case ZT_DIGEST_SHA512:
    case ZT_DIGEST_SHA1:
    case ZT_DIGEST_MD5:
        updated = EVP_DigestUpdate(hasher->evp, bytes, length);
        break;
    case ZT_DIGEST_XXH3:
        updated = XXH3_64bits_update(hasher->xxh3, bytes, length) == XXH_OK;
        break;
    case ZT_DIGEST_CRC32C:
        hasher->crc = zt_crc32c((uint32_t)hasher->crc, bytes, length);
        break;
    case ZT_DIGEST_CRC32:
        hasher->crc = zt_crc32((uint32_t)hasher->crc, bytes, length);
        break;
    case ZT_DIGEST_CRC64:
        hasher->crc = zt_crc64_nvme(hasher->crc, bytes, length);
        break;
    }
    /* Neither library can fail after a successful start. */
    assert(updated == 1);
}

void zt_hasher_update_pair(struct zt_hasher *first, const void *first_bytes, size_t first_length,
                           struct zt_hasher *second, const void *second_bytes, size_t second_length)
{
    assert(first != second);
    assert(!first->is_finished && !second->is_finished);
    if (first->has_sha256 && second->has_sha256) {
        zt_sha256_update_pair(&first->sha256, first_bytes, first_length, &second->sha256,
                              second_bytes, second_length);
        return;
    }
    zt_hasher_update(first, first_bytes, first_length);
    zt_hasher_update(second, second_bytes, second_length);
}

static void put_big_endian(struct zt_digest *digest, uint64_t value, uint8_t length_bytes)
{
    assert(length_bytes <= sizeof(value));
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
    if (hasher->has_sha256) {
        zt_sha256_finish(&hasher->sha256, out_digest->bytes);
        out_digest->length_bytes = ZT_SHA256_BYTES;
        return;
    }
    switch (hasher->algorithm) {
    case ZT_DIGEST_SHA256:
    case ZT_DIGEST_SHA512:
    case ZT_DIGEST_SHA1:
    case ZT_DIGEST_MD5:
        finished = EVP_DigestFinal_ex(hasher->evp, out_digest->bytes, &length);
        out_digest->length_bytes = (uint8_t)length;
        break;
    case ZT_DIGEST_XXH3:
        put_big_endian(out_digest, XXH3_64bits_digest(hasher->xxh3), 8);
        break;
    case ZT_DIGEST_CRC32C:
    case ZT_DIGEST_CRC32:
        put_big_endian(out_digest, hasher->crc, 4);
        break;
    case ZT_DIGEST_CRC64:
        put_big_endian(out_digest, hasher->crc, 8);
        break;
    }
    assert(finished == 1);
    assert(out_digest->length_bytes > 0 && out_digest->length_bytes <= ZT_DIGEST_MAX_BYTES);
}

void zt_hasher_free(struct zt_hasher *hasher)
{
    if (hasher == NULL)
        return;
    EVP_MD_CTX_free(hasher->evp);
    XXH3_freeState(hasher->xxh3);
    free(hasher);
}

enum zt_status zt_digest_of(enum zt_digest_algorithm algorithm, const void *bytes, size_t length,
                            struct zt_digest *out_digest)
{
    struct zt_hasher *hasher;
    const enum zt_status status = zt_hasher_new(algorithm, &hasher);

    if (status != ZT_OK)
        return status;
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, out_digest);
    zt_hasher_free(hasher);
    return ZT_OK;
}
