/* GGUF: keys and values. In the file they are only skipped; in memory they become one CBOR map.
 * Integers lose their width, floats take the shortest form that preserves their value, and strings
 * become texts, or byte strings if they are not UTF-8. */
#include "formats/gguf/gguf.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"
#include "zt/utf8.h"

#define METADATA_BOUNDS "gguf §Metadata Bounds"
#define METADATA_KEY    "gguf §Metadata Key"
/* The alignment if "general.alignment" is absent. */
#define DEFAULT_ALIGNMENT 32
#define LEAST_ALIGNMENT   8

/* --- strings and types --- */

enum zt_status gguf_take_length(struct zt_cursor *cursor, uint64_t *out_length,
                                struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint64_t length = 0;
    enum zt_status status = zt_cursor_u64(cursor, &length, error);

    if (status != ZT_OK)
        return status;
    if (length > zt_cursor_left(cursor))
        return zt_fail(error, ZT_INVALID, cursor->bounds_rule, at,
                       CUT_OFF "a string of %" PRIu64 " bytes where %" PRIu64 " remain", length,
                       zt_cursor_left(cursor));
    *out_length = length;
    return ZT_OK;
}

static enum zt_status take_string(struct zt_cursor *cursor, struct zt_text *out_string,
                                  struct zt_error *error)
{
    uint64_t length = 0;
    const uint8_t *bytes;
    enum zt_status status = gguf_take_length(cursor, &length, error);

    assert(cursor->source == NULL);
    if (status == ZT_OK)
        status = zt_cursor_take(cursor, length, &bytes, error);
    if (status == ZT_OK)
        *out_string = (struct zt_text){(const char *)bytes, (size_t)length};
    return status;
}

enum zt_status gguf_take_name(struct zt_cursor *cursor, const struct gguf_name_rule *rule,
                              struct zt_text *out_name, struct zt_error *error)
{
    uint64_t at = cursor->position;
    struct zt_text name = {NULL, 0};
    enum zt_status status = take_string(cursor, &name, error);

    if (status != ZT_OK)
        return status;
    if (name.length == 0 || name.length > rule->length_max)
        return zt_fail(error, ZT_INVALID, rule->rule, at, "%s of %zu bytes, not 1 to %zu",
                       rule->what, name.length, rule->length_max);
    if (!zt_utf8_valid(name.bytes, name.length))
        return zt_fail(error, ZT_INVALID, rule->rule, at, "%s that is not UTF-8", rule->what);
    *out_name = name;
    return ZT_OK;
}

static enum zt_status take_value_type(struct zt_cursor *cursor, enum gguf_value *out_type,
                                      struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint32_t number;
    enum zt_status status = zt_cursor_u32(cursor, &number, error);

    if (status != ZT_OK)
        return status;
    if (number >= GGUF_VALUE_COUNT)
        return zt_fail(error, ZT_INVALID, "gguf §Metadata ValueType", at,
                       "%" PRIu32 " is not the type of a value", number);
    *out_type = (enum gguf_value)number;
    return ZT_OK;
}

/* The fewest bytes of a value of the type: its exact size except for strings and arrays. */
static unsigned value_bytes(enum gguf_value type)
{
    static const uint8_t bytes[GGUF_VALUE_COUNT] = {
        [GGUF_U8] = 1,     [GGUF_I8] = 1,  [GGUF_U16] = 2, [GGUF_I16] = 2,
        [GGUF_U32] = 4,    [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
        [GGUF_U64] = 8,    [GGUF_I64] = 8, [GGUF_F64] = 8, [GGUF_STRING] = 8, /* its length */
        [GGUF_ARRAY] = 12, /* the type of its elements, and their count */
    };

    assert(type < GGUF_VALUE_COUNT);
    return bytes[type];
}

/* Reads the head of an array and checks that its elements can fit into the remaining bytes. */
static enum zt_status take_array(struct zt_cursor *cursor, unsigned depth,
                                 enum gguf_value *out_type, uint64_t *out_count,
                                 struct zt_error *error)
{
    uint64_t at = cursor->position;
    enum gguf_value type = GGUF_U8;
    uint64_t count = 0;
    enum zt_status status;

    assert(depth <= GGUF_DEPTH_MAX);
    if (depth == GGUF_DEPTH_MAX)
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Depth", at,
                       "more than %d arrays inside one another", GGUF_DEPTH_MAX);
    status = take_value_type(cursor, &type, error);
    if (status == ZT_OK)
        status = zt_cursor_u64(cursor, &count, error);
    if (status != ZT_OK)
        return status;
    if (count > zt_cursor_left(cursor) / value_bytes(type))
        return zt_fail(error, ZT_INVALID, cursor->bounds_rule, at + 4,
                       CUT_OFF "an array of %" PRIu64 " elements where %" PRIu64 " bytes remain",
                       count, zt_cursor_left(cursor));
    *out_type = type;
    *out_count = count;
    return ZT_OK;
}

