/* The machine's steps: what each opcode does to stack, memo and arena. */
#include "pickle/steps.h"

#include <assert.h>
#include <string.h>

#include "base/decimal.h"
#include "base/little_endian.h"
#include "pickle/machine.h"
#include "pickle/opcodes.h"

/* Tensors do not need longer integers. */
#define INTEGER_BYTES_MAX 9

/* --- the stack --- */

static enum zt_status fail_here(const struct pickle *pickle, const char *rule,
                                struct zt_error *error, const char *message)
{
    return pickle_fail(pickle, pickle->opcode_at, rule, error, "%s: %s",
                       pickle_opcode_name(pickle->bytes[pickle->opcode_at]), message);
}

static pickle_value *top(struct pickle *pickle, unsigned depth)
{
    assert(pickle->stack.count > depth);
    return &pickle->stack.items[pickle->stack.count - 1 - depth];
}

static enum zt_status push_new(struct pickle *pickle, enum pickle_kind kind, struct zt_error *error)
{
    return pickle_push(pickle, pickle_make(pickle, kind, 0), error);
}

/* A mark is a word on the stack that holds what pickle->mark was before. */
static enum zt_status step_mark(struct pickle *pickle, const struct opcode_argument *argument,
                                struct zt_error *error)
{
    const uint32_t before = pickle->mark;
    enum zt_status status;

    (void)argument;
    status = pickle_push(pickle, (uint64_t)PICKLE_MARK | (uint64_t)before << 4, error);
    if (status == ZT_OK)
        pickle->mark = (uint32_t)pickle->stack.count;
    return status;
}

/* How many values are above the last mark. Fails if there is no mark. */
static enum zt_status count_marked(const struct pickle *pickle, uint32_t *out_count,
                                   struct zt_error *error)
{
    assert(pickle->mark <= pickle->stack.count);
    if (pickle->mark == 0)
        return fail_here(pickle, "pt §Pickle Stack", error, "there is no mark");
    *out_count = (uint32_t)pickle->stack.count - pickle->mark;
    return ZT_OK;
}

/* Takes the last mark away, once everything above it has been taken. */
static void drop_mark(struct pickle *pickle)
{
    const uint64_t mark = *top(pickle, 0);

    assert(pickle->mark == pickle->stack.count && (mark & 15) == PICKLE_MARK);
    pickle->mark = (uint32_t)(mark >> 4);
    pickle->stack.count--;
}

/* --- scalars --- */

static enum zt_status step_none(struct pickle *pickle, const struct opcode_argument *argument,
                                struct zt_error *error)
{
    (void)argument;
    return push_new(pickle, PICKLE_NONE, error);
}

static enum zt_status step_bool(struct pickle *pickle, const struct opcode_argument *argument,
                                struct zt_error *error)
{
    (void)argument;
    return push_new(pickle, PICKLE_BOOL, error);
}

static enum zt_status step_integer(struct pickle *pickle, const struct opcode_argument *argument,
                                   struct zt_error *error)
{
    (void)argument;
    return push_new(pickle, PICKLE_INTEGER, error);
}

/* Whether a long of 9 bytes is a sign and 64 bits. */
static bool fits(const struct opcode_argument *argument)
{
    const uint8_t last = argument->bytes[INTEGER_BYTES_MAX - 1];

    return last == 0 || (last == 0xFF && zt_load_le64(argument->bytes) != 0);
}

static enum zt_status step_long(struct pickle *pickle, const struct opcode_argument *argument,
                                struct zt_error *error)
{
    const bool is_short = argument->length < INTEGER_BYTES_MAX ||
                          (argument->length == INTEGER_BYTES_MAX && fits(argument));

    return push_new(pickle, is_short ? PICKLE_INTEGER : PICKLE_INERT, error);
}

/* INT is a line of digits; the lines 00 and 01 are booleans. */
static enum zt_status step_int(struct pickle *pickle, const struct opcode_argument *argument,
                               struct zt_error *error)
{
    const struct zt_text line = {(const char *)argument->bytes, argument->length};
    const bool negative = line.length > 0 && line.bytes[0] == '-';
    const struct zt_text digits = {line.bytes + negative, line.length - negative};
    uint64_t value;

    if (zt_text_is(line, "00") || zt_text_is(line, "01"))
        return push_new(pickle, PICKLE_BOOL, error);
    if (digits.length == 0)
        return fail_here(pickle, "pt §Pickle Argument", error, "it has no digits");
    if (zt_decimal_length(digits) < digits.length)
        return fail_here(pickle, "pt §Pickle Argument", error, "it is not a decimal number");
    return push_new(
        pickle, zt_decimal_read(digits, UINT64_MAX, &value) ? PICKLE_INTEGER : PICKLE_INERT, error);
}

