/* ONNX: messages written byte by byte, whole or broken in one place (docs/rules/onnx.md). */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "zip_file.h"
#include "zt/decode.h"
#include "zt/shards.h"

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

/* --- building --- */

static void put_varint(struct bytes *bytes, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        bytes_append(bytes, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    bytes_append(bytes, &(uint8_t){(uint8_t)value}, 1);
}

static void put_field(struct bytes *bytes, unsigned number, const void *value, size_t length)
{
    put_varint(bytes, number << 3 | 2);
    put_varint(bytes, length);
    bytes_append(bytes, value, length);
}

static void put_model(struct bytes *model, const struct bytes *graph)
{
    bytes_append(model, "\x08\x0a", 2);
    put_field(model, 7, graph->at, graph->length);
}

static void put_tensor_model(struct bytes *model, const void *tensor, size_t length)
{
    struct bytes graph = {0};

    put_field(&graph, 5, tensor, length);
    put_model(model, &graph);
    bytes_free(&graph);
}

static void refuse_tensor(const char *tensor, size_t length, const char *rule, int at)
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

static void open_model(struct opened *opened)
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

static void open_tensor(struct opened *opened, const void *tensor, size_t length)
{
    *opened = (struct opened){0};
    put_tensor_model(&opened->bytes, tensor, length);
    open_model(opened);
}

static void close_model(struct opened *opened)
{
    zt_model_free(opened->model);
    zt_source_close(opened->source);
    bytes_free(&opened->bytes);
}

static const struct zt_component *only_part(const struct opened *opened)
{
    assert_int_equal(opened->model->object_count, 1);
    assert_int_equal(opened->model->component_count, 1);
    return &opened->model->components[0];
}

/* Decodes in pieces; returns how that ended. */
static enum zt_status decode(const struct opened *opened, size_t piece, uint8_t *out,
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

/* --- tensors that are read --- */

static const struct {
    uint8_t number;
    enum zt_dtype dtype;
    enum zt_logical logical;
    const char *own;
    unsigned bits;
    unsigned typed_field; /* 0: raw_data only */
} types[] = {
    {1, ZT_F32, ZT_LOGICAL_NONE, NULL, 32, 4},
    {2, ZT_U8, ZT_LOGICAL_NONE, NULL, 8, 5},
    {3, ZT_I8, ZT_LOGICAL_NONE, NULL, 8, 5},
    {4, ZT_U16, ZT_LOGICAL_NONE, NULL, 16, 5},
    {5, ZT_I16, ZT_LOGICAL_NONE, NULL, 16, 5},
    {6, ZT_I32, ZT_LOGICAL_NONE, NULL, 32, 5},
    {7, ZT_I64, ZT_LOGICAL_NONE, NULL, 64, 7},
    {9, ZT_BOOL, ZT_LOGICAL_NONE, NULL, 8, 5},
    {10, ZT_F16, ZT_LOGICAL_NONE, NULL, 16, 5},
    {11, ZT_F64, ZT_LOGICAL_NONE, NULL, 64, 10},
    {12, ZT_U32, ZT_LOGICAL_NONE, NULL, 32, 11},
    {13, ZT_U64, ZT_LOGICAL_NONE, NULL, 64, 11},
    {14, ZT_F32, ZT_LOGICAL_COMPLEX64, NULL, 64, 4},
    {15, ZT_F64, ZT_LOGICAL_COMPLEX128, NULL, 128, 10},
    {16, ZT_BF16, ZT_LOGICAL_NONE, NULL, 16, 5},
    {17, ZT_U8, ZT_LOGICAL_F8_E4M3FN, NULL, 8, 5},
    {18, ZT_U8, ZT_LOGICAL_F8_E4M3FNUZ, NULL, 8, 5},
    {19, ZT_U8, ZT_LOGICAL_F8_E5M2, NULL, 8, 5},
    {20, ZT_U8, ZT_LOGICAL_F8_E5M2FNUZ, NULL, 8, 5},
    {21, ZT_U8, ZT_LOGICAL_UNKNOWN, "u4", 4, 5},
    {22, ZT_U8, ZT_LOGICAL_UNKNOWN, "i4", 4, 5},
    {23, ZT_U8, ZT_LOGICAL_F4_E2M1, NULL, 4, 5},
    {24, ZT_U8, ZT_LOGICAL_F8_E8M0, NULL, 8, 5},
    {25, ZT_U8, ZT_LOGICAL_UNKNOWN, "u2", 2, 5},
    {26, ZT_U8, ZT_LOGICAL_UNKNOWN, "i2", 2, 5},
    {27, ZT_U8, ZT_LOGICAL_UNKNOWN, "f6_e2m3", 6, 0},
    {28, ZT_U8, ZT_LOGICAL_UNKNOWN, "f6_e3m2", 6, 0},
};
#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))
/* An odd number, so that packed types do not end with a byte. */
#define ELEMENTS 3

static bool is_integers(unsigned field)
{
    return field == 5 || field == 7 || field == 11;
}

/* The data of a type's elements: byte n is n + 1, in the typed field as integers of its words. */
static void put_data(struct bytes *tensor, size_t type, unsigned field, uint8_t *plain)
{
    const size_t length = (ELEMENTS * types[type].bits + 7) / 8;
    const unsigned width = zt_dtype_width(types[type].dtype);
    struct bytes data = {0};

    for (size_t i = 0; i < length; i++)
        plain[i] = (uint8_t)(i + 1);
    if (is_integers(field)) {
        for (size_t i = 0; i < length; i += width) {
            uint64_t word = 0;

            for (unsigned at = 0; at < width; at++)
                word |= (uint64_t)plain[i + at] << (8 * at);
            put_varint(&data, word);
        }
        put_field(tensor, field, data.at, data.length);
    } else {
        put_field(tensor, field, plain, length);
    }
    bytes_free(&data);
}

static void assert_type_is_read(size_t type, unsigned field)
{
    const size_t length = (ELEMENTS * types[type].bits + 7) / 8;
    struct bytes tensor = {0};
    struct opened opened;
    const struct zt_component *part;
    uint8_t plain[64], got[64];
    struct zt_error error;

    bytes_append(&tensor, "\x08\3\x10", 3);
    put_varint(&tensor, types[type].number);
    bytes_append(&tensor, NAME, 3);
    put_data(&tensor, type, field, plain);
    open_tensor(&opened, tensor.at, tensor.length);
    part = only_part(&opened);
    assert_int_equal(part->dtype, types[type].dtype);
    assert_int_equal(part->logical, types[type].logical);
    if (types[type].own != NULL) {
        assert_int_equal(part->type_length, strlen(types[type].own));
        assert_memory_equal(part->type, types[type].own, part->type_length);
    }
    assert_int_equal(part->encoding, is_integers(field) ? ZT_ENCODING_VARINT : ZT_ENCODING_RAW);
    assert_int_equal(part->decoded_length, length);
    assert_int_equal(decode(&opened, 64, got, &error), ZT_OK);
    assert_memory_equal(got, plain, length);
    close_model(&opened);
    bytes_free(&tensor);
}

static void types_are_read_from_raw_and_from_typed_data(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        assert_type_is_read(i, 9);
        if (types[i].typed_field != 0)
            assert_type_is_read(i, types[i].typed_field);
    }
}

static void types_are_refused_in_each_others_fields(void **state)
{
    static const unsigned fields[] = {4, 5, 6, 7, 10, 11};

    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++)
        for (size_t j = 0; j < sizeof(fields) / sizeof(fields[0]); j++) {
            struct bytes tensor = {0};

            if (fields[j] == types[i].typed_field)
                continue;
            bytes_append(&tensor, "\x08\3\x10", 3);
            put_varint(&tensor, types[i].number);
            bytes_append(&tensor, NAME, 3);
            put_field(&tensor, fields[j], "\1\2\3", 3);
            refuse_tensor((const char *)tensor.at, tensor.length, "onnx §Tensor Data", 7);
            bytes_free(&tensor);
        }
}

