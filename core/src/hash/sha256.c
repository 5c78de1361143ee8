/* SHA-256 (FIPS 180-4): messages of any length, in whole blocks for the processor. */
#include "hash/sha256.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "hash/sha256_blocks.h"

const uint32_t zt_sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* FIPS 180-4 section 5.3.3. */
static const uint32_t first_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* Asks once: in a virtual machine, the answer takes 10 us, which is longer than most messages. */
bool zt_sha256_is_native(void)
{
    enum { UNKNOWN, ABSENT, PRESENT };
    static atomic_int answer = UNKNOWN;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);

    if (known == UNKNOWN) {
        known = zt_sha256_has_instructions() ? PRESENT : ABSENT;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == PRESENT;
}

void zt_sha256_begin(struct zt_sha256 *hash)
{
    memcpy(hash->state, first_state, sizeof(first_state));
    hash->length_bytes = 0;
}

static size_t rest_length(const struct zt_sha256 *hash)
{
    return (size_t)(hash->length_bytes % ZT_SHA256_BLOCK);
}

static void keep(struct zt_sha256 *hash, const uint8_t *bytes, size_t length)
{
    assert(rest_length(hash) + length <= ZT_SHA256_BLOCK);
    memcpy(hash->rest + rest_length(hash), bytes, length);
    hash->length_bytes += length;
}

/* Continues a block that has been begun, and adds it once it is whole. Returns how many bytes it
 * took: at most those that the block lacked. */
static size_t complete_block(struct zt_sha256 *hash, const uint8_t *bytes, size_t length)
{
    const size_t lacking = (ZT_SHA256_BLOCK - rest_length(hash)) % ZT_SHA256_BLOCK;
    const size_t taken = lacking < length ? lacking : length;

    keep(hash, bytes, taken);
    if (taken > 0 && taken == lacking)
        zt_sha256_add_blocks(hash->state, hash->rest, 1);
    return taken;
}

/* Accounts for whole blocks that were added, and returns the number of their bytes. */
static size_t count_blocks(struct zt_sha256 *hash, size_t blocks)
{
    assert(rest_length(hash) == 0);
    hash->length_bytes += blocks * ZT_SHA256_BLOCK;
    return blocks * ZT_SHA256_BLOCK;
}

void zt_sha256_update(struct zt_sha256 *hash, const uint8_t *bytes, size_t length)
{
    size_t done = complete_block(hash, bytes, length);
    const size_t blocks = (length - done) / ZT_SHA256_BLOCK;

    if (blocks > 0) {
        zt_sha256_add_blocks(hash->state, bytes + done, blocks);
        done += count_blocks(hash, blocks);
    }
    keep(hash, bytes + done, length - done);
}

void zt_sha256_update_pair(struct zt_sha256 *first, const uint8_t *first_bytes, size_t first_length,
                           struct zt_sha256 *second, const uint8_t *second_bytes,
                           size_t second_length)
{
    size_t first_done = complete_block(first, first_bytes, first_length);
    size_t second_done = complete_block(second, second_bytes, second_length);
    const size_t first_blocks = (first_length - first_done) / ZT_SHA256_BLOCK;
    const size_t second_blocks = (second_length - second_done) / ZT_SHA256_BLOCK;
    const size_t blocks = first_blocks < second_blocks ? first_blocks : second_blocks;

    assert(first != second);
    if (blocks > 0) {
        zt_sha256_add_blocks_pair(first->state, first_bytes + first_done, second->state,
                                  second_bytes + second_done, blocks);
        first_done += count_blocks(first, blocks);
        second_done += count_blocks(second, blocks);
    }
    zt_sha256_update(first, first_bytes + first_done, first_length - first_done);
    zt_sha256_update(second, second_bytes + second_done, second_length - second_done);
}

static void put_big_endian(uint8_t *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

void zt_sha256_finish(struct zt_sha256 *hash, uint8_t out_digest[ZT_SHA256_BYTES])
{
    /* A one bit, zeros to eight bytes before the end of a block, the length in bits. */
    uint8_t padding[2 * ZT_SHA256_BLOCK] = {0x80};
    const size_t held = rest_length(hash);
    const size_t zeros_end = (held < 56 ? 56 : 120) - held;
    const uint64_t length_bits = hash->length_bytes * 8;

    put_big_endian(padding + zeros_end, length_bits, 8);
    zt_sha256_update(hash, padding, zeros_end + 8);
    assert(rest_length(hash) == 0);
    for (size_t i = 0; i < 8; i++)
        put_big_endian(out_digest + 4 * i, hash->state[i], 4);
}
