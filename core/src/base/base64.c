/* Four digits are three bytes; two or three digits at the end are one or two bytes. */
#include "base/base64.h"

#include <assert.h>

static const char alphabets[][65] = {
    [ZT_BASE64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [ZT_BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

char *zt_base64_write(char *at, const void *bytes, size_t length, enum zt_base64 form)
{
    const char *alphabet = alphabets[form];
    const uint8_t *from = bytes;
    uint32_t bits = 0;
    unsigned count = 0;

    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | from[i];
        for (count += 8; count >= 6; count -= 6)
            *at++ = alphabet[bits >> (count - 6) & 63];
    }
    assert(count < 6);
    if (count > 0)
        *at++ = alphabet[bits << (6 - count) & 63];
    for (size_t i = length; form == ZT_BASE64 && i % 3 != 0; i++)
        *at++ = '=';
    *at = '\0';
    return at;
}

int zt_base64_value(char digit, enum zt_base64 form)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    if (digit == alphabets[form][62])
        return 62;
    return digit == alphabets[form][63] ? 63 : -1;
}

bool zt_base64_read(struct zt_text digits, enum zt_base64 form, void *out_bytes, size_t size,
                    size_t *out_length)
{
    uint8_t *to = out_bytes;
    uint32_t bits = 0;
    unsigned count = 0;
    size_t length = 0;

    for (size_t i = 0; i < digits.length; i++) {
        const int value = zt_base64_value(digits.bytes[i], form);

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        if (length == size)
            return false;
        to[length++] = (uint8_t)(bits >> count);
    }
    assert(count <= 6);
    if (count == 6 || (form == ZT_BASE64_URL && (bits & ((1U << count) - 1)) != 0))
        return false;
    *out_length = length;
    return true;
}