static void fields_may_come_in_any_order_and_unknown_ones_are_passed_over(void **state)
{
    static const char tensor[] = "\x62\x03"
                                 "doc" RAW "\xfd\xff\xff\xff\x0f"
                                 "1234" NAME F32 "\x0a\2\1\2"
                                 "\x61"
                                 "12345678";
    struct opened opened;

    (void)state;
    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    assert_int_equal(only_part(&opened)->offset, MESSAGE_AT + 5 + 2);
    assert_int_equal(only_part(&opened)->length, 8);
    assert_int_equal(opened.model->objects[0].rank, 2);
    assert_memory_equal(opened.model->objects[0].name, "w", 2 - 1);
    close_model(&opened);
}

static void tensors_of_no_elements_and_of_no_dimensions_are_read(void **state)
{
    struct opened opened;

    (void)state;
    open_tensor(&opened, "\x08\0" F32 NAME, 7);
    assert_int_equal(only_part(&opened)->length, 0);
    close_model(&opened);
    open_tensor(&opened, F32 NAME "\x4a\4\1\2\3\4", 11);
    assert_int_equal(opened.model->objects[0].rank, 0);
    assert_int_equal(only_part(&opened)->length, 4);
    close_model(&opened);
}

static void a_graph_without_initializers_is_a_model_without_objects(void **state)
{
    struct opened opened = {0};

    (void)state;
    bytes_append(&opened.bytes, "\x08\x0a\x3a\0", 4);
    open_model(&opened);
    assert_int_equal(opened.model->object_count, 0);
    close_model(&opened);
}

