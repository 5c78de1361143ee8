/* UTF-8 (RFC 3629 section 4), with a fast path for ASCII, which most names are. */
#include "zt/utf8.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* The range of the second byte excludes overlong forms, surrogates and values past U+10FFFF. */
size_t zt_utf8_character(const char *bytes, size_t length)
{
    const uint8_t *text = (const uint8_t *)bytes;
    uint8_t first = text[0];
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t size;

    assert(length > 0);
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF) {
        size = 2;
    } else if ((first & 0xF0) == 0xE0) {
        size = 3;
        low = first == 0xE0 ? 0xA0 : 0x80;
        high = first == 0xED ? 0x9F : 0xBF;
    } else if (first >= 0xF0 && first <= 0xF4) {
        size = 4;
        low = first == 0xF0 ? 0x90 : 0x80;
        high = first == 0xF4 ? 0x8F : 0xBF;
    } else {
        return 0;
    }
    if (length < size || text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return size;
}

bool zt_utf8_valid(const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length) {
        uint64_t word;
        size_t step;

        if (length - at >= sizeof(word)) {
            memcpy(&word, bytes + at, sizeof(word));
            if ((word & 0x8080808080808080) == 0) {
                at += sizeof(word);
                continue;
            }
        }
        step = zt_utf8_character(bytes + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    assert(at == length);
    return true;
}
