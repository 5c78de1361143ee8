/* UTF-8 (RFC 3629): whether bytes are text. Surrogates, overlong forms and values past U+10FFFF are
 * not. */
#ifndef ZT_UTF8_H
#define ZT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool zt_utf8_valid(const uint8_t *bytes, size_t length);

#endif
