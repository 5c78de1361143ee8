#include "input/xml_mend.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The length of a reference that XML does not allow ("&#x1;"), or 0. */
static size_t bad_reference(const char *text, size_t length)
{
    char digits[12];
    const char *end = memchr(text, ';', length < sizeof(digits) ? length : sizeof(digits));
    unsigned long value;
    size_t count;

    if (length < 4 || memcmp(text, "&#", 2) != 0 || end == NULL)
        return 0;
    count = (size_t)(end - text) - 2;
    assert(count < sizeof(digits));
    memcpy(digits, text + 2, count);
    digits[count] = '\0';
    value = digits[0] == 'x' ? strtoul(digits + 1, NULL, 16) : strtoul(digits, NULL, 10);
    if (value == '\t' || value == '\n' || value == '\r' || (value >= 0x20 && value < 0xd800) ||
        (value >= 0xe000 && value < 0xfffe) || (value >= 0x10000 && value <= 0x10ffff))
        return 0;
    return count + 3;
}

size_t xml_mend(char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        const size_t bad = c == '&' ? bad_reference(text + i, length - i) : 0;
        const bool is_bad =
            bad > 0 || c >= 0x7f || (c < 0x20 && (c == 0 || strchr("\t\r\n", c) == NULL));

        text[used++] = is_bad ? '?' : (char)c;
        i += bad > 0 ? bad - 1 : 0;
    }
    return used;
}
