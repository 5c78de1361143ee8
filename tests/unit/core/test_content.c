/* Content rules: each rule is broken once, in each format that has it, raw and encoded. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "check/content.h"
#include "handmade.h"
#include "zt/verify.h"

#define ZT01_RULE "zt0.1 §3 LayoutData"
#define ZT1_RULE  "zt1 §3 LayoutData"
#define ZT2_RULE  "zt2 §6 LayoutData"

static enum zt_status check(struct handmade *made, struct zt_error *error)
{
    struct zt_files files;

    zt_error_clear(error);
    zt_source_close(made->source);
    handmade_open(made);
    files = (struct zt_files){made->source, NULL};
    return zt_object_check(&made->model, &made->object, &files, error);
}

static void assert_passes(struct handmade *made)
{
    struct zt_error error;

    assert_int_equal(check(made, &error), ZT_OK);
    handmade_free(made);
}

/* The fault is in the part of that index. */
static void assert_refused(struct handmade *made, const char *rule, unsigned part)
{
    struct zt_error error;

    assert_int_equal(check(made, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, rule, made->parts[part].offset);
    assert_string_equal(error.object, "tensor");
    assert_string_equal(error.component, made->parts[part].name);
    handmade_free(made);
}

/* --- types --- */

static void make_dense(struct handmade *made, enum zt_format format, enum zt_dtype dtype,
                       const void *bytes, size_t length)
{
    const uint64_t shape[] = {length};

    handmade_init(made, format, ZT_LAYOUT_DENSE, 1, shape);
    handmade_add(made, "data", dtype, bytes, length);
}

static void bools_are_0_or_1(void **state)
{
    struct handmade made;

    (void)state;
    make_dense(&made, ZT_FORMAT_ZT1, ZT_BOOL, "\0\1\1\0", 4);
    assert_passes(&made);
    make_dense(&made, ZT_FORMAT_ZT1, ZT_BOOL, "\0\1\2\0", 4);
    assert_refused(&made, ZT1_RULE, 0);
    make_dense(&made, ZT_FORMAT_ZT01, ZT_BOOL, "\xFF\1\1\0", 4);
    assert_refused(&made, ZT01_RULE, 0);
    make_dense(&made, ZT_FORMAT_ZT2, ZT_U8, "\0\1\1\xAB", 4);
    made.parts[0].logical = ZT_LOGICAL_BOOL;
    assert_refused(&made, ZT2_RULE, 0);
    /* The same bytes, as numbers. */
    make_dense(&made, ZT_FORMAT_ZT2, ZT_U8, "\0\1\1\xAB", 4);
    assert_passes(&made);
}

static void bools_are_checked_when_encoded(void **state)
{
    struct bytes frame = {NULL, 0};
    uint8_t bools[200000] = {0};
    struct handmade made;

    (void)state;
    bools[199999] = 2;
    bytes_append_zstd(&frame, bools, sizeof(bools), false);
    make_dense(&made, ZT_FORMAT_ZT1, ZT_BOOL, frame.at, frame.length);
    made.parts[0].encoding = ZT_ENCODING_ZSTD;
    made.parts[0].decoded_length = sizeof(bools);
    assert_refused(&made, ZT1_RULE, 0);
    bytes_free(&frame);
}

static void structural_layouts_are_not_judged(void **state)
{
    struct handmade made;

    (void)state;
    make_dense(&made, ZT_FORMAT_ZT1, ZT_BOOL, "\0\1\2\0", 4);
    made.object.layout = ZT_LAYOUT_OTHER;
    assert_passes(&made);
}

static void make_f4(struct handmade *made, uint64_t elements, const char *bytes, size_t length)
{
    handmade_init(made, ZT_FORMAT_ZT2, ZT_LAYOUT_DENSE, 1, &elements);
    handmade_add(made, "data", ZT_U8, bytes, length)->logical = ZT_LOGICAL_F4_E2M1;
}

static void spare_nibble_is_0(void **state)
{
    struct bytes stream = {NULL, 0};
    struct handmade made;

    (void)state;
    make_f4(&made, 3, "\xFF\x0F", 2);
    assert_passes(&made);
    make_f4(&made, 4, "\xFF\x1F", 2);
    assert_passes(&made);
    make_f4(&made, 0, "", 0);
    assert_passes(&made);
    make_f4(&made, 3, "\xFF\x1F", 2);
    assert_refused(&made, ZT2_RULE, 0);
    bytes_append_seekable(&stream, "\xFF\x1F", 2, 1);
    make_f4(&made, 3, (const char *)stream.at, stream.length);
    made.parts[0].encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    made.parts[0].decoded_length = 2;
    assert_refused(&made, ZT2_RULE, 0);
    bytes_free(&stream);
}

static void encoded_components_must_decode(void **state)
{
    struct bytes frame = {NULL, 0};
    struct zt_error error;
    struct handmade made;

    (void)state;
    bytes_append_zstd(&frame, "0123456789", 10, true);
    make_dense(&made, ZT_FORMAT_ZT1, ZT_U8, frame.at, frame.length);
    made.parts[0].encoding = ZT_ENCODING_ZSTD;
    made.parts[0].decoded_length = 10;
    assert_int_equal(check(&made, &error), ZT_OK);
    made.data.at[made.data.length - 1] ^= 1;
    assert_int_equal(check(&made, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, "zt1 §5 ZstdFrame", 64);
    assert_string_equal(error.object, "tensor");
    assert_string_equal(error.component, "data");
    handmade_free(&made);
    bytes_free(&frame);
}

static void what_cannot_be_read_is_unsupported_only_where_a_rule_needs_it(void **state)
{
    struct zt_error error;
    struct handmade made;

    (void)state;
    make_dense(&made, ZT_FORMAT_ZT2, ZT_U8, "\0\1\1\0", 4);
    made.parts[0].encoding = ZT_ENCODING_UNKNOWN;
    assert_int_equal(check(&made, &error), ZT_OK);
    made.parts[0].logical = ZT_LOGICAL_BOOL;
    assert_int_equal(check(&made, &error), ZT_UNSUPPORTED);
    assert_string_equal(error.component, "data");
    made.parts[0].encoding = ZT_ENCODING_RAW;
    assert_int_equal(check(&made, &error), ZT_OK);
    made.parts[0].shard = 1;
    assert_int_equal(check(&made, &error), ZT_UNSUPPORTED);
    made.parts[0].logical = ZT_LOGICAL_NONE;
    assert_int_equal(check(&made, &error), ZT_OK);
    handmade_free(&made);
}

/* --- compressed sparse rows: 3 rows, 4 columns, 4 values --- */

static const uint64_t good_indptr[] = {0, 2, 2, 4};
static const uint64_t good_indices[] = {0, 3, 1, 2};

static void pack(const uint64_t *words, size_t count, enum zt_dtype dtype, struct bytes *out)
{
    unsigned width = zt_dtype_width(dtype);

    for (size_t i = 0; i < count; i++) {
        for (unsigned b = 0; b < width; b++) {
            uint8_t byte = (uint8_t)(words[i] >> (8 * b));

            bytes_append(out, &byte, 1);
        }
    }
}

static void add_words(struct handmade *made, const char *name, enum zt_dtype dtype,
                      const uint64_t *words, size_t count)
{
    struct bytes packed = {NULL, 0};

    pack(words, count, dtype, &packed);
    handmade_add(made, name, dtype, packed.at, packed.length);
    bytes_free(&packed);
}

/* Parts: 0 indices, 1 indptr, 2 values. */
static void make_csr(struct handmade *made, enum zt_format format, enum zt_dtype dtype,
                     const uint64_t *indptr, const uint64_t *indices)
{
    static const uint64_t shape[] = {3, 4};

    handmade_init(made, format, ZT_LAYOUT_SPARSE_CSR, 2, shape);
    add_words(made, "indices", dtype, indices, 4);
    add_words(made, "indptr", dtype, indptr, 4);
    handmade_add(made, "values", ZT_F32, "0123456789abcdef", 16);
}

static void csr_passes_with_indices_of_any_integers(void **state)
{
    struct handmade made;

    (void)state;
    for (int dtype = ZT_I64; dtype <= ZT_U8; dtype++) {
        make_csr(&made, ZT_FORMAT_ZT1, (enum zt_dtype)dtype, good_indptr, good_indices);
        assert_passes(&made);
    }
    make_csr(&made, ZT_FORMAT_ZT2, ZT_U32, good_indptr, good_indices);
    assert_passes(&made);
}

static void csr_refuses_row_pointers_that_make_no_rows(void **state)
{
    static const uint64_t nonzero[] = {1, 2, 2, 4}, falling[] = {0, 2, 1, 4},
                          short_of[] = {0, 2, 2, 3};
    static const enum zt_format formats[] = {ZT_FORMAT_ZT1, ZT_FORMAT_ZT2};
    static const char *const rules[] = {ZT1_RULE, ZT2_RULE};
    struct handmade made;

    (void)state;
    for (int i = 0; i < 2; i++) {
        make_csr(&made, formats[i], ZT_U64, nonzero, good_indices);
        assert_refused(&made, rules[i], 1);
        make_csr(&made, formats[i], ZT_U64, falling, good_indices);
        assert_refused(&made, rules[i], 1);
        make_csr(&made, formats[i], ZT_U64, short_of, good_indices);
        assert_refused(&made, rules[i], 0);
    }
}

static void csr_refuses_more_rows_than_indices(void **state)
{
    static const uint64_t beyond[] = {0, 2, 2, 5}, far[] = {0, 2, 2, UINT64_MAX};
    struct handmade made;

    (void)state;
    make_csr(&made, ZT_FORMAT_ZT2, ZT_U64, beyond, good_indices);
    assert_refused(&made, ZT2_RULE, 0);
    make_csr(&made, ZT_FORMAT_ZT2, ZT_U64, far, good_indices);
    assert_refused(&made, ZT2_RULE, 0);
}

static void csr_refuses_columns_outside_the_shape(void **state)
{
    static const uint64_t outside[] = {0, 4, 1, 2};
    struct handmade made;

    (void)state;
    make_csr(&made, ZT_FORMAT_ZT1, ZT_U16, good_indptr, outside);
    assert_refused(&made, ZT1_RULE, 0);
    make_csr(&made, ZT_FORMAT_ZT2, ZT_U64, good_indptr, outside);
    assert_refused(&made, ZT2_RULE, 0);
}

static void csr_columns_increase_in_2_only(void **state)
{
    static const uint64_t falling[] = {3, 0, 1, 2}, equal[] = {0, 3, 2, 2};
    struct handmade made;

    (void)state;
    make_csr(&made, ZT_FORMAT_ZT1, ZT_U64, good_indptr, falling);
    assert_passes(&made);
    make_csr(&made, ZT_FORMAT_ZT2, ZT_U64, good_indptr, falling);
    assert_refused(&made, ZT2_RULE, 0);
    make_csr(&made, ZT_FORMAT_ZT2, ZT_U64, good_indptr, equal);
    assert_refused(&made, ZT2_RULE, 0);
}

static void csr_refuses_negative_indices(void **state)
{
    static const uint64_t negative[] = {0, (uint64_t)-1, 1, 2};
    struct handmade made;

    (void)state;
    make_csr(&made, ZT_FORMAT_ZT1, ZT_I8, good_indptr, negative);
    assert_refused(&made, ZT1_RULE, 0);
    make_csr(&made, ZT_FORMAT_ZT1, ZT_I64, negative, good_indices);
    assert_refused(&made, ZT1_RULE, 1);
}

/* zstd without a declared length: what the manifest could not check is checked here. */
static void csr_of_unknown_lengths_is_counted(void **state)
{
    static const uint64_t shape[] = {3, 4};
    struct bytes words = {NULL, 0}, frame = {NULL, 0};
    struct handmade made;

    (void)state;
    pack(good_indptr, 4, ZT_U64, &words);
    bytes_append_zstd(&frame, "0123456789abcdef", 16, false);
    for (size_t surplus = 0; surplus < 3; surplus++) {
        struct bytes indptr = {NULL, 0};

        handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_SPARSE_CSR, 2, shape);
        add_words(&made, "indices", ZT_U64, good_indices, 4);
        bytes_append_zstd(&indptr, words.at, words.length - (surplus == 1 ? 8 : 0), false);
        handmade_add(&made, "indptr", ZT_U64, indptr.at, indptr.length)->encoding =
            ZT_ENCODING_ZSTD;
        made.parts[1].decoded_length = ZT_LENGTH_UNKNOWN;
        handmade_add(&made, "values", surplus == 2 ? ZT_F64 : ZT_F32, frame.at, frame.length)
            ->encoding = ZT_ENCODING_ZSTD;
        made.parts[2].decoded_length = ZT_LENGTH_UNKNOWN;
        if (surplus == 0)
            assert_passes(&made);
        else
            assert_refused(&made, ZT1_RULE, (unsigned)surplus);
        bytes_free(&indptr);
    }
    bytes_free(&words);
    bytes_free(&frame);
}

static void sparse_values_that_are_bools_are_checked(void **state)
{
    static const uint64_t shape[] = {3, 4};
    struct handmade made;

    (void)state;
    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_SPARSE_CSR, 2, shape);
    add_words(&made, "indices", ZT_U64, good_indices, 4);
    add_words(&made, "indptr", ZT_U64, good_indptr, 4);
    handmade_add(&made, "values", ZT_BOOL, "\1\1\1\3", 4);
    assert_refused(&made, ZT1_RULE, 2);
}