/* --- integers --- */

/* More stored bytes than one filling brings, and no boundary is one of an integer. */
#define MANY ((size_t)100003)

static uint64_t nth_integer(size_t n)
{
    return (n % 7 == 0 ? UINT64_MAX : (uint64_t)0x9e3779b97f4a7c15) >> (n * 5 % 64);
}

static void integers_stream_in_pieces_of_any_length(void **state)
{
    static const size_t pieces[] = {1, 3, 7, 8, 13, 4096, 1 << 20};
    uint8_t *got = malloc(MANY * 8);
    struct bytes data = {0};
    struct bytes tensor = {0};
    struct opened opened;
    struct zt_error error;

    (void)state;
    assert_non_null(got);
    data.at = malloc(MANY * 10);
    for (size_t i = 0; i < MANY; i++) {
        uint64_t value = nth_integer(i);

        for (; value > 0x7f; value >>= 7)
            data.at[data.length++] = (uint8_t)(value | 0x80);
        data.at[data.length++] = (uint8_t)value;
    }
    put_varint(&tensor, 1 << 3);
    put_varint(&tensor, MANY);
    bytes_append(&tensor, "\x10\x0d" NAME, 5);
    put_field(&tensor, 11, data.at, data.length);
    open_tensor(&opened, tensor.at, tensor.length);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        memset(got, 0xee, MANY * 8);
        assert_int_equal(decode(&opened, pieces[i], got, &error), ZT_OK);
        for (size_t n = 0; n < MANY; n++) {
            uint64_t value;

            memcpy(&value, got + n * 8, 8);
            assert_true(value == nth_integer(n));
        }
    }
    close_model(&opened);
    bytes_free(&tensor);
    bytes_free(&data);
    free(got);
}

static void negative_integers_are_ten_bytes_of_which_the_low_ones_count(void **state)
{
    static const char tensor[] = DIMS I32 NAME "\x2a\x14" ALL_ONES "\1"
                                               "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1";
    struct opened opened;
    struct zt_error error;
    int32_t got[2];

    (void)state;
    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    assert_int_equal(decode(&opened, sizeof(got), (uint8_t *)got, &error), ZT_OK);
    assert_int_equal(got[0], -1);
    assert_int_equal(got[1], -2);
    close_model(&opened);
}

