/* Lines are collected in the decoder; data stays in the piece. */
#include "http/fields/aws_chunked.h"

#include <assert.h>
#include <string.h>

#include "base/hex.h"
#include "http/fields/grammar.h"
#include "input/blanks.h"

/* A size that no 64 bits can overflow with. */
#define SIZE_DIGITS_MAX 15
#define SIGNATURE       "chunk-signature="
#define TRAILER_SIGNED  "x-amz-trailer-signature"

void aws_chunked_begin(struct aws_chunked *decoder, bool has_signed_trailer)
{
    memset(decoder, 0, sizeof(*decoder));
    decoder->wants_signature = has_signed_trailer;
}

bool aws_chunked_is_over(const struct aws_chunked *decoder)
{
    return decoder->state == AWS_CHUNKED_OVER && decoder->line_length == 0;
}

static enum aws_chunked_event break_off(struct aws_chunked *decoder, const char *why)
{
    assert(decoder->state != AWS_CHUNKED_BROKEN);
    decoder->state = AWS_CHUNKED_BROKEN;
    decoder->why = why;
    return AWS_CHUNKED_MALFORMED;
}

/* --- lines --- */

enum line { LINE_MORE, LINE_WHOLE, LINE_LONG };

/* Collects a line, without its end: LF, and CR if that is before it. */
static enum line take_line(struct aws_chunked *decoder, struct zt_text *io_piece)
{
    const char *end = memchr(io_piece->bytes, '\n', io_piece->length);
    const size_t length = end != NULL ? (size_t)(end - io_piece->bytes) : io_piece->length;
    const size_t used = length + (end != NULL);

    assert(decoder->line_length <= sizeof(decoder->line));
    if (length > sizeof(decoder->line) - decoder->line_length)
        return LINE_LONG;
    memcpy(decoder->line + decoder->line_length, io_piece->bytes, length);
    decoder->line_length += length;
    *io_piece = (struct zt_text){io_piece->bytes + used, io_piece->length - used};
    return end != NULL ? LINE_WHOLE : LINE_MORE;
}

/* The text lasts until the next line. */
static struct zt_text end_line(struct aws_chunked *decoder)
{
    struct zt_text line = {decoder->line, decoder->line_length};

    decoder->line_length = 0;
    if (line.length > 0 && line.bytes[line.length - 1] == '\r')
        line.length--;
    return line;
}

/* --- chunks --- */

static bool read_size(struct zt_text digits, uint64_t *out_size)
{
    uint64_t size = 0;

    if (digits.length == 0 || digits.length > SIZE_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < digits.length; i++) {
        const int value = zt_hex_value(digits.bytes[i]);

        if (value < 0)
            return false;
        size = size << 4 | (unsigned)value;
    }
    *out_size = size;
    return true;
}

/* Extensions other than the signature are skipped. */
static struct zt_text find_signature(struct zt_text line, size_t at)
{
    const struct zt_text prefix = zt_text_from(SIGNATURE);

    while (at < line.length) {
        const char *from = line.bytes + at + 1;
        const size_t left = line.length - at - 1;
        const char *next = memchr(from, ';', left);
        const struct zt_text extension =
            text_trimmed((struct zt_text){from, next != NULL ? (size_t)(next - from) : left});

        if (zt_text_starts_with(extension, prefix))
            return (struct zt_text){extension.bytes + prefix.length,
                                    extension.length - prefix.length};
        at += 1 + (next != NULL ? (size_t)(next - from) : left);
    }
    return (struct zt_text){NULL, 0};
}

static enum aws_chunked_event begin_chunk(struct aws_chunked *decoder,
                                          struct aws_chunked_part *out_part)
{
    const struct zt_text line = end_line(decoder);
    const char *end = memchr(line.bytes, ';', line.length);
    const size_t digits = end != NULL ? (size_t)(end - line.bytes) : line.length;

    if (!read_size(text_trimmed((struct zt_text){line.bytes, digits}), &out_part->size))
        return break_off(decoder, "the size of a chunk is not a hexadecimal number");
    out_part->signature = find_signature(line, digits);
    decoder->left = out_part->size;
    decoder->state = out_part->size > 0 ? AWS_CHUNKED_IN_DATA : AWS_CHUNKED_AT_END;
    return AWS_CHUNKED_CHUNK;
}

static enum aws_chunked_event take_data(struct aws_chunked *decoder, struct zt_text *io_piece,
                                        struct aws_chunked_part *out_part)
{
    const size_t length =
        decoder->left < io_piece->length ? (size_t)decoder->left : io_piece->length;

