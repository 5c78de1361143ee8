/* CBOR from a text that looks like JSON: a small recursive reader. */
#include "cbor_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

struct text_reader {
    const char *at;
    struct zt_buffer *buffer;
    size_t mark; /* position + 1; 0: nothing is marked */
};

static void append_value(struct text_reader *reader);

static void skip_blanks(struct text_reader *reader)
{
    while (isspace((unsigned char)*reader->at))
        reader->at++;
}

static unsigned hex_digit(char c)
{
    assert_true(isxdigit((unsigned char)c));
    return (unsigned)(isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10);
}

static void append_hex(struct text_reader *reader, struct zt_buffer *buffer)
{
    while (isxdigit((unsigned char)*reader->at)) {
        uint8_t byte = (uint8_t)(hex_digit(reader->at[0]) << 4 | hex_digit(reader->at[1]));

        zt_buffer_append(buffer, &byte, 1);
        reader->at += 2;
    }
}

static void append_byte_string(struct text_reader *reader)
{
    struct zt_buffer bytes = {0};

    reader->at += 2;
    append_hex(reader, &bytes);
    assert_int_equal(*reader->at++, '\'');
    zt_cbor_put_bytes(reader->buffer, bytes.bytes, bytes.length);
    zt_buffer_free(&bytes);
}

/* \0 is the only escape there is. */
static void append_text(struct text_reader *reader, bool marked)
{
    struct zt_buffer text = {0};
    const char quote = *reader->at;

    for (reader->at++; *reader->at != quote; reader->at++) {
        char c = *reader->at;

        assert_int_not_equal(c, '\0');
        if (c == '\\') {
            assert_int_equal(*++reader->at, '0');
            c = '\0';
        }
        zt_buffer_append(&text, &c, 1);
    }
    reader->at++;
    zt_cbor_put_text(reader->buffer, (struct zt_text){(const char *)text.bytes, text.length});
    if (marked)
        reader->mark = reader->buffer->length - text.length + 1;
    zt_buffer_free(&text);
}

static void append_number(struct text_reader *reader)
{
    char *end;
    size_t length = strspn(reader->at, "-+.0123456789e");

    assert_true(length > 0);
    if (memchr(reader->at, '.', length) != NULL)
        zt_cbor_put_float(reader->buffer, strtod(reader->at, &end));
    else if (*reader->at == '-')
        zt_cbor_put_int(reader->buffer, strtoll(reader->at, &end, 10));
    else
        zt_cbor_put_uint(reader->buffer, strtoull(reader->at, &end, 10));
    assert_ptr_equal(end, reader->at + length);
    reader->at = end;
}

/* Items until close; in a map key and value count as one. */
static void append_items(struct text_reader *reader, char close)
{
    struct zt_buffer inner = {0};
    struct zt_buffer *outer = reader->buffer;
    size_t outer_mark = reader->mark;
    uint64_t count = 0;

    reader->at++;
    reader->buffer = &inner;
    reader->mark = 0;
    for (skip_blanks(reader); *reader->at != close; skip_blanks(reader)) {
        append_value(reader);
        skip_blanks(reader);
        if (close == '}') {
            assert_int_equal(*reader->at++, ':');
            append_value(reader);
            skip_blanks(reader);
        }
        count++;
        reader->at += *reader->at == ',';
    }
    reader->at++;
    (close == '}' ? zt_cbor_put_map : zt_cbor_put_array)(outer, count);
    reader->mark = reader->mark > 0 ? outer->length + reader->mark : outer_mark;
    zt_buffer_append(outer, inner.bytes, inner.length);
    zt_buffer_free(&inner);
    reader->buffer = outer;
}

static void append_word(struct text_reader *reader)
{
    static const struct {
        const char *word;
        uint8_t byte;
    } words[] = {{"false", 0xf4}, {"true", 0xf5}, {"null", 0xf6}};

    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(words[i].word);

        if (strncmp(reader->at, words[i].word, length) == 0) {
            zt_buffer_append(reader->buffer, &words[i].byte, 1);
            reader->at += length;
            return;
        }
    }
    append_number(reader);
}

static void append_value(struct text_reader *reader)
{
    bool marked_text = false;

    skip_blanks(reader);
    if (*reader->at == '^') {
        reader->at++;
        reader->mark = reader->buffer->length + 1;
    }
    if (*reader->at == '@') {
        reader->at++;
        marked_text = true;
    }
    switch (*reader->at) {
    case '{':
        append_items(reader, '}');
        break;
    case '[':
        append_items(reader, ']');
        break;
    case '"':
    case '\'':
        append_text(reader, marked_text);
        break;
    case 'h':
        append_byte_string(reader);
        break;
    case '!':
        reader->at++;
        append_hex(reader, reader->buffer);
        break;
    default:
        append_word(reader);
    }
}

size_t cbor_text_append(struct zt_buffer *buffer, const char *text)
{
    struct text_reader reader = {.at = text, .buffer = buffer};

    while (skip_blanks(&reader), *reader.at != '\0')
        append_value(&reader);
    assert_false(buffer->failed);
    return reader.mark > 0 ? reader.mark - 1 : 0;
}