static void integers_that_changed_after_opening_are_corrupt(void **state)
{
    static const struct {
        uint8_t first, second;
    } cases[] = {{0x81, 1}, {1, 0x81}, {0x81, 0x81}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static const char tensor[] = DIMS I32 NAME "\x2a\2\1\2";
        struct opened opened;
        struct zt_error error;
        uint8_t got[8];

        open_tensor(&opened, tensor, sizeof(tensor) - 1);
        opened.bytes.at[MESSAGE_AT + 9] = cases[i].first;
        opened.bytes.at[MESSAGE_AT + 10] = cases[i].second;
        assert_int_equal(decode(&opened, 3, got, &error), ZT_CORRUPT);
        assert_string_equal(error.rule, "onnx §Data Varint");
        close_model(&opened);
    }
}

static void integers_left_over_after_opening_are_corrupt(void **state)
{
    static const char tensor[] = DIMS I32 NAME "\x2a\3\x81\1\2";
    struct opened opened;
    struct zt_error error;
    uint8_t got[8];

    (void)state;
    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    opened.bytes.at[MESSAGE_AT + 9] = 1;
    assert_int_equal(decode(&opened, 8, got, &error), ZT_CORRUPT);
    assert_string_equal(error.rule, "onnx §Data Varint");
    close_model(&opened);
}

static void integers_are_counted_when_the_file_is_opened(void **state)
{
    (void)state;
    REFUSE(DIMS I32 NAME "\x2a\1\1", "Tensor DataLength", 9);
    REFUSE(DIMS I32 NAME "\x2a\3\1\1\1", "Tensor DataLength", 9);
    REFUSE(DIMS I32 NAME "\x2a\0", "Tensor DataLength", 9);
    REFUSE(DIMS I32 NAME "\x2a\2\1\x80", "Wire Bounds", 10);
    REFUSE(DIMS I32 NAME "\x2a\x0b\1" ALL_ONES "\2", "Wire Varint", 10);
    REFUSE(DIMS I32 NAME "\x2a\x0c\1" ALL_ONES "\x81\0", "Wire Varint", 10);
}

/* --- the wire format --- */

static void open_refuses_broken_fields(void **state)
{
    (void)state;
    REFUSE(HEAD "\x4a\x08\1\2\3\4\5\6\7", "Wire Bounds", 9);
    REFUSE(HEAD "\x4a" ALL_ONES "\1", "Wire Bounds", 18);
    REFUSE(HEAD "\x4a\xff\xff\xff\xff\x07", "Wire Bounds", 13);
    REFUSE(HEAD "\x65"
                "123",
           "Wire Bounds", 8);
    REFUSE(HEAD "\x61"
                "1234567",
           "Wire Bounds", 8);
    REFUSE(HEAD "\x80", "Wire Bounds", 7);
    REFUSE(HEAD "\x4a", "Wire Bounds", 8);
    REFUSE(HEAD "\x10" ALL_ONES "\2", "Wire Varint", 8);
    REFUSE(HEAD ALL_ONES "\x81\0", "Wire Varint", 7);
    REFUSE(HEAD "\0\0", "Wire Tag", 7);
    REFUSE(HEAD "\2\0", "Wire Tag", 7);
    REFUSE(HEAD "\x80\x80\x80\x80\x10\0", "Wire Tag", 7);
    REFUSE(HEAD "\x63\x64", "Wire Tag", 7);
    REFUSE(HEAD "\x64", "Wire Tag", 7);
    REFUSE(HEAD "\x66", "Wire Tag", 7);
    REFUSE(HEAD "\x67", "Wire Tag", 7);
}

