/* Values: their arena, containers, and reading scalars, which stay in the pickle as opcodes. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "pickle/machine.h"
#include "pickle/opcodes.h"

/* So that indices fit into a value. */
#define ARENA_WORDS_MAX ((size_t)1 << 30)

enum zt_status pickle_fail(const struct pickle *pickle, uint32_t position, const char *rule,
                           struct zt_error *error, const char *format, ...)
{
    char message[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (pickle->is_inflated)
        return zt_fail(error, ZT_INVALID, rule, pickle->file_offset,
                       "%s (byte %" PRIu32 " of the inflated pickle)", message, position);
    return zt_fail(error, ZT_INVALID, rule, pickle->file_offset + position, "%s", message);
}

/* --- memory --- */

static enum zt_status grow(struct pickle *pickle, struct pickle_words *words, size_t count,
                           struct zt_error *error)
{
    const uint64_t held = pickle_held_bytes(pickle);
    const uint64_t left = held < pickle->budget_bytes ? pickle->budget_bytes - held : 0;
    const size_t most = words->capacity + (size_t)(left / sizeof(*words->items));
    enum zt_status status =
        zt_array_reserve(&words->items, &words->capacity, count, sizeof(*words->items),
                         most < ARENA_WORDS_MAX ? most : ARENA_WORDS_MAX);

    if (status == ZT_LIMIT)
        return zt_fail(error, ZT_LIMIT, "pt §Pickle Memory",
                       pickle->file_offset + (pickle->is_inflated ? 0 : pickle->opcode_at),
                       "the pickle's values take more memory than its length allows");
    return status == ZT_OK ? ZT_OK : zt_fail_memory(error, "the values of a pickle");
}

enum zt_status pickle_take(struct pickle *pickle, uint32_t count, uint32_t *out_index,
                           struct zt_error *error)
{
    struct pickle_words *arena = &pickle->arena;
    const size_t first = arena->count > 0 ? arena->count : 1;
    enum zt_status status = ZT_OK;

    if (first + count > arena->capacity)
        status = grow(pickle, arena, first + count, error);
    if (status != ZT_OK)
        return status;
    memset(arena->items + first, 0, count * sizeof(*arena->items));
    arena->count = first + count;
    assert(arena->count <= arena->capacity);
    *out_index = (uint32_t)first;
    return ZT_OK;
}

enum zt_status pickle_push(struct pickle *pickle, pickle_value value, struct zt_error *error)
{
    struct pickle_words *stack = &pickle->stack;

    if (stack->count == stack->capacity) {
        enum zt_status status = grow(pickle, stack, stack->count + 1, error);

        if (status != ZT_OK)
            return status;
    }
    assert(stack->count < stack->capacity);
    stack->items[stack->count++] = value;
    return ZT_OK;
}

enum zt_status pickle_need(const struct pickle *pickle, uint32_t count, struct zt_error *error)
{
    assert(pickle->mark <= pickle->stack.count);
    if (pickle->stack.count - pickle->mark >= count)
        return ZT_OK;
    return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Stack", error,
                       "%s needs more values than the stack has",
                       pickle_opcode_name(pickle->bytes[pickle->opcode_at]));
}

enum zt_status pickle_memo_put(struct pickle *pickle, uint64_t index, struct zt_error *error)
{
    struct pickle_words *memo = &pickle->memo;
    enum zt_status status = pickle_need(pickle, 1, error);

    if (status != ZT_OK)
        return status;
    if (index >= pickle->length)
        return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Memo", error,
                           "memo %" PRIu64 " of a pickle of %zu bytes", index, pickle->length);
    if (index >= memo->capacity)
        status = grow(pickle, memo, (size_t)index + 1, error);
    if (status != ZT_OK)
        return status;
    if (index >= memo->count) {
        memset(memo->items + memo->count, 0,
               ((size_t)index + 1 - memo->count) * sizeof(*memo->items));
        memo->count = (size_t)index + 1;
    }
    assert(index < memo->count);
    pickle->memo_count += memo->items[index] == 0;
    memo->items[index] = pickle->stack.items[pickle->stack.count - 1];
    return ZT_OK;
}

enum zt_status pickle_memo_get(struct pickle *pickle, uint64_t index, struct zt_error *error)
{
    if (index >= pickle->memo.count || pickle->memo.items[index] == 0)
        return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Memo", error,
                           "memo %" PRIu64 " does not exist", index);
    return pickle_push(pickle, pickle->memo.items[index], error);
}

