/* HMAC (RFC 2104) over the hashing of the core: OpenSSL's takes four times as long for short texts,
 * because it looks its algorithm up each time. */
#include "input/ticket.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"
#include "zt/digest.h"

/* Of SHA-256. */
#define BLOCK_BYTES 64
#define INNER_PAD   0x36
#define OUTER_PAD   0x5c

void ticket_key_make(uint8_t out_key[TICKET_KEY_BYTES])
{
    while (getrandom(out_key, TICKET_KEY_BYTES, 0) != TICKET_KEY_BYTES)
        continue;
}

/* Hashes a key with its bytes changed, and then a text. False: out of memory. */
static bool hash_padded(const uint8_t key[BLOCK_BYTES], uint8_t pad, struct zt_text text,
                        struct zt_digest *out_digest)
{
    uint8_t block[BLOCK_BYTES];
    struct zt_hasher *hasher;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return false;
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = key[i] ^ pad;
    zt_hasher_update(hasher, block, sizeof(block));
    zt_hasher_update(hasher, text.bytes, text.length);
    zt_hasher_finish(hasher, out_digest);
    zt_hasher_free(hasher);
    explicit_bzero(block, sizeof(block));
    return true;
}

bool hmac_sha256(const void *key, size_t key_length, struct zt_text text, uint8_t out_code[32])
{
    uint8_t block[BLOCK_BYTES] = {0};
    struct zt_digest digest;
    bool is_done = true;

    assert(key_length > 0);
    if (key_length <= sizeof(block)) {
        memcpy(block, key, key_length);
    } else {
        is_done = zt_digest_of(ZT_DIGEST_SHA256, key, key_length, &digest) == ZT_OK;
        if (is_done)
            memcpy(block, digest.bytes, digest.length_bytes);
    }
    is_done =
        is_done && hash_padded(block, INNER_PAD, text, &digest) &&
        hash_padded(block, OUTER_PAD,
                    (struct zt_text){(const char *)digest.bytes, digest.length_bytes}, &digest);
    if (is_done)
        memcpy(out_code, digest.bytes, 32);
    explicit_bzero(block, sizeof(block));
    explicit_bzero(&digest, sizeof(digest));
    return is_done;
}

bool secret_equal(const void *one, const void *other, size_t length)
{
    return CRYPTO_memcmp(one, other, length) == 0;
}

bool ticket_sign(const uint8_t key[TICKET_KEY_BYTES], const char *text,
                 char out_code[TICKET_CODE_SIZE])
{
    uint8_t code[32];

    if (!hmac_sha256(key, TICKET_KEY_BYTES, zt_text_from(text), code))
        return false;
    zt_hex_write(out_code, code, sizeof(code));
    return true;
}

bool ticket_check(const uint8_t key[TICKET_KEY_BYTES], const char *text, struct zt_text code)
{
    char expected[TICKET_CODE_SIZE];

    return code.length == TICKET_CODE_SIZE - 1 && ticket_sign(key, text, expected) &&
           secret_equal(expected, code.bytes, code.length);
}
