/* A JSON Web Key Set (RFC 7517): the public keys of an issuer of tokens. */
#ifndef ACCESS_JWKS_H
#define ACCESS_JWKS_H

#include "access/jws_key.h"

/* Keys of a set; others are an error. */
#define JWKS_MAX 32

struct jwks;

/* Reads a file. Keys of kinds that check neither RS256 nor ES256 are skipped with a warning in the
 * log; NULL with one line in error, which names the file and the key, if one that does is wrong or
 * if none is left. */
struct jwks *jwks_load(const char *path, char *error, size_t error_size);

/* The same for a text; path is for messages. */
struct jwks *jwks_parse(struct zt_text text, const char *path, char *error, size_t error_size);

/* Takes NULL. */
void jwks_free(struct jwks *keys);

/* Whether a key of that algorithm signed the text: the keys with that id, or if id.bytes is NULL
 * all of them. From any thread. */
bool jwks_verify(const struct jwks *keys, enum jws_algorithm algorithm, struct zt_text id,
                 struct zt_text text, struct jws_number signature);

#endif
