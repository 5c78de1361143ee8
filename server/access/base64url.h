/* Base64url without padding (RFC 4648 section 5, RFC 7515 appendix C). */
#ifndef ACCESS_BASE64URL_H
#define ACCESS_BASE64URL_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/text.h"

/* Decodes the whole text. False if it is not the one way to write those bytes, or if they do not
 * fit; some may have been written then. */
bool base64url_decode(struct zt_text text, uint8_t *out_bytes, size_t size, size_t *out_length);

#endif