    assert(length > 0);
    out_part->text = (struct zt_text){io_piece->bytes, length};
    *io_piece = (struct zt_text){io_piece->bytes + length, io_piece->length - length};
    decoder->left -= length;
    if (decoder->left == 0)
        decoder->state = AWS_CHUNKED_AFTER_DATA;
    return AWS_CHUNKED_DATA;
}

static enum aws_chunked_event end_chunk(struct aws_chunked *decoder)
{
    assert(decoder->left == 0);
    if (end_line(decoder).length > 0)
        return break_off(decoder, "the data of a chunk is longer than its size");
    decoder->state = AWS_CHUNKED_AT_SIZE;
    return AWS_CHUNKED_COMPLETE;
}

/* --- the trailer --- */

static void lower(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] | 0x20);
}

static bool is_field(struct zt_text name, struct zt_text value)
{
    bool is_sound = name.length > 0;

    for (size_t i = 0; i < name.length && is_sound; i++)
        is_sound = is_token_char(name.bytes[i]);
    for (size_t i = 0; i < value.length && is_sound; i++)
        is_sound = is_text_char(value.bytes[i]);
    return is_sound;
}

static enum aws_chunked_event take_field(struct aws_chunked *decoder,
                                         struct aws_chunked_part *out_part)
{
    const struct zt_text line = end_line(decoder);
    const char *colon = memchr(line.bytes, ':', line.length);
    const size_t length = colon != NULL ? (size_t)(colon - line.bytes) : 0;

    out_part->name = (struct zt_text){line.bytes, length};
    if (colon == NULL)
        return break_off(decoder, "a line of the trailer is not \"name:value\"");
    out_part->text = text_trimmed((struct zt_text){colon + 1, line.length - length - 1});
    if (!is_field(out_part->name, out_part->text))
        return break_off(decoder, "a line of the trailer is not \"name:value\"");
    if (++decoder->fields > AWS_CHUNKED_FIELDS_MAX)
        return break_off(decoder, "the trailer has too many fields");
    lower(decoder->line, length);
    if (zt_text_is(out_part->name, TRAILER_SIGNED))
        decoder->has_signature = true;
    return AWS_CHUNKED_FIELD;
}

/* --- */

/* Works on a whole line. Returns AWS_CHUNKED_MORE if it is not an event. */
static enum aws_chunked_event take_whole_line(struct aws_chunked *decoder,
                                              struct aws_chunked_part *out_part)
{
    const bool is_empty =
        decoder->line_length == 0 || (decoder->line_length == 1 && decoder->line[0] == '\r');

    if (decoder->state == AWS_CHUNKED_AT_SIZE)
        return begin_chunk(decoder, out_part);
    if (decoder->state == AWS_CHUNKED_AFTER_DATA)
        return end_chunk(decoder);
    if (!is_empty && decoder->state == AWS_CHUNKED_AT_FIELD)
        return take_field(decoder, out_part);
    (void)end_line(decoder);
    if (!is_empty)
        return break_off(decoder, "the body continues after its end");
    if (!decoder->wants_signature || decoder->has_signature)
        decoder->state = AWS_CHUNKED_OVER;
    return AWS_CHUNKED_MORE;
}

static enum aws_chunked_event take_line_of(struct aws_chunked *decoder, struct zt_text *io_piece,
                                           struct aws_chunked_part *out_part)
{
    switch (take_line(decoder, io_piece)) {
    case LINE_MORE:
        return AWS_CHUNKED_MORE;
    case LINE_WHOLE:
        break;
    case LINE_LONG:
        return break_off(decoder, "a line is too long");
    }
    return take_whole_line(decoder, out_part);
}

enum aws_chunked_event aws_chunked_next(struct aws_chunked *decoder, struct zt_text *io_piece,
                                        struct aws_chunked_part *out_part)
{
    enum aws_chunked_event event = AWS_CHUNKED_MORE;

    if (decoder->state == AWS_CHUNKED_BROKEN)
        return AWS_CHUNKED_MALFORMED;
    /* The last chunk is complete without another byte. */
    if (decoder->state == AWS_CHUNKED_AT_END) {
        decoder->state = AWS_CHUNKED_AT_FIELD;
        return AWS_CHUNKED_COMPLETE;
    }
    while (io_piece->length > 0 && event == AWS_CHUNKED_MORE)
        event = decoder->state == AWS_CHUNKED_IN_DATA ? take_data(decoder, io_piece, out_part)
                                                      : take_line_of(decoder, io_piece, out_part);
    return event;
}
