/* ONNX: what is read, refused and detected (docs/rules/onnx.md). */
#include "onnx_message.h"

#include <stdlib.h>

#include "formats/formats.h"

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
    assert_ok(decode(&opened, 64, got, &error));
    assert_memory_equal(got, plain, length);
    close_model(&opened);
    bytes_free(&tensor);
}

TEST(types_are_read_from_raw_and_from_typed_data)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        assert_type_is_read(i, 9);
        if (types[i].typed_field != 0)
            assert_type_is_read(i, types[i].typed_field);
    }
}

TEST(types_are_refused_in_each_others_fields)
{
    static const unsigned fields[] = {4, 5, 6, 7, 10, 11};

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

TEST(fields_may_come_in_any_order_and_unknown_ones_are_passed_over)
{
    static const char tensor[] = "\x62\x03"
                                 "doc" RAW "\xfd\xff\xff\xff\x0f"
                                 "1234" NAME F32 "\x0a\2\1\2"
                                 "\x61"
                                 "12345678";
    struct opened opened;

    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    assert_int_equal(only_part(&opened)->offset, MESSAGE_AT + 5 + 2);
    assert_int_equal(only_part(&opened)->length, 8);
    assert_int_equal(opened.model->objects[0].rank, 2);
    assert_memory_equal(opened.model->objects[0].name, "w", 2 - 1);
    close_model(&opened);
}

TEST(tensors_of_no_elements_and_of_no_dimensions_are_read)
{
    struct opened opened;

    open_tensor(&opened, "\x08\0" F32 NAME, 7);
    assert_int_equal(only_part(&opened)->length, 0);
    close_model(&opened);
    open_tensor(&opened, F32 NAME "\x4a\4\1\2\3\4", 11);
    assert_int_equal(opened.model->objects[0].rank, 0);
    assert_int_equal(only_part(&opened)->length, 4);
    close_model(&opened);
}

TEST(a_graph_without_initializers_is_a_model_without_objects)
{
    struct opened opened = {0};

    bytes_append(&opened.bytes, "\x08\x0a\x3a\0", 4);
    open_model(&opened);
    assert_int_equal(opened.model->object_count, 0);
    close_model(&opened);
}

/* --- the wire format --- */

TEST(open_refuses_broken_fields)
{
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

TEST(open_refuses_known_fields_of_another_wire_type)
{
    REFUSE(DIMS "\x12\1\1" NAME RAW, "Wire Type", 2);
    REFUSE("\x0d\0\0\0\0", "Wire Type", 0);
    REFUSE(HEAD "\x21\0\0\0\0\0\0\0\0", "Wire Type", 7);
    REFUSE(DIMS I32 NAME "\x2d\0\0\0\0", "Wire Type", 7);
    REFUSE(DIMS I32 NAME "\x28\1", "Tensor DataLength", 9);
    REFUSE(HEAD "\x48\1", "Wire Type", 7);
    REFUSE(HEAD "\x40\1", "Wire Type", 7);
    REFUSE(HEAD "\x18\1", "Wire Type", 7);
    REFUSE(HEAD "\x68\1", "Wire Type", 7);
    REFUSE(HEAD "\x72\1\1", "Wire Type", 7);
}

/* --- the tensor --- */

TEST(open_refuses_tensors_that_lack_something)
{
    REFUSE("", "Tensor Name", ITSELF);
    REFUSE(DIMS F32 RAW, "Tensor Name", ITSELF);
    REFUSE(DIMS NAME RAW, "Tensor Type", ITSELF);
    REFUSE(HEAD, "Tensor Data", ITSELF);
    REFUSE(HEAD "\x4a\7\1\2\3\4\5\6\7", "Tensor DataLength", 9);
    REFUSE(HEAD "\x4a\x09\1\2\3\4\5\6\7\1\1", "Tensor DataLength", 9);
    REFUSE(HEAD "\x22\4\1\2\3\4", "Tensor DataLength", 9);
    REFUSE("\x08\0" F32 NAME "\x4a\1\1", "Tensor DataLength", 9);
}

TEST(open_refuses_what_comes_twice_in_a_tensor)
{
    REFUSE(HEAD NAME RAW, "Tensor Repeated", 7);
    REFUSE(HEAD F32 RAW, "Tensor Repeated", 7);
    REFUSE(HEAD RAW RAW, "Tensor Repeated", 17);
    REFUSE(HEAD RAW "\x22\x08\1\2\3\4\5\6\7\1", "Tensor Repeated", 17);
    REFUSE(HEAD "\x4a\0" RAW, "Tensor Repeated", 9);
    REFUSE(HEAD "\x70\0\x70\0" RAW, "Tensor Repeated", 9);
}

TEST(open_refuses_texts_segments_and_unknown_types)
{
    REFUSE(DIMS "\x10\x08" NAME "\x32\1x", "Tensor Type", 2);
    REFUSE(HEAD "\x32\1x", "Tensor Data", 7);
    REFUSE(DIMS "\x10\0" NAME RAW, "Tensor Type", 2);
    REFUSE(DIMS "\x10\x1d" NAME RAW, "Tensor Type", 2);
    REFUSE(DIMS "\x10" ALL_ONES "\1" NAME RAW, "Tensor Type", 2);
    REFUSE(HEAD "\x1a\0" RAW, "Tensor Segment", 7);
    REFUSE(HEAD "\x70\2" RAW, "Tensor Location", 7);
}

TEST(open_refuses_names_that_cannot_be)
{
    struct bytes tensor = {0};
    struct bytes model = {0};
    char name[1025];

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

TEST(open_refuses_shapes_that_cannot_be)
{
    struct bytes tensor = {0};

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

/* --- graph and model --- */

TEST(open_refuses_a_second_graph_and_sparse_initializers)
{
    struct bytes model = {0};

    bytes_append(&model, "\x08\x0a\x3a\0\x3a\0", 6);
    bytes_assert_refused(&model, "onnx §Model Graph", 4);
    bytes_free(&model);
    bytes_append(&model, "\x08\x0a\x3a\2\x7a\0", 6);
    bytes_assert_refused(&model, "onnx §Graph SparseInitializer", 4);
    bytes_free(&model);
}

/* As when the file changes after it was detected. */
TEST(open_refuses_a_message_without_a_graph)
{
    struct zt_model *model = NULL;
    struct zt_error error;
    struct zt_source *source = memory_source("\x08\x0a", 2);

    assert_int_equal(onnx_open(source, &model, &error), ZT_INVALID);
    assert_string_equal(error.rule, "onnx §Model Graph");
    assert_int_equal(error.offset, 0);
    assert_null(model);
    zt_source_close(source);
}

TEST(open_refuses_a_name_that_occurs_twice)
{
    static const char one[] = HEAD RAW;
    struct bytes graph = {0};
    struct bytes model = {0};

    put_field(&graph, 5, one, sizeof(one) - 1);
    put_field(&graph, 5, one, sizeof(one) - 1);
    put_model(&model, &graph);
    bytes_assert_refused(&model, "onnx §Tensor DuplicateName",
                         MESSAGE_AT + (sizeof(one) - 1) + 2 + 6);
    bytes_free(&model);
    bytes_free(&graph);
}

TEST(every_prefix_of_a_message_is_refused)
{
    static const char tensor[] = DIMS I32 NAME "\x2a\2\1\2";
    struct bytes model = {0};

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

TEST(content_that_is_no_model_stays_of_no_known_format)
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

    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        struct bytes bytes = {0};

        bytes_append(&bytes, contents[i].bytes, contents[i].length);
        bytes_assert_refused(&bytes, "zt §Detection UnknownFormat", 0);
        bytes_free(&bytes);
    }
}

TEST(garbage_is_of_no_known_format)
{
    uint64_t seed = 1;

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