/* --- coordinate lists: 2 dimensions, 3 coordinates --- */

/* Parts: 0 coords, 1 values. */
static void make_coo(struct handmade *made, enum zt_format format, const uint64_t *coords)
{
    static const uint64_t shape[] = {3, 5};

    handmade_init(made, format, ZT_LAYOUT_SPARSE_COO, 2, shape);
    add_words(made, "coords", ZT_U32, coords, 6);
    handmade_add(made, "values", ZT_F32, "0123456789ab", 12);
}

static void coo_passes_in_any_order(void **state)
{
    static const uint64_t sorted[] = {0, 1, 2, 4, 0, 3}, mixed[] = {2, 0, 2, 3, 4, 0};
    struct handmade made;

    (void)state;
    make_coo(&made, ZT_FORMAT_ZT2, sorted);
    assert_passes(&made);
    make_coo(&made, ZT_FORMAT_ZT2, mixed);
    assert_passes(&made);
    make_coo(&made, ZT_FORMAT_ZT1, mixed);
    assert_passes(&made);
}

static void coo_refuses_coordinates_outside_the_shape(void **state)
{
    static const uint64_t row[] = {0, 3, 2, 4, 0, 3}, column[] = {0, 1, 2, 4, 5, 3};
    struct handmade made;

    (void)state;
    make_coo(&made, ZT_FORMAT_ZT2, row);
    assert_refused(&made, ZT2_RULE, 0);
    make_coo(&made, ZT_FORMAT_ZT1, column);
    assert_refused(&made, ZT1_RULE, 0);
}

