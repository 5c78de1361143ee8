/* Reading CBOR heads with libcbor's streaming decoder, and walking arrays and maps (RFC 8949).
 *
 * This file checks what libcbor does not: UTF-8, declared counts, depth, and zTensor 2's
 * deterministic encoding. cbor_skip.c skips values and compares the keys of unsorted maps. */
#include "cbor/cbor_read.h"

#include <assert.h>
#include <cbor.h>
#include <math.h>
#include <string.h>

#include "cbor/cbor_write.h"
#include "zt/utf8.h"

#define BREAK_BYTE 0xFF
/* The first byte of a two-byte simple value; the second byte is at least SIMPLE_WIDE_FIRST. */
#define SIMPLE_BYTE       0xF8
#define SIMPLE_WIDE_FIRST 32
/* The greatest depth, where the root has depth 0: zTensor 2 section 2's bound, and this library's
 * own for older files. */
#define DEPTH_LIMIT_ZT2     32
#define DEPTH_LIMIT_LENIENT 128

static const char *const rule_names[][4] = {
    [ZT_CBOR_ZT01] = {"zt0.1 §Metadata CborSyntax", "zt0.1 §Metadata CborDeterminism",
                      "zt0.1 §Metadata CborDuplicateKey", "zt0.1 §Metadata CborDepth"},
    [ZT_CBOR_ZT1] = {"zt1 §1 CborSyntax", "zt1 §1 CborDeterminism", "zt1 §1 CborDuplicateKey",
                     "zt1 §1 CborDepth"},
    [ZT_CBOR_ZT2] = {"zt2 §2 CborSyntax", "zt2 §2 CborDeterminism", "zt2 §2 CborDuplicateKey",
                     "zt2 §2 CborDepth"},
};

const char *zt_cbor_rule_name(const struct zt_cbor_reader *reader, enum zt_cbor_rule rule)
{
    return rule_names[reader->profile][rule];
}

/* --- the callbacks of libcbor: each fills the item that is its context --- */

#define ON_NUMBER(name, type, kind_)            \
    static void name(void *context, type value) \
    {                                           \
        struct zt_cbor_item *item = context;    \
        item->kind = kind_;                     \
        item->value = value;                    \
    }
#define ON_STRING(name, kind_)                                      \
    static void name(void *context, cbor_data bytes, size_t length) \
    {                                                               \
        struct zt_cbor_item *item = context;                        \
        item->kind = kind_;                                         \
        item->bytes = bytes;                                        \
        item->value = length;                                       \
    }
#define ON_EVENT(name, kind_, indefinite_)   \
    static void name(void *context)          \
    {                                        \
        struct zt_cbor_item *item = context; \
        item->kind = kind_;                  \
        item->indefinite = indefinite_;      \
    }
#define ON_FLOAT(name, type)                     \
    static void name(void *context, type number) \
    {                                            \
        struct zt_cbor_item *item = context;     \
        item->kind = ZT_CBOR_FLOAT;              \
        item->number = (double)number;           \
    }

ON_NUMBER(on_uint8, uint8_t, ZT_CBOR_UINT)
ON_NUMBER(on_uint16, uint16_t, ZT_CBOR_UINT)
ON_NUMBER(on_uint32, uint32_t, ZT_CBOR_UINT)
ON_NUMBER(on_uint64, uint64_t, ZT_CBOR_UINT)
ON_NUMBER(on_nint8, uint8_t, ZT_CBOR_NINT)
ON_NUMBER(on_nint16, uint16_t, ZT_CBOR_NINT)
ON_NUMBER(on_nint32, uint32_t, ZT_CBOR_NINT)
ON_NUMBER(on_nint64, uint64_t, ZT_CBOR_NINT)
ON_NUMBER(on_array, size_t, ZT_CBOR_ARRAY)
ON_NUMBER(on_map, size_t, ZT_CBOR_MAP)
ON_NUMBER(on_tag, uint64_t, ZT_CBOR_TAG)
ON_STRING(on_bytes, ZT_CBOR_BYTES)
ON_STRING(on_text, ZT_CBOR_TEXT)
ON_EVENT(on_bytes_start, ZT_CBOR_BYTES, true)
ON_EVENT(on_text_start, ZT_CBOR_TEXT, true)
ON_EVENT(on_array_start, ZT_CBOR_ARRAY, true)
ON_EVENT(on_map_start, ZT_CBOR_MAP, true)
ON_EVENT(on_undefined, ZT_CBOR_UNDEFINED, false)
ON_EVENT(on_null, ZT_CBOR_NULL, false)
ON_EVENT(on_break, ZT_CBOR_BREAK, false)
ON_FLOAT(on_float, float)
ON_FLOAT(on_double, double)

