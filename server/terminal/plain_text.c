/* Escapes what a terminal would interpret instead of showing. */
#include "terminal/plain_text.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "zt/utf8.h"

/* "\u202e" */
#define ESCAPE_SIZE 8
#define ELLIPSIS    "…"

static uint32_t code_point(const char *text, size_t size)
{
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code;

    assert(size > 0 && size < sizeof(first_bits));
    code = (unsigned char)text[0] & first_bits[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    return code;
}

/* C0, DEL and C1 control characters, line separators (U+2028, U+2029) and direction marks (U+200E,
 * U+200F, U+202A to U+202E, U+2066 to U+2069). */
static int is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200E && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

static size_t put(FILE *stream, const char *text, size_t length)
{
    if (stream != NULL)
        fwrite(text, 1, length, stream);
    return length;
}

/* Writes one character, or its escape; *out_width: the number of characters written. Returns the
 * number of bytes of text that it used. */
static size_t put_character(FILE *stream, const char *text, size_t length, size_t *out_width)
{
    size_t size = zt_utf8_character(text, length);
    uint32_t code = size > 0 ? code_point(text, size) : (unsigned char)*text;
    char escape[ESCAPE_SIZE];
    int written;

    assert(length > 0 && size <= length);
    if (size > 0 && !is_control(code)) {
        put(stream, text, size);
        *out_width = 1;
        return size;
    }
    written = size > 0 ? snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)(code & 0xFFFF))
                       : snprintf(escape, sizeof(escape), "\\x%02x", (unsigned)(code & 0xFF));
    *out_width = put(stream, escape, (size_t)written);
    return size > 0 ? size : 1;
}

size_t plain_text_write(FILE *stream, const char *text, size_t length)
{
    size_t shown = 0;

    for (size_t at = 0; at < length;) {
        size_t width;

        at += put_character(stream, text + at, length - at, &width);
        shown += width;
    }
    return shown;
}

size_t plain_text_write_short(FILE *stream, const char *text, size_t length, size_t limit)
{
    size_t shown;

    /* A character has at most four bytes, so longer texts need not be measured. */
    if (length <= limit * 4 && plain_text_write(NULL, text, length) <= limit)
        return plain_text_write(stream, text, length);
    shown = 0;
    for (size_t at = 0; at < length;) {
        size_t width;
        size_t size = put_character(NULL, text + at, length - at, &width);

        if (shown + width >= limit)
            break;
        put_character(stream, text + at, size, &width);
        shown += width;
        at += size;
    }
    put(stream, ELLIPSIS, strlen(ELLIPSIS));
    return shown + 1;
}
