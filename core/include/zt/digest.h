/* Digests: reading their text, computing them.
 *
 * Text is "algorithm:hex". Up to zTensor 1.2 the spelling is free (crc32c with or without 0x and
 * leading zeros, any case); zTensor 2 has lower-case hex without prefix. */
#ifndef ZT_DIGEST_H
#define ZT_DIGEST_H

#include <stdbool.h>

#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum zt_digest_algorithm {
    ZT_DIGEST_SHA256,
    ZT_DIGEST_CRC32C,
    ZT_DIGEST_XXH3,   /* XXH3-64, seed 0 */
    ZT_DIGEST_CRC32,  /* IEEE, of ZIP entries */
    ZT_DIGEST_SHA512, /* of requests (RFC 9530), not of files */
    ZT_DIGEST_SHA1    /* of requests (tus), for checking what came, not for trust */
};

#define ZT_DIGEST_MAX_BYTES 64
/* "sha512:" + 128 hex digits + NUL fits. */
#define ZT_DIGEST_TEXT_SIZE 144

struct zt_digest {
    enum zt_digest_algorithm algorithm;
    uint8_t length_bytes;
    /* Most significant byte first, as the hex text reads. */
    uint8_t bytes[ZT_DIGEST_MAX_BYTES];
};

/* Reads a digest's text. ZT_UNSUPPORTED for an unknown algorithm, which nobody here can judge;
 * ZT_CORRUPT for a text of a known algorithm that is the digest of no bytes (not hexadecimal, or of
 * the wrong length), which is a mismatch whatever the bytes are. */
enum zt_status zt_digest_parse(struct zt_text text, struct zt_digest *out_digest,
                               struct zt_error *error);

/* The algorithm that a digest's text begins with, whatever follows; false if it is unknown. */
bool zt_digest_algorithm(struct zt_text text, enum zt_digest_algorithm *out_algorithm);

/* zt_digest_parse for "crc32:%08x", which is how this library gives the CRC-32 of a ZIP entry: no other
 * file can state it. */
enum zt_status zt_digest_parse_zip(struct zt_text text, struct zt_digest *out_digest,
                                   struct zt_error *error);

bool zt_digest_equal(const struct zt_digest *a, const struct zt_digest *b);

/* Writes "sha256:…", "crc32c:0x%08X" or "xxh3:%016x" as the reference writers spell it, or
 * "crc32:%08x"; NUL-terminated. */
void zt_digest_format(const struct zt_digest *digest, char out_text[ZT_DIGEST_TEXT_SIZE]);

/* --- computing --- */

struct zt_hasher;

/* ZT_NO_MEMORY. Freed with zt_hasher_free (or by zt_hasher_finish's caller all the same). */
enum zt_status zt_hasher_new(enum zt_digest_algorithm algorithm, struct zt_hasher **out_hasher);
void zt_hasher_update(struct zt_hasher *hasher, const void *bytes, size_t length);
/* The digest of all that was updated; may be called once. */
void zt_hasher_finish(struct zt_hasher *hasher, struct zt_digest *out_digest);
void zt_hasher_free(struct zt_hasher *hasher);

uint32_t zt_crc32c(uint32_t crc, const void *bytes, size_t length);
/* IEEE; and that of two runs of bytes, one after the other, from their own. */
uint32_t zt_crc32(uint32_t crc, const void *bytes, size_t length);
uint32_t zt_crc32_combine(uint32_t first, uint32_t second, uint64_t second_length);
uint64_t zt_xxh3(const void *bytes, size_t length);
/* XXH3-128 as two words, high first: for identities that are not digests of a file. */
void zt_xxh3_128(const void *bytes, size_t length, uint64_t out_words[2]);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
