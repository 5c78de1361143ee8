/* JSON Web Tokens made by the tests, with keys of their own. */
#ifndef SIGNED_TOKENS_H
#define SIGNED_TOKENS_H

#include "tests.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#define TOKEN_SIZE 16384
#define RS256      "{\"alg\":\"RS256\",\"kid\":\"r\"}"
#define ES256      "{\"alg\":\"ES256\",\"kid\":\"e\"}"
#define NOW        1800000000
#define SUBJECT    "system:serviceaccount:ml:web"
#define CLAIMS                                                                             \
    "{\"iss\":\"https://issuer\",\"aud\":[\"other\",\"models\"],\"sub\":\"" SUBJECT "\", " \
    "\"exp\":1800000100,\"nbf\":1799999900,\"iat\":1799999900}"

/* Appends bytes to a text as base64url. */
static inline void append_base64url(char *text, const void *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *from = bytes;
    char *at = text + strlen(text);
    unsigned bits = 0;
    unsigned count = 0;

    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | from[i];
        for (count += 8; count >= 6; count -= 6)
            *at++ = digits[bits >> (count - 6) & 63];
    }
    if (count > 0)
        *at++ = digits[bits << (6 - count) & 63];
    *at = '\0';
}

/* Two numbers of 32 bytes in place of DER. */
static inline size_t plain_of_der(unsigned char *signature, size_t length)
{
    const unsigned char *at = signature;
    ECDSA_SIG *numbers = d2i_ECDSA_SIG(NULL, &at, (long)length);

    assert_non_null(numbers);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(numbers), signature, 32), 32);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(numbers), signature + 32, 32), 32);
    ECDSA_SIG_free(numbers);
    return 64;
}

static inline size_t sign(EVP_PKEY *key, const char *text, unsigned char signature[1024])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t length = 1024;

    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(
        EVP_DigestSign(context, signature, &length, (const unsigned char *)text, strlen(text)), 1);
    EVP_MD_CTX_free(context);
    return EVP_PKEY_is_a(key, "EC") ? plain_of_der(signature, length) : length;
}

/* header.payload, in a buffer that the next call overwrites. */
static inline char *unsigned_token(const char *header, const char *claims)
{
    static char token[TOKEN_SIZE];

    token[0] = '\0';
    append_base64url(token, header, strlen(header));
    strcat(token, ".");
    append_base64url(token, claims, strlen(claims));
    return token;
}

static inline char *token_of(EVP_PKEY *key, const char *header, const char *claims)
{
    unsigned char signature[1024];
    char *token = unsigned_token(header, claims);
    const size_t length = sign(key, token, signature);

    strcat(token, ".");
    append_base64url(token, signature, length);
    return token;
}

static inline void append_number(char *text, EVP_PKEY *key, const char *name, size_t width)
{
    unsigned char bytes[1024];
    BIGNUM *number = NULL;
    int length;

    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
    length = BN_bn2binpad(number, bytes, width > 0 ? (int)width : BN_num_bytes(number));
    assert_true(length > 0);
    append_base64url(text, bytes, (size_t)length);
    BN_free(number);
}

/* {"kty":"RSA","kid":…,"n":…,"e":…EXTRA} */
static inline void append_rsa(char *text, EVP_PKEY *key, const char *id, const char *extra)
{
    sprintf(text + strlen(text), "{\"kty\":\"RSA\",\"kid\":\"%s\",\"n\":\"", id);
    append_number(text, key, OSSL_PKEY_PARAM_RSA_N, 0);
    strcat(text, "\",\"e\":\"");
    append_number(text, key, OSSL_PKEY_PARAM_RSA_E, 0);
    sprintf(text + strlen(text), "\"%s}", extra);
}

static inline void append_ec(char *text, EVP_PKEY *key, const char *id, const char *extra)
{
    sprintf(text + strlen(text), "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"%s\",\"x\":\"", id);
    append_number(text, key, OSSL_PKEY_PARAM_EC_PUB_X, 32);
    strcat(text, "\",\"y\":\"");
    append_number(text, key, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    sprintf(text + strlen(text), "\"%s}", extra);
}

#endif
