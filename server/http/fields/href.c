/* Percent-encoding (RFC 3986 section 2.1) into a buffer that is reused for many names. */
#include "http/fields/href.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* "%2F" for one byte. */
#define ESCAPED_LENGTH 3

void href_init(struct href *href)
{
    *href = (struct href){0};
}

void href_free(struct href *href)
{
    free(href->text);
    href_init(href);
}

void href_cut(struct href *href, size_t length)
{
    if (!href->failed && length < href->length) {
        href->length = length;
        href->text[length] = '\0';
    }
}

/* Makes room for length more bytes and the NUL. */
static bool reserve(struct href *href, size_t length)
{
    if (href->failed || length > SIZE_MAX - 1 - href->length ||
        zt_array_reserve(&href->text, &href->capacity, href->length + length + 1, 1, SIZE_MAX) !=
            ZT_OK)
        href->failed = true;
    return !href->failed;
}

void href_plain(struct href *href, const char *text)
{
    size_t length = strlen(text);

    if (reserve(href, length)) {
        memcpy(href->text + href->length, text, length + 1);
        href->length += length;
    }
}

/* RFC 3986 section 2.3. isalnum would depend on the locale. */
static bool is_unreserved(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

static size_t encode(unsigned char byte, bool keep_slash, char *out_text)
{
    static const char hex[] = "0123456789ABCDEF";

    if (is_unreserved(byte) || (byte == '/' && keep_slash)) {
        out_text[0] = (char)byte;
        return 1;
    }
    out_text[0] = '%';
    out_text[1] = hex[byte >> 4];
    out_text[2] = hex[byte & 15];
    return ESCAPED_LENGTH;
}

/* Clients would take such a name for a dot segment, so its dots are escaped. */
static bool is_dots(struct zt_text text)
{
    return (text.length == 1 || text.length == 2) && memcmp(text.bytes, "..", text.length) == 0;
}

static void append(struct href *href, struct zt_text text, bool keep_slash)
{
    if (text.length > SIZE_MAX / ESCAPED_LENGTH || !reserve(href, text.length * ESCAPED_LENGTH)) {
        href->failed = true;
        return;
    }
    for (size_t i = 0; i < text.length; i++)
        href->length += encode((unsigned char)text.bytes[i], keep_slash, href->text + href->length);
    assert(href->length < href->capacity);
    href->text[href->length] = '\0';
}

void href_segment(struct href *href, struct zt_text name)
{
    if (is_dots(name))
        href_plain(href, name.length == 1 ? "%2E" : "%2E%2E");
    else
        append(href, name, false);
}

void href_path(struct href *href, struct zt_text path)
{
    append(href, path, true);
}

bool href_can_hold(struct zt_text name)
{
    return name.length > 0 && memchr(name.bytes, '\0', name.length) == NULL;
}

void href_model(struct href *href, struct zt_text name)
{
    href_plain(href, "/v1/models/");
    href_segment(href, name);
}
