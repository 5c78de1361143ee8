/* JSON Web Tokens and sets of keys. The first byte says what the rest is: a whole token, claims
 * that are signed here, or a set of keys. */
#include "fuzz.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "access/jwt.h"

#define NOW 1800000000

static EVP_PKEY *pair;
static struct jwks *keys;

static char *append(char *at, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned bits = 0;
    unsigned count = 0;

    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | bytes[i];
        for (count += 8; count >= 6; count -= 6)
            *at++ = digits[bits >> (count - 6) & 63];
    }
    if (count > 0)
        *at++ = digits[bits << (6 - count) & 63];
    *at = '\0';
    return at;
}

static char *append_number(char *at, const char *name)
{
    uint8_t bytes[JWS_EC_BYTES];
    BIGNUM *number = NULL;

    FUZZ_ASSERT(EVP_PKEY_get_bn_param(pair, name, &number) == 1);
    FUZZ_ASSERT(BN_bn2binpad(number, bytes, sizeof(bytes)) == sizeof(bytes));
    BN_free(number);
    return append(at, bytes, sizeof(bytes));
}

static void make_keys(void)
{
    char text[512] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"";
    char error[256];
    char *at;

    pair = EVP_EC_gen("P-256");
    FUZZ_ASSERT(pair != NULL);
    at = append_number(text + strlen(text), OSSL_PKEY_PARAM_EC_PUB_X);
    at = append_number(at + strlen(strcpy(at, "\",\"y\":\"")), OSSL_PKEY_PARAM_EC_PUB_Y);
    strcpy(at, "\"}]}");
    keys = jwks_parse(zt_text_from(text), "keys", error, sizeof(error));
    FUZZ_ASSERT(keys != NULL);
}

static enum jwt_verdict check(struct zt_text token)
{
    const struct jwt_terms terms = {keys, "i", "a", 60};
    struct jwt_claims claims;
    const enum jwt_verdict verdict = jwt_check(&terms, token, NOW, &claims);

    if (verdict == JWT_VALID) {
        FUZZ_ASSERT(claims.subject_length > 0 && claims.subject_length <= JWT_SUBJECT_MAX);
        FUZZ_ASSERT(claims.subject[claims.subject_length] == '\0');
        FUZZ_ASSERT(claims.expires_s > NOW);
    }
    return verdict;
}

static char *append_signature(char *at, const char *text, size_t length)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t der[128];
    uint8_t plain[2 * JWS_EC_BYTES];
    const uint8_t *from = der;
    size_t der_length = sizeof(der);
    ECDSA_SIG *numbers;

    FUZZ_ASSERT(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, pair) == 1);
    FUZZ_ASSERT(EVP_DigestSign(context, der, &der_length, (const uint8_t *)text, length) == 1);
    EVP_MD_CTX_free(context);
    numbers = d2i_ECDSA_SIG(NULL, &from, (long)der_length);
    FUZZ_ASSERT(numbers != NULL);
    BN_bn2binpad(ECDSA_SIG_get0_r(numbers), plain, JWS_EC_BYTES);
    BN_bn2binpad(ECDSA_SIG_get0_s(numbers), plain + JWS_EC_BYTES, JWS_EC_BYTES);
    ECDSA_SIG_free(numbers);
    *at++ = '.';
    return append(at, plain, sizeof(plain));
}

/* The signature is right, so whatever is wrong is in the claims. */
static void check_claims(const uint8_t *bytes, size_t length)
{
    static const char header[] = "{\"alg\":\"ES256\"}";
    char *token = malloc(length * 2 + 256);
    char *at;

    FUZZ_ASSERT(token != NULL);
    at = append(token, (const uint8_t *)header, sizeof(header) - 1);
    *at++ = '.';
    at = append(at, bytes, length);
    at = append_signature(at, token, (size_t)(at - token));
    if (at - token <= JWT_MAX)
        FUZZ_ASSERT(check((struct zt_text){token, (size_t)(at - token)}) != JWT_UNSIGNED);
    free(token);
}

static void check_set(const uint8_t *bytes, size_t length)
{
    char error[512] = "";
    struct jwks *set =
        jwks_parse((struct zt_text){(const char *)bytes, length}, "file", error, sizeof(error));

    FUZZ_ASSERT(set != NULL || strncmp(error, "auth.jwks: file", 15) == 0);
    jwks_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (keys == NULL)
        make_keys();
    if (length == 0)
        return 0;
    switch (bytes[0]) {
    case 't':
        FUZZ_ASSERT(check((struct zt_text){(const char *)bytes + 1, length - 1}) != JWT_VALID);
        break;
    case 'c':
        check_claims(bytes + 1, length - 1);
        break;
    case 'k':
        check_set(bytes + 1, length - 1);
        break;
    }
    return 0;
}
