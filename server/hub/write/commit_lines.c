/* A scanner that only recognises where JSON strings and objects begin and end. The JSON library
 * reads the rest of the line afterwards. */
#include "hub/write/commit_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/memory.h"

#define CONTENT "content"
/* The depth of the members of "value". */
#define VALUE_DEPTH 2

bool commit_lines_begin(struct commit_lines *lines)
{
    lines->number = 1;
    lines->piece = malloc(COMMIT_PIECE_BYTES);
    return lines->piece != NULL;
}

static void free_text(struct commit_lines *lines)
{
    free(lines->text);
    lines->text = NULL;
    lines->capacity = 0;
}

void commit_lines_free(struct commit_lines *lines)
{
    free_text(lines);
    free(lines->piece);
    lines->piece = NULL;
}

static bool keep(struct commit_lines *lines, char byte)
{
    if (lines->length == COMMIT_LINE_MAX) {
        lines->is_too_long = true;
        return false;
    }
    if (lines->length == lines->capacity &&
        zt_array_reserve(&lines->text, &lines->capacity, lines->length + 1, 1, COMMIT_LINE_MAX) !=
            ZT_OK) {
        lines->is_out_of_memory = true;
        return false;
    }
    lines->text[lines->length++] = byte;
    return true;
}

/* --- base64 --- */

static bool pass_on(struct commit_lines *lines)
{
    const size_t length = lines->piece_length;

    lines->piece_length = 0;
    return length == 0 || lines->content(lines->context, lines->piece, length);
}

/* Writes the bytes of a group of four digits; the last digits may be padding. */
static bool put_group(struct commit_lines *lines)
{
    const unsigned count = 3 - lines->padding;

    /* Each sequence of bytes has only one encoding: the bits under the padding must be 0. */
    if ((lines->padding == 1 && (lines->bits & 0xff) != 0) ||
        (lines->padding == 2 && (lines->bits & 0xffff) != 0)) {
        lines->state = COMMIT_NOT_BASE64;
        return true;
    }
    if (COMMIT_PIECE_BYTES - lines->piece_length < 3 && !pass_on(lines))
        return false;
    for (unsigned i = 0; i < count; i++)
        lines->piece[lines->piece_length++] = (uint8_t)(lines->bits >> (16 - 8 * i));
    lines->bits = 0;
    lines->digits = 0;
    return true;
}

/* Takes a character of the content. After a mistake the rest is skipped. */
static bool put_digit(struct commit_lines *lines, unsigned char byte)
{
    int digit = zt_base64_value((char)byte, ZT_BASE64);

    if (lines->state == COMMIT_NOT_BASE64)
        return true;
    if (byte == '=' && lines->digits >= 2) {
        lines->padding++;
        digit = 0;
    } else if (digit < 0 || lines->padding > 0) {
        lines->state = COMMIT_NOT_BASE64;
        return true;
    }
    lines->bits = lines->bits << 6 | (uint32_t)digit;
    return ++lines->digits < 4 || put_group(lines);
}

static void begin_content(struct commit_lines *lines)
{
    lines->in_content = true;
    lines->state = COMMIT_CONTENT;
    lines->bits = 0;
    lines->digits = 0;
    lines->padding = 0;
}

static bool end_content(struct commit_lines *lines)
{
    lines->in_content = false;
    if (lines->digits != 0)
        lines->state = COMMIT_NOT_BASE64;
    return pass_on(lines);
}

/* --- escapes in the content: a slash may be one, and any character as \uXXXX --- */

static bool take_escaped(struct commit_lines *lines, char byte)
{
    int digit;

    if (lines->escape == 5) {
        lines->escape = byte == 'u' ? 4 : 0;
        lines->escaped = 0;
        return byte == 'u' || put_digit(lines, byte == '/' ? '/' : 0);
    }
    digit = zt_hex_value(byte);
    if (digit < 0)
        lines->state = COMMIT_NOT_BASE64;
    lines->escaped = lines->escaped << 4 | ((unsigned)digit & 15);
    if (--lines->escape > 0)
        return true;
    return put_digit(lines, lines->escaped < 128 ? (unsigned char)lines->escaped : 0);
}

static bool take_content(struct commit_lines *lines, char byte)
{
    if (lines->escape > 0)
        return take_escaped(lines, byte);
    if (byte == '\\') {
        lines->escape = 5;
        return true;
    }
    if (byte != '"')
        return put_digit(lines, (unsigned char)byte);
    lines->in_string = false;
    return end_content(lines) && keep(lines, '"');
}

/* --- the rest of a line --- */

static bool take_string(struct commit_lines *lines, char byte)
{
    if (lines->escape > 0) {
        lines->escape = 0;
    } else if (byte == '\\') {
        lines->escape = 1;
    } else if (byte == '"') {
        const struct zt_text string = {lines->text + lines->string_begin,
                                       lines->length - lines->string_begin};

        lines->in_string = false;
        lines->is_name = lines->depth == VALUE_DEPTH && zt_text_is(string, CONTENT);
    }
    return keep(lines, byte);
}

static bool begin_string(struct commit_lines *lines)
{
    lines->in_string = true;
    if (lines->is_awaited)
        begin_content(lines);
    lines->is_awaited = false;
    if (!keep(lines, '"'))
        return false;
    lines->string_begin = lines->length;
    return true;
}

static bool take_plain(struct commit_lines *lines, char byte)
{
    switch (byte) {
    case '"':
        return begin_string(lines);
    case '{':
    case '[':
        lines->depth++;
        break;
    case '}':
    case ']':
        lines->depth -= lines->depth > 0;
        break;
    case ':':
        lines->is_awaited = lines->is_name;
        lines->is_name = false;
        return keep(lines, byte);
    case ' ':
    case '\t':
    case '\r':
        return keep(lines, byte);
    default:
        break;
    }
    lines->is_name = false;
    lines->is_awaited = false;
    return keep(lines, byte);
}

static bool is_blank(const struct commit_lines *lines)
{
    for (size_t i = 0; i < lines->length; i++)
        if (memchr(" \t\r", lines->text[i], 3) == NULL)
            return false;
    return true;
}

static bool end_line(struct commit_lines *lines)
{
    /* If the line ends inside a string it is not JSON; the reader of the line will report that. */
    if (lines->in_content && !end_content(lines))
        return false;
    if (!is_blank(lines) &&
        !lines->line(lines->context, (struct zt_text){lines->text, lines->length}, lines->state))
        return false;
    lines->number++;
    if (lines->capacity > COMMIT_LINE_KEPT)
        free_text(lines);
    lines->length = 0;
    lines->depth = 0;
    lines->escape = 0;
    lines->in_string = false;
    lines->is_name = false;
    lines->is_awaited = false;
    lines->state = COMMIT_NO_CONTENT;
    return true;
}

static bool take_byte(struct commit_lines *lines, char byte)
{
    if (byte == '\n')
        return end_line(lines);
    if (lines->in_content)
        return take_content(lines, byte);
    return lines->in_string ? take_string(lines, byte) : take_plain(lines, byte);
}

bool commit_lines_take(struct commit_lines *lines, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!take_byte(lines, bytes[i]))
            return false;
    return true;
}

bool commit_lines_finish(struct commit_lines *lines)
{
    return end_line(lines);
}