/* --- containers --- */

static uint32_t low(uint64_t word)
{
    return (uint32_t)word;
}

static uint32_t high(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

enum zt_status pickle_new_container(struct pickle *pickle, enum pickle_kind kind, uint32_t flags,
                                    pickle_value *out_value, struct zt_error *error)
{
    uint32_t index = 0;
    enum zt_status status = pickle_take(pickle, CONTAINER_HEAD_WORDS, &index, error);

    assert(kind == PICKLE_MAP || kind == PICKLE_LIST || kind == PICKLE_SET);
    if (status != ZT_OK)
        return status;
    pickle->arena.items[index + 1] = flags;
    *out_value = pickle_make(pickle, kind, index);
    return ZT_OK;
}

uint32_t pickle_container_flags(const struct pickle *pickle, pickle_value container)
{
    return (uint32_t)pickle->arena.items[pickle_index_of(container) + 1];
}

enum zt_status pickle_extend(struct pickle *pickle, pickle_value container, const uint64_t *words,
                             uint32_t count, struct zt_error *error)
{
    const uint32_t head = pickle_index_of(container);
    uint32_t run = 0;
    enum zt_status status;
    uint64_t *items;
    uint32_t first;
    uint32_t last;

    if (count == 0)
        return ZT_OK;
    status = pickle_take(pickle, RUN_HEAD_WORDS + count, &run, error);
    if (status != ZT_OK)
        return status;
    items = pickle->arena.items;
    first = low(items[head]);
    last = high(items[head]);
    items[run] = pickle_pair(count, 0);
    memcpy(items + run + RUN_HEAD_WORDS, words, count * sizeof(*words));
    assert(run > last);
    if (last != 0)
        items[last] = pickle_pair(low(items[last]), run);
    items[head] = pickle_pair(first != 0 ? first : run, run);
    return ZT_OK;
}

enum zt_status pickle_extend_by_top(struct pickle *pickle, pickle_value container, uint32_t count,
                                    struct zt_error *error)
{
    struct pickle_words *stack = &pickle->stack;
    enum zt_status status;

    assert(count <= stack->count);
    status = pickle_extend(pickle, container, stack->items + stack->count - count, count, error);
    if (status == ZT_OK)
        stack->count -= count;
    return status;
}

enum zt_status pickle_tuple_of_top(struct pickle *pickle, uint32_t count, struct zt_error *error)
{
    struct pickle_words *stack = &pickle->stack;
    uint32_t run = 0;
    enum zt_status status = pickle_take(pickle, RUN_HEAD_WORDS + count, &run, error);

    if (status != ZT_OK)
        return status;
    assert(count <= stack->count);
    pickle->arena.items[run] = pickle_pair(count, 0);
    if (count > 0)
        memcpy(pickle->arena.items + run + RUN_HEAD_WORDS, stack->items + stack->count - count,
               count * sizeof(*stack->items));
    stack->count -= count;
    return pickle_push(pickle, pickle_make(pickle, PICKLE_TUPLE, run), error);
}

const pickle_value *pickle_tuple(const struct pickle *pickle, pickle_value value,
                                 uint32_t *out_count)
{
    const uint32_t run = pickle_index_of(value);

    assert(pickle_kind_of(value) == PICKLE_TUPLE && run < pickle->arena.count);
    *out_count = low(pickle->arena.items[run]);
    return pickle->arena.items + run + RUN_HEAD_WORDS;
}

static void enter_run(const struct pickle *pickle, struct pickle_items *items, uint32_t run)
{
    const uint64_t head = pickle->arena.items[run];

    *items = (struct pickle_items){run + RUN_HEAD_WORDS, low(head), high(head)};
}

void pickle_items_begin(const struct pickle *pickle, pickle_value value,
                        struct pickle_items *out_items)
{
    const uint32_t index = pickle_index_of(value);
    uint32_t first;

    *out_items = (struct pickle_items){0};
    assert(index > 0 && index < pickle->arena.count);
    first = pickle_kind_of(value) == PICKLE_TUPLE ? index : low(pickle->arena.items[index]);
    if (first != 0)
        enter_run(pickle, out_items, first);
}

bool pickle_items_next(const struct pickle *pickle, struct pickle_items *items,
                       pickle_value *out_value)
{
    if (items->left == 0 && items->run != 0)
        enter_run(pickle, items, items->run);
    if (items->left == 0)
        return false;
    assert(items->next < pickle->arena.count);
    items->left--;
    *out_value = pickle->arena.items[items->next++];
    return true;
}

/* --- scalars --- */

bool pickle_is_true(const struct pickle *pickle, pickle_value value)
{
    const uint8_t *at = pickle->bytes + pickle_position_of(value);

    assert(pickle_kind_of(value) == PICKLE_BOOL);
    return *at == OP_NEWTRUE || (*at == OP_INT && at[2] == '1');
}

/* Little-endian two's complement of up to 9 bytes whose value fits into 64 bits and a sign. */
static uint64_t long_magnitude(const uint8_t *bytes, unsigned length, bool *out_negative)
{
    const bool negative = length > 0 && (bytes[length - 1] & 0x80u) != 0;
    uint64_t value = negative ? UINT64_MAX : 0;

    assert(length <= sizeof(value) + 1);
    for (unsigned i = length < 8 ? length : 8; i-- > 0;)
        value = value << 8 | bytes[i];
    *out_negative = negative;
    return negative ? 0 - value : value;
}

static uint64_t text_magnitude(const uint8_t *digits, bool *out_negative)
{
    const char *text = (const char *)digits + (*digits == '-');
    const char *end = rawmemchr(text, '\n');
    uint64_t value = 0;
    const bool is_number =
        zt_decimal_read((struct zt_text){text, (size_t)(end - text)}, UINT64_MAX, &value);

    assert(is_number);
    (void)is_number;
    *out_negative = *digits == '-';
    return value;
}

uint64_t pickle_magnitude(const struct pickle *pickle, pickle_value value, bool *out_negative)
{
    const uint8_t *at = pickle->bytes + pickle_position_of(value);
    const uint8_t *argument = at + 1;

    assert(pickle_kind_of(value) == PICKLE_INTEGER);
    *out_negative = false;
    switch (*at) {
    case OP_BININT1:
        return *argument;
    case OP_BININT2:
        return zt_load_le16(argument);
    case OP_BININT:
        return long_magnitude(argument, 4, out_negative);
    case OP_LONG1:
        return long_magnitude(argument + 1, *argument, out_negative);
    default:
        assert(*at == OP_INT);
        return text_magnitude(argument, out_negative);
    }
}

bool pickle_size_of(const struct pickle *pickle, pickle_value value, uint64_t *out_size)
{
    bool negative;
    uint64_t size;

    if (pickle_kind_of(value) != PICKLE_INTEGER)
        return false;
    size = pickle_magnitude(pickle, value, &negative);
    if ((negative && size > 0) || size > INT64_MAX)
        return false;
    *out_size = size;
    return true;
}

double pickle_float(const struct pickle *pickle, pickle_value value)
{
    const uint8_t *at = pickle->bytes + pickle_position_of(value);
    uint64_t bits = 0;
    double number;

    assert(pickle_kind_of(value) == PICKLE_FLOAT && *at == OP_BINFLOAT);
    for (unsigned i = 1; i <= 8; i++)
        bits = bits << 8 | at[i];
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static struct zt_text text_at(const uint8_t *at)
{
    switch (*at) {
    case OP_SHORT_BINUNICODE:
    case OP_SHORT_BINSTRING:
        return (struct zt_text){(const char *)at + 2, at[1]};
    case OP_BINUNICODE8:
        return (struct zt_text){(const char *)at + 9, (size_t)zt_load_le64(at + 1)};
    default:
        assert(*at == OP_BINUNICODE || *at == OP_BINSTRING);
        return (struct zt_text){(const char *)at + 5, zt_load_le32(at + 1)};
    }
}

struct zt_text pickle_text(const struct pickle *pickle, pickle_value value)
{
    assert(pickle_kind_of(value) == PICKLE_TEXT);
    return text_at(pickle->bytes + pickle_position_of(value));
}

struct zt_text pickle_layout(const struct pickle *pickle, pickle_value value)
{
    assert(pickle_kind_of(value) == PICKLE_LAYOUT);
    return text_at(pickle->bytes + pickle_index_of(value));
}
