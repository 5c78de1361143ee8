/* Blanks around the parts of a line: spaces and tabs, the optional white space of HTTP's fields
 * (RFC 9110 section 5.6.3). */
#ifndef INPUT_BLANKS_H
#define INPUT_BLANKS_H

#include <stdbool.h>

#include "zt/text.h"

static inline bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Returns the text without the blanks at its ends. */
static inline struct zt_text text_trimmed(struct zt_text text)
{
    while (text.length > 0 && is_blank(text.bytes[text.length - 1]))
        text.length--;
    while (text.length > 0 && is_blank(text.bytes[0])) {
        text.bytes++;
        text.length--;
    }
    return text;
}

#endif
