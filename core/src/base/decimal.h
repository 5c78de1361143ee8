/* Numbers in decimal digits. This is the only parser of them: no sign, no blank, no other
 * character; leading zeros are allowed. Callers add what their grammar allows beside the digits. */
#ifndef ZT_BASE_DECIMAL_H
#define ZT_BASE_DECIMAL_H

#include <stdint.h>
#include <string.h>

#include "zt/text.h"

/* The digits of the largest number. */
#define ZT_DECIMAL_SIZE 20

/* Writes the decimal digits and returns what follows them; no NUL. Takes less time than printf. */
static inline char *zt_decimal_write(char *at, uint64_t number)
{
    char digits[ZT_DECIMAL_SIZE];
    unsigned first = ZT_DECIMAL_SIZE;

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(at, digits + first, ZT_DECIMAL_SIZE - first);
    return at + ZT_DECIMAL_SIZE - first;
}

/* Returns how many digits the text begins with. */
static inline size_t zt_decimal_length(struct zt_text text)
{
    size_t length = 0;

    while (length < text.length && text.bytes[length] >= '0' && text.bytes[length] <= '9')
        length++;
    return length;
}

/* Takes the digits at the front of the text. A number that does not fit becomes UINT64_MAX. False
 * if there are no digits. */
static inline bool zt_decimal_take(struct zt_text *text, uint64_t *out_number)
{
    const size_t length = zt_decimal_length(*text);
    uint64_t number = 0;

    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        const uint64_t digit = (uint64_t)(text->bytes[i] - '0');

        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    *text = (struct zt_text){text->bytes + length, text->length - length};
    *out_number = number;
    return true;
}

/* Reads a text that is a number from 0 to most. False for any other text. */
static inline bool zt_decimal_read(struct zt_text text, uint64_t most, uint64_t *out_number)
{
    uint64_t number = 0;

    if (text.length == 0)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        const uint64_t digit = (uint64_t)(unsigned char)text.bytes[i] - '0';

        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    if (number > most)
        return false;
    *out_number = number;
    return true;
}

/* The same for a number that may have a minus before it. */
static inline bool zt_decimal_read_signed(struct zt_text text, int64_t *out_number)
{
    const bool is_negative = text.length > 0 && text.bytes[0] == '-';
    uint64_t magnitude;

    if (is_negative)
        text = (struct zt_text){text.bytes + 1, text.length - 1};
    if (!zt_decimal_read(text, (uint64_t)INT64_MAX + is_negative, &magnitude))
        return false;
    *out_number = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

#endif
