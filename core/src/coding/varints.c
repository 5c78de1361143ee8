/* Varints: seven bits to a byte, the lowest first; the last byte of each is below 128. A tag is the
 * varint of a field's number and, in its lowest three bits, wire type. */
#include "coding/varints.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"

#define INPUT_SIZE ((size_t)64 << 10)
/* 64 bits; of the last byte only the lowest bit is left. */
#define VARINT_MAX_BYTES 10
#define WORD_MAX         8
/* Wire types. */
enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 5 };
/* The fields of TensorProto that hold no integers. */
enum { FLOAT_DATA = 4, DOUBLE_DATA = 10 };

struct zt_varints {
    struct zt_source *source;
    const struct zt_component *component;
    unsigned width;
    uint64_t next_offset; /* absolute, of the stored byte to be brought next */
    uint64_t stored_left;
    uint64_t produced;
    uint64_t number;   /* of the field that holds the data, in its tags; 0: not known yet */
    uint64_t run_left; /* bytes of the packed field that is being read */
    /* The end of the last word, which did not fit whole into the caller's buffer. */
    uint8_t word[WORD_MAX];
    unsigned word_left;
    size_t at;
    size_t end;
    uint8_t input[INPUT_SIZE];
};

enum zt_status zt_varints_open(const struct zt_component *component, struct zt_source *source,
                               struct zt_varints **out_varints, struct zt_error *error)
{
    struct zt_varints *varints = malloc(sizeof(*varints));

    assert(component->encoding == ZT_ENCODING_VARINT ||
           component->encoding == ZT_ENCODING_PROTOBUF);
    if (varints == NULL)
        return zt_fail_memory(error, "a decoder");
    memset(varints, 0, offsetof(struct zt_varints, input));
    varints->source = source;
    varints->component = component;
    varints->width = zt_dtype_width((enum zt_dtype)component->dtype);
    varints->next_offset = component->offset;
    varints->stored_left = component->length;
    *out_varints = varints;
    return ZT_OK;
}

static enum zt_status fail(const struct zt_varints *varints, const char *message,
                           struct zt_error *error)
{
    return zt_fail(error, ZT_CORRUPT, "onnx §Data Varint",
                   varints->next_offset - (varints->end - varints->at), "%s", message);
}

static enum zt_status fill(struct zt_varints *varints, struct zt_error *error)
{
    const size_t part =
        varints->stored_left < INPUT_SIZE ? (size_t)varints->stored_left : INPUT_SIZE;
    enum zt_status status;

    assert(varints->at == varints->end);
    if (part == 0)
        return fail(varints, "the stored bytes end before the last integer", error);
    zt_source_read_on(varints->source, varints->next_offset, varints->stored_left, 0);
    status = zt_source_read_at(varints->source, varints->next_offset, varints->input, part, error);
    if (status != ZT_OK)
        return status;
    varints->next_offset += part;
    varints->stored_left -= part;
    varints->at = 0;
    varints->end = part;
    return ZT_OK;
}

static enum zt_status take(struct zt_varints *varints, uint8_t *out_byte, struct zt_error *error)
{
    enum zt_status status = varints->at == varints->end ? fill(varints, error) : ZT_OK;

    if (status == ZT_OK)
        *out_byte = varints->input[varints->at++];
    return status;
}

static enum zt_status take_varint(struct zt_varints *varints, uint64_t *out_value,
                                  struct zt_error *error)
{
    uint64_t value = 0;

    for (unsigned used = 0; used < VARINT_MAX_BYTES; used++) {
        uint8_t byte;
        enum zt_status status = take(varints, &byte, error);

        if (status != ZT_OK)
            return status;
        if (used == VARINT_MAX_BYTES - 1 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << (7 * used);
        if (byte < 0x80) {
            *out_value = value;
            return ZT_OK;
        }
    }
    return fail(varints, "an integer has more than 64 bits", error);
}

static enum zt_status take_fixed(struct zt_varints *varints, unsigned width, uint64_t *out_value,
                                 struct zt_error *error)
{
    uint64_t value = 0;