static enum zt_status step_float(struct pickle *pickle, const struct opcode_argument *argument,
                                 struct zt_error *error)
{
    (void)argument;
    return push_new(pickle, PICKLE_FLOAT, error);
}

static enum zt_status step_text(struct pickle *pickle, const struct opcode_argument *argument,
                                struct zt_error *error)
{
    (void)argument;
    return push_new(pickle, PICKLE_TEXT, error);
}

static enum zt_status step_inert(struct pickle *pickle, const struct opcode_argument *argument,
                                 struct zt_error *error)
{
    (void)argument;
    return push_new(pickle, PICKLE_INERT, error);
}

/* --- containers --- */

static enum zt_status push_container(struct pickle *pickle, enum pickle_kind kind,
                                     struct zt_error *error)
{
    pickle_value value = 0;
    enum zt_status status = pickle_new_container(pickle, kind, 0, &value, error);

    return status == ZT_OK ? pickle_push(pickle, value, error) : status;
}

static enum zt_status step_list(struct pickle *pickle, const struct opcode_argument *argument,
                                struct zt_error *error)
{
    (void)argument;
    return push_container(pickle, PICKLE_LIST, error);
}

static enum zt_status step_map(struct pickle *pickle, const struct opcode_argument *argument,
                               struct zt_error *error)
{
    (void)argument;
    return push_container(pickle, PICKLE_MAP, error);
}

static enum zt_status step_set(struct pickle *pickle, const struct opcode_argument *argument,
                               struct zt_error *error)
{
    (void)argument;
    return push_container(pickle, PICKLE_SET, error);
}

static enum zt_status step_empty_tuple(struct pickle *pickle,
                                       const struct opcode_argument *argument,
                                       struct zt_error *error)
{
    (void)argument;
    return pickle_tuple_of_top(pickle, 0, error);
}

/* TUPLE1 to TUPLE3. */
static enum zt_status step_short_tuple(struct pickle *pickle,
                                       const struct opcode_argument *argument,
                                       struct zt_error *error)
{
    const uint32_t count = pickle->bytes[pickle->opcode_at] - (uint32_t)OP_TUPLE1 + 1;
    enum zt_status status = pickle_need(pickle, count, error);

    assert(count >= 1 && count <= 3);
    (void)argument;
    return status == ZT_OK ? pickle_tuple_of_top(pickle, count, error) : status;
}

static enum zt_status step_tuple(struct pickle *pickle, const struct opcode_argument *argument,
                                 struct zt_error *error)
{
    uint32_t count = 0;
    enum zt_status status = count_marked(pickle, &count, error);
    pickle_value tuple;

    (void)argument;
    if (status == ZT_OK)
        status = pickle_tuple_of_top(pickle, count, error);
    if (status != ZT_OK)
        return status;
    /* The tuple is above the mark now. */
    assert(pickle->stack.count == (size_t)pickle->mark + 1);
    tuple = *top(pickle, 0);
    pickle->stack.count--;
    drop_mark(pickle);
    return pickle_push(pickle, tuple, error);
}

/* Adds the count topmost values to the container under them, or under the mark. */
static enum zt_status add_items(struct pickle *pickle, uint32_t count, bool is_marked,
                                enum pickle_kind kind, struct zt_error *error)
{
    const unsigned under = count + (is_marked ? 1 : 0);
    pickle_value container;
    enum zt_status status;

    if (kind == PICKLE_MAP && count % 2 != 0)
        return fail_here(pickle, "pt §Pickle Stack", error, "a key has no value");
    if (pickle->stack.count <= under)
        return fail_here(pickle, "pt §Pickle Stack", error, "there is no container");
    container = *top(pickle, under);
    if (pickle_kind_of(container) != kind)
        return fail_here(pickle, "pt §Pickle Type", error, "the container is of another kind");
    status = pickle_extend_by_top(pickle, container, count, error);
    assert(status != ZT_OK || !is_marked || pickle->stack.count == pickle->mark);
    if (status == ZT_OK && is_marked)
        drop_mark(pickle);
    return status;
}

static enum zt_status step_append(struct pickle *pickle, const struct opcode_argument *argument,
                                  struct zt_error *error)
{
    enum zt_status status = pickle_need(pickle, 2, error);

