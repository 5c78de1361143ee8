/* The machine: takes one opcode after the other, with its argument, and runs its step (steps.c),
 * until STOP. */
#include "pickle/machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "pickle/opcodes.h"
#include "pickle/steps.h"

#define PROTOCOL_MIN 2
#define PROTOCOL_MAX 5

/* Memory limit for the values of a pickle of n bytes: 9 n and a little. A list of None takes 8
 * n. */
#define BUDGET_FACTOR 9
#define BUDGET_BASE   (256u << 10)

void pickle_init(struct pickle *pickle, const uint8_t *bytes, size_t length, uint64_t file_offset)
{
    assert(length <= PICKLE_BYTES_MAX);
    *pickle = (struct pickle){.bytes = bytes,
                              .length = length,
                              .file_offset = file_offset,
                              .budget_bytes = BUDGET_FACTOR * (uint64_t)length + BUDGET_BASE};
}

void pickle_drop_stack(struct pickle *pickle)
{
    free(pickle->stack.items);
    free(pickle->memo.items);
    pickle->stack = pickle->memo = (struct pickle_words){0};
}

void pickle_free(struct pickle *pickle)
{
    pickle_drop_stack(pickle);
    free(pickle->arena.items);
    pickle->arena = (struct pickle_words){0};
}

uint64_t pickle_held_bytes(const struct pickle *pickle)
{
    return sizeof(uint64_t) *
           ((uint64_t)pickle->stack.capacity + pickle->memo.capacity + pickle->arena.capacity);
}

static enum zt_status fail_truncated(const struct pickle *pickle, struct zt_error *error)
{
    return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Truncated", error,
                       "the pickle ends within an opcode, or before STOP");
}

static bool take_bytes(struct pickle *pickle, uint64_t length, struct opcode_argument *argument)
{
    assert(pickle->position <= pickle->length);
    if (length > pickle->length - pickle->position)
        return false;
    *argument = (struct opcode_argument){pickle->bytes + pickle->position, (size_t)length};
    pickle->position += (uint32_t)length;
    return true;
}

/* Without the last newline. */
static bool take_lines(struct pickle *pickle, unsigned count, struct opcode_argument *argument)
{
    const uint8_t *begin = pickle->bytes + pickle->position;
    const uint8_t *limit = pickle->bytes + pickle->length;
    const uint8_t *at = begin;

    assert(pickle->position <= pickle->length);
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *end = memchr(at, '\n', (size_t)(limit - at));

        if (end == NULL)
            return false;
        at = end + 1;
    }
    *argument = (struct opcode_argument){begin, (size_t)(at - begin) - 1};
    pickle->position += (uint32_t)(at - begin);
    return true;
}

static bool take_argument(struct pickle *pickle, uint8_t opcode, struct opcode_argument *argument)
{
    static const uint8_t widths[] = {
        [ARGUMENT_1] = 1,         [ARGUMENT_2] = 2,         [ARGUMENT_4] = 4,
        [ARGUMENT_8] = 8,         [ARGUMENT_COUNTED_1] = 1, [ARGUMENT_COUNTED_4] = 4,
        [ARGUMENT_COUNTED_8] = 8, [ARGUMENT_TWO_LINES] = 0};
    const enum pickle_argument kind = pickle_opcode_argument(opcode);

    if (kind == ARGUMENT_LINE || kind == ARGUMENT_TWO_LINES)
        return take_lines(pickle, kind == ARGUMENT_LINE ? 1 : 2, argument);
    if (!take_bytes(pickle, widths[kind], argument))
        return false;
    switch (kind) {
    case ARGUMENT_COUNTED_1:
        return take_bytes(pickle, argument->bytes[0], argument);
    case ARGUMENT_COUNTED_4:
        return take_bytes(pickle, zt_load_le32(argument->bytes), argument);
    case ARGUMENT_COUNTED_8:
        return take_bytes(pickle, zt_load_le64(argument->bytes), argument);
    default:
        return true;
    }
}

static enum zt_status refuse_opcode(const struct pickle *pickle, uint8_t opcode,
                                    struct zt_error *error)
{
    const char *name = pickle_opcode_name(opcode);

    if (name == NULL)
        return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Opcode", error,
                           "the byte 0x%02X is not an opcode", opcode);
    return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Opcode", error,
                       "the opcode %s is refused", name);
}

static enum zt_status take_stop(struct pickle *pickle, pickle_value *out_value,
                                struct zt_error *error)
{
    if (pickle->mark != 0 || pickle->stack.count != 1)
        return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Stop", error,
                           "STOP: there is not exactly one value");
    *out_value = pickle->stack.items[0];
    pickle->stack.count = 0;
    return ZT_OK;
}

/* Protocols 0 and 1 have no PROTO. What torch.save writes in them has opcodes that torch's own
 * weights_only refuses. */
static enum zt_status take_protocol(struct pickle *pickle, struct zt_error *error)
{
    const uint8_t *at = pickle->bytes + pickle->position;

    pickle->opcode_at = pickle->position;
    if (pickle->length - pickle->position < 2)
        return fail_truncated(pickle, error);
    if (*at != OP_PROTO)
        return pickle_fail(
            pickle, pickle->opcode_at, "pt §Pickle Protocol", error,
            "the pickle has no PROTO, as in protocols 0 and 1; only %d to %d are supported",
            PROTOCOL_MIN, PROTOCOL_MAX);
    if (at[1] < PROTOCOL_MIN || at[1] > PROTOCOL_MAX)
        return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Protocol", error,
                           "protocol %u is not supported, only %d to %d", at[1], PROTOCOL_MIN,
                           PROTOCOL_MAX);
    pickle->position += 2;
    return ZT_OK;
}

enum zt_status pickle_run(struct pickle *pickle, pickle_value *out_value, struct zt_error *error)
{
    enum zt_status status = take_protocol(pickle, error);

    pickle->stack.count = pickle->memo.count = pickle->memo_count = pickle->mark = 0;
    while (status == ZT_OK) {
        struct opcode_argument argument = {NULL, 0};
        pickle_step step;
        uint8_t opcode;

        pickle->opcode_at = pickle->position;
        if (pickle->position >= pickle->length)
            return fail_truncated(pickle, error);
        opcode = pickle->bytes[pickle->position++];
        if (opcode == OP_STOP)
            return take_stop(pickle, out_value, error);
        step = pickle_step_of(opcode);
        if (step == NULL)
            return refuse_opcode(pickle, opcode, error);
        if (!take_argument(pickle, opcode, &argument))
            return fail_truncated(pickle, error);
        status = step(pickle, &argument, error);
        assert(status != ZT_OK || pickle->mark <= pickle->stack.count);
    }
    return status;
}