static void open_refuses_known_fields_of_another_wire_type(void **state)
{
    (void)state;
    REFUSE(DIMS "\x12\1\1" NAME RAW, "Wire Type", 2);
    REFUSE("\x0d\0\0\0\0", "Wire Type", 0);
    REFUSE(HEAD "\x25\0\0\0\0", "Wire Type", 7);
    REFUSE(DIMS I32 NAME "\x28\1", "Wire Type", 7);
    REFUSE(HEAD "\x48\1", "Wire Type", 7);
    REFUSE(HEAD "\x40\1", "Wire Type", 7);
    REFUSE(HEAD "\x18\1", "Wire Type", 7);
    REFUSE(HEAD "\x68\1", "Wire Type", 7);
    REFUSE(HEAD "\x72\1\1", "Wire Type", 7);
}

/* --- the tensor --- */

static void open_refuses_tensors_that_lack_something(void **state)
{
    (void)state;
    REFUSE("", "Tensor Name", ITSELF);
    REFUSE(DIMS F32 RAW, "Tensor Name", ITSELF);
    REFUSE(DIMS NAME RAW, "Tensor Type", ITSELF);
    REFUSE(HEAD, "Tensor Data", ITSELF);
    REFUSE(HEAD "\x4a\7\1\2\3\4\5\6\7", "Tensor DataLength", 9);
    REFUSE(HEAD "\x4a\x09\1\2\3\4\5\6\7\1\1", "Tensor DataLength", 9);
    REFUSE(HEAD "\x22\4\1\2\3\4", "Tensor DataLength", 9);
    REFUSE("\x08\0" F32 NAME "\x4a\1\1", "Tensor DataLength", 9);
}

static void open_refuses_what_comes_twice_in_a_tensor(void **state)
{
    (void)state;
    REFUSE(HEAD NAME RAW, "Tensor Repeated", 7);
    REFUSE(HEAD F32 RAW, "Tensor Repeated", 7);
    REFUSE(HEAD RAW RAW, "Tensor Repeated", 17);
    REFUSE(HEAD RAW "\x22\x08\1\2\3\4\5\6\7\1", "Tensor Repeated", 17);
    REFUSE(HEAD "\x4a\0" RAW, "Tensor Repeated", 9);
    REFUSE(HEAD "\x70\0\x70\0" RAW, "Tensor Repeated", 9);
}

static void open_refuses_texts_segments_and_unknown_types(void **state)
{
    (void)state;
    REFUSE(DIMS "\x10\x08" NAME "\x32\1x", "Tensor Type", 2);
    REFUSE(HEAD "\x32\1x", "Tensor Data", 7);
    REFUSE(DIMS "\x10\0" NAME RAW, "Tensor Type", 2);
    REFUSE(DIMS "\x10\x1d" NAME RAW, "Tensor Type", 2);
    REFUSE(DIMS "\x10" ALL_ONES "\1" NAME RAW, "Tensor Type", 2);
    REFUSE(HEAD "\x1a\0" RAW, "Tensor Segment", 7);
    REFUSE(HEAD "\x70\2" RAW, "Tensor Location", 7);
}

static void open_refuses_names_that_cannot_be(void **state)
{
    struct bytes tensor = {0};
    struct bytes model = {0};
    char name[1025];

    (void)state;
    REFUSE(DIMS F32 "\x42\0" RAW, "Tensor Name", 6);
    REFUSE(DIMS F32 "\x42\1\xff" RAW, "Tensor Name", 6);
    REFUSE(DIMS F32 "\x42\3a\0b" RAW, "Tensor Name", 6);
    memset(name, 'n', sizeof(name));
    bytes_append(&tensor, DIMS F32 RAW, 14);
    put_field(&tensor, 8, name, sizeof(name));
    put_tensor_model(&model, tensor.at, tensor.length);
    /* Both lengths have two bytes. */
    bytes_assert_refused(&model, "onnx §Tensor Name", MESSAGE_AT + 2 + 14 + 3);
    bytes_free(&model);
    bytes_free(&tensor);
}