static void coo_coordinates_differ_in_2_only(void **state)
{
    static const uint64_t twice[] = {2, 0, 2, 3, 4, 3};
    struct handmade made;

    (void)state;
    make_coo(&made, ZT_FORMAT_ZT1, twice);
    assert_passes(&made);
    make_coo(&made, ZT_FORMAT_ZT2, twice);
    assert_refused(&made, ZT2_RULE, 0);
}

static void coo_of_unknown_length_is_counted(void **state)
{
    static const uint64_t shape[] = {3, 5}, coords[] = {2, 0, 2, 3, 4, 0, 1};
    struct handmade made;

    (void)state;
    for (size_t count = 6; count < 8; count++) {
        struct bytes words = {NULL, 0}, frame = {NULL, 0};

        pack(coords, count, ZT_U64, &words);
        bytes_append_zstd(&frame, words.at, words.length, false);
        handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_SPARSE_COO, 2, shape);
        handmade_add(&made, "coords", ZT_U64, frame.at, frame.length)->encoding = ZT_ENCODING_ZSTD;
        made.parts[0].decoded_length = ZT_LENGTH_UNKNOWN;
        handmade_add(&made, "values", ZT_F32, "0123456789ab", 12);
        if (count == 6)
            assert_passes(&made);
        else
            assert_refused(&made, ZT1_RULE, 0);
        bytes_free(&words);
        bytes_free(&frame);
    }
}

