/* The digest fields of RFC 9530, which are dictionaries of byte sequences (RFC 8941). */
#ifndef HTTP_FIELDS_DIGEST_FIELDS_H
#define HTTP_FIELDS_DIGEST_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_FIELD_SIZE 64

/* "sha-256=:…:" */
void digest_field_format(const uint8_t sha256[32], char out_text[DIGEST_FIELD_SIZE]);

struct digest_field {
    bool has_sha256;
    bool has_sha512;
    uint8_t sha256[32];
    uint8_t sha512[64];
};

/* Reads a field of a request. Returns false if it is not a well-formed dictionary, or if the value
 * of a known algorithm is not a byte sequence of the right length. Unknown algorithms are
 * skipped. */
bool digest_field_parse(const char *text, struct digest_field *out_field);

/* Returns the weight that Want-Repr-Digest or Want-Content-Digest gives to sha-256, from 0 to 10; 0
 * if it is not wanted, or if the field is absent (NULL) or malformed. */
int digest_field_wants_sha256(const char *text);

#endif
