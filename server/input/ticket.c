/* With OpenSSL. */
#include "input/ticket.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "base/hex.h"

void ticket_key_make(uint8_t out_key[TICKET_KEY_BYTES])
{
    while (getrandom(out_key, TICKET_KEY_BYTES, 0) != TICKET_KEY_BYTES)
        continue;
}

bool hmac_sha256(const void *key, size_t key_length, struct zt_text text, uint8_t out_code[32])
{
    assert(key_length <= INT32_MAX);
    return HMAC(EVP_sha256(), key, (int)key_length, (const uint8_t *)text.bytes, text.length,
                out_code, NULL) != NULL;
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
