/* The part of SHA-256 that differs between processors: whole blocks. */
#ifndef ZT_HASH_SHA256_BLOCKS_H
#define ZT_HASH_SHA256_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The round constants, FIPS 180-4 section 4.2.2. */
extern const uint32_t zt_sha256_constants[64];

/* How far ahead of the hashing bytes are requested from memory: the processor's own prefetching
 * stops at the end of a page. Requests beyond the end of the bytes have no effect. */
#define ZT_SHA256_AHEAD 4096u

bool zt_sha256_has_instructions(void);
/* Adds blocks of 64 bytes to a state of eight words, and to two states side by side. */
void zt_sha256_add_blocks(uint32_t *state, const uint8_t *bytes, size_t blocks);
void zt_sha256_add_blocks_pair(uint32_t *first_state, const uint8_t *first_bytes,
                               uint32_t *second_state, const uint8_t *second_bytes, size_t blocks);

#endif
