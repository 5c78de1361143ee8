/* Writing CBOR as JSON, as RFC 8949 section 6.1 advises. Keys that are not text are written in
 * diagnostic notation (section 8).
 *
 * Everything is emitted as soon as it is read, except that the chunks of a string of indefinite
 * length are joined first. The CBOR reader bounds the depth of nesting. */
#include "base/base64.h"
#include "base/hex.h"
#include "zt/attributes.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cbor/cbor_read.h"

/* Tags of RFC 8949 section 3.4 for byte strings. */
#define TAG_BIGNUM_POSITIVE 2
#define TAG_BIGNUM_NEGATIVE 3
#define TAG_BASE64URL       21
#define TAG_BASE64          22
#define TAG_BASE16          23
/* Room for any number; "%.17g" takes up to 24 characters. */
#define NUMBER_SIZE 40
/* Joined strings are not longer than the value; this allows for the heads of the arena's blocks. */
#define ARENA_SLACK_BYTES 65536

struct writer {
    struct zt_cbor_reader reader;
    void (*emit)(void *context, const char *text, size_t length);
    void *context;
    struct zt_error *error;
    /* The number of open JSON strings, each of which escapes everything written inside it. */
    unsigned quoting;
};

enum notation { NOTATION_JSON, NOTATION_DIAGNOSTIC };

static enum zt_status write_value(struct writer *writer, enum notation notation, uint64_t hint);

/* --- text --- */

static void put_escaped(struct writer *writer, const char *text, size_t length, unsigned quoting);

static void put_at(struct writer *writer, const char *text, size_t length, unsigned quoting)
{
    if (length == 0)
        return;
    if (quoting == 0)
        writer->emit(writer->context, text, length);
    else
        put_escaped(writer, text, length, quoting - 1);
}

static size_t escape(char byte, char out_text[8])
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *known = byte != '\0' ? strchr(plain, byte) : NULL;

    assert((unsigned char)byte < 0x20 || byte == '"' || byte == '\\');
    if (known != NULL) {
        out_text[0] = '\\';
        out_text[1] = letters[known - plain];
        return 2;
    }
    return (size_t)snprintf(out_text, 8, "\\u%04x", (unsigned char)byte);
}

static void put_escaped(struct writer *writer, const char *text, size_t length, unsigned quoting)
{
    size_t begin = 0;

    for (size_t i = 0; i < length; i++) {
        char escaped[8];

        if ((unsigned char)text[i] >= 0x20 && text[i] != '"' && text[i] != '\\')
            continue;
        put_at(writer, text + begin, i - begin, quoting);
        put_at(writer, escaped, escape(text[i], escaped), quoting);
        begin = i + 1;
    }
    put_at(writer, text + begin, length - begin, quoting);
}

static void put(struct writer *writer, const char *text)
{
    put_at(writer, text, strlen(text), writer->quoting);
}

static void put_string(struct writer *writer, struct zt_text text)
{
    put(writer, "\"");
    put_at(writer, text.bytes, text.length, writer->quoting + 1);
    put(writer, "\"");
}

/* --- numbers --- */

static void put_uint(struct writer *writer, uint64_t value)
{
    char text[NUMBER_SIZE];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    put(writer, text);
}

/* Writes the number -1 - value, which may be too small for 64 bits. */
static void put_nint(struct writer *writer, uint64_t value)
{
    if (value == UINT64_MAX) {
        put(writer, "-18446744073709551616");
        return;
    }
    put(writer, "-");
    put_uint(writer, value + 1);
}

/* Writes the fewest digits that read back as the same double, always with a point or exponent, so
 * that readers take it for a float. */
static void put_finite(struct writer *writer, double number)
{
    char text[NUMBER_SIZE];

    assert(isfinite(number));
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    put(writer, text);
    if (strpbrk(text, ".e") == NULL)
        put(writer, ".0");
}

