/* Makes keys from numbers and checks signatures. An ES256 signature is the two numbers side by
 * side; OpenSSL wants them as DER. */
#include "access/jws_key.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdlib.h>
#include <string.h>

#define ES256_BYTES (2 * JWS_EC_BYTES)
/* SEC 1 section 2.3.3: an uncompressed point. */
#define POINT_UNCOMPRESSED 4

struct jws_key {
    EVP_PKEY *key;
    enum jws_algorithm algorithm;
};

/* --- making --- */

/* Takes over the key. */
static struct jws_key *wrap(EVP_PKEY *pkey, enum jws_algorithm algorithm)
{
    struct jws_key *key = malloc(sizeof(*key));

    if (key == NULL) {
        EVP_PKEY_free(pkey);
        return NULL;
    }
    *key = (struct jws_key){pkey, algorithm};
    return key;
}

/* NULL if OpenSSL does not take it. */
static EVP_PKEY *make_key(const char *kind, OSSL_PARAM *params)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    EVP_PKEY *key = NULL;

    if (context == NULL || params == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

static bool is_sound(EVP_PKEY *key)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    const bool sound = context != NULL && EVP_PKEY_public_check(context) == 1;

    EVP_PKEY_CTX_free(context);
    return sound;
}

static EVP_PKEY *make_rsa(struct jws_number modulus, struct jws_number exponent)
{
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    BIGNUM *n = BN_bin2bn(modulus.bytes, (int)modulus.length, NULL);
    BIGNUM *e = BN_bin2bn(exponent.bytes, (int)exponent.length, NULL);
    OSSL_PARAM *params = NULL;
    EVP_PKEY *key = NULL;

    assert(modulus.length <= JWS_RSA_BITS_MAX / 8 && exponent.length <= sizeof(uint64_t));
    if (build != NULL && n != NULL && e != NULL &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1) {
        params = OSSL_PARAM_BLD_to_param(build);
        key = make_key("RSA", params);
    }
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    BN_free(n);
    BN_free(e);
    return key;
}

/* Whether the exponent is odd and from 3 to 2^32. */
static bool exponent_is_usual(struct jws_number exponent)
{
    uint64_t value = 0;

    if (exponent.length == 0 || exponent.length > sizeof(uint32_t))
        return false;
    for (size_t i = 0; i < exponent.length; i++)
        value = value << 8 | exponent.bytes[i];
    return value >= 3 && value % 2 == 1;
}

struct jws_key *jws_key_rsa(struct jws_number modulus, struct jws_number exponent,
                            const char **out_why)
{
    EVP_PKEY *key;
    int bits;

    *out_why = "the exponent must be an odd number from 3 to 2^32";
    if (!exponent_is_usual(exponent))
        return NULL;
    *out_why = "the key must have 2048 to 8192 bits";
    if (modulus.length > JWS_RSA_BITS_MAX / 8)
        return NULL;
    key = make_rsa(modulus, exponent);
    bits = key != NULL ? EVP_PKEY_get_bits(key) : 0;
    if (bits < JWS_RSA_BITS_MIN || bits > JWS_RSA_BITS_MAX || !is_sound(key)) {
        EVP_PKEY_free(key);
        return NULL;
    }
    return wrap(key, JWS_RS256);
}

struct jws_key *jws_key_ec(const uint8_t x[JWS_EC_BYTES], const uint8_t y[JWS_EC_BYTES],
                           const char **out_why)
{
    static char curve[] = "P-256";
    uint8_t point[1 + ES256_BYTES] = {POINT_UNCOMPRESSED};
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, curve, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY *key;

    memcpy(point + 1, x, JWS_EC_BYTES);
    memcpy(point + 1 + JWS_EC_BYTES, y, JWS_EC_BYTES);
    key = make_key("EC", params);
    if (key == NULL || !is_sound(key)) {
        *out_why = "the point is not on the curve P-256";
        EVP_PKEY_free(key);
        return NULL;
    }
    return wrap(key, JWS_ES256);
}

void jws_key_free(struct jws_key *key)
{
    if (key == NULL)
        return;
    EVP_PKEY_free(key->key);
    free(key);
}

enum jws_algorithm jws_key_algorithm(const struct jws_key *key)
{
    return key->algorithm;
}

/* --- checking --- */

static bool verifies(EVP_PKEY *key, struct zt_text text, const uint8_t *signature, size_t length)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    /* An RSA key is checked with PKCS #1 version 1.5, which is the default and RS256's. */
    const bool verified =
        context != NULL && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestVerify(context, signature, length, (const uint8_t *)text.bytes, text.length) == 1;

    EVP_MD_CTX_free(context);
    return verified;
}

/* NULL without memory. The caller frees it with OPENSSL_free. */
static uint8_t *to_der(const uint8_t signature[ES256_BYTES], size_t *out_length)
{
    ECDSA_SIG *numbers = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, JWS_EC_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(signature + JWS_EC_BYTES, JWS_EC_BYTES, NULL);
    uint8_t *der = NULL;
    int length = -1;

    if (numbers != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(numbers, r, s) == 1) {
        /* They belong to the signature now. */
        r = NULL;
        s = NULL;
        length = i2d_ECDSA_SIG(numbers, &der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(numbers);
    *out_length = length > 0 ? (size_t)length : 0;
    return length > 0 ? der : NULL;
}

static bool verifies_es256(EVP_PKEY *key, struct zt_text text, const uint8_t *signature,
                           size_t length)
{
    size_t der_length;
    uint8_t *der;
    bool verified;

    if (length != ES256_BYTES)
        return false;
    der = to_der(signature, &der_length);
    verified = der != NULL && verifies(key, text, der, der_length);
    OPENSSL_free(der);
    return verified;
}

bool jws_key_verifies(const struct jws_key *key, struct zt_text text, const uint8_t *signature,
                      size_t length)
{
    switch (key->algorithm) {
    case JWS_RS256:
        /* As long as the modulus (RFC 8017 section 8.2.2); OpenSSL compares that as well. */
        return length == (size_t)EVP_PKEY_get_size(key->key) &&
               verifies(key->key, text, signature, length);
    case JWS_ES256:
        return verifies_es256(key->key, text, signature, length);
    }
    return false;
}