static void on_boolean(void *context, bool value)
{
    struct zt_cbor_item *item = context;

    item->kind = value ? ZT_CBOR_TRUE : ZT_CBOR_FALSE;
}

static const struct cbor_callbacks callbacks = {
    .uint8 = on_uint8,
    .uint16 = on_uint16,
    .uint32 = on_uint32,
    .uint64 = on_uint64,
    .negint8 = on_nint8,
    .negint16 = on_nint16,
    .negint32 = on_nint32,
    .negint64 = on_nint64,
    .byte_string_start = on_bytes_start,
    .byte_string = on_bytes,
    .string_start = on_text_start,
    .string = on_text,
    .indef_array_start = on_array_start,
    .array_start = on_array,
    .indef_map_start = on_map_start,
    .map_start = on_map,
    .tag = on_tag,
    .float2 = on_float,
    .float4 = on_float,
    .float8 = on_double,
    .undefined = on_undefined,
    .null = on_null,
    .boolean = on_boolean,
    .indef_break = on_break,
};

/* --- one head --- */

void zt_cbor_reader_init(struct zt_cbor_reader *reader, const void *bytes, size_t length,
                         uint64_t base_offset, enum zt_cbor_profile profile, struct zt_arena *arena)
{
    *reader = (struct zt_cbor_reader){.bytes = bytes,
                                      .length = length,
                                      .base_offset = base_offset,
                                      .profile = profile,
                                      .arena = arena};
}

static enum zt_status fail_syntax(const struct zt_cbor_reader *reader, uint64_t offset,
                                  const char *what, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, zt_cbor_rule_name(reader, ZT_CBOR_SYNTAX), offset, "CBOR: %s",
                   what);
}

static enum zt_status fail_determinism(const struct zt_cbor_reader *reader,
                                       const struct zt_cbor_item *item, const char *what,
                                       struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, zt_cbor_rule_name(reader, ZT_CBOR_DETERMINISM), item->offset,
                   "CBOR: %s", what);
}

/* Whether a head with these low bits in its first byte is longer than the value needs. */
static bool is_widened(unsigned additional, uint64_t value)
{
    switch (additional) {
    case 24:
        return value < 24;
    case 25:
        return value <= UINT8_MAX;
    case 26:
        return value <= UINT16_MAX;
    case 27:
        return value <= UINT32_MAX;
    default:
        return false;
    }
}

static enum zt_status check_float(const struct zt_cbor_reader *reader,
                                  const struct zt_cbor_item *item, size_t width_bytes,
                                  struct zt_error *error)
{
    const uint8_t *head = reader->bytes + (item->offset - reader->base_offset);

    assert(item->offset >= reader->base_offset);
    assert(width_bytes == 2 || width_bytes == 4 || width_bytes == 8);
    if (isnan(item->number) && !(width_bytes == 2 && head[1] == 0x7E && head[2] == 0x00))
        return fail_determinism(reader, item, "a NaN that is not F9 7E00", error);
    if (width_bytes > zt_cbor_float_width(item->number))
        return fail_determinism(reader, item, "a float is wider than its value needs", error);
    return ZT_OK;
}

