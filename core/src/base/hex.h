/* Reading hexadecimal digits. */
#ifndef ZT_BASE_HEX_H
#define ZT_BASE_HEX_H

#include <stdint.h>

#include "zt/text.h"

/* The value of a digit in either case; -1 for any other character. */
static inline int zt_hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit = (char)(digit | 0x20);
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Reads exactly 2 * length lower-case digits. False for any other text; some of the bytes may have
 * been written then. */
static inline bool zt_hex_read_lower(struct zt_text text, uint8_t *out_bytes, size_t length)
{
    if (text.length != 2 * length)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        char digit = text.bytes[i];
        int value = digit >= 'A' && digit <= 'F' ? -1 : zt_hex_value(digit);

        if (value < 0)
            return false;
        out_bytes[i / 2] = (uint8_t)((i % 2 == 0 ? 0 : out_bytes[i / 2] << 4) | value);
    }
    return true;
}

#endif