static void put_float(struct writer *writer, double number, enum notation notation)
{
    if (isfinite(number))
        put_finite(writer, number);
    else if (notation == NOTATION_JSON)
        put(writer, "null");
    else
        put(writer, isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
}

static void put_simple(struct writer *writer, uint64_t value, enum notation notation)
{
    if (notation == NOTATION_JSON) {
        put(writer, "null");
        return;
    }
    put(writer, "simple(");
    put_uint(writer, value);
    put(writer, ")");
}

/* --- byte strings --- */

static void put_base16(struct writer *writer, const uint8_t *bytes, size_t length,
                       const char *digits)
{
    for (size_t i = 0; i < length; i++) {
        char text[2];

        zt_hex_put(text, bytes + i, 1, digits);
        put_at(writer, text, sizeof(text), writer->quoting);
    }
}

static void put_base64(struct writer *writer, const uint8_t *bytes, size_t length,
                       enum zt_base64 form)
{
    for (size_t i = 0; i < length; i += 3) {
        char text[ZT_BASE64_SIZE(3)];
        const char *end = zt_base64_write(text, bytes + i, length - i < 3 ? length - i : 3, form);

        put_at(writer, text, (size_t)(end - text), writer->quoting);
    }
}

static void put_bytes(struct writer *writer, const struct zt_cbor_item *item,
                      enum notation notation, uint64_t hint)
{
    size_t length = (size_t)item->value;

    if (notation == NOTATION_DIAGNOSTIC) {
        put(writer, "h'");
        put_base16(writer, item->bytes, length, ZT_HEX_LOWER);
        put(writer, "'");
        return;
    }
    put(writer, hint == TAG_BIGNUM_NEGATIVE ? "\"~" : "\"");
    if (hint == TAG_BASE16)
        put_base16(writer, item->bytes, length, ZT_HEX_UPPER);
    else if (hint == TAG_BASE64)
        put_base64(writer, item->bytes, length, ZT_BASE64);
    else
        put_base64(writer, item->bytes, length, ZT_BASE64_URL);
    put(writer, "\"");
}

/* --- containers --- */

static enum zt_status write_key(struct writer *writer, enum notation notation)
{
    size_t position;
    struct zt_cbor_item key;
    enum zt_status status;

    if (notation == NOTATION_DIAGNOSTIC)
        return write_value(writer, NOTATION_DIAGNOSTIC, 0);
    position = writer->reader.position;
    status = zt_cbor_next(&writer->reader, &key, writer->error);
    if (status != ZT_OK)
        return status;
    if (key.kind == ZT_CBOR_TEXT) {
        put_string(writer, zt_cbor_content(&key));
        return ZT_OK;
    }
    writer->reader.position = position;
    put(writer, "\"");
    writer->quoting++;
    status = write_value(writer, NOTATION_DIAGNOSTIC, 0);
    assert(writer->quoting > 0);
    writer->quoting--;
    put(writer, "\"");
    return status;
}

static enum zt_status write_pair(struct writer *writer, enum notation notation, uint64_t hint)
{
    enum zt_status status = write_key(writer, notation);

    put(writer, notation == NOTATION_JSON ? ":" : ": ");
    return status == ZT_OK ? write_value(writer, notation, hint) : status;
}

static enum zt_status write_container(struct writer *writer, const struct zt_cbor_item *item,
                                      enum notation notation, uint64_t hint)
{
    bool is_map = item->kind == ZT_CBOR_MAP;
    struct zt_cbor_walk walk = zt_cbor_enter(&writer->reader, item);
    enum zt_status status = ZT_OK;

    assert(is_map || item->kind == ZT_CBOR_ARRAY);
    put(writer, is_map ? "{" : "[");
    for (bool first = true; status == ZT_OK && zt_cbor_more(&writer->reader, &walk);
         first = false) {
        if (!first)
            put(writer, notation == NOTATION_JSON ? "," : ", ");
        status = is_map ? write_pair(writer, notation, hint) : write_value(writer, notation, hint);
    }
    put(writer, is_map ? "}" : "]");
    return status;
}

/* A tag counts as a level, so that nested tags are bounded like nested arrays. */
static enum zt_status write_tagged(struct writer *writer, uint64_t tag, enum notation notation,
                                   uint64_t hint)
{
    bool is_hint = tag == TAG_BIGNUM_POSITIVE || tag == TAG_BIGNUM_NEGATIVE ||
                   (tag >= TAG_BASE64URL && tag <= TAG_BASE16);
    enum zt_status status;

    writer->reader.depth++;
    if (notation == NOTATION_DIAGNOSTIC) {
        put_uint(writer, tag);
        put(writer, "(");
    }
    status = write_value(writer, notation, is_hint ? tag : hint);
    if (notation == NOTATION_DIAGNOSTIC)
        put(writer, ")");
    assert(writer->reader.depth > 0);
    writer->reader.depth--;
    return status;
}

/* hint is the enclosing tag that determines how byte strings are written; 0 if there is none. */
static enum zt_status write_value(struct writer *writer, enum notation notation, uint64_t hint)
{
    struct zt_cbor_item item;
    enum zt_status status = zt_cbor_next(&writer->reader, &item, writer->error);

    if (status != ZT_OK)
        return status;
    switch (item.kind) {
    case ZT_CBOR_UINT:
        put_uint(writer, item.value);
        return ZT_OK;
    case ZT_CBOR_NINT:
        put_nint(writer, item.value);
        return ZT_OK;
    case ZT_CBOR_BYTES:
        put_bytes(writer, &item, notation, hint);
        return ZT_OK;
    case ZT_CBOR_TEXT:
        put_string(writer, zt_cbor_content(&item));
        return ZT_OK;
    case ZT_CBOR_ARRAY:
    case ZT_CBOR_MAP:
        return write_container(writer, &item, notation, hint);
    case ZT_CBOR_TAG:
        return write_tagged(writer, item.value, notation, hint);
    case ZT_CBOR_FALSE:
        put(writer, "false");
        return ZT_OK;
    case ZT_CBOR_TRUE:
        put(writer, "true");
        return ZT_OK;
    case ZT_CBOR_FLOAT:
        put_float(writer, item.number, notation);
        return ZT_OK;
    case ZT_CBOR_UNDEFINED:
        put(writer, notation == NOTATION_JSON ? "null" : "undefined");
        return ZT_OK;
    case ZT_CBOR_SIMPLE:
        put_simple(writer, item.value, notation);
        return ZT_OK;
    case ZT_CBOR_NULL:
    case ZT_CBOR_BREAK:
        break;
    }
    put(writer, "null");
    return ZT_OK;
}

enum zt_status zt_attributes_write_json(struct zt_text value,
                                        void (*emit)(void *context, const char *text,
                                                     size_t length),
                                        void *context, struct zt_error *error)
{
    struct writer writer = {.emit = emit, .context = context, .error = error};
    struct zt_arena arena;
    enum zt_status status;

    if (value.length == 0) {
        put(&writer, "{}");
        return ZT_OK;
    }
    zt_arena_init(&arena, 2 * value.length + ARENA_SLACK_BYTES);
    /* The lenient profile reads the attributes of every format. */
    zt_cbor_reader_init(&writer.reader, value.bytes, value.length, 0, ZT_CBOR_ZT1, &arena);
    status = write_value(&writer, NOTATION_JSON, 0);
    assert(writer.quoting == 0);
    zt_arena_free(&arena);
    return status;
}
