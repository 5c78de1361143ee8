/* UTF-8 by the table of RFC 3629 section 4: the second byte's bounds follow from the first, the
 * others are tails. */
#include "http/utf8.h"

/* Characters from here on take more than one byte. */
#define FIRST_LONG 0x80

static bool is_tail(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Bytes of the character that begins with first; 0 when none begins so. */
static size_t announced_length(unsigned char first)
{
    if (first < FIRST_LONG)
        return 1;
    if (first < 0xC2)
        return 0; /* a tail, or an overlong form */
    if (first < 0xE0)
        return 2;
    if (first < 0xF0)
        return 3;
    return first < 0xF5 ? 4 : 0;
}

static bool second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0;
    case 0xED:
        return second < 0xA0; /* surrogates */
    case 0xF0:
        return second >= 0x90;
    case 0xF4:
        return second < 0x90; /* past U+10FFFF */
    default:
        return true;
    }
}

size_t utf8_character(const char *bytes, size_t length)
{
    const unsigned char *text = (const unsigned char *)bytes;
    size_t size = announced_length(text[0]);

    if (size > length)
        return 0;
    for (size_t i = 1; i < size; i++)
        if (!is_tail(text[i]))
            return 0;
    return size > 1 && !second_fits(text[0], text[1]) ? 0 : size;
}

bool utf8_is_valid(const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length) {
        size_t size;

        if ((unsigned char)bytes[at] < FIRST_LONG) {
            at++;
            continue;
        }
        size = utf8_character(bytes + at, length - at);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}
