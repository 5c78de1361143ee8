/* SHA-256 on processors without instructions for it: never called, OpenSSL is used there. */
#include "hash/sha256_blocks.h"

#if !defined(__x86_64__) && !defined(__aarch64__)

#include <stdlib.h>

bool zt_sha256_has_instructions(void)
{
    return false;
}

_Noreturn void zt_sha256_add_blocks(uint32_t *state, const uint8_t *bytes, size_t blocks)
{
    (void)state;
    (void)bytes;
    (void)blocks;
    abort();
}

_Noreturn void zt_sha256_add_blocks_pair(uint32_t *first_state, const uint8_t *first_bytes,
                                         uint32_t *second_state, const uint8_t *second_bytes,
                                         size_t blocks)
{
    (void)second_state;
    (void)second_bytes;
    zt_sha256_add_blocks(first_state, first_bytes, blocks);
}

#endif
