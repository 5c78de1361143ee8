/* Public keys that check signatures, with OpenSSL. The kind of a key decides the algorithm, so a
 * token cannot choose another one: an RSA key checks RS256, a key on the curve P-256 checks ES256
 * (RFC 7518 sections 3.3 and 3.4). */
#ifndef ACCESS_JWS_KEY_H
#define ACCESS_JWS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/text.h"

enum jws_algorithm { JWS_RS256, JWS_ES256 };

/* Smaller keys are too weak, larger ones too slow. */
#define JWS_RSA_BITS_MIN 2048
#define JWS_RSA_BITS_MAX 8192
/* A coordinate on P-256. */
#define JWS_EC_BYTES 32

struct jws_key;

struct jws_number {
    const uint8_t *bytes; /* the most significant first */
    size_t length;
};

/* NULL with the reason if it is not a public key of acceptable size. */
struct jws_key *jws_key_rsa(struct jws_number modulus, struct jws_number exponent,
                            const char **out_why);
struct jws_key *jws_key_ec(const uint8_t x[JWS_EC_BYTES], const uint8_t y[JWS_EC_BYTES],
                           const char **out_why);
/* Takes NULL. */
void jws_key_free(struct jws_key *key);

enum jws_algorithm jws_key_algorithm(const struct jws_key *key);

/* Whether the signature over the text is right. From any thread; takes 30 to 200 us. */
bool jws_key_verifies(const struct jws_key *key, struct zt_text text, const uint8_t *signature,
                      size_t length);

#endif
