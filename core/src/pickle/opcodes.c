/* The names of all opcodes, what follows each, and from that where a pickle ends. */
#include "pickle/opcodes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "pickle/pickle.h"

static const struct opcode {
    const char *name;
    enum pickle_argument argument;
} opcodes[256] = {
    [OP_MARK] = {"MARK", ARGUMENT_NONE},
    [OP_STOP] = {"STOP", ARGUMENT_NONE},
    [OP_POP] = {"POP", ARGUMENT_NONE},
    [OP_POP_MARK] = {"POP_MARK", ARGUMENT_NONE},
    [OP_DUP] = {"DUP", ARGUMENT_NONE},
    [OP_FLOAT] = {"FLOAT", ARGUMENT_LINE},
    [OP_INT] = {"INT", ARGUMENT_LINE},
    [OP_BININT] = {"BININT", ARGUMENT_4},
    [OP_BININT1] = {"BININT1", ARGUMENT_1},
    [OP_LONG] = {"LONG", ARGUMENT_LINE},
    [OP_BININT2] = {"BININT2", ARGUMENT_2},
    [OP_NONE] = {"NONE", ARGUMENT_NONE},
    [OP_PERSID] = {"PERSID", ARGUMENT_LINE},
    [OP_BINPERSID] = {"BINPERSID", ARGUMENT_NONE},
    [OP_REDUCE] = {"REDUCE", ARGUMENT_NONE},
    [OP_STRING] = {"STRING", ARGUMENT_LINE},
    [OP_BINSTRING] = {"BINSTRING", ARGUMENT_COUNTED_4},
    [OP_SHORT_BINSTRING] = {"SHORT_BINSTRING", ARGUMENT_COUNTED_1},
    [OP_UNICODE] = {"UNICODE", ARGUMENT_LINE},
    [OP_BINUNICODE] = {"BINUNICODE", ARGUMENT_COUNTED_4},
    [OP_APPEND] = {"APPEND", ARGUMENT_NONE},
    [OP_BUILD] = {"BUILD", ARGUMENT_NONE},
    [OP_GLOBAL] = {"GLOBAL", ARGUMENT_TWO_LINES},
    [OP_DICT] = {"DICT", ARGUMENT_NONE},
    [OP_EMPTY_DICT] = {"EMPTY_DICT", ARGUMENT_NONE},
    [OP_APPENDS] = {"APPENDS", ARGUMENT_NONE},
    [OP_GET] = {"GET", ARGUMENT_LINE},
    [OP_BINGET] = {"BINGET", ARGUMENT_1},
    [OP_INST] = {"INST", ARGUMENT_TWO_LINES},
    [OP_LONG_BINGET] = {"LONG_BINGET", ARGUMENT_4},
    [OP_LIST] = {"LIST", ARGUMENT_NONE},
    [OP_EMPTY_LIST] = {"EMPTY_LIST", ARGUMENT_NONE},
    [OP_OBJ] = {"OBJ", ARGUMENT_NONE},
    [OP_PUT] = {"PUT", ARGUMENT_LINE},
    [OP_BINPUT] = {"BINPUT", ARGUMENT_1},
    [OP_LONG_BINPUT] = {"LONG_BINPUT", ARGUMENT_4},
    [OP_SETITEM] = {"SETITEM", ARGUMENT_NONE},
    [OP_TUPLE] = {"TUPLE", ARGUMENT_NONE},
    [OP_EMPTY_TUPLE] = {"EMPTY_TUPLE", ARGUMENT_NONE},
    [OP_SETITEMS] = {"SETITEMS", ARGUMENT_NONE},
    [OP_BINFLOAT] = {"BINFLOAT", ARGUMENT_8},
    [OP_BINBYTES] = {"BINBYTES", ARGUMENT_COUNTED_4},
    [OP_SHORT_BINBYTES] = {"SHORT_BINBYTES", ARGUMENT_COUNTED_1},
    [OP_PROTO] = {"PROTO", ARGUMENT_1},
    [OP_NEWOBJ] = {"NEWOBJ", ARGUMENT_NONE},
    [OP_EXT1] = {"EXT1", ARGUMENT_1},
    [OP_EXT2] = {"EXT2", ARGUMENT_2},
    [OP_EXT4] = {"EXT4", ARGUMENT_4},
    [OP_TUPLE1] = {"TUPLE1", ARGUMENT_NONE},
    [OP_TUPLE2] = {"TUPLE2", ARGUMENT_NONE},
    [OP_TUPLE3] = {"TUPLE3", ARGUMENT_NONE},
    [OP_NEWTRUE] = {"NEWTRUE", ARGUMENT_NONE},
    [OP_NEWFALSE] = {"NEWFALSE", ARGUMENT_NONE},
    [OP_LONG1] = {"LONG1", ARGUMENT_COUNTED_1},
    [OP_LONG4] = {"LONG4", ARGUMENT_COUNTED_4},
    [OP_SHORT_BINUNICODE] = {"SHORT_BINUNICODE", ARGUMENT_COUNTED_1},
    [OP_BINUNICODE8] = {"BINUNICODE8", ARGUMENT_COUNTED_8},
    [OP_BINBYTES8] = {"BINBYTES8", ARGUMENT_COUNTED_8},
    [OP_EMPTY_SET] = {"EMPTY_SET", ARGUMENT_NONE},
    [OP_ADDITEMS] = {"ADDITEMS", ARGUMENT_NONE},
    [OP_FROZENSET] = {"FROZENSET", ARGUMENT_NONE},
    [OP_NEWOBJ_EX] = {"NEWOBJ_EX", ARGUMENT_NONE},
    [OP_STACK_GLOBAL] = {"STACK_GLOBAL", ARGUMENT_NONE},
    [OP_MEMOIZE] = {"MEMOIZE", ARGUMENT_NONE},
    [OP_FRAME] = {"FRAME", ARGUMENT_8},
    [OP_BYTEARRAY8] = {"BYTEARRAY8", ARGUMENT_COUNTED_8},
    [OP_NEXT_BUFFER] = {"NEXT_BUFFER", ARGUMENT_NONE},
    [OP_READONLY_BUFFER] = {"READONLY_BUFFER", ARGUMENT_NONE},
};

