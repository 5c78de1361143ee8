/* Digests: parsing and formatting their text, and computing them.
 *
 * The text is "algorithm:hex". Up to zTensor 1.2 the spelling may vary: either case, crc32c with or
 * without 0x and leading zeros. zTensor 2 requires lower-case hex without 0x. */
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
    ZT_DIGEST_CRC32,  /* IEEE, in ZIP archives */
    ZT_DIGEST_SHA512, /* in requests (RFC 9530), not in files */
    ZT_DIGEST_SHA1,   /* in requests (tus, S3): detects transmission errors, proves nothing */
    ZT_DIGEST_MD5,    /* in requests (S3), likewise */
    ZT_DIGEST_CRC64   /* CRC-64/NVME, in requests (S3) */
};

#define ZT_DIGEST_MAX_BYTES 64
/* Room for "sha512:", 128 hex digits and NUL. */
#define ZT_DIGEST_TEXT_SIZE 144

struct zt_digest {
    enum zt_digest_algorithm algorithm;
    uint8_t length_bytes;
    /* Most significant byte first, as in the hex text. */
    uint8_t bytes[ZT_DIGEST_MAX_BYTES];
};

/* Parses a digest's text. ZT_UNSUPPORTED for an unknown algorithm, whose digests cannot be checked;
 * ZT_CORRUPT for a known algorithm with text that is not hexadecimal or has the wrong length, which
 * no bytes can match. */
enum zt_status zt_digest_parse(struct zt_text text, struct zt_digest *out_digest,
                               struct zt_error *error);

/* Reads only the algorithm at the start of a digest's text; false if it is unknown. */
bool zt_digest_algorithm(struct zt_text text, enum zt_digest_algorithm *out_algorithm);

/* Parses "crc32:%08x", the text by which this library represents the CRC-32 of a ZIP entry. Fails
 * like zt_digest_parse, which does not know this algorithm because no other format uses it. */
enum zt_status zt_digest_parse_zip(struct zt_text text, struct zt_digest *out_digest,
                                   struct zt_error *error);

/* Parses "sha1:" and 40 hex digits, the text of the checksum that an ONNX model states for a data
 * file. ZT_UNSUPPORTED for anything else, which ONNX does not define. */
enum zt_status zt_digest_parse_sha1(struct zt_text text, struct zt_digest *out_digest,
                                    struct zt_error *error);

bool zt_digest_equal(const struct zt_digest *a, const struct zt_digest *b);

/* Writes "sha256:…", "crc32c:0x%08X" or "xxh3:%016x" as the reference writers do, or "crc32:%08x",
 * "sha512:…", "sha1:…", "md5:…", "crc64:%016x", with a terminating NUL. */
void zt_digest_format(const struct zt_digest *digest, char out_text[ZT_DIGEST_TEXT_SIZE]);

/* --- computing --- */

struct zt_hasher;

/* Computes the digest of bytes in memory. ZT_NO_MEMORY. */
enum zt_status zt_digest_of(enum zt_digest_algorithm algorithm, const void *bytes, size_t length,
                            struct zt_digest *out_digest);

/* Begins a digest. ZT_NO_MEMORY. Freed with zt_hasher_free, whether finished or not. */
enum zt_status zt_hasher_new(enum zt_digest_algorithm algorithm, struct zt_hasher **out_hasher);
void zt_hasher_update(struct zt_hasher *hasher, const void *bytes, size_t length);
/* Updates two different hashers, each with its own bytes, which may be the same. Two SHA-256 side
 * by side take little longer than one where the processor has instructions for them. */
void zt_hasher_update_pair(struct zt_hasher *first, const void *first_bytes, size_t first_length,
                           struct zt_hasher *second, const void *second_bytes,
                           size_t second_length);
/* Returns the digest of all bytes passed to zt_hasher_update. After this call only zt_hasher_free
 * is allowed. */
void zt_hasher_finish(struct zt_hasher *hasher, struct zt_digest *out_digest);
/* Takes NULL. */
void zt_hasher_free(struct zt_hasher *hasher);

/* Continue a CRC: crc is the CRC of the preceding bytes, 0 if there are none. */
uint32_t zt_crc32c(uint32_t crc, const void *bytes, size_t length);
uint32_t zt_crc32(uint32_t crc, const void *bytes, size_t length);
/* The CRC-32 of two concatenated runs of bytes, from the CRC-32 of each. */
uint32_t zt_crc32_combine(uint32_t first, uint32_t second, uint64_t second_length);
uint64_t zt_xxh3(const void *bytes, size_t length);
/* XXH3-128 as two words, the high one first: for hash table keys, not for digests in files. */
void zt_xxh3_128(const void *bytes, size_t length, uint64_t out_words[2]);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