static void open_refuses_shapes_that_cannot_be(void **state)
{
    struct bytes tensor = {0};

    (void)state;
    REFUSE("\x08" ALL_ONES "\1" F32 NAME RAW, "Tensor Shape", 0);
    REFUSE(DIMS "\x08" ALL_ONES "\1" F32 NAME RAW, "Tensor Shape", 2);
    /* Beside a dimension of 0, where the product overflows nothing. */
    REFUSE("\x08\0\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1" F32 NAME, "Tensor Shape", 2);
    REFUSE(F32 "\x08\x80\x80\x80\x80\x20\x08\x80\x80\x80\x80\x20" NAME "\x4a\0", "Tensor Shape", 2);
    /* 2^59 elements of 32 bits. */
    REFUSE("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x08" F32 NAME "\x4a\0", "Tensor Shape", 0);
    REFUSE("\x0a\2\1\x80" F32 NAME RAW, "Wire Bounds", 3);
    bytes_append(&tensor, "\x0a\x41", 2);
    for (int i = 0; i < 65; i++)
        bytes_append(&tensor, "\1", 1);
    refuse_tensor((const char *)tensor.at, tensor.length, "onnx §Tensor Shape", 2 + 64);
    bytes_free(&tensor);
}

/* --- external data --- */

static void external_data_is_a_shard(void **state)
{
    static const char tensor[] =
        EXTERNAL IN_F OFFSET("\x0d", "\3", "100") LENGTH("\x0b", "\1", "8") "\x6a\x0e\x0a\x08"
                                                                            "checksum\x12\2xx";
    struct opened opened;

    (void)state;
    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    assert_int_equal(only_part(&opened)->shard, 1);
    assert_int_equal(only_part(&opened)->offset, 100);
    assert_int_equal(only_part(&opened)->length, 8);
    assert_int_equal(opened.model->shard_count, 1);
    assert_int_equal(opened.model->shards[0].kind, ZT_SHARD_DATA);
    assert_int_equal(opened.model->shards[0].size_bytes, 108);
    assert_int_equal(opened.model->shards[0].name_length, 1);
    close_model(&opened);
}

static void external_data_must_hold_what_the_tensors_need(void **state)
{
    static const char tensor[] = EXTERNAL IN_F OFFSET("\x0b", "\1", "4");
    static const uint8_t data[13];
    struct opened opened;
    struct zt_error error;

    (void)state;
    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    for (size_t length = 0; length <= sizeof(data); length++) {
        struct zt_source *source;
        enum zt_status status;

        zt_error_clear(&error);
        assert_int_equal(zt_source_from_memory(data, length, &source, &error), ZT_OK);
        status = zt_shard_check(&opened.model->shards[0], source, &error);
        assert_int_equal(status, length < 12 ? ZT_INVALID : ZT_OK);
        if (status != ZT_OK)
            assert_failure(&error, ZT_INVALID, "onnx §External Size", length);
        zt_source_close(source);
    }
    close_model(&opened);
}

static void open_refuses_external_data_that_is_not_beside_the_model(void **state)
{
    struct bytes tensor = {0};
    struct bytes entry = {0};
    struct bytes model = {0};
    char name[256];

    (void)state;
    REFUSE(EXTERNAL, "External Location", ITSELF);
    REFUSE(EXTERNAL OFFSET("\x0b", "\1", "0"), "External Location", 9);
    REFUSE(EXTERNAL LOCATION("\x0c", "\0", ""), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0d", "\1", "."), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0e", "\2", ".."), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0e", "\2", ".f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0e", "\2", "/f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0f", "\3", "a/f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x10", "\4", "../f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0f", "\3", "a\\f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0f", "\3", "a\0f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0f", "\3", "a\nf"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0d", "\1", "\xff"), "External Location", 23);
    memset(name, 'n', sizeof(name));
    put_field(&entry, 1, "location", 8);
    put_field(&entry, 2, name, sizeof(name));
    bytes_append(&tensor, EXTERNAL, 9);
    put_field(&tensor, 13, entry.at, entry.length);
    put_tensor_model(&model, tensor.at, tensor.length);
    bytes_assert_refused(&model, "onnx §External Location", MESSAGE_AT + 2 + 9 + 3 + 10 + 3);
    bytes_free(&model);
    bytes_free(&tensor);
    bytes_free(&entry);
}

