/* Base64 (RFC 4648). OpenSSL's decoder skips blanks and does not look at unused bits, so this one
 * is the server's own. */
#ifndef ZT_BASE_BASE64_H
#define ZT_BASE_BASE64_H

#include <stdint.h>

#include "zt/text.h"

enum zt_base64 {
    ZT_BASE64,    /* section 4: ends in + and /; padded */
    ZT_BASE64_URL /* section 5: ends in - and _; not padded */
};

/* The text of so many bytes, padded, and NUL. */
#define ZT_BASE64_SIZE(length) (((length) + 2) / 3 * 4 + 1)

/* Writes the text of the bytes, and a NUL, which it returns. */
char *zt_base64_write(char *at, const void *bytes, size_t length, enum zt_base64 form);

/* The value of a digit; -1 for any other character, '=' among them. */
int zt_base64_value(char digit, enum zt_base64 form);

/* Reads a text of digits alone, without padding. False if it is another, or its bytes do not fit
 * into size; some may have been written then. Unused bits of the last digit must be 0 in
 * ZT_BASE64_URL, so that there is one text for some bytes (RFC 7515); in ZT_BASE64 they are
 * ignored (RFC 8941 section 4.2.7). */
bool zt_base64_read(struct zt_text digits, enum zt_base64 form, void *out_bytes, size_t size,
                    size_t *out_length);

#endif