    (void)argument;
    return status == ZT_OK ? add_items(pickle, 1, false, PICKLE_LIST, error) : status;
}

static enum zt_status step_set_item(struct pickle *pickle, const struct opcode_argument *argument,
                                    struct zt_error *error)
{
    enum zt_status status = pickle_need(pickle, 3, error);

    (void)argument;
    return status == ZT_OK ? add_items(pickle, 2, false, PICKLE_MAP, error) : status;
}

/* APPENDS, SETITEMS and ADDITEMS. */
static enum zt_status step_add_marked(struct pickle *pickle, const struct opcode_argument *argument,
                                      struct zt_error *error)
{
    const uint8_t opcode = pickle->bytes[pickle->opcode_at];
    uint32_t count = 0;
    enum zt_status status = count_marked(pickle, &count, error);
    enum pickle_kind kind = PICKLE_SET;

    (void)argument;
    if (opcode == OP_APPENDS)
        kind = PICKLE_LIST;
    else if (opcode == OP_SETITEMS)
        kind = PICKLE_MAP;
    return status == ZT_OK ? add_items(pickle, count, true, kind, error) : status;
}

/* --- the memo --- */

static uint64_t memo_index(const struct opcode_argument *argument)
{
    return argument->length == 1 ? argument->bytes[0] : zt_load_le32(argument->bytes);
}

static enum zt_status step_put(struct pickle *pickle, const struct opcode_argument *argument,
                               struct zt_error *error)
{
    return pickle_memo_put(pickle, memo_index(argument), error);
}

static enum zt_status step_memoize(struct pickle *pickle, const struct opcode_argument *argument,
                                   struct zt_error *error)
{
    (void)argument;
    return pickle_memo_put(pickle, pickle->memo_count, error);
}

static enum zt_status step_get(struct pickle *pickle, const struct opcode_argument *argument,
                               struct zt_error *error)
{
    return pickle_memo_get(pickle, memo_index(argument), error);
}

/* --- names and calls --- */

static enum zt_status push_name(struct pickle *pickle, struct zt_text module, struct zt_text name,
                                struct zt_error *error)
{
    uint32_t index = 0;
    enum zt_status status = pickle_name_find(pickle, module, name, &index, error);

    return status == ZT_OK ? pickle_push(pickle, pickle_make(pickle, PICKLE_NAME, index), error)
                           : status;
}

static enum zt_status step_global(struct pickle *pickle, const struct opcode_argument *argument,
                                  struct zt_error *error)
{
    const char *lines = (const char *)argument->bytes;
    const char *end = memchr(lines, '\n', argument->length);
    struct zt_text module;
    struct zt_text name;

    assert(end != NULL);
    module = (struct zt_text){lines, (size_t)(end - lines)};
    name = (struct zt_text){end + 1, argument->length - module.length - 1};
    return push_name(pickle, module, name, error);
}

static enum zt_status step_stack_global(struct pickle *pickle,
                                        const struct opcode_argument *argument,
                                        struct zt_error *error)
{
    enum zt_status status = pickle_need(pickle, 2, error);
    pickle_value module;
    pickle_value name;

    (void)argument;
    if (status != ZT_OK)
        return status;
    name = *top(pickle, 0);
    module = *top(pickle, 1);
    if (pickle_kind_of(name) != PICKLE_TEXT || pickle_kind_of(module) != PICKLE_TEXT)
        return fail_here(pickle, "pt §Pickle Type", error, "a name is not text");
    pickle->stack.count -= 2;
    return push_name(pickle, pickle_text(pickle, module), pickle_text(pickle, name), error);
}

typedef enum zt_status (*pickle_caller)(struct pickle *pickle, pickle_value callee,
                                        pickle_value arguments, pickle_value *out_value,
                                        struct zt_error *error);

/* Replaces the two topmost values, a name and a tuple, by the result of the call. */
static enum zt_status replace_by(struct pickle *pickle, pickle_caller call, struct zt_error *error)
{
    enum zt_status status = pickle_need(pickle, 2, error);
    pickle_value value = 0;

    if (status != ZT_OK)
        return status;
    if (pickle_kind_of(*top(pickle, 1)) != PICKLE_NAME)
        return fail_here(pickle, "pt §Pickle Call", error, "it calls a value that is not a name");
    if (pickle_kind_of(*top(pickle, 0)) != PICKLE_TUPLE)
        return fail_here(pickle, "pt §Pickle Call", error, "the arguments are not a tuple");
    status = call(pickle, *top(pickle, 1), *top(pickle, 0), &value, error);
    if (status != ZT_OK)
        return status;
    pickle->stack.count--;
    *top(pickle, 0) = value;
    return ZT_OK;
}