static void keys_are_told_apart_whatever_their_order(void **state)
{
    enum { COUNT = 20000 };
    static uint64_t keys[COUNT];
    uint64_t seed = 1;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        keys[i] = seed; /* of full period: all differ */
    }
    assert_true(zt_keys_unique(keys, COUNT));
    for (size_t i = 1; i < COUNT; i++)
        assert_true(keys[i - 1] < keys[i]);
    for (size_t i = 0; i < COUNT; i++)
        keys[i] = i % 2 ? i : COUNT - i;
    keys[777] = keys[19000];
    assert_false(zt_keys_unique(keys, COUNT));
    memset(keys, 0, sizeof(keys));
    assert_false(zt_keys_unique(keys, COUNT));
    assert_true(zt_keys_unique(keys, 1));
    assert_true(zt_keys_unique(NULL, 0));
}

/* --- zTensor 0.1 --- */

/* Records of two indices and an f32. */
static void make_zt01_coo(struct handmade *made, uint64_t row, const char *tail, size_t tail_length)
{
    static const uint64_t shape[] = {3, 5};
    const uint64_t first[] = {2, 4}, second[] = {row, 0};
    struct bytes blob = {NULL, 0};

    pack(first, 2, ZT_U64, &blob);
    bytes_append(&blob, "\xFF\xFF\xFF\xFF", 4);
    pack(second, 2, ZT_U64, &blob);
    bytes_append(&blob, "\0\0\0\0", 4);
    bytes_append(&blob, tail, tail_length);
    handmade_init(made, ZT_FORMAT_ZT01, ZT_LAYOUT_ZT01_COO, 2, shape);
    handmade_add(made, "data", ZT_F32, blob.at, blob.length);
    bytes_free(&blob);
}

