/* ONNX: integers in typed fields, which are counted when a file is opened and decoded when they
 * are read. */
#include "onnx_message.h"

#include <stdlib.h>

/* More stored bytes than one filling brings, and no boundary is one of an integer. */
#define MANY ((size_t)100003)

static uint64_t nth_integer(size_t n)
{
    return (n % 7 == 0 ? UINT64_MAX : (uint64_t)0x9e3779b97f4a7c15) >> (n * 5 % 64);
}

TEST(integers_stream_in_pieces_of_any_length)
{
    static const size_t pieces[] = {1, 3, 7, 8, 13, 4096, 1 << 20};
    uint8_t *got = malloc(MANY * 8);
    struct bytes data = {0};
    struct bytes tensor = {0};
    struct opened opened;
    struct zt_error error;

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
        assert_ok(decode(&opened, pieces[i], got, &error));
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

TEST(negative_integers_are_ten_bytes_of_which_the_low_ones_count)
{
    static const char tensor[] = DIMS I32 NAME "\x2a\x14" ALL_ONES "\1"
                                               "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1";
    struct opened opened;
    struct zt_error error;
    int32_t got[2];

    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    assert_ok(decode(&opened, sizeof(got), (uint8_t *)got, &error));
    assert_int_equal(got[0], -1);
    assert_int_equal(got[1], -2);
    close_model(&opened);
}

TEST(integers_that_changed_after_opening_are_corrupt)
{
    static const struct {
        uint8_t first, second;
    } cases[] = {{0x81, 1}, {1, 0x81}, {0x81, 0x81}};

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

TEST(integers_left_over_after_opening_are_corrupt)
{
    static const char tensor[] = DIMS I32 NAME "\x2a\3\x81\1\2";
    struct opened opened;
    struct zt_error error;
    uint8_t got[8];

    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    opened.bytes.at[MESSAGE_AT + 9] = 1;
    assert_int_equal(decode(&opened, 8, got, &error), ZT_CORRUPT);
    assert_string_equal(error.rule, "onnx §Data Varint");
    close_model(&opened);
}

TEST(integers_are_counted_when_the_file_is_opened)
{
    REFUSE(DIMS I32 NAME "\x2a\1\1", "Tensor DataLength", 9);
    REFUSE(DIMS I32 NAME "\x2a\3\1\1\1", "Tensor DataLength", 9);
    REFUSE(DIMS I32 NAME "\x2a\0", "Tensor DataLength", 9);
    REFUSE(DIMS I32 NAME "\x2a\2\1\x80", "Wire Bounds", 10);
    REFUSE(DIMS I32 NAME "\x2a\x0b\1" ALL_ONES "\2", "Wire Varint", 10);
    REFUSE(DIMS I32 NAME "\x2a\x0c\1" ALL_ONES "\x81\0", "Wire Varint", 10);
}
