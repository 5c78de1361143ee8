/* UTF-8 (RFC 3629): whether bytes are text. Surrogates, overlong forms and values past U+10FFFF are
 * not. */
#ifndef ZT_UTF8_H
#define ZT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Length (1 to 4) of the well-formed character at the start of bytes; 0 if there is none. length is
 * at least 1. */
size_t zt_utf8_character(const char *bytes, size_t length);

bool zt_utf8_valid(const char *bytes, size_t length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
