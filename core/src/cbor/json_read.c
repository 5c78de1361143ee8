/* Reading JSON, value by value (RFC 8259). */
#include "cbor/json_read.h"

#include <assert.h>
#include <string.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "zt/utf8.h"

/* "\uXXXX" */
#define UNICODE_ESCAPE_BYTES 6

static enum zt_status fail_syntax(const struct zt_json_reader *reader, size_t position,
                                  const char *message, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, reader->rules->syntax, reader->base_offset + position, "%s",
                   message);
}

/* The next byte; NUL at the end, because no JSON value or separator begins with NUL. */
static char peek(const struct zt_json_reader *reader)
{
    return reader->position < reader->length ? reader->bytes[reader->position] : '\0';
}

bool zt_json_is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static void skip_space(struct zt_json_reader *reader)
{
    while (reader->position < reader->length && zt_json_is_space(reader->bytes[reader->position]))
        reader->position++;
}

/* --- texts --- */

static bool read_hex4(const char *digits, unsigned *out_value)
{
    unsigned value = 0;

    for (unsigned i = 0; i < 4; i++) {
        int digit = zt_hex_value(digits[i]);

        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    *out_value = value;
    return true;
}

/* Reads one \uXXXX, or two that form a surrogate pair. *out_length is the number of bytes read. */
static bool read_unicode(const char *from, const char *end, unsigned *out_character,
                         size_t *out_length)
{
    unsigned high;
    unsigned low;

    if (end - from < UNICODE_ESCAPE_BYTES || !read_hex4(from + 2, &high))
        return false;
    *out_character = high;
    *out_length = UNICODE_ESCAPE_BYTES;
    if (high < 0xD800 || high > 0xDFFF)
        return true;
    from += UNICODE_ESCAPE_BYTES;
    if (high > 0xDBFF || end - from < UNICODE_ESCAPE_BYTES || from[0] != '\\' || from[1] != 'u' ||
        !read_hex4(from + 2, &low) || low < 0xDC00 || low > 0xDFFF)
        return false;
    *out_character = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    *out_length = (size_t)2 * UNICODE_ESCAPE_BYTES;
    return true;
}

static size_t put_utf8(char *to, unsigned character)
{
    assert(character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF));
    if (character < 0x80) {
        to[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        to[0] = (char)(0xC0 | character >> 6);
        to[1] = (char)(0x80 | (character & 0x3F));
        return 2;
    }
    if (character < 0x10000) {
        to[0] = (char)(0xE0 | character >> 12);
        to[1] = (char)(0x80 | (character >> 6 & 0x3F));
        to[2] = (char)(0x80 | (character & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | character >> 18);
    to[1] = (char)(0x80 | (character >> 12 & 0x3F));
    to[2] = (char)(0x80 | (character >> 6 & 0x3F));
    to[3] = (char)(0x80 | (character & 0x3F));
    return 4;
}

/* Writes the character of the escape at `from` and returns the character's length; 0 if there is no
 * valid escape. *out_length is the length of the escape. */
static size_t put_escaped(char *to, const char *from, const char *end, size_t *out_length)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char plain[] = "\"\\/\b\f\n\r\t";
    unsigned character;
    const char *letter;

    assert(from[0] == '\\' && end - from >= 2);
    if (from[1] == 'u')
        return read_unicode(from, end, &character, out_length) ? put_utf8(to, character) : 0;
    letter = from[1] != '\0' ? strchr(letters, from[1]) : NULL;
    if (letter == NULL)
        return 0;
    *to = plain[letter - letters];
    *out_length = 2;
    return 1;
}

/* Replaces escapes by their characters, in place: an escape is never shorter than its character. */
static enum zt_status unescape(const struct zt_json_reader *reader, struct zt_text *text,
                               struct zt_error *error)
{
    char *begin = reader->bytes + (text->bytes - reader->bytes);
    char *to = begin;
    const char *from = begin;
    const char *end = begin + text->length;

    while (from < end) {
        size_t length = 1;
        size_t written;

        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        written = put_escaped(to, from, end, &length);
        if (written == 0) {
            return fail_syntax(reader, (size_t)(from - reader->bytes),
                               "an escape that JSON does not have", error);
        }
        assert(written <= length && length <= (size_t)(end - from));
        to += written;
        from += length;
    }
    assert(from == end && to <= from);
    text->length = (size_t)(to - begin);
    return ZT_OK;
}

/* Moves the position to the closing quote of a text. *out_escaped and *out_high_bits are set if it
 * contains escapes and bytes that are not ASCII. */
static enum zt_status scan_text(struct zt_json_reader *reader, bool *out_escaped,
                                unsigned char *out_high_bits, struct zt_error *error)
{
    size_t at = reader->position;

    *out_escaped = false;
    *out_high_bits = 0;
    for (; at < reader->length && reader->bytes[at] != '"'; at++) {
        unsigned char byte = (unsigned char)reader->bytes[at];

        if (byte < 0x20)
            return fail_syntax(reader, at, "a control character in a text", error);
        *out_high_bits |= byte & 0x80;
        if (byte == '\\') {
            *out_escaped = true;
            at++;
        }
    }
    if (at >= reader->length)
        return fail_syntax(reader, reader->length, "the JSON ends inside a text", error);
    reader->position = at;
    return ZT_OK;
}

/* Reads a text; the position is at the opening quote. */
static enum zt_status read_text(struct zt_json_reader *reader, struct zt_json_item *item,
                                struct zt_error *error)
{
    bool escaped;
    unsigned char high_bits;
    size_t begin = ++reader->position;
    enum zt_status status = scan_text(reader, &escaped, &high_bits, error);

    assert(begin <= reader->length);
    if (status != ZT_OK)
        return status;
    item->kind = ZT_JSON_TEXT;
    item->text = (struct zt_text){reader->bytes + begin, reader->position - begin};
    reader->position++;
    if (high_bits != 0 && !zt_utf8_valid(item->text.bytes, item->text.length))
        return fail_syntax(reader, begin, "a text that is not UTF-8", error);
    return escaped ? unescape(reader, &item->text, error) : ZT_OK;
}

/* --- numbers and words --- */

/* Skips digits; false if there are none. */
static bool skip_digits(struct zt_json_reader *reader)
{
    size_t begin = reader->position;

    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->position++;
    return reader->position > begin;
}

static bool skip_number(struct zt_json_reader *reader)
{
    if (peek(reader) == '-')
        reader->position++;
    if (peek(reader) == '0')
        reader->position++;
    else if (!skip_digits(reader))
        return false;
    if (peek(reader) == '.') {
        reader->position++;
        if (!skip_digits(reader))
            return false;
    }
    if (peek(reader) != 'e' && peek(reader) != 'E')
        return true;
    reader->position++;
    if (peek(reader) == '+' || peek(reader) == '-')
        reader->position++;
    return skip_digits(reader);
}

/* Skips NaN or an infinity; false if there is none. */
static bool skip_non_finite(struct zt_json_reader *reader)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t length = strlen(words[i]);

        if (reader->length - reader->position >= length &&
            memcmp(reader->bytes + reader->position, words[i], length) == 0) {
            reader->position += length;
            return true;
        }
    }
    return false;
}

