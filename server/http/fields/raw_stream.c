/* A state machine with one function per part of a request. */
#include "http/fields/raw_stream.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "http/fields/framing.h"
#include "http/fields/grammar.h"

/* Blanks in "method target version". */
#define BLANKS_OF_A_LINE 2u

/* --- the request line --- */

static enum raw_state after_start(struct raw_stream *stream, char byte)
{
    if (byte == '\r')
        return RAW_START_LF;
    stream->blanks = 0;
    return is_token_char(byte) ? RAW_LINE : RAW_BROKEN;
}

static enum raw_state after_line(struct raw_stream *stream, char byte)
{
    if (byte == '\r')
        return stream->blanks == BLANKS_OF_A_LINE ? RAW_LINE_LF : RAW_BROKEN;
    if (byte == ' ')
        return ++stream->blanks <= BLANKS_OF_A_LINE ? RAW_LINE : RAW_BROKEN;
    return is_control_char(byte) ? RAW_BROKEN : RAW_LINE;
}

/* --- fields --- */

static enum raw_state after_field_begin(char byte)
{
    if (byte == '\r')
        return RAW_END_LF;
    return is_token_char(byte) ? RAW_FIELD_NAME : RAW_BROKEN;
}

static enum raw_state after_field_name(char byte)
{
    if (byte == ':')
        return RAW_FIELD_VALUE;
    return is_token_char(byte) ? RAW_FIELD_NAME : RAW_BROKEN;
}

static enum raw_state after_field_value(char byte)
{
    if (byte == '\r')
        return RAW_FIELD_LF;
    return is_text_char(byte) ? RAW_FIELD_VALUE : RAW_BROKEN;
}

static enum raw_state after_carriage_return(char byte, enum raw_state next)
{
    return byte == '\n' ? next : RAW_BROKEN;
}

static enum raw_state after_byte(struct raw_stream *stream, char byte)
{
    switch (stream->state) {
    case RAW_START:
        return after_start(stream, byte);
    case RAW_START_LF:
        return after_carriage_return(byte, RAW_START);
    case RAW_LINE:
        return after_line(stream, byte);
    case RAW_LINE_LF:
    case RAW_FIELD_LF:
        return after_carriage_return(byte, RAW_FIELD);
    case RAW_FIELD:
        return after_field_begin(byte);
    case RAW_FIELD_NAME:
        return after_field_name(byte);
    case RAW_FIELD_VALUE:
        return after_field_value(byte);
    default:
        assert(stream->state == RAW_END_LF);
        return after_carriage_return(byte, RAW_UNDECIDED);
    }
}

/* --- runs --- */

static size_t token_run(const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length && is_token_char(bytes[at]))
        at++;
    return at;
}

/* Returns the length of the prefix without DEL whose bytes are all at least `least`, which is a
 * blank or more. */
static size_t text_run(const char *bytes, size_t length, uint8_t least)
{
    const uint64_t ones = 0x0101010101010101;
    size_t at = 0;

    for (; length - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
        uint64_t eight;
        uint64_t deletes;
        uint64_t found;

        memcpy(&eight, bytes + at, sizeof(eight));
        eight = le64toh(eight);
        deletes = eight ^ ones * 0x7F;
        /* The lowest set bit is the top bit of the first byte that is below least, or is DEL. */
        found = (((eight - ones * least) & ~eight) | ((deletes - ones) & ~deletes)) & ones << 7;
        if (found != 0)
            return at + (size_t)__builtin_ctzll(found) / 8;
    }
    while (at < length && (uint8_t)bytes[at] >= least && bytes[at] != 0x7F)
        at++;
    return at;
}

/* Returns how many of the next bytes do not change the state. Nearly all bytes of a header are in
 * such runs, so they are not processed one by one. A tab, which is rare, may end the run of a
 * value. */
static size_t run_of(enum raw_state state, const char *bytes, size_t length)
{
    switch (state) {
    case RAW_LINE:
        return text_run(bytes, length, ' ' + 1);
    case RAW_FIELD_NAME:
        return token_run(bytes, length);
    case RAW_FIELD_VALUE:
        return text_run(bytes, length, ' ');
    default:
        return 0;
    }
}

/* --- parts of a request; each returns how many bytes it has taken --- */

static size_t take_header(struct raw_stream *stream, const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length && stream->state < RAW_UNDECIDED) {
        stream->state = after_byte(stream, bytes[at++]);
        at += run_of(stream->state, bytes + at, length - at);
    }
    return at;
}

static size_t take_content(struct raw_stream *stream, size_t length)
{
    const size_t taken = stream->left < length ? (size_t)stream->left : length;

    stream->left -= taken;
    stream->content += taken;
    if (stream->left == 0)
        stream->state = RAW_START;
    return taken;
}

static size_t take_chunks(struct raw_stream *stream, const char *bytes, size_t length)
{
    struct chunks *chunks = &stream->chunks;
    size_t taken;

    if (chunks->state == CHUNKS_DATA) {
        taken = chunks->left < length ? (size_t)chunks->left : length;
        chunks_take_data(chunks, taken);
        stream->content += taken;
        return taken;
    }
    taken = chunks_take(chunks, bytes, length);
    if (chunks->why != NULL)
        stream->state = RAW_BROKEN;
    else if (chunks->state == CHUNKS_OVER)
        stream->state = RAW_START;
    return taken;
}

/* --- what callers use --- */

void raw_stream_take(struct raw_stream *stream, const void *bytes, size_t length)
{
    const char *at = bytes;
    const char *end = at + length;

    while (at < end && stream->state < RAW_BROKEN) {
        const size_t more = (size_t)(end - at);

        if (stream->state < RAW_UNDECIDED) {
            at += take_header(stream, at, more);
        } else if (stream->state == RAW_LENGTH) {
            at += take_content(stream, more);
        } else if (stream->state == RAW_CHUNKS) {
            at += take_chunks(stream, at, more);
        } else {
            stream->undecided += more;
            at = end;
        }
    }
}

void raw_stream_decide(struct raw_stream *stream, uint64_t body_length, const void *behind)
{
    const size_t undecided = stream->undecided;

    assert(stream->state == RAW_UNDECIDED);
    stream->undecided = 0;
    stream->content = 0;
    stream->left = body_length;
    stream->state = body_length == FRAMING_CHUNKED ? RAW_CHUNKS
                    : body_length > 0              ? RAW_LENGTH
                                                   : RAW_START;
    if (stream->state == RAW_CHUNKS)
        chunks_begin(&stream->chunks);
    raw_stream_take(stream, behind, undecided);
}

bool raw_stream_is_in_chunk(const struct raw_stream *stream)
{
    return stream->state == RAW_CHUNKS && stream->chunks.state == CHUNKS_DATA;
}