static void zt01_coo_records_lie_inside_the_shape(void **state)
{
    struct handmade made;

    (void)state;
    make_zt01_coo(&made, 0, "", 0);
    assert_passes(&made);
    /* An incomplete record does not count, whatever it contains. */
    make_zt01_coo(&made, 0,
                  "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
                  19);
    assert_passes(&made);
    make_zt01_coo(&made, 3, "", 0);
    assert_refused(&made, ZT01_RULE, 0);
}

static void make_zt01_csr(struct handmade *made, const uint64_t *indptr, const uint64_t *indices,
                          enum zt_dtype dtype, const char *values, size_t length)
{
    static const uint64_t shape[] = {3, 4};
    struct bytes blob = {NULL, 0};

    pack(indptr, 4, ZT_U64, &blob);
    pack(indices, 4, ZT_U64, &blob);
    bytes_append(&blob, values, length);
    handmade_init(made, ZT_FORMAT_ZT01, ZT_LAYOUT_ZT01_CSR, 2, shape);
    handmade_add(made, "data", dtype, blob.at, blob.length);
    bytes_free(&blob);
}

static void zt01_csr_passes_with_bytes_after_the_last_value(void **state)
{
    static const uint64_t unordered[] = {3, 0, 2, 1};
    struct handmade made;

    (void)state;
    make_zt01_csr(&made, good_indptr, good_indices, ZT_F16, "01234567", 8);
    assert_passes(&made);
    make_zt01_csr(&made, good_indptr, unordered, ZT_F16, "01234567xyz", 11);
    assert_passes(&made);
}

