/* Hexadecimal digits: one printer and one parser. */
#ifndef ZT_BASE_HEX_H
#define ZT_BASE_HEX_H

#include <stdint.h>

#include "zt/text.h"

#define ZT_HEX_LOWER "0123456789abcdef"
#define ZT_HEX_UPPER "0123456789ABCDEF"

/* Writes two digits for each byte, of ZT_HEX_LOWER or ZT_HEX_UPPER, and returns what follows them;
 * no NUL. */
static inline char *zt_hex_put(char *at, const void *bytes, size_t length, const char *digits)
{
    for (const uint8_t *from = bytes, *end = from + length; from < end; from++) {
        *at++ = digits[*from >> 4];
        *at++ = digits[*from & 15];
    }
    return at;
}

/* Writes two lower-case digits for each byte, and a NUL, which it returns. */
static inline char *zt_hex_write(char *at, const void *bytes, size_t length)
{
    at = zt_hex_put(at, bytes, length, ZT_HEX_LOWER);
    *at = '\0';
    return at;
}

/* The value of a digit in either case; -1 for any other character. */
static inline int zt_hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit = (char)(digit | 0x20);
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Reads exactly 2 * length digits in either case. False for any other text; some of the bytes may
 * have been written then. */
static inline bool zt_hex_read(struct zt_text text, void *out_bytes, size_t length)
{
    uint8_t *to = out_bytes;

    if (text.length != 2 * length)
        return false;
    for (size_t i = 0; i < length; i++) {
        const int high = zt_hex_value(text.bytes[2 * i]);
        const int low = zt_hex_value(text.bytes[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Returns true if the text consists of so many lower-case digits. */
static inline bool zt_hex_is_lower(struct zt_text text, size_t digits)
{
    if (text.length != digits)
        return false;
    for (size_t i = 0; i < text.length; i++)
        if (zt_hex_value(text.bytes[i]) < 0 || (text.bytes[i] >= 'A' && text.bytes[i] <= 'F'))
            return false;
    return true;
}

/* Reads exactly 2 * length lower-case digits. Writes nothing if the text is another. */
static inline bool zt_hex_read_lower(struct zt_text text, void *out_bytes, size_t length)
{
    return zt_hex_is_lower(text, 2 * length) && zt_hex_read(text, out_bytes, length);
}

#endif