static enum zt_status read_number(struct zt_json_reader *reader, struct zt_json_item *item,
                                  struct zt_error *error)
{
    size_t begin = reader->position;

    if (!(reader->takes_non_finite && skip_non_finite(reader)) && !skip_number(reader))
        return fail_syntax(reader, reader->position, "no value, or a number that is not JSON",
                           error);
    item->kind = ZT_JSON_NUMBER;
    item->text = (struct zt_text){reader->bytes + begin, reader->position - begin};
    assert(item->text.length > 0);
    return ZT_OK;
}

static enum zt_status read_word(struct zt_json_reader *reader, struct zt_json_item *item,
                                const char *word, struct zt_error *error)
{
    size_t length = strlen(word);

    assert(peek(reader) == *word);
    if (reader->length - reader->position < length ||
        memcmp(reader->bytes + reader->position, word, length) != 0)
        return fail_syntax(reader, reader->position, "a word that JSON does not have", error);
    item->kind = *word == 't' ? ZT_JSON_TRUE : *word == 'f' ? ZT_JSON_FALSE : ZT_JSON_NULL;
    reader->position += length;
    return ZT_OK;
}

bool zt_json_uint(const struct zt_json_item *item, uint64_t *out_value)
{
    return item->kind == ZT_JSON_NUMBER && zt_decimal_read(item->text, UINT64_MAX, out_value);
}

