/* A state machine with one function per state. */
#include "http/fields/chunks.h"

#include <assert.h>
#include <stdbool.h>

#include "http/fields/grammar.h"

/* The maximum for the whole body. No known client sends as much; more would only keep the server
 * busy. */
#define EXTENSIONS_MOST ((size_t)16 << 10)
/* The maximum per chunk. The HTTP library must find the end of the line within the memory left by a
 * header of the maximum length. The longest known extensions, chunk signatures, have 100 bytes. */
#define LINE_MOST     ((size_t)512)
#define TRAILERS_MOST ((size_t)8 << 10)
/* Larger sizes do not fit into a file. */
#define DIGITS_MOST 16
/* The minimum after the data of a chunk: CR LF, the last chunk and the empty line. */
#define AFTER_DATA (sizeof("\r\n0\r\n\r\n") - 1)

void chunks_begin(struct chunks *chunks)
{
    *chunks = (struct chunks){.state = CHUNKS_SIZE};
}

static void fail(struct chunks *chunks, const char *why)
{
    chunks->state = CHUNKS_MALFORMED;
    chunks->why = why;
}

/* --- one byte in each state --- */

/* Leading zeros count as digits too. */
static void take_digit(struct chunks *chunks, int value)
{
    if (chunks->digits == DIGITS_MOST || chunks->left > (uint64_t)INT64_MAX >> 4) {
        fail(chunks, "a chunk is larger than any file");
        return;
    }
    chunks->digits++;
    chunks->left = chunks->left << 4 | (uint64_t)value;
}

static void take_size(struct chunks *chunks, char byte)
{
    const int value = zt_hex_value(byte);

    if (value >= 0)
        take_digit(chunks, value);
    else if (chunks->digits > 0 && byte == ';')
        chunks->state = CHUNKS_EXTENSION;
    else if (chunks->digits > 0 && byte == '\r')
        chunks->state = CHUNKS_SIZE_LF;
    else
        fail(chunks, "the size of a chunk is not a hexadecimal number with CR LF");
}

static enum chunks_state after_token(char byte, enum chunks_state within)
{
    if (byte == '\r')
        return CHUNKS_SIZE_LF;
    if (byte == ';')
        return CHUNKS_EXTENSION;
    return is_token_char(byte) ? within : CHUNKS_MALFORMED;
}

static enum chunks_state after_quoted(char byte)
{
    if (byte == '"')
        return CHUNKS_EXTENSION_END;
    if (byte == '\\')
        return CHUNKS_EXTENSION_ESCAPED;
    return is_text_char(byte) ? CHUNKS_EXTENSION_QUOTED : CHUNKS_MALFORMED;
}

/* ";" token [ "=" ( token / quoted-string ) ], without blanks, which senders must not generate. */
static enum chunks_state after_extension(enum chunks_state state, char byte)
{
    switch (state) {
    case CHUNKS_EXTENSION:
        return is_token_char(byte) ? CHUNKS_EXTENSION_NAME : CHUNKS_MALFORMED;
    case CHUNKS_EXTENSION_NAME:
        return byte == '=' ? CHUNKS_EXTENSION_EQUALS : after_token(byte, state);
    case CHUNKS_EXTENSION_EQUALS:
        if (byte == '"')
            return CHUNKS_EXTENSION_QUOTED;
        return is_token_char(byte) ? CHUNKS_EXTENSION_VALUE : CHUNKS_MALFORMED;
    case CHUNKS_EXTENSION_VALUE:
        return after_token(byte, state);
    case CHUNKS_EXTENSION_QUOTED:
        return after_quoted(byte);
    case CHUNKS_EXTENSION_ESCAPED:
        return is_text_char(byte) ? CHUNKS_EXTENSION_QUOTED : CHUNKS_MALFORMED;
    default:
        return after_token(byte, CHUNKS_MALFORMED);
    }
}

static void take_extension(struct chunks *chunks, char byte)
{
    chunks->state = after_extension(chunks->state, byte);
    if (chunks->state == CHUNKS_MALFORMED)
        fail(chunks, "a chunk extension is not a name with an optional value");
    else if (++chunks->line_bytes > LINE_MOST || ++chunks->extension_bytes > EXTENSIONS_MOST)
        fail(chunks, "the chunk extensions are too long");
}

/* The last chunk has the size 0. */
static void take_size_end(struct chunks *chunks, char byte)
{
    if (byte != '\n')
        fail(chunks, "the size of a chunk does not end with CR LF");
    else
        chunks->state = chunks->left > 0 ? CHUNKS_DATA : CHUNKS_TRAILER;
    chunks->line_bytes = 0;
}

