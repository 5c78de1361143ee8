/* Checking UTF-8 (RFC 3629). Surrogates, overlong forms and values past U+10FFFF are not well
 * formed. */
#ifndef ZT_UTF8_H
#define ZT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The length in bytes (1 to 4) of the first character; 0 if it is not well formed. length is at
 * least 1. */
size_t zt_utf8_character(const char *bytes, size_t length);

bool zt_utf8_valid(const char *bytes, size_t length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