/* Checks which items occur and that their heads are shortest (zTensor 2 section 2). */
static enum zt_status check_deterministic(const struct zt_cbor_reader *reader,
                                          const struct zt_cbor_item *item, unsigned first,
                                          size_t read, struct zt_error *error)
{
    if (item->indefinite)
        return fail_syntax(reader, item->offset, "an item of indefinite length", error);
    if (item->kind == ZT_CBOR_TAG)
        return fail_syntax(reader, item->offset, "a tag", error);
    if (item->kind == ZT_CBOR_UNDEFINED)
        return fail_syntax(reader, item->offset, "the value undefined", error);
    if (item->kind == ZT_CBOR_SIMPLE)
        return fail_syntax(reader, item->offset, "an unassigned simple value", error);
    if (item->kind == ZT_CBOR_FLOAT)
        return check_float(reader, item, read - 1, error);
    if (is_widened(first & 31, item->value))
        return fail_determinism(reader, item, "a head is wider than its value needs", error);
    return ZT_OK;
}

static enum zt_status check_content(const struct zt_cbor_reader *reader,
                                    const struct zt_cbor_item *item, struct zt_error *error)
{
    size_t left = reader->length - reader->position;

    assert(reader->position <= reader->length);
    assert(item->value <= reader->position ||
           (item->kind != ZT_CBOR_TEXT && item->kind != ZT_CBOR_BYTES));
    if (item->kind == ZT_CBOR_TEXT && !item->indefinite &&
        !zt_utf8_valid((const char *)item->bytes, (size_t)item->value))
        return fail_syntax(reader, item->offset, "a text is not UTF-8", error);
    if (item->kind == ZT_CBOR_ARRAY && item->value > left) {
        return fail_syntax(reader, item->offset, "an array declares more items than bytes remain",
                           error);
    }
    if (item->kind == ZT_CBOR_MAP && item->value > left / 2) {
        return fail_syntax(reader, item->offset, "a map declares more pairs than bytes remain",
                           error);
    }
    return ZT_OK;
}

/* Decodes a simple value: values up to 19 take one byte, values from 32 on two (RFC 8949 section
 * 3.3). */
static size_t decode_simple(const uint8_t *head, size_t left, struct zt_cbor_item *item)
{
    bool in_head = *head != SIMPLE_BYTE;

    assert(left > 0);
    if (!in_head && (left < 2 || head[1] < SIMPLE_WIDE_FIRST))
        return 0;
    item->kind = ZT_CBOR_SIMPLE;
    item->value = in_head ? *head & 31 : head[1];
    return in_head ? 1 : 2;
}

static size_t decode_head(const struct zt_cbor_reader *reader, struct zt_cbor_item *item)
{
    const uint8_t *head = reader->bytes + reader->position;
    size_t left = reader->length - reader->position;
    struct cbor_decoder_result result;

    /* libcbor rejects unassigned simple values, although they are well formed. */
    if (left > 0 && ((*head >= 0xE0 && *head <= 0xF3) || *head == SIMPLE_BYTE))
        return decode_simple(head, left, item);
    /* libcbor rejects the tags 6 to 20, although they are well formed. */
    if (left > 0 && *head >= 0xC6 && *head <= 0xD4) {
        on_tag(item, *head & 31);
        return 1;
    }
    result = cbor_stream_decode(head, left, &callbacks, item);
    return result.status == CBOR_DECODER_FINISHED ? result.read : 0;
}

/* Reads any head, including a break; does not join strings of indefinite length. */
static enum zt_status read_head(struct zt_cbor_reader *reader, struct zt_cbor_item *item,
                                struct zt_error *error)
{
    size_t read;
    unsigned first;
    enum zt_status status;

