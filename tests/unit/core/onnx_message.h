/* Messages of ONNX written byte by byte, whole or broken in one place: for the tests of the
 * reader. */
#ifndef ONNX_MESSAGE_H
#define ONNX_MESSAGE_H

#include "tests.h"

#include <string.h>

#include "zip_file.h"
#include "zt/decode.h"

/* Fields of a tensor, each a tag and a payload. */
#define DIMS "\x08\2"
#define F32  "\x10\1"
#define I32  "\x10\6"
#define NAME "\x42\1w"
#define RAW  "\x4a\x08\1\2\3\4\5\6\7\x08"
/* A tensor without its data: the next field is at 7, and its value at 9. */
#define HEAD     DIMS F32 NAME
#define EXTERNAL HEAD "\x70\1"
/* The first one's value is at 23 of a tensor that begins with EXTERNAL. */
#define LOCATION(entry, value_length, value) "\x6a" entry "\x0a\x08location\x12" value_length value
#define OFFSET(entry, value_length, value)   "\x6a" entry "\x0a\6offset\x12" value_length value
#define LENGTH(entry, value_length, value)   "\x6a" entry "\x0a\6length\x12" value_length value
#define IN_F                                 LOCATION("\x0d", "\1", "f")
#define ALL_ONES                             "\xff\xff\xff\xff\xff\xff\xff\xff\xff"

/* Of a graph that has one tensor, both with a length of one byte. */
#define TENSOR_AT  4
#define MESSAGE_AT 6

struct text {
    const char *bytes;
    size_t length;
};
#define TEXT(literal)                   \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }

static inline void put_varint(struct bytes *bytes, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        bytes_append(bytes, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    bytes_append(bytes, &(uint8_t){(uint8_t)value}, 1);
}

static inline void put_field(struct bytes *bytes, unsigned number, const void *value, size_t length)
{
    put_varint(bytes, number << 3 | 2);
    put_varint(bytes, length);
    bytes_append(bytes, value, length);
}

static inline void put_model(struct bytes *model, const struct bytes *graph)
{
    bytes_append(model, "\x08\x0a", 2);
    put_field(model, 7, graph->at, graph->length);
}

static inline void put_tensor_model(struct bytes *model, const void *tensor, size_t length)
{
    struct bytes graph = {0};

    put_field(&graph, 5, tensor, length);
    put_model(model, &graph);
    bytes_free(&graph);
}

static inline void refuse_tensor(const char *tensor, size_t length, const char *rule, int at)
{
    struct bytes model = {0};

    put_tensor_model(&model, tensor, length);
    assert_true(length < 120);
    bytes_assert_refused(&model, rule, (uint64_t)(MESSAGE_AT + at));
    bytes_free(&model);
}

#define REFUSE(tensor, rule, at) refuse_tensor("" tensor, sizeof(tensor) - 1, "onnx §" rule, at)
/* The tag of the tensor itself. */
#define ITSELF (TENSOR_AT - MESSAGE_AT)

struct opened {
    struct bytes bytes;
    struct zt_source *source;
    struct zt_model *model;
};

static inline void open_model(struct opened *opened)
{
    struct zt_error error;

    zt_error_clear(&error);
    assert_int_equal(
        zt_source_from_memory(opened->bytes.at, opened->bytes.length, &opened->source, &error),
        ZT_OK);
    if (zt_model_open(opened->source, &opened->model, &error) != ZT_OK)
        fail_msg("%s: %s", error.rule != NULL ? error.rule : "no rule", error.message);
    assert_int_equal(opened->model->format, ZT_FORMAT_ONNX);
}

static inline void open_tensor(struct opened *opened, const void *tensor, size_t length)
{
    *opened = (struct opened){0};
    put_tensor_model(&opened->bytes, tensor, length);
    open_model(opened);
}

static inline void close_model(struct opened *opened)
{
    zt_model_free(opened->model);
    zt_source_close(opened->source);
    bytes_free(&opened->bytes);
}

static inline const struct zt_component *only_part(const struct opened *opened)
{
    assert_int_equal(opened->model->object_count, 1);
    assert_int_equal(opened->model->component_count, 1);
    return &opened->model->components[0];
}

/* Decodes in pieces; returns how that ended. */
static inline enum zt_status decode(const struct opened *opened, size_t piece, uint8_t *out,
                                    struct zt_error *error)
{
    const struct zt_component *part = only_part(opened);
    struct zt_decoder *decoder = NULL;
    uint64_t total = 0;
    size_t length = 1;
    enum zt_status status = zt_decoder_open(part, opened->source, &decoder, error);

    while (status == ZT_OK && length > 0) {
        const uint64_t left = part->decoded_length - total;

        status = zt_decoder_read(decoder, out + total, left < piece && left > 0 ? left : piece,
                                 &length, error);
        if (status == ZT_OK)
            total += length;
    }
    if (status == ZT_OK) {
        assert_int_equal(total, part->decoded_length);
        assert_int_equal(zt_decoder_consumed(decoder), part->length);
    }
    zt_decoder_close(decoder);
    return status;
}

#endif
