/* UTF-8 (RFC 3629): telling well-formed text from bytes that only look like it. */
#ifndef HTTP_UTF8_H
#define HTTP_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length (1 to 4) of the well-formed character that bytes begin with; 0 when there is none:
 * overlong forms, surrogates, values past U+10FFFF and cut sequences are none. length is at least
 * 1. */
size_t utf8_character(const char *bytes, size_t length);

bool utf8_is_valid(const char *bytes, size_t length);

#endif
