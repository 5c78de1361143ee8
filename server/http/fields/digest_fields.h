/* RFC 9530: Repr-Digest and Content-Digest as structured fields (RFC 8941 dictionaries of byte
 * sequences). */
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

/* Reads a request's field. False when it is not a well-formed dictionary, or a known algorithm's
 * value is not a byte sequence of its length; algorithms that are not known are passed over. */
bool digest_field_parse(const char *text, struct digest_field *out_field);

/* Want-Repr-Digest, Want-Content-Digest: the weight given to sha-256, 0 where it is not wanted or
 * the field is NULL. */
int digest_field_wants_sha256(const char *text);

#endif
