/* ONNX: protobuf's wire format, as far as a message of ONNX uses it. A message is a run of fields,
 * each a tag and a payload; nothing tells where a message ends but the length of the field that
 * holds it, so every read is given that end. */
#include "formats/onnx/onnx.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "zt/digest.h"

/* 64 bits, seven to a byte. */
#define VARINT_MAX_BYTES 10
/* protobuf: field numbers have 29 bits. */
#define FIELD_NUMBER_MAX ((UINT64_C(1) << 29) - 1)
#define VARINT_RULE      "onnx §Wire Varint"

static enum zt_status check_left(const struct onnx_reading *reading, uint64_t end, uint64_t length,
                                 struct zt_error *error)
{
    const uint64_t at = reading->cursor.position;

    if (at > end || length > end - at)
        return zt_fail(error, ZT_INVALID, ONNX_BOUNDS, at,
                       "%s%" PRIu64 " bytes are needed where %" PRIu64 " are left",
                       end == reading->cursor.end ? CUT_OFF : "", length, at > end ? 0 : end - at);
    return ZT_OK;
}

/* Counts bytes that are read as the manifest's. */
static void count_read(struct onnx_reading *reading, const uint8_t *bytes, size_t length)
{
    if (reading->hasher == NULL)
        return;
    zt_hasher_update(reading->hasher, bytes, length);
    zt_builder_extend(reading->builder, length);
}

/* Adds a byte to a value that has `used` bytes already. False if the value is too large. */
static bool add_byte(uint64_t *value, unsigned used, uint8_t byte)
{
    if (used == VARINT_MAX_BYTES || (used == VARINT_MAX_BYTES - 1 && byte > 1))
        return false;
    *value |= (uint64_t)(byte & 0x7f) << (7 * used);
    return true;
}

static enum zt_status fail_varint(uint64_t at, struct zt_error *error)
{
    return zt_fail(error, ZT_INVALID, VARINT_RULE, at, "a varint of more than 64 bits");
}

enum zt_status onnx_varint_next(struct onnx_reading *reading, uint64_t end, uint64_t *out_value,
                                struct zt_error *error)
{
    struct zt_cursor *cursor = &reading->cursor;
    const uint64_t at = cursor->position;
    const uint64_t left = end > at ? end - at : 0;
    const size_t taken = left < VARINT_MAX_BYTES ? (size_t)left : VARINT_MAX_BYTES;
    const uint8_t *bytes;
    uint64_t value = 0;
    enum zt_status status = check_left(reading, end, 1, error);

    if (status == ZT_OK)
        status = zt_cursor_take(cursor, taken, &bytes, error);
    if (status != ZT_OK)
        return status;
    for (unsigned used = 0; used < taken; used++) {
        if (!add_byte(&value, used, bytes[used]))
            return fail_varint(at, error);
        if (bytes[used] < 0x80) {
            cursor->position = at + used + 1;
            count_read(reading, bytes, used + 1);
            *out_value = value;
            return ZT_OK;
        }
    }
    if (taken == VARINT_MAX_BYTES)
        return fail_varint(at, error);
    return zt_fail(error, ZT_INVALID, ONNX_BOUNDS, at,
                   "%sa varint runs past the end of its message",
                   end == reading->cursor.end ? CUT_OFF : "");
}

static enum zt_status read_tag(struct onnx_reading *reading, uint64_t end, struct onnx_field *field,
                               struct zt_error *error)
{
    uint64_t tag;
    enum zt_status status = onnx_varint_next(reading, end, &tag, error);

    if (status != ZT_OK)
        return status;
    if (tag >> 3 == 0 || tag >> 3 > FIELD_NUMBER_MAX)
        return zt_fail(error, ZT_INVALID, "onnx §Wire Tag", field->at,
                       "a field's number is not within 1 and 2^29 - 1");
    field->number = (uint32_t)(tag >> 3);
    field->wire = (enum onnx_wire)(tag & 7);
    if (field->wire > ONNX_BYTES && field->wire != ONNX_FIXED32)
        return zt_fail(error, ZT_INVALID, "onnx §Wire Tag", field->at,
                       "field %" PRIu32 " has the wire type %d", field->number, (int)field->wire);
    return ZT_OK;
}

enum zt_status onnx_field_next(struct onnx_reading *reading, uint64_t end,
                               struct onnx_field *out_field, struct zt_error *error)
{
    struct onnx_field field = {.at = reading->cursor.position};
    enum zt_status status = read_tag(reading, end, &field, error);

