/* Types: names and sizes. */
#include "tests.h"

#include <string.h>

#include "zt/dtype.h"

TEST(every_dtype_is_found_by_its_own_name)
{
    for (int i = 0; i < ZT_DTYPE_COUNT; i++) {
        enum zt_dtype dtype = ZT_DTYPE_COUNT;

        assert_true(zt_dtype_from_name(zt_text_from(zt_dtype_name((enum zt_dtype)i)), &dtype));
        assert_int_equal(dtype, i);
    }
}

TEST(long_names_are_those_of_0_1)
{
    static const char *const names[ZT_DTYPE_COUNT] = {
        "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16",
        "int8",    "uint64",  "uint32",  "uint16",   "uint8", "bool"};
    enum zt_dtype dtype = ZT_DTYPE_COUNT;

    for (int i = 0; i < ZT_DTYPE_COUNT; i++) {
        assert_true(zt_dtype_from_long_name(zt_text_from(names[i]), &dtype));
        assert_int_equal(dtype, i);
    }
    assert_false(zt_dtype_from_name(zt_text_from("float32"), &dtype));
    assert_false(zt_dtype_from_long_name(zt_text_from("f32"), &dtype));
}

TEST(names_that_only_begin_like_a_dtype_are_unknown)
{
    static const char *const names[] = {"", "f", "f3", "f322", "F32", "u8 ", "f8_e4m3"};
    enum zt_dtype dtype = ZT_BOOL;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_false(zt_dtype_from_name(zt_text_from(names[i]), &dtype));
    assert_int_equal(dtype, ZT_BOOL); /* untouched */
}

TEST(widths_follow_the_names)
{
    assert_int_equal(zt_dtype_width(ZT_F64), 8);
    assert_int_equal(zt_dtype_width(ZT_BF16), 2);
    assert_int_equal(zt_dtype_width(ZT_I32), 4);
    assert_int_equal(zt_dtype_width(ZT_U16), 2);
    assert_int_equal(zt_dtype_width(ZT_BOOL), 1);
}

TEST(logical_types_are_found_and_others_are_unknown)
{
    for (int i = ZT_LOGICAL_BOOL; i < ZT_LOGICAL_COUNT; i++)
        assert_int_equal(zt_logical_from_name(zt_text_from(zt_logical_name((enum zt_logical)i))),
                         i);
    assert_int_equal(zt_logical_from_name(zt_text_from("u8")), ZT_LOGICAL_UNKNOWN);
    assert_int_equal(zt_logical_from_name(zt_text_from("")), ZT_LOGICAL_UNKNOWN);
    assert_int_equal(zt_logical_from_name(zt_text_from("f8_e4m3")), ZT_LOGICAL_UNKNOWN);
    assert_null(zt_logical_name(ZT_LOGICAL_NONE));
    assert_null(zt_logical_name(ZT_LOGICAL_UNKNOWN));
    assert_int_equal(zt_logical_storage(ZT_LOGICAL_COMPLEX128), ZT_F64);
    assert_int_equal(zt_logical_storage(ZT_LOGICAL_COMPLEX64), ZT_F32);
    assert_int_equal(zt_logical_storage(ZT_LOGICAL_F4_E2M1), ZT_U8);
}

TEST(sizes_count_whole_bytes)
{
    uint64_t bytes = 0;

    assert_ok(zt_element_bytes(ZT_F32, ZT_LOGICAL_NONE, 3, &bytes));
    assert_int_equal(bytes, 12);
    assert_ok(zt_element_bytes(ZT_U8, ZT_LOGICAL_F4_E2M1, 5, &bytes));
    assert_int_equal(bytes, 3);
    assert_ok(zt_element_bytes(ZT_F64, ZT_LOGICAL_COMPLEX128, 2, &bytes));
    assert_int_equal(bytes, 32);
    assert_ok(zt_element_bytes(ZT_F32, ZT_LOGICAL_COMPLEX64, 0, &bytes));
    assert_int_equal(bytes, 0);
}

TEST(sizes_past_64_bits_are_a_limit)
{
    uint64_t bytes = 7;

    assert_int_equal(zt_element_bytes(ZT_F64, ZT_LOGICAL_NONE, UINT64_C(1) << 61, &bytes),
                     ZT_LIMIT);
    assert_int_equal(zt_element_bytes(ZT_F64, ZT_LOGICAL_COMPLEX128, UINT64_C(1) << 60, &bytes),
                     ZT_LIMIT);
    assert_int_equal(bytes, 7);
    assert_ok(zt_element_bytes(ZT_U8, ZT_LOGICAL_F4_E2M1, UINT64_MAX, &bytes));
    assert_true(bytes == UINT64_C(1) << 63);
}

TEST(unknown_types_have_no_size)
{
    uint64_t bytes = 7;

    assert_int_equal(zt_element_bytes(ZT_U8, ZT_LOGICAL_UNKNOWN, 1, &bytes), ZT_UNSUPPORTED);
    assert_int_equal(bytes, 7);
    assert_int_equal(zt_element_bits(ZT_U8, ZT_LOGICAL_UNKNOWN), 0);
    assert_int_equal(zt_element_bits(ZT_U8, ZT_LOGICAL_F4_E2M1), 4);
    assert_int_equal(zt_element_bits(ZT_F32, ZT_LOGICAL_NONE), 32);
}