static void take_data_end(struct chunks *chunks, char byte)
{
    const bool is_cr = chunks->state == CHUNKS_CR;

    if (byte != (is_cr ? '\r' : '\n'))
        fail(chunks, "a chunk does not end with CR LF");
    else
        chunks->state = is_cr ? CHUNKS_LF : CHUNKS_SIZE;
}

/* Also handles the first byte of a line: an empty line ends the body. */
static void take_trailer_name(struct chunks *chunks, char byte)
{
    if (chunks->state == CHUNKS_TRAILER && byte == '\r')
        chunks->state = CHUNKS_END_LF;
    else if (chunks->state == CHUNKS_TRAILER_NAME && byte == ':')
        chunks->state = CHUNKS_TRAILER_VALUE;
    else if (is_token_char(byte))
        chunks->state = CHUNKS_TRAILER_NAME;
    else
        fail(chunks, "a trailer is not a field");
}

static void take_trailer_value(struct chunks *chunks, char byte)
{
    if (byte == '\r')
        chunks->state = CHUNKS_TRAILER_LF;
    else if (!is_text_char(byte))
        fail(chunks, "a trailer holds a control character");
}

static void take_line_feed(struct chunks *chunks, char byte, enum chunks_state next)
{
    if (byte != '\n')
        fail(chunks, "a line after the last chunk does not end with CR LF");
    else
        chunks->state = next;
}

static void take_trailer(struct chunks *chunks, char byte)
{
    if (++chunks->trailer_bytes > TRAILERS_MOST) {
        chunks->state = CHUNKS_TRAILERS_LONG;
        chunks->why = "the trailers are too long";
        return;
    }
    switch (chunks->state) {
    case CHUNKS_TRAILER_VALUE:
        take_trailer_value(chunks, byte);
        break;
    case CHUNKS_TRAILER_LF:
        take_line_feed(chunks, byte, CHUNKS_TRAILER);
        break;
    case CHUNKS_END_LF:
        take_line_feed(chunks, byte, CHUNKS_OVER);
        break;
    default:
        take_trailer_name(chunks, byte);
        break;
    }
}

static bool is_extension(enum chunks_state state)
{
    return state >= CHUNKS_EXTENSION && state <= CHUNKS_EXTENSION_END;
}

static void take_byte(struct chunks *chunks, char byte)
{
    if (is_extension(chunks->state)) {
        take_extension(chunks, byte);
        return;
    }
    switch (chunks->state) {
    case CHUNKS_SIZE:
        take_size(chunks, byte);
        break;
    case CHUNKS_SIZE_LF:
        take_size_end(chunks, byte);
        break;
    case CHUNKS_CR:
    case CHUNKS_LF:
        take_data_end(chunks, byte);
        break;
    default:
        take_trailer(chunks, byte);
        break;
    }
}

/* --- what callers use --- */

static bool is_framing(const struct chunks *chunks)
{
    return chunks->state != CHUNKS_DATA && chunks->state < CHUNKS_OVER;
}

size_t chunks_take(struct chunks *chunks, const void *bytes, size_t length)
{
    const char *text = bytes;
    size_t at = 0;

    assert(chunks->state != CHUNKS_DATA);
    while (at < length && is_framing(chunks))
        take_byte(chunks, text[at++]);
    return at;
}

void chunks_take_data(struct chunks *chunks, uint64_t length)
{
    assert(chunks->state == CHUNKS_DATA && length <= chunks->left);
    chunks->left -= length;
    if (chunks->left > 0)
        return;
    chunks->state = CHUNKS_CR;
    chunks->digits = 0;
}

/* Sizes are below 2^63, so no sum overflows. */
uint64_t chunks_least(const struct chunks *chunks)
{
    const uint64_t tail_size = chunks->left > 0 ? chunks->left + AFTER_DATA : sizeof("\r\n") - 1;

    if (is_extension(chunks->state))
        return tail_size + 2;
    switch (chunks->state) {
    case CHUNKS_SIZE:
        return chunks->digits > 0 ? tail_size + 2 : sizeof("0\r\n\r\n") - 1;
    case CHUNKS_SIZE_LF:
        return tail_size + 1;
    case CHUNKS_DATA:
        return chunks->left + AFTER_DATA;
    case CHUNKS_CR:
        return AFTER_DATA;
    case CHUNKS_LF:
        return AFTER_DATA - 1;
    case CHUNKS_TRAILER:
        return sizeof("\r\n") - 1;
    case CHUNKS_TRAILER_NAME:
        return sizeof(":\r\n\r\n") - 1;
    case CHUNKS_TRAILER_VALUE:
        return sizeof("\r\n\r\n") - 1;
    case CHUNKS_TRAILER_LF:
        return sizeof("\n\r\n") - 1;
    case CHUNKS_END_LF:
        return 1;
    default:
        return 0;
    }
}
