/* Writes XML directly into a growing text, without a tree. */
#include "base/xml_write.h"

#include <assert.h>
#include <string.h>

#include "base/decimal.h"
#include "zt/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD"

static void put(struct xml_writer *xml, const char *text)
{
    zt_buffer_append(&xml->text, text, strlen(text));
}

/* Returns what to write instead of the character at the front of the text; NULL: it is written
 * unchanged. size is its length, 0 if it is not well formed. */
static const char *escape_of(const char *character, size_t size)
{
    switch (*character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\t':
        return "&#9;";
    case '\n':
        return "&#10;";
    case '\r':
        return "&#13;";
    default:
        break;
    }
    if (size == 0 || (unsigned char)*character < 0x20)
        return REPLACEMENT;
    /* U+FFFE and U+FFFF are not characters of XML. */
    return size == 3 && memcmp(character, "\xEF\xBF", 2) == 0 && (unsigned char)character[2] >= 0xBE
               ? REPLACEMENT
               : NULL;
}

static void put_escaped(struct xml_writer *xml, struct zt_text text)
{
    size_t plain = 0; /* start of the bytes that are written unchanged */
    size_t at = 0;

    while (at < text.length) {
        const size_t size = zt_utf8_character(text.bytes + at, text.length - at);
        const char *escape = escape_of(text.bytes + at, size);

        if (escape != NULL) {
            zt_buffer_append(&xml->text, text.bytes + plain, at - plain);
            put(xml, escape);
        }
        at += size > 0 ? size : 1;
        if (escape != NULL)
            plain = at;
    }
    assert(at == text.length && plain <= at);
    if (at > plain)
        zt_buffer_append(&xml->text, text.bytes + plain, at - plain);
}

void xml_writer_free(struct xml_writer *xml)
{
    zt_buffer_free(&xml->text);
}

void xml_write_declaration(struct xml_writer *xml)
{
    assert(xml->text.length == 0);
    put(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
}

void xml_write_open(struct xml_writer *xml, const char *name, const char *xmlns)
{
    assert(name[0] != '\0');
    put(xml, "<");
    put(xml, name);
    if (xmlns != NULL) {
        put(xml, " xmlns=\"");
        put_escaped(xml, zt_text_from(xmlns));
        put(xml, "\"");
    }
    put(xml, ">");
}

void xml_write_close(struct xml_writer *xml, const char *name)
{
    assert(xml->text.length > 0 || xml->text.failed);
    put(xml, "</");
    put(xml, name);
    put(xml, ">");
}

void xml_write_text(struct xml_writer *xml, const char *name, struct zt_text text)
{
    xml_write_open(xml, name, NULL);
    put_escaped(xml, text);
    xml_write_close(xml, name);
}

void xml_write_string(struct xml_writer *xml, const char *name, const char *text)
{
    xml_write_text(xml, name, zt_text_from(text));
}

void xml_write_uint(struct xml_writer *xml, const char *name, uint64_t number)
{
    char digits[ZT_DECIMAL_SIZE];

    xml_write_text(xml, name,
                   (struct zt_text){digits, (size_t)(zt_decimal_write(digits, number) - digits)});
}

void xml_write_bool(struct xml_writer *xml, const char *name, bool value)
{
    xml_write_string(xml, name, value ? "true" : "false");
}
