/* Tickets: texts that the server has given out and recognizes by a code that only the owner of the
 * key can compute, HMAC-SHA256 (RFC 2104). What a ticket is for, and until when, is in its text. */
#ifndef INPUT_TICKET_H
#define INPUT_TICKET_H

#include <stdint.h>

#include "zt/text.h"

#define TICKET_KEY_BYTES 32
/* Lower-case hex digits, and NUL. */
#define TICKET_CODE_SIZE 65

void ticket_key_make(uint8_t out_key[TICKET_KEY_BYTES]);

/* Computes the code of a text. False: out of memory. */
bool ticket_sign(const uint8_t key[TICKET_KEY_BYTES], const char *text,
                 char out_code[TICKET_CODE_SIZE]);

/* Returns true if the code is the text's. False also without memory. */
bool ticket_check(const uint8_t key[TICKET_KEY_BYTES], const char *text, struct zt_text code);

/* --- what they are made of --- */

/* False: out of memory. */
bool hmac_sha256(const void *key, size_t key_length, struct zt_text text, uint8_t out_code[32]);

/* Compares in a time that does not depend on the bytes. */
bool secret_equal(const void *one, const void *other, size_t length);

#endif
