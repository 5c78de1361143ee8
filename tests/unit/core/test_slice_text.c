/* Slices and shards: equivalent spellings, and the verdict of each that is refused. NPY heads. */
#include "tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zt/slice.h"

/* --- equivalent spellings --- */

static void assert_same(const struct zt_slice_tensor *tensor, const char *text, const char *other)
{
    struct zt_slice first, second;

    assert_int_equal(zt_slice_parse(tensor, zt_text_from(text), &first, NULL), ZT_SLICE_FITS);
    assert_int_equal(zt_slice_parse(tensor, zt_text_from(other), &second, NULL), ZT_SLICE_FITS);
    assert_memory_equal(&first, &second, sizeof(first));
}

TEST(omitted_dimensions_are_whole)
{
    static const uint64_t shape[] = {4, 3, 5, 2};
    const struct zt_slice_tensor tensor = {shape, 4, ZT_F32, ZT_LOGICAL_NONE};
    const struct zt_slice_tensor scalar = {shape, 0, ZT_F32, ZT_LOGICAL_NONE};
    struct zt_slice slice;

    assert_same(&tensor, "1", "1,:,:,:");
    assert_same(&tensor, "...", ":");
    assert_same(&tensor, "...,1", ":,:,:,1");
    assert_same(&tensor, "1,...", "1");
    assert_same(&tensor, "1:,...,0", "1:4,:,:,0");
    assert_same(&tensor, "1,2,...,3,0", "1,2,3,0");
    assert_same(&tensor, "...,1,2,3,0", "1,2,3,0");
    assert_same(&tensor, "-0:2,-0", "0:2,0");
    assert_same(&tensor, "001", "1");
    assert_int_equal(zt_slice_parse(&scalar, zt_text_from("..."), &slice, NULL), ZT_SLICE_FITS);
    assert_int_equal(slice.rank, 0);
    assert_int_equal(slice.length, 4);
    assert_int_equal(slice.run_bytes, 4);
    assert_int_equal(zt_slice_parse(&scalar, zt_text_from(":"), &slice, NULL),
                     ZT_SLICE_OUT_OF_RANGE);
}

TEST(bounds_of_any_size_are_clipped)
{
    static const uint64_t shape[] = {4, 3};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_F32, ZT_LOGICAL_NONE};

    assert_same(&tensor, "1:9223372036854775808", "1:");
    assert_same(&tensor, "1:18446744073709551616", "1:");
    assert_same(&tensor, "-99999999999999999999999999999999:2", ":2");
    assert_same(&tensor, "99999999999999999999999999999999:", "4:");
    assert_same(&tensor, ":-99999999999999999999999999999999", ":0");
    assert_same(&tensor, "3:1", "0:0");
}

/* --- refused texts: the slice is not changed --- */

static void assert_refused(const struct zt_slice_tensor *tensor, const char *text,
                           enum zt_slice_verdict verdict)
{
    struct zt_slice slice, before;
    struct zt_error error;

    memset(&slice, 0xA5, sizeof(slice));
    before = slice;
    if (zt_slice_parse(tensor, zt_text_from(text), &slice, &error) != verdict)
        fail_msg("\"%s\" is taken otherwise", text);
    assert_memory_equal(&slice, &before, sizeof(slice));
    assert_int_equal(error.status, ZT_ARGUMENT);
    assert_null(error.rule);
    assert_true(error.offset == ZT_NO_OFFSET);
    assert_true(error.message[0] != '\0');
}

