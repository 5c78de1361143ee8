/* Varints: seven bits to a byte, the lowest first; the last byte of each is below 128. */
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

struct zt_varints {
    struct zt_source *source;
    const struct zt_component *component;
    unsigned width;
    uint64_t next_offset; /* absolute, of the stored byte to be brought next */
    uint64_t stored_left;
    uint64_t produced;
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

    assert(component->encoding == ZT_ENCODING_VARINT);
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

static enum zt_status next(struct zt_varints *varints, uint64_t *out_value, struct zt_error *error)
{
    uint64_t value = 0;

    for (unsigned used = 0; used < VARINT_MAX_BYTES; used++) {
        uint8_t byte;

        if (varints->at == varints->end) {
            enum zt_status status = fill(varints, error);

            if (status != ZT_OK)
                return status;
        }
        byte = varints->input[varints->at++];
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

static enum zt_status check_end(const struct zt_varints *varints, struct zt_error *error)
{
    if (varints->at != varints->end || varints->stored_left > 0)
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
