/* The XOR of two runs of bytes, in steps that compilers turn into vector instructions. */
#ifndef ZT_CODING_XOR_BYTES_H
#define ZT_CODING_XOR_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ZT_XOR_WORDS 8

static inline void zt_xor_bytes(uint8_t *bytes, const uint8_t *base, size_t length)
{
    uint64_t words[ZT_XOR_WORDS];
    uint64_t others[ZT_XOR_WORDS];
    size_t at = 0;

    for (; length - at >= sizeof(words); at += sizeof(words)) {
        memcpy(words, bytes + at, sizeof(words));
        memcpy(others, base + at, sizeof(others));
        for (unsigned i = 0; i < ZT_XOR_WORDS; i++)
            words[i] ^= others[i];
        memcpy(bytes + at, words, sizeof(words));
    }
    for (; at < length; at++)
        bytes[at] ^= base[at];
}

#endif