TEST(malformed_texts_are_reported)
{
    static const uint64_t shape[] = {40, 30, 20};
    const struct zt_slice_tensor tensor = {shape, 3, ZT_F32, ZT_LOGICAL_NONE};
    static const char *const texts[] = {
        "",          ",",        "1,",           ",1",
        "1,,2",      ":,",       "...,",         "....",
        "..",        ".",        "...1",         "1...",
        "......",    "...:1",    "...,...",      "...,1,...",
        "::",        "0:1:1",    "0:1:",         "::2",
        "1:2:3:4",   " 1",       "1 ",           "1, 2",
        "0 :1",      "\t1",      "+1",           "0:+1",
        "-",         "-:",       ":-",           "--1",
        "1-",        "- 1",      "1.0",          "1e3",
        "0x10",      "1_000",    "None",         "newaxis",
        "True",      "[1]",      "(1)",          "1;2",
        "a",         "\xC2\xB2", "\xEF\xBC\x91", "1\n",
        "9,9,9,9,x", "99,",      "99,99,99,99,", "\xE2\x88\x92,1",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_refused(&tensor, texts[i], ZT_SLICE_MALFORMED);
    /* A NUL does not end the text. */
    assert_int_equal(zt_slice_parse(&tensor, (struct zt_text){"1\0", 2}, NULL, NULL),
                     ZT_SLICE_MALFORMED);
}

TEST(indices_outside_are_reported)
{
    static const uint64_t shape[] = {4, 0, UINT64_MAX};
    const struct zt_slice_tensor tensor = {shape, 3, ZT_F32, ZT_LOGICAL_NONE};
    static const char *const texts[] = {
        "4",
        "-5",
        "0,0",
        "0,-1",
        "0,0:0,18446744073709551615",
        "0,0:0,99999999999999999999999",
        ":,:,:,:",
        "0,0,0,0",
        "18446744073709551616",
        "-18446744073709551616",
        "...,:,:,:,:",
        "4,:",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_refused(&tensor, texts[i], ZT_SLICE_OUT_OF_RANGE);
}

TEST(tensors_past_64_bits_are_out_of_range)
{
    static const uint64_t shape[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    static const uint64_t wide[] = {UINT64_C(1) << 62};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    const struct zt_slice_tensor words = {wide, 1, ZT_F64, ZT_LOGICAL_NONE};

    assert_refused(&tensor, "0", ZT_SLICE_OUT_OF_RANGE);
    assert_refused(&words, "0", ZT_SLICE_OUT_OF_RANGE);
}

/* If one dimension is 0, the others may be of any size. */
TEST(empty_tensors_of_any_shape_are_sliced)
{
    static const uint64_t shape[] = {UINT64_MAX, 0, UINT64_MAX - 1};
    const struct zt_slice_tensor tensor = {shape, 3, ZT_F64, ZT_LOGICAL_COMPLEX128};
    struct zt_slice slice;

    assert_int_equal(zt_slice_parse(&tensor, zt_text_from("1:,...,-3:"), &slice, NULL),
                     ZT_SLICE_FITS);
    assert_int_equal(slice.length, 0);
    assert_int_equal(slice.rank, 3);
    assert_true(slice.shape[0] == UINT64_MAX - 1);
    assert_true(slice.shape[2] == 3);
    assert_true(zt_slice_is_contiguous(&slice));
    assert_int_equal(zt_slice_parse(&tensor, zt_text_from("5,:,7"), &slice, NULL), ZT_SLICE_FITS);
    assert_int_equal(slice.rank, 1);
    assert_int_equal(slice.shape[0], 0);
}

TEST(tensors_of_64_dimensions_are_sliced)
{
    uint64_t shape[ZT_SLICE_RANK_MAX];
    const struct zt_slice_tensor tensor = {shape, ZT_SLICE_RANK_MAX, ZT_U8, ZT_LOGICAL_NONE};
    char text[4 * ZT_SLICE_RANK_MAX] = "";
    struct zt_slice slice;

    for (unsigned i = 0; i < ZT_SLICE_RANK_MAX; i++) {
        shape[i] = i % 2 == 0 ? 3 : 1;
        strcat(text, i == 0 ? ":2" : ",:2");
    }
    assert_int_equal(zt_slice_parse(&tensor, zt_text_from(text), &slice, NULL), ZT_SLICE_FITS);
    assert_int_equal(slice.rank, ZT_SLICE_RANK_MAX);
    assert_true(slice.length == UINT64_C(1) << 32);
    assert_int_equal(slice.run_bytes, 2);
    assert_int_equal(slice.loop_count, 31);
    strcat(text, ",:");
    assert_refused(&tensor, text, ZT_SLICE_OUT_OF_RANGE);
}

/* --- shards --- */

TEST(shards_equal_their_slices)
{
    static const uint64_t shape[] = {4, 6, 2};
    const struct zt_slice_tensor tensor = {shape, 3, ZT_F32, ZT_LOGICAL_NONE};

    for (int64_t axis = -3; axis < 3; axis++) {
        unsigned dimension = (unsigned)(axis < 0 ? axis + 3 : axis);

        for (uint64_t parts = 1; parts <= 6; parts++) {
            for (uint64_t part = 0; part < parts; part++) {
                struct zt_slice shard, slice;
                char text[32];
                uint64_t each = shape[dimension] / parts;
                enum zt_slice_verdict verdict =
                    zt_slice_shard(&tensor, part, parts, axis, &shard, NULL);

                assert_int_equal(verdict, shape[dimension] % parts == 0 ? ZT_SLICE_FITS
                                                                        : ZT_SLICE_NOT_DIVISIBLE);
                if (verdict != ZT_SLICE_FITS)
                    continue;
                snprintf(text, sizeof(text), "%.*s%" PRIu64 ":%" PRIu64, 2 * (int)dimension, ":,:,",
                         part * each, (part + 1) * each);
                assert_int_equal(zt_slice_parse(&tensor, zt_text_from(text), &slice, NULL),
                                 ZT_SLICE_FITS);
                assert_memory_equal(&shard, &slice, sizeof(slice));
            }
        }
    }
}

static void assert_no_shard(const struct zt_slice_tensor *tensor, uint64_t part, uint64_t parts,
                            int64_t axis, enum zt_slice_verdict verdict)
{
    struct zt_slice slice, before;
    struct zt_error error;

    memset(&slice, 0xA5, sizeof(slice));
    before = slice;
    assert_int_equal(zt_slice_shard(tensor, part, parts, axis, &slice, &error), verdict);
    assert_memory_equal(&slice, &before, sizeof(slice));
    assert_int_equal(error.status, ZT_ARGUMENT);
    assert_null(error.rule);
    assert_true(error.offset == ZT_NO_OFFSET);
}

TEST(impossible_shards_are_reported)
{
    static const uint64_t shape[] = {6, 4, 0};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_F32, ZT_LOGICAL_NONE};
    const struct zt_slice_tensor scalar = {shape, 0, ZT_F32, ZT_LOGICAL_NONE};
    const struct zt_slice_tensor empty = {shape, 3, ZT_F32, ZT_LOGICAL_NONE};
    const struct zt_slice_tensor halves = {shape, 1, ZT_U8, ZT_LOGICAL_F4_E2M1};
    struct zt_slice slice;

    assert_no_shard(&tensor, 0, 0, 0, ZT_SLICE_MALFORMED);
    assert_no_shard(&tensor, 2, 2, 0, ZT_SLICE_MALFORMED);
    assert_no_shard(&tensor, UINT64_MAX, 1, 0, ZT_SLICE_MALFORMED);
    assert_no_shard(&tensor, 0, 1, 2, ZT_SLICE_OUT_OF_RANGE);
    assert_no_shard(&tensor, 0, 1, -3, ZT_SLICE_OUT_OF_RANGE);
    assert_no_shard(&tensor, 0, 1, INT64_MIN, ZT_SLICE_OUT_OF_RANGE);
    assert_no_shard(&tensor, 0, 1, INT64_MAX, ZT_SLICE_OUT_OF_RANGE);
    assert_no_shard(&scalar, 0, 1, 0, ZT_SLICE_OUT_OF_RANGE);
    assert_no_shard(&tensor, 0, 4, 0, ZT_SLICE_NOT_DIVISIBLE);
    assert_no_shard(&tensor, 0, UINT64_MAX, 1, ZT_SLICE_NOT_DIVISIBLE);
    assert_no_shard(&halves, 1, 2, 0, ZT_SLICE_NOT_ALIGNED);
    assert_int_equal(zt_slice_shard(&halves, 1, 3, 0, &slice, NULL), ZT_SLICE_FITS);
    assert_int_equal(slice.length, 1);
    assert_int_equal(zt_slice_shard(&empty, 1, 3, 2, &slice, NULL), ZT_SLICE_FITS);
    assert_int_equal(slice.length, 0);
}

/* --- NPY heads --- */

static void assert_npy(enum zt_dtype dtype, enum zt_logical logical, unsigned rank,
                       const char *dictionary)
{
    static const uint64_t shape[] = {2, UINT64_MAX, 0};
    const struct zt_slice_tensor tensor = {shape, rank, dtype, logical};
    uint8_t *head = NULL;
    size_t length = 0;

    assert_ok(zt_npy_head(&tensor, &head, &length, NULL));
    assert_int_equal(length % 64, 0);
    assert_memory_equal(head, "\x93NUMPY\x01\x00", 8);
    assert_int_equal((size_t)head[8] + 256u * head[9], length - 10);
    assert_memory_equal(head + 10, dictionary, strlen(dictionary));
    assert_int_equal(head[length - 1], '\n');
    for (size_t i = 10 + strlen(dictionary); i + 1 < length; i++)
        assert_int_equal(head[i], ' ');
    free(head);
}

TEST(npy_heads_name_type_and_shape)
{
    static const uint64_t shape[] = {4};
    const struct zt_slice_tensor halves = {shape, 1, ZT_U8, ZT_LOGICAL_F4_E2M1};
    const struct zt_slice_tensor brains = {shape, 1, ZT_BF16, ZT_LOGICAL_NONE};
    const struct zt_slice_tensor quarters = {shape, 1, ZT_U8, ZT_LOGICAL_F8_E8M0};
    const struct zt_slice_tensor unknown = {shape, 1, ZT_U8, ZT_LOGICAL_UNKNOWN};
    uint8_t *head = NULL;
    size_t length = 7;
    struct zt_error error;

    assert_npy(ZT_F32, ZT_LOGICAL_NONE, 0,
               "{'descr': '<f4', 'fortran_order': False, 'shape': (), }");
    assert_npy(ZT_U8, ZT_LOGICAL_NONE, 2,
               "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 18446744073709551615), }");
    assert_npy(ZT_F32, ZT_LOGICAL_COMPLEX64, 1,
               "{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }");
    assert_npy(
        ZT_F64, ZT_LOGICAL_COMPLEX128, 3,
        "{'descr': '<c16', 'fortran_order': False, 'shape': (2, 18446744073709551615, 0), }");
    assert_npy(ZT_U8, ZT_LOGICAL_BOOL, 1,
               "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }");
    assert_int_equal(zt_npy_head(&halves, &head, &length, &error), ZT_UNSUPPORTED);
    assert_int_equal(error.status, ZT_UNSUPPORTED);
    assert_int_equal(zt_npy_head(&brains, &head, &length, &error), ZT_UNSUPPORTED);
    assert_int_equal(zt_npy_head(&quarters, &head, &length, &error), ZT_UNSUPPORTED);
    assert_int_equal(zt_npy_head(&unknown, &head, &length, &error), ZT_UNSUPPORTED);
    assert_null(head);
    assert_int_equal(length, 7);
}