    item->offset = reader->base_offset + reader->position;
    item->indefinite = false;
    item->value = 0;
    item->bytes = NULL;
    if (reader->depth > (reader->profile == ZT_CBOR_ZT2 ? DEPTH_LIMIT_ZT2 : DEPTH_LIMIT_LENIENT)) {
        return zt_fail(error, ZT_INVALID, zt_cbor_rule_name(reader, ZT_CBOR_DEPTH), item->offset,
                       "CBOR: nested deeper than %u levels", reader->depth - 1);
    }
    read = decode_head(reader, item);
    if (read == 0)
        return fail_syntax(reader, item->offset, "not an item, or cut short", error);
    first = reader->bytes[reader->position];
    assert(read <= reader->length - reader->position);
    reader->position += read;
    status = check_content(reader, item, error);
    if (status == ZT_OK && reader->profile == ZT_CBOR_ZT2)
        status = check_deterministic(reader, item, first, read, error);
    return status;
}

/* --- strings of indefinite length --- */

static bool take_break(struct zt_cbor_reader *reader)
{
    if (reader->position == reader->length || reader->bytes[reader->position] != BREAK_BYTE)
        return false;
    reader->position++;
    return true;
}

/* Reads the chunks up to the break and copies them to target, which may be NULL. */
static enum zt_status read_chunks(struct zt_cbor_reader *reader, enum zt_cbor_kind kind,
                                  uint8_t *target, size_t *out_length, struct zt_error *error)
{
    size_t length = 0;

    while (!take_break(reader)) {
        struct zt_cbor_item chunk;
        enum zt_status status = read_head(reader, &chunk, error);

        if (status != ZT_OK)
            return status;
        if (chunk.kind != kind || chunk.indefinite) {
            return fail_syntax(reader, chunk.offset, "a chunk of a different kind than its string",
                               error);
        }
        if (target != NULL && chunk.value > 0)
            memcpy(target + length, chunk.bytes, (size_t)chunk.value);
        length += (size_t)chunk.value;
    }
    *out_length = length;
    return ZT_OK;
}

enum zt_status zt_cbor_pass_chunks(struct zt_cbor_reader *reader, enum zt_cbor_kind kind,
                                   struct zt_error *error)
{
    size_t length;

    return read_chunks(reader, kind, NULL, &length, error);
}

static enum zt_status join_chunks(struct zt_cbor_reader *reader, struct zt_cbor_item *item,
                                  struct zt_error *error)
{
    size_t start = reader->position;
    size_t length;
    enum zt_status status = read_chunks(reader, item->kind, NULL, &length, error);
    void *joined;

    if (status != ZT_OK)
        return status;
    if (reader->arena == NULL) {
        return zt_fail(error, ZT_UNSUPPORTED, NULL, item->offset,
                       "CBOR: a string of indefinite length, which is not supported");
    }
    status = zt_arena_take(reader->arena, length, &joined, error);
    if (status != ZT_OK)
        return status;
    reader->position = start;
    status = read_chunks(reader, item->kind, joined, &length, error);
    assert(status == ZT_OK);
    item->bytes = joined;
    item->value = length;
    return status;
}

/* --- the calls of the readers --- */

enum zt_status zt_cbor_head(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                            struct zt_error *error)
{
    enum zt_status status = read_head(reader, out_item, error);

    if (status == ZT_OK && out_item->kind == ZT_CBOR_BREAK)
        return fail_syntax(reader, out_item->offset, "a break where a value should be", error);
    return status;
}

enum zt_status zt_cbor_next(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                            struct zt_error *error)
{
    enum zt_status status = zt_cbor_head(reader, out_item, error);

    if (status == ZT_OK && out_item->indefinite &&
        (out_item->kind == ZT_CBOR_TEXT || out_item->kind == ZT_CBOR_BYTES))
        return join_chunks(reader, out_item, error);
    return status;
}

enum zt_status zt_cbor_next_untagged(struct zt_cbor_reader *reader, struct zt_cbor_item *out_item,
                                     struct zt_error *error)
{
    const unsigned depth = reader->depth;
    enum zt_status status;