static enum zt_status step_reduce(struct pickle *pickle, const struct opcode_argument *argument,
                                  struct zt_error *error)
{
    (void)argument;
    return replace_by(pickle, pickle_call, error);
}

static enum zt_status step_new_object(struct pickle *pickle, const struct opcode_argument *argument,
                                      struct zt_error *error)
{
    (void)argument;
    return replace_by(pickle, pickle_new_object, error);
}

static enum zt_status step_build(struct pickle *pickle, const struct opcode_argument *argument,
                                 struct zt_error *error)
{
    enum zt_status status = pickle_need(pickle, 2, error);

    (void)argument;
    if (status == ZT_OK)
        status = pickle_build(pickle, *top(pickle, 1), *top(pickle, 0), error);
    if (status == ZT_OK)
        pickle->stack.count--;
    return status;
}

static enum zt_status step_persistent_id(struct pickle *pickle,
                                         const struct opcode_argument *argument,
                                         struct zt_error *error)
{
    enum zt_status status = pickle_need(pickle, 1, error);
    pickle_value value = 0;

    (void)argument;
    if (status == ZT_OK)
        status = pickle_load_storage(pickle, *top(pickle, 0), &value, error);
    if (status == ZT_OK)
        *top(pickle, 0) = value;
    return status;
}

/* --- the whole --- */

static enum zt_status step_frame(struct pickle *pickle, const struct opcode_argument *argument,
                                 struct zt_error *error)
{
    const uint64_t length = zt_load_le64(argument->bytes);

    if (length > pickle->length - pickle->position)
        return fail_here(pickle, "pt §Pickle Truncated", error,
                         "the frame is longer than the rest");
    return ZT_OK;
}

/* A PROTO that is not the first opcode; pickle_run takes the first one. */
static enum zt_status step_protocol(struct pickle *pickle, const struct opcode_argument *argument,
                                    struct zt_error *error)
{
    (void)argument;
    return fail_here(pickle, "pt §Pickle Protocol", error, "it is not the first opcode");
}

static const pickle_step steps[256] = {
    [OP_MARK] = step_mark,
    [OP_NONE] = step_none,
    [OP_NEWTRUE] = step_bool,
    [OP_NEWFALSE] = step_bool,
    [OP_BININT] = step_integer,
    [OP_BININT1] = step_integer,
    [OP_BININT2] = step_integer,
    [OP_LONG1] = step_long,
    [OP_INT] = step_int,
    [OP_BINFLOAT] = step_float,
    [OP_BINUNICODE] = step_text,
    [OP_SHORT_BINUNICODE] = step_text,
    [OP_BINUNICODE8] = step_text,
    [OP_BINSTRING] = step_text,
    [OP_SHORT_BINSTRING] = step_text,
    [OP_SHORT_BINBYTES] = step_inert,
    [OP_BINBYTES] = step_inert,
    [OP_BINBYTES8] = step_inert,
    [OP_BYTEARRAY8] = step_inert,
    [OP_EMPTY_TUPLE] = step_empty_tuple,
    [OP_EMPTY_LIST] = step_list,
    [OP_EMPTY_DICT] = step_map,
    [OP_EMPTY_SET] = step_set,
    [OP_TUPLE] = step_tuple,
    [OP_TUPLE1] = step_short_tuple,
    [OP_TUPLE2] = step_short_tuple,
    [OP_TUPLE3] = step_short_tuple,
    [OP_APPEND] = step_append,
    [OP_APPENDS] = step_add_marked,
    [OP_ADDITEMS] = step_add_marked,
    [OP_SETITEM] = step_set_item,
    [OP_SETITEMS] = step_add_marked,
    [OP_GLOBAL] = step_global,
    [OP_STACK_GLOBAL] = step_stack_global,
    [OP_REDUCE] = step_reduce,
    [OP_NEWOBJ] = step_new_object,
    [OP_BUILD] = step_build,
    [OP_BINPERSID] = step_persistent_id,
    [OP_BINPUT] = step_put,
    [OP_LONG_BINPUT] = step_put,
    [OP_MEMOIZE] = step_memoize,
    [OP_BINGET] = step_get,
    [OP_LONG_BINGET] = step_get,
    [OP_FRAME] = step_frame,
    [OP_PROTO] = step_protocol,
};

pickle_step pickle_step_of(uint8_t opcode)
{
    return steps[opcode];
}