/* --- values --- */

static enum zt_status enter(struct zt_json_reader *reader, struct zt_json_item *item,
                            enum zt_json_kind kind, struct zt_error *error)
{
    const unsigned most = reader->depth_max > 0 ? reader->depth_max : ZT_JSON_DEPTH_MAX;

    if (reader->depth == most)
        return zt_fail(error, ZT_INVALID, reader->rules->depth, item->offset,
                       "more than %u levels of arrays and objects", most);
    assert(reader->depth < most);
    item->kind = kind;
    reader->depth++;
    reader->position++;
    return ZT_OK;
}

enum zt_status zt_json_next(struct zt_json_reader *reader, struct zt_json_item *out_item,
                            struct zt_error *error)
{
    struct zt_json_item item;
    enum zt_status status;

    skip_space(reader);
    item = (struct zt_json_item){.offset = reader->base_offset + reader->position};
    switch (peek(reader)) {
    case '{':
        status = enter(reader, &item, ZT_JSON_OBJECT, error);
        break;
    case '[':
        status = enter(reader, &item, ZT_JSON_ARRAY, error);
        break;
    case '"':
        status = read_text(reader, &item, error);
        break;
    case 't':
        status = read_word(reader, &item, "true", error);
        break;
    case 'f':
        status = read_word(reader, &item, "false", error);
        break;
    case 'n':
        status = read_word(reader, &item, "null", error);
        break;
    default:
        status = read_number(reader, &item, error);
        break;
    }
    if (status == ZT_OK)
        *out_item = item;
    return status;
}

/* Reads the token before an element or member: the end of the array or object, or the comma after
 * the previous one. */
static enum zt_status step(struct zt_json_reader *reader, struct zt_json_walk *walk, char closing,
                           bool *out_more, struct zt_error *error)
{
    assert(reader->depth > 0);
    skip_space(reader);
    if (peek(reader) == closing) {
        reader->position++;
        reader->depth--;
        *out_more = false;
        return ZT_OK;
    }
    if (walk->begun) {
        if (peek(reader) != ',') {
            return fail_syntax(reader, reader->position,
                               "neither a comma nor the end of the array or object", error);
        }
        reader->position++;
    }
    walk->begun = true;
    *out_more = true;
    return ZT_OK;
}

enum zt_status zt_json_element(struct zt_json_reader *reader, struct zt_json_walk *walk,
                               bool *out_more, struct zt_error *error)
{
    return step(reader, walk, ']', out_more, error);
}

enum zt_status zt_json_member(struct zt_json_reader *reader, struct zt_json_walk *walk,
                              bool *out_more, struct zt_json_item *out_key, struct zt_error *error)
{
    enum zt_status status = step(reader, walk, '}', out_more, error);

    if (status != ZT_OK || !*out_more)
        return status;
    skip_space(reader);
    if (peek(reader) != '"')
        return fail_syntax(reader, reader->position, "a member's name is a text", error);
    status = zt_json_next(reader, out_key, error);
    if (status != ZT_OK)
        return status;
    skip_space(reader);
    if (peek(reader) != ':')
        return fail_syntax(reader, reader->position, "no colon after a member's name", error);
    reader->position++;
    return ZT_OK;
}

/* Recurses at most as deep as the reader's bound. */
enum zt_status zt_json_skip(struct zt_json_reader *reader, struct zt_error *error)
{
    struct zt_json_walk walk = {0};
    struct zt_json_item item, key;
    enum zt_status status = zt_json_next(reader, &item, error);
    bool more;

    if (status != ZT_OK)
        return status;
    more = item.kind == ZT_JSON_OBJECT || item.kind == ZT_JSON_ARRAY;

    while (status == ZT_OK && more) {
        status = item.kind == ZT_JSON_OBJECT ? zt_json_member(reader, &walk, &more, &key, error)
                                             : zt_json_element(reader, &walk, &more, error);
        if (status == ZT_OK && more)
            status = zt_json_skip(reader, error);
    }
    return status;
}

enum zt_status zt_json_end(struct zt_json_reader *reader, struct zt_error *error)
{
    skip_space(reader);
    if (reader->position < reader->length)
        return fail_syntax(reader, reader->position,
                           "something other than white space after the last value", error);
    return ZT_OK;
}