    /* A tag counts as a level, so that nested tags are bounded like nested arrays. */
    while ((status = zt_cbor_next(reader, out_item, error)) == ZT_OK &&
           out_item->kind == ZT_CBOR_TAG)
        reader->depth++;
    reader->depth = depth;
    return status;
}

struct zt_cbor_walk zt_cbor_enter(struct zt_cbor_reader *reader, const struct zt_cbor_item *item)
{
    assert(item->kind == ZT_CBOR_ARRAY || item->kind == ZT_CBOR_MAP);
    reader->depth++;
    return (struct zt_cbor_walk){
        .remaining = item->indefinite ? UINT64_MAX : item->value,
        .indefinite = item->indefinite,
        .is_map = item->kind == ZT_CBOR_MAP,
    };
}

bool zt_cbor_more(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk)
{
    bool more = walk->indefinite ? !take_break(reader) : walk->remaining > 0;

    assert(reader->depth > 0);
    if (!more)
        reader->depth--;
    else if (!walk->indefinite)
        walk->remaining--;
    return more;
}

/* Checks that keys ascend by their encoded bytes (zTensor 2 section 2). No encoded item is a prefix
 * of another, so comparing the shorter length is enough. */
static enum zt_status check_key_order(const struct zt_cbor_reader *reader,
                                      struct zt_cbor_walk *walk, const struct zt_cbor_item *key,
                                      struct zt_error *error)
{
    const uint8_t *encoded = reader->bytes + (key->offset - reader->base_offset);
    size_t length = reader->position - (size_t)(key->offset - reader->base_offset);

    assert(length > 0 && length <= reader->length);
    if (walk->previous_key != NULL) {
        size_t shared = length < walk->previous_key_length ? length : walk->previous_key_length;
        int order = memcmp(walk->previous_key, encoded, shared);

        if (order == 0) {
            return zt_fail(error, ZT_INVALID, zt_cbor_rule_name(reader, ZT_CBOR_DUPLICATE_KEY),
                           key->offset, "CBOR: a map has a key twice");
        }
        if (order > 0)
            return fail_determinism(reader, key, "the keys of a map are not in order", error);
    }
    walk->previous_key = encoded;
    walk->previous_key_length = length;
    return ZT_OK;
}

/* Skips a key that contains items; its content becomes its encoded bytes. */
static enum zt_status read_compound_key(struct zt_cbor_reader *reader, struct zt_cbor_item *key,
                                        struct zt_error *error)
{
    struct zt_text span;
    enum zt_status status;

    assert(key->offset >= reader->base_offset &&
           key->offset - reader->base_offset < reader->position);
    reader->position = (size_t)(key->offset - reader->base_offset);
    status = zt_cbor_skip_span(reader, &span, error);
    if (status == ZT_OK) {
        key->bytes = (const uint8_t *)span.bytes;
        key->value = span.length;
    }
    return status;
}

enum zt_status zt_cbor_key(struct zt_cbor_reader *reader, struct zt_cbor_walk *walk,
                           struct zt_cbor_item *out_key, struct zt_error *error)
{
    enum zt_status status;

    assert(walk->is_map);
    status = zt_cbor_next(reader, out_key, error);
    if (status == ZT_OK && (out_key->kind == ZT_CBOR_ARRAY || out_key->kind == ZT_CBOR_MAP ||
                            out_key->kind == ZT_CBOR_TAG))
        status = read_compound_key(reader, out_key, error);
    if (status == ZT_OK && reader->profile == ZT_CBOR_ZT2)
        status = check_key_order(reader, walk, out_key, error);
    return status;
}

enum zt_status zt_cbor_end(const struct zt_cbor_reader *reader, struct zt_error *error)
{
    if (reader->position < reader->length) {
        return fail_syntax(reader, reader->base_offset + reader->position, "bytes after the item",
                           error);
    }
    return ZT_OK;
}