    if (status == ZT_OK && field.wire == ONNX_VARINT)
        status = onnx_varint_next(reading, end, &field.value, error);
    else if (status == ZT_OK && field.wire == ONNX_BYTES)
        status = onnx_varint_next(reading, end, &field.length, error);
    else if (status == ZT_OK)
        field.length = field.wire == ONNX_FIXED64 ? 8 : 4;
    if (status == ZT_OK)
        status = check_left(reading, end, field.length, error);
    field.offset = reading->cursor.position;
    if (status == ZT_OK && field.wire != ONNX_BYTES)
        status = zt_cursor_skip(&reading->cursor, field.length, error);
    if (status == ZT_OK)
        *out_field = field;
    return status;
}

enum zt_status onnx_field_leave(struct onnx_reading *reading, const struct onnx_field *field,
                                struct zt_error *error)
{
    assert(reading->cursor.position >= field->offset);
    assert(reading->cursor.position <= field->offset + field->length);
    return zt_cursor_skip(&reading->cursor,
                          field->offset + field->length - reading->cursor.position, error);
}

enum zt_status onnx_bytes_read(struct onnx_reading *reading, const struct onnx_field *field,
                               void *out_bytes, struct zt_error *error)
{
    const uint8_t *bytes;
    enum zt_status status;

    assert(field->wire == ONNX_BYTES && reading->cursor.position == field->offset);
    status = zt_cursor_take(&reading->cursor, field->length, &bytes, error);
    if (status != ZT_OK)
        return status;
    count_read(reading, bytes, (size_t)field->length);
    memcpy(out_bytes, bytes, (size_t)field->length);
    return ZT_OK;
}

enum zt_status onnx_varints_count(struct onnx_reading *reading, const struct onnx_field *field,
                                  uint64_t *out_count, struct zt_error *error)
{
    uint64_t left = field->length;
    uint64_t count = 0;
    uint64_t ignored = 0;
    unsigned used = 0;

    reading->cursor.position = field->offset;
    while (left > 0) {
        const size_t part = left < ZT_CURSOR_TAKE_MAX ? (size_t)left : ZT_CURSOR_TAKE_MAX;
        const uint64_t at = reading->cursor.position;
        const uint8_t *bytes;
        enum zt_status status = zt_cursor_take(&reading->cursor, part, &bytes, error);

        if (status != ZT_OK)
            return status;
        for (size_t i = 0; i < part; i++) {
            if (!add_byte(&ignored, used, bytes[i]))
                return fail_varint(at + i - used, error);
            used = bytes[i] < 0x80 ? 0 : used + 1;
            count += used == 0;
        }
        left -= part;
    }
    if (used != 0)
        return zt_fail(error, ZT_INVALID, ONNX_BOUNDS, field->offset + field->length - used,
                       "a varint runs past the end of its field");
    *out_count = count;
    return ZT_OK;
}

/* Numbers may come back from either encoding of a repeated field, so a number may be listed twice.
 * *out_known is NULL for a field that is not listed. */
static enum zt_status find_known(const struct onnx_known_field *known, size_t count,
                                 const struct onnx_field *field,
                                 const struct onnx_known_field **out_known, struct zt_error *error)
{
    const struct onnx_known_field *same = NULL;

    *out_known = NULL;
    for (size_t i = 0; i < count && *out_known == NULL; i++) {
        if (known[i].number != field->number)
            continue;
        same = &known[i];
        if (same->wire == field->wire)
            *out_known = same;
    }
    if (same != NULL && *out_known == NULL)
        return zt_fail(error, ZT_INVALID, "onnx §Wire Type", field->at,
                       "field %" PRIu32 " has the wire type %d instead of %d", field->number,
                       (int)field->wire, (int)same->wire);
    return ZT_OK;
}

/* What is not read counts as manifest too, unless it is a tensor's data: names of nodes speak for
 * names of tensors. */
static enum zt_status pass_over(struct onnx_reading *reading, const struct onnx_field *field,
                                struct zt_error *error)
{
    if (field->wire != ONNX_BYTES)
        return ZT_OK;
    if (reading->builder != NULL)
        zt_builder_extend(reading->builder, field->length);
    return onnx_field_leave(reading, field, error);
}

enum zt_status onnx_message_read(struct onnx_reading *reading, const struct onnx_field *message,
                                 const struct onnx_known_field *known, size_t known_count,
                                 void *context, struct zt_error *error)
{
    const uint64_t end = message->offset + message->length;
    enum zt_status status = ZT_OK;

    reading->cursor.position = message->offset;
    while (status == ZT_OK && reading->cursor.position < end) {
        struct onnx_field field;
        const struct onnx_known_field *found = NULL;

        status = onnx_field_next(reading, end, &field, error);
        if (status == ZT_OK)
            status = find_known(known, known_count, &field, &found, error);
        if (status == ZT_OK && found == NULL)
            status = pass_over(reading, &field, error);
        else if (status == ZT_OK)
            status = found->read(context, &field, error);
        if (status == ZT_OK && field.wire == ONNX_BYTES)
            status = onnx_field_leave(reading, &field, error);
    }
    return status;
}