static void open_refuses_entries_that_cannot_be(void **state)
{
    (void)state;
    REFUSE(EXTERNAL IN_F IN_F, "External Entry", 26);
    REFUSE(EXTERNAL IN_F OFFSET("\x0b", "\1", "0") OFFSET("\x0b", "\1", "0"), "External Entry", 39);
    REFUSE(EXTERNAL IN_F LENGTH("\x0b", "\1", "8") LENGTH("\x0b", "\1", "8"), "External Entry", 39);
    REFUSE(EXTERNAL "\x6a\6\x0a\1k\x0a\1k", "External Entry", 14);
    REFUSE(EXTERNAL "\x6a\6\x12\1v\x12\1v", "External Entry", 14);
    REFUSE(EXTERNAL IN_F OFFSET("\x0a", "\0", ""), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x0c", "\2", "-1"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x0c", "\2", "+1"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x0c", "\2", "1 "), "External Entry", 36);
    REFUSE(EXTERNAL IN_F LENGTH("\x0d", "\3", "0x8"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x1e", "\x14", "18446744073709551616"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x1f", "\x15", "000000000000000000001"), "External Entry", 36);
}

static void open_refuses_external_ranges_that_cannot_be(void **state)
{
    (void)state;
    REFUSE(EXTERNAL IN_F LENGTH("\x0b", "\1", "7"), "External Length", 9);
    REFUSE(EXTERNAL IN_F LENGTH("\x0b", "\1", "9"), "External Length", 9);
    REFUSE(EXTERNAL IN_F OFFSET("\x1d", "\x13", "9223372036854775800"), "External Length", 9);
    REFUSE(EXTERNAL IN_F OFFSET("\x1e", "\x14", "18446744073709551615"), "External Length", 9);
    REFUSE(EXTERNAL IN_F RAW, "Tensor Data", 24);
}

/* --- graph and model --- */

static void open_refuses_a_second_graph_and_sparse_initializers(void **state)
{
    struct bytes model = {0};

    (void)state;
    bytes_append(&model, "\x08\x0a\x3a\0\x3a\0", 6);
    bytes_assert_refused(&model, "onnx §Model Graph", 4);
    bytes_free(&model);
    bytes_append(&model, "\x08\x0a\x3a\2\x7a\0", 6);
    bytes_assert_refused(&model, "onnx §Graph SparseInitializer", 4);
    bytes_free(&model);
}

static void open_refuses_a_name_that_occurs_twice(void **state)
{
    static const char one[] = HEAD RAW;
    struct bytes graph = {0};
    struct bytes model = {0};

    (void)state;
    put_field(&graph, 5, one, sizeof(one) - 1);
    put_field(&graph, 5, one, sizeof(one) - 1);
    put_model(&model, &graph);
    bytes_assert_refused(&model, "onnx §Tensor DuplicateName",
                         MESSAGE_AT + (sizeof(one) - 1) + 2 + 6);
    bytes_free(&model);
    bytes_free(&graph);
}

static void every_prefix_of_a_message_is_refused(void **state)
{
    static const char tensor[] = DIMS I32 NAME "\x2a\2\1\2";
    struct bytes model = {0};

    (void)state;
    put_tensor_model(&model, tensor, sizeof(tensor) - 1);
    for (size_t length = 0; length < model.length; length++) {
        struct zt_model *opened = NULL;
        struct zt_error error;

        zt_error_clear(&error);
        assert_int_equal(bytes_open(&model, length, &opened, &error), ZT_INVALID);
        assert_string_equal(error.rule,
                            length <= 2 ? "zt §Detection UnknownFormat" : "onnx §Wire Bounds");
        assert_null(opened);
    }
    bytes_free(&model);
}

/* --- detection --- */

static void content_that_is_no_model_stays_of_no_known_format(void **state)
{
    static const struct text contents[] = {
        TEXT("hello, world\n"),
        TEXT("{\"a\": 1}"),
        TEXT("\n\n\n\n\n\n\n\n"),
        TEXT("\0\0\0\0\0\0\0\0"),
        TEXT(ALL_ONES ALL_ONES),
        /* A message without a graph, one without a version, and one of a protobuf that has another
         * type where ONNX has the graph. */
        TEXT("\x08\x0a\x12\2pt"),
        TEXT("\x3a\0"),
        TEXT("\x12\2pt\x3a\0"),
        TEXT("\x08\x0a\x38\1"),
        TEXT("\x08\x0a\x12\2pt\x38\1"),
        /* Known fields of another type before the graph. */
        TEXT("\x08\x0a\x10\1\x3a\0"),
        TEXT("\x0a\1x\x3a\0"),
        /* Damage before the graph. */
        TEXT("\x08\x0a\x12\x7fpt\x3a\0"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        struct bytes bytes = {0};

        bytes_append(&bytes, contents[i].bytes, contents[i].length);
        bytes_assert_refused(&bytes, "zt §Detection UnknownFormat", 0);
        bytes_free(&bytes);
    }
}

static void garbage_is_of_no_known_format(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        uint8_t garbage[256];
        struct bytes bytes = {garbage, sizeof(garbage)};

        for (size_t at = 0; at < sizeof(garbage); at++) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            garbage[at] = (uint8_t)(seed >> 56);
        }
        /* Begins as no other format does. */
        garbage[0] |= 0xc0;
        bytes_assert_refused(&bytes, "zt §Detection UnknownFormat", 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_read_from_raw_and_from_typed_data),
        cmocka_unit_test(types_are_refused_in_each_others_fields),
        cmocka_unit_test(fields_may_come_in_any_order_and_unknown_ones_are_passed_over),
        cmocka_unit_test(tensors_of_no_elements_and_of_no_dimensions_are_read),
        cmocka_unit_test(a_graph_without_initializers_is_a_model_without_objects),
        cmocka_unit_test(integers_stream_in_pieces_of_any_length),
        cmocka_unit_test(negative_integers_are_ten_bytes_of_which_the_low_ones_count),
        cmocka_unit_test(integers_that_changed_after_opening_are_corrupt),
        cmocka_unit_test(integers_left_over_after_opening_are_corrupt),
        cmocka_unit_test(integers_are_counted_when_the_file_is_opened),
        cmocka_unit_test(open_refuses_broken_fields),
        cmocka_unit_test(open_refuses_known_fields_of_another_wire_type),
        cmocka_unit_test(open_refuses_tensors_that_lack_something),
        cmocka_unit_test(open_refuses_what_comes_twice_in_a_tensor),
        cmocka_unit_test(open_refuses_texts_segments_and_unknown_types),
        cmocka_unit_test(open_refuses_names_that_cannot_be),
        cmocka_unit_test(open_refuses_shapes_that_cannot_be),
        cmocka_unit_test(external_data_is_a_shard),
        cmocka_unit_test(external_data_must_hold_what_the_tensors_need),
        cmocka_unit_test(open_refuses_external_data_that_is_not_beside_the_model),
        cmocka_unit_test(open_refuses_entries_that_cannot_be),
        cmocka_unit_test(open_refuses_external_ranges_that_cannot_be),
        cmocka_unit_test(open_refuses_a_second_graph_and_sparse_initializers),
        cmocka_unit_test(open_refuses_a_name_that_occurs_twice),
        cmocka_unit_test(every_prefix_of_a_message_is_refused),
        cmocka_unit_test(content_that_is_no_model_stays_of_no_known_format),
        cmocka_unit_test(garbage_is_of_no_known_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