/* --- passing over --- */

static enum zt_status skip_value(struct zt_cursor *cursor, enum gguf_value type, unsigned depth,
                                 struct zt_error *error);

static enum zt_status skip_array(struct zt_cursor *cursor, unsigned depth, struct zt_error *error)
{
    enum gguf_value type = GGUF_U8;
    uint64_t count = 0;
    enum zt_status status = take_array(cursor, depth, &type, &count, error);

    if (status != ZT_OK)
        return status;
    if (type != GGUF_STRING && type != GGUF_ARRAY)
        return zt_cursor_skip(cursor, count * value_bytes(type), error);
    for (uint64_t i = 0; i < count && status == ZT_OK; i++) {
        status = gguf_check_size(cursor, error);
        if (status == ZT_OK)
            status = skip_value(cursor, type, depth + 1, error);
    }
    return status;
}

static enum zt_status skip_string(struct zt_cursor *cursor, struct zt_error *error)
{
    uint64_t length = 0;
    enum zt_status status = gguf_take_length(cursor, &length, error);

    return status == ZT_OK ? zt_cursor_skip(cursor, length, error) : status;
}

static enum zt_status skip_value(struct zt_cursor *cursor, enum gguf_value type, unsigned depth,
                                 struct zt_error *error)
{
    if (type == GGUF_ARRAY)
        return skip_array(cursor, depth, error);
    if (type == GGUF_STRING)
        return skip_string(cursor, error);
    return zt_cursor_skip(cursor, value_bytes(type), error);
}

enum zt_status gguf_metadata_skip(struct zt_cursor *cursor, uint64_t count, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    cursor->bounds_rule = METADATA_BOUNDS;
    for (uint64_t i = 0; i < count && status == ZT_OK; i++) {
        enum gguf_value type = GGUF_U8;

        status = gguf_check_size(cursor, error);
        if (status == ZT_OK)
            status = skip_string(cursor, error);
        if (status == ZT_OK)
            status = take_value_type(cursor, &type, error);
        if (status == ZT_OK)
            status = skip_value(cursor, type, 0, error);
    }
    return status;
}

/* --- turning into CBOR --- */

static enum zt_status encode_value(struct zt_cursor *cursor, enum gguf_value type, unsigned depth,
                                   struct zt_buffer *buffer, struct zt_error *error);

static enum zt_status encode_string(struct zt_cursor *cursor, struct zt_buffer *buffer,
                                    struct zt_error *error)
{
    struct zt_text string = {NULL, 0};
    enum zt_status status = take_string(cursor, &string, error);

    if (status != ZT_OK)
        return status;
    /* Tokenizers contain tokens that are parts of characters, so a string need not be UTF-8. */
    if (zt_utf8_valid(string.bytes, string.length))
        zt_cbor_put_text(buffer, string);
    else
        zt_cbor_put_bytes(buffer, string.bytes, string.length);
    return ZT_OK;
}

static enum zt_status encode_array(struct zt_cursor *cursor, unsigned depth,
                                   struct zt_buffer *buffer, struct zt_error *error)
{
    enum gguf_value type = GGUF_U8;
    uint64_t count = 0;
    enum zt_status status = take_array(cursor, depth, &type, &count, error);

    if (status != ZT_OK)
        return status;
    zt_cbor_put_array(buffer, count);
    for (uint64_t i = 0; i < count && status == ZT_OK; i++)
        status = encode_value(cursor, type, depth + 1, buffer, error);
    return status;
}

static uint64_t load_unsigned(const uint8_t *bytes, unsigned length)
{
    switch (length) {
    case 1:
        return bytes[0];
    case 2:
        return zt_load_le16(bytes);
    case 4:
        return zt_load_le32(bytes);
    default:
        assert(length == 8);
        return zt_load_le64(bytes);
    }
}

static int64_t load_signed(const uint8_t *bytes, unsigned length)
{
    uint64_t sign = 1ull << (8 * length - 1);
    uint64_t value = (load_unsigned(bytes, length) ^ sign) - sign;
    int64_t result;

    memcpy(&result, &value, sizeof(result));
    return result;
}

