/* GGUF: values of metadata. */
#include "formats/gguf_values.h"

#include <inttypes.h>
#include <string.h>

#include "zt/utf8.h"

enum zt_status gguf_take_value_type(struct gguf_cursor *cursor, enum gguf_value *out_type,
                                    struct zt_error *error)
{
    uint64_t at = cursor->position;
    uint32_t number;
    enum zt_status status = gguf_take_u32(cursor, &number, error);

    if (status != ZT_OK)
        return status;
    if (number >= GGUF_VALUE_COUNT) {
        return zt_fail(error, ZT_INVALID, "gguf §Metadata ValueType", at,
                       "%" PRIu32 " is not the type of a value", number);
    }
    *out_type = (enum gguf_value)number;
    return ZT_OK;
}

/* The head of an array: of so many elements that they can be there. */
static enum zt_status take_array(struct gguf_cursor *cursor, unsigned depth,
                                 enum gguf_value *out_type, uint64_t *out_count,
                                 struct zt_error *error)
{
    uint64_t at = cursor->position;
    enum gguf_value type = GGUF_U8;
    uint64_t count = 0;
    enum zt_status status;

    if (depth == GGUF_DEPTH_MAX) {
        return zt_fail(error, ZT_INVALID, "gguf §Metadata Depth", at,
                       "more than %d arrays inside one another", GGUF_DEPTH_MAX);
    }
    status = gguf_take_value_type(cursor, &type, error);
    if (status == ZT_OK)
        status = gguf_take_u64(cursor, &count, error);
    if (status != ZT_OK)
        return status;
    if (count > gguf_cursor_left(cursor) / gguf_value_bytes(type)) {
        return zt_fail(error, ZT_INVALID, cursor->bounds_rule, at + 4,
                       "an array of %" PRIu64 " elements where %" PRIu64 " bytes remain", count,
                       gguf_cursor_left(cursor));
    }
    *out_type = type;
    *out_count = count;
    return ZT_OK;
}

/* --- passing over --- */

static enum zt_status skip_at(struct gguf_cursor *cursor, enum gguf_value type, unsigned depth,
                              struct zt_error *error);

static enum zt_status skip_array(struct gguf_cursor *cursor, unsigned depth, struct zt_error *error)
{
    enum gguf_value type;
    uint64_t count;
    enum zt_status status = take_array(cursor, depth, &type, &count, error);

    if (status != ZT_OK)
        return status;
    if (type != GGUF_STRING && type != GGUF_ARRAY) {
        gguf_pass(cursor, count * gguf_value_bytes(type));
        return ZT_OK;
    }
    for (uint64_t i = 0; i < count && status == ZT_OK; i++)
        status = skip_at(cursor, type, depth + 1, error);
    return status;
}

static enum zt_status skip_at(struct gguf_cursor *cursor, enum gguf_value type, unsigned depth,
                              struct zt_error *error)
{
    const uint8_t *bytes;
    uint64_t length = 0;
    enum zt_status status;

    if (type == GGUF_ARRAY)
        return skip_array(cursor, depth, error);
    if (type != GGUF_STRING)
        return gguf_take(cursor, gguf_value_bytes(type), &bytes, error);
    status = gguf_take_length(cursor, &length, error);
    if (status == ZT_OK)
        gguf_pass(cursor, length);
    return status;
}

enum zt_status gguf_value_skip(struct gguf_cursor *cursor, enum gguf_value type,
                               struct zt_error *error)
{
    return skip_at(cursor, type, 0, error);
}

/* --- turning into CBOR --- */

static enum zt_status encode_at(struct gguf_cursor *cursor, enum gguf_value type, unsigned depth,
                                struct zt_buffer *buffer, struct zt_error *error);

static enum zt_status encode_string(struct gguf_cursor *cursor, struct zt_buffer *buffer,
                                    struct zt_error *error)
{
    struct zt_text string;
    enum zt_status status = gguf_take_string(cursor, &string, error);

    if (status != ZT_OK)
        return status;
    /* Tokenizers hold tokens that are pieces of characters: bytes, whatever the format calls them.
     */
    if (zt_utf8_valid(string.bytes, string.length))
        zt_cbor_put_text(buffer, string);
    else
        zt_cbor_put_bytes(buffer, string.bytes, string.length);
    return ZT_OK;
}

static enum zt_status encode_array(struct gguf_cursor *cursor, unsigned depth,
                                   struct zt_buffer *buffer, struct zt_error *error)
{
    enum gguf_value type;
    uint64_t count;
    enum zt_status status = take_array(cursor, depth, &type, &count, error);

    if (status != ZT_OK)
        return status;
    zt_cbor_put_array(buffer, count);
    for (uint64_t i = 0; i < count && status == ZT_OK; i++)
        status = encode_at(cursor, type, depth + 1, buffer, error);
    return status;
}

static int64_t load_signed(const uint8_t *bytes, unsigned length)
{
    uint64_t sign = 1ull << (8 * length - 1);
    uint64_t value = (gguf_load(bytes, length) ^ sign) - sign;
    int64_t result;

    memcpy(&result, &value, sizeof(result));
    return result;
}

static double load_float(const uint8_t *bytes, unsigned length)
{
    uint64_t bits = gguf_load(bytes, length);
    uint32_t narrow_bits = (uint32_t)bits;
    double wide;
    float narrow;

    if (length == sizeof(wide)) {
        memcpy(&wide, &bits, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, &narrow_bits, sizeof(narrow));
    return (double)narrow;
}

static enum zt_status encode_number(struct gguf_cursor *cursor, enum gguf_value type,
                                    struct zt_buffer *buffer, struct zt_error *error)
{
    const uint8_t *bytes;
    unsigned length = gguf_value_bytes(type);
    enum zt_status status = gguf_take(cursor, length, &bytes, error);

    if (status != ZT_OK)
        return status;
    switch (type) {
    case GGUF_BOOL:
        if (*bytes > 1) {
            return zt_fail(error, ZT_INVALID, "gguf §Metadata Bool", cursor->position - 1,
                           "a bool that is neither 0 nor 1");
        }
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
        zt_cbor_put_uint(buffer, gguf_load(bytes, length));
        break;
    }
    return ZT_OK;
}

static enum zt_status encode_at(struct gguf_cursor *cursor, enum gguf_value type, unsigned depth,
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

enum zt_status gguf_value_encode(struct gguf_cursor *cursor, enum gguf_value type,
                                 struct zt_buffer *buffer, struct zt_error *error)
{
    return encode_at(cursor, type, 0, buffer, error);
}
