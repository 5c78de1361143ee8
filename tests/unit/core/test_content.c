/* Content rules: each rule is broken once, in each format that has it, raw and encoded. */
#include "tests.h"

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

#define PASSES (-1)

/* PASSES, or the index of the part in which the fault is. A failure names the row. */
static void judge(const char *row, struct handmade *made, int faulty_part)
{
    static const char *const rules[] = {
        [ZT_FORMAT_ZT01] = ZT01_RULE, [ZT_FORMAT_ZT1] = ZT1_RULE, [ZT_FORMAT_ZT2] = ZT2_RULE};
    struct zt_error error;
    const enum zt_status status = check(made, &error);

    if (status != (faulty_part == PASSES ? ZT_OK : ZT_INVALID))
        fail_msg("%s: %s", row, status == ZT_OK ? "it passes" : error.message);
    if (faulty_part != PASSES) {
        assert_failure(&error, ZT_INVALID, rules[made->model.format],
                       made->parts[faulty_part].offset);
        assert_string_equal(error.object, "tensor");
        assert_string_equal(error.component, made->parts[faulty_part].name);
    }
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

TEST(bools_are_0_or_1)
{
    static const struct {
        const char *row;
        enum zt_format format;
        enum zt_dtype dtype;
        enum zt_logical logical;
        const char *bytes;
        int faulty;
    } cases[] = {
        {"0 and 1", ZT_FORMAT_ZT1, ZT_BOOL, ZT_LOGICAL_NONE, "\0\1\1\0", PASSES},
        {"2", ZT_FORMAT_ZT1, ZT_BOOL, ZT_LOGICAL_NONE, "\0\1\2\0", 0},
        {"255", ZT_FORMAT_ZT01, ZT_BOOL, ZT_LOGICAL_NONE, "\xFF\1\1\0", 0},
        {"a logical type", ZT_FORMAT_ZT2, ZT_U8, ZT_LOGICAL_BOOL, "\0\1\1\xAB", 0},
        {"numbers", ZT_FORMAT_ZT2, ZT_U8, ZT_LOGICAL_NONE, "\0\1\1\xAB", PASSES},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct handmade made;

        make_dense(&made, cases[i].format, cases[i].dtype, cases[i].bytes, 4);
        made.parts[0].logical = (uint8_t)cases[i].logical;
        judge(cases[i].row, &made, cases[i].faulty);
    }
}

TEST(bools_are_checked_when_encoded)
{
    struct bytes frame = {NULL, 0};
    uint8_t bools[200000] = {0};
    struct handmade made;

    bools[199999] = 2;
    bytes_append_zstd(&frame, bools, sizeof(bools), false);
    make_dense(&made, ZT_FORMAT_ZT1, ZT_BOOL, frame.at, frame.length);
    made.parts[0].encoding = ZT_ENCODING_ZSTD;
    made.parts[0].decoded_length = sizeof(bools);
    judge("encoded", &made, 0);
    bytes_free(&frame);
}

TEST(structural_layouts_are_not_judged)
{
    struct handmade made;

    make_dense(&made, ZT_FORMAT_ZT1, ZT_BOOL, "\0\1\2\0", 4);
    made.object.layout = ZT_LAYOUT_OTHER;
    judge("another layout", &made, PASSES);
}

static void make_f4(struct handmade *made, uint64_t elements, const char *bytes, size_t length)
{
    handmade_init(made, ZT_FORMAT_ZT2, ZT_LAYOUT_DENSE, 1, &elements);
    handmade_add(made, "data", ZT_U8, bytes, length)->logical = ZT_LOGICAL_F4_E2M1;
}

TEST(spare_nibble_is_0)
{
    struct bytes stream = {NULL, 0};
    struct handmade made;

    make_f4(&made, 3, "\xFF\x0F", 2);
    judge("zero", &made, PASSES);
    make_f4(&made, 4, "\xFF\x1F", 2);
    judge("no spare nibble", &made, PASSES);
    make_f4(&made, 0, "", 0);
    judge("no elements", &made, PASSES);
    make_f4(&made, 3, "\xFF\x1F", 2);
    judge("not zero", &made, 0);
    bytes_append_seekable(&stream, "\xFF\x1F", 2, 1);
    make_f4(&made, 3, (const char *)stream.at, stream.length);
    made.parts[0].encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    made.parts[0].decoded_length = 2;
    judge("encoded", &made, 0);
    bytes_free(&stream);
}

TEST(encoded_components_must_decode)
{
    struct bytes frame = {NULL, 0};
    struct zt_error error;
    struct handmade made;

    bytes_append_zstd(&frame, "0123456789", 10, true);
    make_dense(&made, ZT_FORMAT_ZT1, ZT_U8, frame.at, frame.length);
    made.parts[0].encoding = ZT_ENCODING_ZSTD;
    made.parts[0].decoded_length = 10;
    assert_ok(check(&made, &error));
    made.data.at[made.data.length - 1] ^= 1;
    assert_int_equal(check(&made, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, "zt1 §5 ZstdFrame", 64);
    assert_string_equal(error.object, "tensor");
    assert_string_equal(error.component, "data");
    handmade_free(&made);
    bytes_free(&frame);
}

TEST(what_cannot_be_read_is_unsupported_only_where_a_rule_needs_it)
{
    struct zt_error error;
    struct handmade made;

    make_dense(&made, ZT_FORMAT_ZT2, ZT_U8, "\0\1\1\0", 4);
    made.parts[0].encoding = ZT_ENCODING_UNKNOWN;
    assert_ok(check(&made, &error));
    made.parts[0].logical = ZT_LOGICAL_BOOL;
    assert_int_equal(check(&made, &error), ZT_UNSUPPORTED);
    assert_string_equal(error.component, "data");
    made.parts[0].encoding = ZT_ENCODING_RAW;
    assert_ok(check(&made, &error));
    made.parts[0].shard = 1;
    assert_int_equal(check(&made, &error), ZT_UNSUPPORTED);
    made.parts[0].logical = ZT_LOGICAL_NONE;
    assert_ok(check(&made, &error));
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

TEST(csr_passes_with_indices_of_any_integers)
{
    struct handmade made;

    for (int dtype = ZT_I64; dtype <= ZT_U8; dtype++) {
        make_csr(&made, ZT_FORMAT_ZT1, (enum zt_dtype)dtype, good_indptr, good_indices);
        judge(zt_dtype_name((enum zt_dtype)dtype), &made, PASSES);
    }
    make_csr(&made, ZT_FORMAT_ZT2, ZT_U32, good_indptr, good_indices);
    judge("zTensor 2", &made, PASSES);
}

TEST(csr_rows_and_columns_fit_the_shape)
{
    static const struct {
        const char *row;
        enum zt_format format;
        enum zt_dtype dtype;
        uint64_t indptr[4];
        uint64_t indices[4];
        int faulty;
    } cases[] = {
        {"first is not 0", ZT_FORMAT_ZT1, ZT_U64, {1, 2, 2, 4}, {0, 3, 1, 2}, 1},
        {"first is not 0", ZT_FORMAT_ZT2, ZT_U64, {1, 2, 2, 4}, {0, 3, 1, 2}, 1},
        {"pointers fall", ZT_FORMAT_ZT1, ZT_U64, {0, 2, 1, 4}, {0, 3, 1, 2}, 1},
        {"pointers fall", ZT_FORMAT_ZT2, ZT_U64, {0, 2, 1, 4}, {0, 3, 1, 2}, 1},
        {"too few values", ZT_FORMAT_ZT1, ZT_U64, {0, 2, 2, 3}, {0, 3, 1, 2}, 0},
        {"too few values", ZT_FORMAT_ZT2, ZT_U64, {0, 2, 2, 3}, {0, 3, 1, 2}, 0},
        {"too many values", ZT_FORMAT_ZT2, ZT_U64, {0, 2, 2, 5}, {0, 3, 1, 2}, 0},
        {"far too many", ZT_FORMAT_ZT2, ZT_U64, {0, 2, 2, UINT64_MAX}, {0, 3, 1, 2}, 0},
        {"column outside", ZT_FORMAT_ZT1, ZT_U16, {0, 2, 2, 4}, {0, 4, 1, 2}, 0},
        {"column outside", ZT_FORMAT_ZT2, ZT_U64, {0, 2, 2, 4}, {0, 4, 1, 2}, 0},
        {"columns fall", ZT_FORMAT_ZT1, ZT_U64, {0, 2, 2, 4}, {3, 0, 1, 2}, PASSES},
        {"columns fall", ZT_FORMAT_ZT2, ZT_U64, {0, 2, 2, 4}, {3, 0, 1, 2}, 0},
        {"columns equal", ZT_FORMAT_ZT2, ZT_U64, {0, 2, 2, 4}, {0, 3, 2, 2}, 0},
        {"negative column", ZT_FORMAT_ZT1, ZT_I8, {0, 2, 2, 4}, {0, (uint64_t)-1, 1, 2}, 0},
        {"negative pointer", ZT_FORMAT_ZT1, ZT_I64, {0, (uint64_t)-1, 1, 2}, {0, 3, 1, 2}, 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct handmade made;

        make_csr(&made, cases[i].format, cases[i].dtype, cases[i].indptr, cases[i].indices);
        judge(cases[i].row, &made, cases[i].faulty);
    }
}

/* zstd without a declared length: what the manifest could not check is checked here. */
TEST(csr_of_unknown_lengths_is_counted)
{
    static const uint64_t shape[] = {3, 4};
    struct bytes words = {NULL, 0}, frame = {NULL, 0};
    struct handmade made;

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
        judge("unknown lengths", &made, surplus == 0 ? PASSES : (int)surplus);
        bytes_free(&indptr);
    }
    bytes_free(&words);
    bytes_free(&frame);
}

TEST(sparse_values_that_are_bools_are_checked)
{
    static const uint64_t shape[] = {3, 4};
    struct handmade made;

    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_SPARSE_CSR, 2, shape);
    add_words(&made, "indices", ZT_U64, good_indices, 4);
    add_words(&made, "indptr", ZT_U64, good_indptr, 4);
    handmade_add(&made, "values", ZT_BOOL, "\1\1\1\3", 4);
    judge("values", &made, 2);
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

TEST(coo_coordinates_fit_the_shape)
{
    static const struct {
        const char *row;
        enum zt_format format;
        uint64_t coords[6];
        int faulty;
    } cases[] = {
        {"sorted", ZT_FORMAT_ZT2, {0, 1, 2, 4, 0, 3}, PASSES},
        {"in any order", ZT_FORMAT_ZT2, {2, 0, 2, 3, 4, 0}, PASSES},
        {"in any order", ZT_FORMAT_ZT1, {2, 0, 2, 3, 4, 0}, PASSES},
        {"row outside", ZT_FORMAT_ZT2, {0, 3, 2, 4, 0, 3}, 0},
        {"column outside", ZT_FORMAT_ZT1, {0, 1, 2, 4, 5, 3}, 0},
        {"twice", ZT_FORMAT_ZT1, {2, 0, 2, 3, 4, 3}, PASSES},
        {"twice", ZT_FORMAT_ZT2, {2, 0, 2, 3, 4, 3}, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct handmade made;

        make_coo(&made, cases[i].format, cases[i].coords);
        judge(cases[i].row, &made, cases[i].faulty);
    }
}

TEST(coo_of_unknown_length_is_counted)
{
    static const uint64_t shape[] = {3, 5}, coords[] = {2, 0, 2, 3, 4, 0, 1};
    struct handmade made;

    for (size_t count = 6; count < 8; count++) {
        struct bytes words = {NULL, 0}, frame = {NULL, 0};

        pack(coords, count, ZT_U64, &words);
        bytes_append_zstd(&frame, words.at, words.length, false);
        handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_SPARSE_COO, 2, shape);
        handmade_add(&made, "coords", ZT_U64, frame.at, frame.length)->encoding = ZT_ENCODING_ZSTD;
        made.parts[0].decoded_length = ZT_LENGTH_UNKNOWN;
        handmade_add(&made, "values", ZT_F32, "0123456789ab", 12);
        judge("unknown length", &made, count == 6 ? PASSES : 0);
        bytes_free(&words);
        bytes_free(&frame);
    }
}

TEST(keys_are_told_apart_whatever_their_order)
{
    enum { COUNT = 20000 };
    static uint64_t keys[COUNT];
    uint64_t seed = 1;

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

TEST(zt01_coo_records_lie_inside_the_shape)
{
    struct handmade made;
    char ones[19];

    make_zt01_coo(&made, 0, "", 0);
    judge("inside", &made, PASSES);
    /* An incomplete record does not count, whatever it contains. */
    memset(ones, 0xFF, sizeof(ones));
    make_zt01_coo(&made, 0, ones, sizeof(ones));
    judge("an incomplete record", &made, PASSES);
    make_zt01_coo(&made, 3, "", 0);
    judge("outside", &made, 0);
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

TEST(zt01_csr_rows_and_columns_fit_the_shape)
{
    static const struct {
        const char *row;
        uint64_t indptr[4];
        uint64_t indices[4];
        enum zt_dtype dtype;
        size_t length; /* of the values */
        int faulty;
    } cases[] = {
        {"whole", {0, 2, 2, 4}, {0, 3, 1, 2}, ZT_F16, 8, PASSES},
        {"more bytes, unordered", {0, 2, 2, 4}, {3, 0, 2, 1}, ZT_F16, 11, PASSES},
        {"too few values", {0, 2, 2, 4}, {0, 3, 1, 2}, ZT_F16, 7, 0},
        {"first is not 0", {1, 2, 2, 4}, {0, 3, 1, 2}, ZT_F16, 8, 0},
        {"pointers fall", {0, 3, 2, 4}, {0, 3, 1, 2}, ZT_F16, 8, 0},
        {"far too many values", {0, 2, 2, UINT64_MAX}, {0, 3, 1, 2}, ZT_F16, 0, 0},
        {"column outside", {0, 2, 2, 4}, {0, 4, 1, 2}, ZT_F16, 8, 0},
        {"bools", {0, 2, 2, 4}, {0, 3, 1, 2}, ZT_BOOL, 4, 0},
    };
    struct handmade made;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_zt01_csr(&made, cases[i].indptr, cases[i].indices, cases[i].dtype, "\0\1\2\1 values",
                      cases[i].length);
        judge(cases[i].row, &made, cases[i].faulty);
    }
    make_zt01_csr(&made, good_indptr, good_indices, ZT_F16, "01234567", 8);
    made.object.rank = 1;
    judge("one dimension", &made, 0);
    make_zt01_csr(&made, good_indptr, good_indices, ZT_F16, "01234567", 8);
    made.shape[0] = UINT64_MAX;
    judge("far more rows than the blob has bytes", &made, 0);
}