static void zt01_csr_refuses_missing_and_outside_indices(void **state)
{
    static const uint64_t nonzero[] = {1, 2, 2, 4}, falling[] = {0, 3, 2, 4},
                          far[] = {0, 2, 2, UINT64_MAX};
    static const uint64_t outside[] = {0, 4, 1, 2};
    struct handmade made;

    (void)state;
    make_zt01_csr(&made, good_indptr, good_indices, ZT_F16, "0123456", 7);
    assert_refused(&made, ZT01_RULE, 0);
    make_zt01_csr(&made, nonzero, good_indices, ZT_F16, "01234567", 8);
    assert_refused(&made, ZT01_RULE, 0);
    make_zt01_csr(&made, falling, good_indices, ZT_F16, "01234567", 8);
    assert_refused(&made, ZT01_RULE, 0);
    make_zt01_csr(&made, far, good_indices, ZT_F16, "", 0);
    assert_refused(&made, ZT01_RULE, 0);
    make_zt01_csr(&made, good_indptr, outside, ZT_F16, "01234567", 8);
    assert_refused(&made, ZT01_RULE, 0);
    make_zt01_csr(&made, good_indptr, good_indices, ZT_BOOL, "\0\1\2\1", 4);
    assert_refused(&made, ZT01_RULE, 0);
    make_zt01_csr(&made, good_indptr, good_indices, ZT_F16, "01234567", 8);
    made.object.rank = 1;
    assert_refused(&made, ZT01_RULE, 0);
    /* Far more rows than the blob has bytes. */
    make_zt01_csr(&made, good_indptr, good_indices, ZT_F16, "01234567", 8);
    made.shape[0] = UINT64_MAX;
    assert_refused(&made, ZT01_RULE, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bools_are_0_or_1),
        cmocka_unit_test(bools_are_checked_when_encoded),
        cmocka_unit_test(structural_layouts_are_not_judged),
        cmocka_unit_test(spare_nibble_is_0),
        cmocka_unit_test(encoded_components_must_decode),
        cmocka_unit_test(what_cannot_be_read_is_unsupported_only_where_a_rule_needs_it),
        cmocka_unit_test(csr_passes_with_indices_of_any_integers),
        cmocka_unit_test(csr_refuses_row_pointers_that_make_no_rows),
        cmocka_unit_test(csr_refuses_more_rows_than_indices),
        cmocka_unit_test(csr_refuses_columns_outside_the_shape),
        cmocka_unit_test(csr_columns_increase_in_2_only),
        cmocka_unit_test(csr_refuses_negative_indices),
        cmocka_unit_test(csr_of_unknown_lengths_is_counted),
        cmocka_unit_test(sparse_values_that_are_bools_are_checked),
        cmocka_unit_test(coo_passes_in_any_order),
        cmocka_unit_test(coo_refuses_coordinates_outside_the_shape),
        cmocka_unit_test(coo_coordinates_differ_in_2_only),
        cmocka_unit_test(coo_of_unknown_length_is_counted),
        cmocka_unit_test(keys_are_told_apart_whatever_their_order),
        cmocka_unit_test(zt01_coo_records_lie_inside_the_shape),
        cmocka_unit_test(zt01_csr_passes_with_bytes_after_the_last_value),
        cmocka_unit_test(zt01_csr_refuses_missing_and_outside_indices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