static double load_float(const uint8_t *bytes, unsigned length)
{
    uint64_t bits = load_unsigned(bytes, length);
    uint32_t narrow_bits = (uint32_t)bits;
    double wide;
    float narrow;

    if (length == sizeof(wide)) {
        memcpy(&wide, &bits, sizeof(wide));
        return wide;
    }
    assert(length == sizeof(narrow));
    memcpy(&narrow, &narrow_bits, sizeof(narrow));
    return (double)narrow;
}

static enum zt_status encode_number(struct zt_cursor *cursor, enum gguf_value type,
                                    struct zt_buffer *buffer, struct zt_error *error)
{
    const uint8_t *bytes;
    unsigned length = value_bytes(type);
    enum zt_status status = zt_cursor_take(cursor, length, &bytes, error);

    assert(length > 0 && length <= sizeof(uint64_t));
    if (status != ZT_OK)
        return status;
    switch (type) {
    case GGUF_BOOL:
        if (*bytes > 1)
            return zt_fail(error, ZT_INVALID, "gguf §Metadata Bool", cursor->position - 1,
                           "a bool that is neither 0 nor 1");
        zt_cbor_put_bool(buffer, *bytes == 1);
        break;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        zt_cbor_put_int(buffer, load_signed(bytes, length));
        break;
    case GGUF_F32:
    case GGUF_F64:
        zt_cbor_put_float(buffer, load_float(bytes, length));
        break;
    default:
        zt_cbor_put_uint(buffer, load_unsigned(bytes, length));
        break;
    }
    return ZT_OK;
}

static enum zt_status encode_value(struct zt_cursor *cursor, enum gguf_value type, unsigned depth,
                                   struct zt_buffer *buffer, struct zt_error *error)
{
    switch (type) {
    case GGUF_STRING:
        return encode_string(cursor, buffer, error);
    case GGUF_ARRAY:
        return encode_array(cursor, depth, buffer, error);
    default:
        return encode_number(cursor, type, buffer, error);
    }
}

/* --- pairs --- */

/* Reads the alignment at the cursor without moving the cursor. */
static enum zt_status peek_alignment(struct gguf_reading *reading, enum gguf_value type,
                                     struct zt_error *error)
{
    struct zt_cursor cursor = reading->cursor;
    uint64_t at = cursor.position;
    uint32_t alignment;
    enum zt_status status;

    if (type != GGUF_U32)
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Alignment", at,
                       "general.alignment is not a 32-bit unsigned integer");
    status = zt_cursor_u32(&cursor, &alignment, error);
    if (status != ZT_OK)
        return status;
    if (alignment < LEAST_ALIGNMENT || (alignment & (alignment - 1)) != 0)
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Alignment", at,
                       "general.alignment is %" PRIu32 ", not a power of two of at least %d",
                       alignment, LEAST_ALIGNMENT);
    reading->alignment = alignment;
    return ZT_OK;
}

static enum zt_status read_pair(struct gguf_reading *reading, struct zt_attribute_list *list,
                                struct zt_error *error)
{
    static const struct gguf_name_rule key_rule = {"a key", METADATA_KEY, 65535};
    struct zt_text key = {NULL, 0};
    enum gguf_value type = GGUF_U8;
    enum zt_status status = gguf_take_name(&reading->cursor, &key_rule, &key, error);

    if (status == ZT_OK)
        status = take_value_type(&reading->cursor, &type, error);
    if (status == ZT_OK && zt_text_is(key, "general.alignment"))
        status = peek_alignment(reading, type, error);
    if (status == ZT_OK)
        status = zt_attribute_list_key(list, key, error);
    return status == ZT_OK ? encode_value(&reading->cursor, type, 0, &list->pairs, error) : status;
}

enum zt_status gguf_metadata_read(struct gguf_reading *reading, struct zt_error *error)
{
    struct zt_attribute_list list = {0};
    enum zt_status status = ZT_OK;

    reading->alignment = DEFAULT_ALIGNMENT;
    if (reading->pair_count == 0)
        return ZT_OK;
    reading->cursor.bounds_rule = METADATA_BOUNDS;
    for (uint64_t i = 0; i < reading->pair_count && status == ZT_OK; i++)
        status = read_pair(reading, &list, error);
    if (status == ZT_OK)
        status =
            zt_attribute_list_check(&list, reading->builder, "gguf §Metadata DuplicateKey", error);
    if (status == ZT_OK)
        status = zt_attribute_list_keep(&list, reading->builder,
                                        &reading->builder->model->attributes, error);
    zt_attribute_list_free(&list);
    return status;
}
