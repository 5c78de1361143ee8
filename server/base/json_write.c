/* Writes JSON (RFC 8259) directly into a growing text, without a tree and without doubles. */
#include "base/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "zt/utf8.h"

/* Enough for short answers without a second allocation. */
#define FIRST_CAPACITY 512
#define INDENT         2

void json_init(struct json *json, bool pretty)
{
    *json = (struct json){.pretty = pretty};
}

void json_free(struct json *json)
{
    free(json->text);
    json_init(json, json->pretty);
}

/* Makes room for length more bytes. */
static bool reserve(struct json *json, size_t length)
{
    size_t capacity;
    char *text;

    if (json->failed)
        return false;
    if (length <= json->capacity - json->length)
        return true;
    capacity = json->capacity > 0 ? json->capacity : FIRST_CAPACITY;
    while (capacity - json->length < length && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    text = capacity - json->length < length ? NULL : realloc(json->text, capacity);
    if (text == NULL) {
        json->failed = true;
        return false;
    }
    json->text = text;
    json->capacity = capacity;
    return true;
}

static void append(struct json *json, const char *bytes, size_t length)
{
    if (length > 0 && reserve(json, length)) {
        memcpy(json->text + json->length, bytes, length);
        json->length += length;
    }
}

static void append_char(struct json *json, char byte)
{
    append(json, &byte, 1);
}

static void new_line(struct json *json)
{
    size_t spaces = (size_t)json->depth * INDENT;

    append_char(json, '\n');
    if (reserve(json, spaces)) {
        memset(json->text + json->length, ' ', spaces);
        json->length += spaces;
    }
}

/* Writes the separator between the previous item and the value or key that begins here. */
static void separate(struct json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->after_value)
        append_char(json, ',');
    if (json->pretty && json->depth > 0)
        new_line(json);
}

static void value(struct json *json, const char *bytes, size_t length)
{
    separate(json);
    append(json, bytes, length);
    json->after_value = true;
}

static void begin(struct json *json, char bracket)
{
    separate(json);
    append_char(json, bracket);
    json->depth++;
    json->after_value = false;
}

static void end(struct json *json, char bracket)
{
    assert(json->depth > 0 && !json->after_key);
    json->depth--;
    if (json->pretty && json->after_value)
        new_line(json);
    append_char(json, bracket);
    json->after_value = true;
    /* On a terminal, the prompt must not follow the bracket. */
    if (json->depth == 0)
        append_char(json, '\n');
}

void json_object_begin(struct json *json)
{
    begin(json, '{');
}

void json_object_end(struct json *json)
{
    end(json, '}');
}

void json_array_begin(struct json *json)
{
    begin(json, '[');
}

void json_array_end(struct json *json)
{
    end(json, ']');
}

static void append_escape(struct json *json, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[][2] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                      {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};

    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (byte == (unsigned char)letters[i][0]) {
            append(json, (const char[]){'\\', letters[i][1]}, 2);
            return;
        }
    }
    append(json, (const char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
}

/* Returns the length of the prefix that needs no escape in a string. */
static size_t plain_run(const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length) {
        unsigned char byte = (unsigned char)bytes[at];
        size_t size;

        if (byte < 0x20 || byte == '"' || byte == '\\')
            break;
        size = byte < 0x80 ? 1 : zt_utf8_character(bytes + at, length - at);
        if (size == 0)
            break;
        at += size;
    }
    return at;
}

static void append_string(struct json *json, const char *bytes, size_t length)
{
    append_char(json, '"');
    for (size_t at = 0; at < length;) {
        size_t run = plain_run(bytes + at, length - at);

        append(json, bytes + at, run);
        at += run;
        if (at == length)
            break;
        if ((unsigned char)bytes[at] < 0x80)
            append_escape(json, (unsigned char)bytes[at]);
        else
            append(json, "\xEF\xBF\xBD", 3);
        at++;
    }
    append_char(json, '"');
}

void json_key(struct json *json, struct zt_text key)
{
    assert(json->depth > 0 && !json->after_key);
    separate(json);
    append_string(json, key.bytes, key.length);
    append(json, ": ", json->pretty ? 2 : 1);
    json->after_value = false;
    json->after_key = true;
}

void json_key_string(struct json *json, const char *key)
{
    json_key(json, zt_text_from(key));
}

void json_text(struct json *json, struct zt_text text)
{
    separate(json);
    append_string(json, text.bytes, text.length);
    json->after_value = true;
}

void json_put_string(struct json *json, const char *text)
{
    json_text(json, zt_text_from(text));
}

void json_uint(struct json *json, uint64_t number)
{
    char digits[ZT_DECIMAL_SIZE];

    value(json, digits, (size_t)(zt_decimal_write(digits, number) - digits));
}

void json_put_null(struct json *json)
{
    value(json, "null", 4);
}

void json_string_member(struct json *json, const char *key, const char *text)
{
    json_key_string(json, key);
    json_put_string(json, text);
}

void json_uint_member(struct json *json, const char *key, uint64_t value)
{
    json_key_string(json, key);
    json_uint(json, value);
}

void json_raw_begin(struct json *json)
{
    separate(json);
    json->after_value = true;
}

void json_raw_piece(struct json *json, const char *text, size_t length)
{
    append(json, text, length);
}

void json_raw(struct json *json, const char *text, size_t length)
{
    value(json, text, length);
}