const char *pickle_opcode_name(uint8_t opcode)
{
    return opcodes[opcode].name;
}

enum pickle_argument pickle_opcode_argument(uint8_t opcode)
{
    return opcodes[opcode].argument;
}

/* --- where a pickle ends --- */

#define WINDOW_BYTES ((size_t)64 << 10)
/* An opcode and its fixed bytes. */
#define HEAD_MAX 9

struct window {
    struct zt_source *source;
    uint8_t *bytes;
    uint64_t at; /* of bytes[0] in the file */
    size_t length;
    uint64_t limit;
};

/* Makes the window begin at or before position, and hold wanted bytes from there on if the file has
 * as many. Returns how many it holds. */
static enum zt_status hold(struct window *window, uint64_t position, size_t wanted,
                           size_t *out_held, struct zt_error *error)
{
    const uint64_t left = window->limit - position;

    assert(position <= window->limit && wanted <= WINDOW_BYTES);
    if (position < window->at || position - window->at > window->length ||
        (window->length - (size_t)(position - window->at) < wanted &&
         window->length - (size_t)(position - window->at) < left)) {
        const size_t length = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
        enum zt_status status =
            zt_source_read_at(window->source, position, window->bytes, length, error);

        if (status != ZT_OK)
            return status;
        window->at = position;
        window->length = length;
    }
    *out_held = window->length - (size_t)(position - window->at);
    return ZT_OK;
}

static enum zt_status fail_end(const struct window *window, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, "pt §Pickle Truncated", window->limit,
                   "%sthe pickle continues at %" PRIu64 ", where it should end",
                   window->limit == zt_source_size(window->source) ? CUT_OFF : "", window->limit);
}

static enum zt_status pass_line(struct window *window, uint64_t *position, struct zt_error *error)
{
    for (;;) {
        size_t held = 0;
        enum zt_status status = hold(window, *position, 1, &held, error);
        const uint8_t *from = window->bytes + (*position - window->at);
        const uint8_t *end;

        if (status != ZT_OK)
            return status;
        if (held == 0)
            return fail_end(window, error);
        end = memchr(from, '\n', held);
        *position += end != NULL ? (uint64_t)(end - from) + 1 : held;
        if (end != NULL)
            return ZT_OK;
    }
}

/* Bytes of the opcode, its fixed argument and its length. */
static unsigned head_bytes(enum pickle_argument argument)
{
    static const uint8_t bytes[] = {
        [ARGUMENT_NONE] = 1,      [ARGUMENT_1] = 2,         [ARGUMENT_2] = 3,
        [ARGUMENT_4] = 5,         [ARGUMENT_8] = 9,         [ARGUMENT_COUNTED_1] = 2,
        [ARGUMENT_COUNTED_4] = 5, [ARGUMENT_COUNTED_8] = 9, [ARGUMENT_LINE] = 1,
        [ARGUMENT_TWO_LINES] = 1};

    return bytes[argument];
}

static uint64_t counted(enum pickle_argument argument, const uint8_t *at)
{
    switch (argument) {
    case ARGUMENT_COUNTED_1:
        return at[1];
    case ARGUMENT_COUNTED_4:
        return zt_load_le32(at + 1);
    case ARGUMENT_COUNTED_8:
        return zt_load_le64(at + 1);
    default:
        return 0;
    }
}

static enum zt_status pass_opcode(struct window *window, uint64_t *position, uint8_t *out_opcode,
                                  struct zt_error *error)
{
    size_t held = 0;
    enum zt_status status = hold(window, *position, HEAD_MAX, &held, error);
    const uint8_t *at = window->bytes + (*position - window->at);
    enum pickle_argument argument;
    uint64_t length;

    if (status != ZT_OK)
        return status;
    if (held == 0)
        return fail_end(window, error);
    if (pickle_opcode_name(*at) == NULL)
        return zt_fail(error, ZT_INVALID, "pt §Pickle Opcode", *position,
                       "the byte 0x%02X is not an opcode", *at);
    *out_opcode = *at;
    argument = pickle_opcode_argument(*at);
    if (held < head_bytes(argument))
        return fail_end(window, error);
    length = counted(argument, at);
    *position += head_bytes(argument);
    assert(*position <= window->limit);
    if (length > window->limit - *position)
        return fail_end(window, error);
    *position += length;
    if (argument == ARGUMENT_LINE || argument == ARGUMENT_TWO_LINES)
        status = pass_line(window, position, error);
    if (status == ZT_OK && argument == ARGUMENT_TWO_LINES)
        status = pass_line(window, position, error);
    return status;
}

enum zt_status pickle_measure(struct zt_source *source, uint64_t *position, uint64_t limit,
                              struct zt_error *error)
{
    struct window window = {.source = source, .bytes = malloc(WINDOW_BYTES), .limit = limit};
    uint64_t at = *position;
    uint8_t opcode = 0;
    enum zt_status status = ZT_OK;

    if (window.bytes == NULL)
        return zt_fail_memory(error, "a window of a pickle");
    while (status == ZT_OK && opcode != OP_STOP)
        status = pass_opcode(&window, &at, &opcode, error);
    free(window.bytes);
    if (status == ZT_OK)
        *position = at;
    return status;
}
