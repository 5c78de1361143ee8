/* Four characters become three bytes; what is left over of the last ones must be 0. */
#include "access/base64url.h"

/* -1 for any other character. */
static int value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    if (digit == '-')
        return 62;
    return digit == '_' ? 63 : -1;
}

bool base64url_decode(struct zt_text text, uint8_t *out_bytes, size_t size, size_t *out_length)
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t length = 0;

    for (size_t i = 0; i < text.length; i++) {
        const int value = value_of(text.bytes[i]);

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        if (length == size)
            return false;
        out_bytes[length++] = (uint8_t)(bits >> count);
    }
    *out_length = length;
    return count < 6 && (bits & ((1U << count) - 1)) == 0;
}