    assert(width <= sizeof(value));
    for (unsigned i = 0; i < width; i++) {
        uint8_t byte;
        enum zt_status status = take(varints, &byte, error);

        if (status != ZT_OK)
            return status;
        value |= (uint64_t)byte << (8 * i);
    }
    *out_value = value;
    return ZT_OK;
}

/* --- fields with tags --- */

static bool is_fixed(const struct zt_varints *varints)
{
    return varints->number == FLOAT_DATA || varints->number == DOUBLE_DATA;
}

static enum zt_status pass(struct zt_varints *varints, uint64_t length, struct zt_error *error)
{
    uint8_t ignored;
    enum zt_status status = ZT_OK;

    while (length-- > 0 && status == ZT_OK)
        status = take(varints, &ignored, error);
    return status;
}

/* Reads a field. It is a number, or begins a packed run, or is passed over. */
static enum zt_status take_field(struct zt_varints *varints, bool *out_is_number,
                                 uint64_t *out_value, struct zt_error *error)
{
    uint64_t tag = 0;
    enum zt_status status = take_varint(varints, &tag, error);
    bool is_data;

    if (status != ZT_OK)
        return status;
    if (varints->number == 0)
        varints->number = tag >> 3;
    is_data = tag >> 3 == varints->number;
    *out_is_number = is_data && (tag & 7) != WIRE_BYTES;
    switch (tag & 7) {
    case WIRE_VARINT:
        return take_varint(varints, out_value, error);
    case WIRE_FIXED64:
        return take_fixed(varints, 8, out_value, error);
    case WIRE_FIXED32:
        return take_fixed(varints, 4, out_value, error);
    case WIRE_BYTES:
        status = take_varint(varints, out_value, error);
        if (status == ZT_OK && is_data)
            varints->run_left = *out_value;
        return status == ZT_OK && !is_data ? pass(varints, *out_value, error) : status;
    default:
        return fail(varints, "a field has another wire type", error);
    }
}

static enum zt_status take_packed(struct zt_varints *varints, uint64_t *out_value,
                                  struct zt_error *error)
{
    const uint64_t before = zt_varints_consumed(varints);
    enum zt_status status = is_fixed(varints)
                                ? take_fixed(varints, varints->width, out_value, error)
                                : take_varint(varints, out_value, error);
    const uint64_t used = zt_varints_consumed(varints) - before;

    assert(varints->run_left > 0);
    if (status == ZT_OK && used > varints->run_left)
        return fail(varints, "a number does not end in its field", error);
    varints->run_left -= status == ZT_OK ? used : 0;
    return status;
}

static enum zt_status next(struct zt_varints *varints, uint64_t *out_value, struct zt_error *error)
{
    bool is_number = false;

    if (varints->component->encoding == ZT_ENCODING_VARINT)
        return take_varint(varints, out_value, error);
    while (varints->run_left == 0) {
        enum zt_status status = take_field(varints, &is_number, out_value, error);

        if (status != ZT_OK || is_number)
            return status;
    }
    return take_packed(varints, out_value, error);
}

static enum zt_status check_end(const struct zt_varints *varints, struct zt_error *error)
{
    if (varints->at != varints->end || varints->stored_left > 0 || varints->run_left > 0)
        return fail(varints, "stored bytes follow the last integer", error);
    return ZT_OK;
}

enum zt_status zt_varints_read(struct zt_varints *varints, uint8_t *buffer, size_t capacity,
                               size_t *out_length, struct zt_error *error)
{
    const uint64_t left = varints->component->decoded_length - varints->produced;
    const size_t wanted = left < capacity ? (size_t)left : capacity;
    size_t length = 0;

    while (length < wanted) {
        size_t part;

        if (varints->word_left == 0) {
            uint64_t value = 0;
            enum zt_status status = next(varints, &value, error);

            if (status != ZT_OK)
                return status;
            zt_store_le64(varints->word, value);
            varints->word_left = varints->width;
        }
        part = wanted - length < varints->word_left ? wanted - length : varints->word_left;
        memcpy(buffer + length, varints->word + varints->width - varints->word_left, part);
        varints->word_left -= (unsigned)part;
        length += part;
    }
    varints->produced += length;
    assert(varints->produced <= varints->component->decoded_length);
    *out_length = length;
    return length == left ? check_end(varints, error) : ZT_OK;
}

uint64_t zt_varints_consumed(const struct zt_varints *varints)
{
    return varints->component->length - varints->stored_left - (varints->end - varints->at);
}

void zt_varints_close(struct zt_varints *varints)
{
    free(varints);
}
