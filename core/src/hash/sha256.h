/* SHA-256 (FIPS 180-4) with the processor's own instructions, of one message or of two at once.
 *
 * The instructions for a round wait for the round before, so one message leaves the processor idle
 * half of the time; a second message fills the gaps. OpenSSL has no interface for two. Where the
 * processor lacks the instructions, use OpenSSL. */
#ifndef ZT_HASH_SHA256_H
#define ZT_HASH_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZT_SHA256_BYTES 32u
#define ZT_SHA256_BLOCK 64u

struct zt_sha256 {
    uint32_t state[8];
    uint64_t length_bytes;         /* of the message so far */
    uint8_t rest[ZT_SHA256_BLOCK]; /* the last length_bytes % 64 bytes */
};

/* Whether the processor has the instructions, which every other function here needs. */
bool zt_sha256_is_native(void);

void zt_sha256_begin(struct zt_sha256 *hash);
void zt_sha256_update(struct zt_sha256 *hash, const uint8_t *bytes, size_t length);
/* Appends to two messages at once; the lengths may differ, and the bytes may be the same. */
void zt_sha256_update_pair(struct zt_sha256 *first, const uint8_t *first_bytes, size_t first_length,
                           struct zt_sha256 *second, const uint8_t *second_bytes,
                           size_t second_length);
/* The message ends here: begin again before the next update. */
void zt_sha256_finish(struct zt_sha256 *hash, uint8_t out_digest[ZT_SHA256_BYTES]);

#endif
