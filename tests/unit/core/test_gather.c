/* Views with strides, of every kind, compared with a loop over their elements. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coding/gather.h"
#include "zip_file.h"
#include "zt/decode.h"

#define STORAGE_BYTES ((size_t)6000)
/* Where the storage begins in its file. */
#define STORAGE_AT 100

struct view {
    unsigned rank;
    uint64_t shape[6];
    uint64_t strides[6];
    uint64_t offset; /* in elements, as the others */
};

/* Each fits into the storage with elements of 16 bytes. */
static const struct view views[] = {
    {0, {0}, {0}, 3},                                    /* a scalar */
    {1, {7}, {1}, 2},                                    /* a run */
    {1, {7}, {3}, 2},                                    /* every third */
    {2, {5, 6}, {1, 5}, 1},                              /* transposed */
    {2, {5, 4}, {9, 1}, 1},                              /* some columns */
    {2, {5, 4}, {9, 2}, 1},                              /* and every second of them */
    {2, {3, 70}, {100, 1}, 0},                           /* long runs */
    {2, {6, 7}, {0, 1}, 5},                              /* a row, repeated */
    {2, {6, 7}, {1, 0}, 5},                              /* elements, repeated */
    {3, {3, 4, 5}, {0, 0, 0}, 9},                        /* one element */
    {2, {20, 5}, {1, 1}, 0},                             /* overlapping windows */
    {2, {5, 20}, {2, 3}, 0},                             /* interleaved */
    {3, {2, 3, 4}, {12, 1, 3}, 7},                       /* a batch, transposed */
    {4, {2, 3, 4, 5}, {3, 1, 30, 6}, 0},                 /* permuted */
    {5, {1, 3, 1, 4, 1}, {999999, 1, 777777, 3, 0}, 11}, /* with dimensions of 1 */
    {2, {0, 4}, {1, 1}, 0},                              /* empty */
    {3, {3, 0, 2}, {0, 0, 0}, 0},                        /* empty */
    {6, {2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32}, 0},    /* Fortran order */
};

#define VIEW_COUNT (sizeof(views) / sizeof(*views))

struct kind {
    enum zt_dtype dtype;
    enum zt_logical logical;
    unsigned words; /* in an element */
};

static const struct kind kinds[] = {
    {ZT_U8, ZT_LOGICAL_NONE, 1},       {ZT_I16, ZT_LOGICAL_NONE, 1},
    {ZT_BF16, ZT_LOGICAL_NONE, 1},     {ZT_F32, ZT_LOGICAL_NONE, 1},
    {ZT_F64, ZT_LOGICAL_NONE, 1},      {ZT_I64, ZT_LOGICAL_NONE, 1},
    {ZT_F32, ZT_LOGICAL_COMPLEX64, 2}, {ZT_F64, ZT_LOGICAL_COMPLEX128, 2},
    {ZT_F16, ZT_LOGICAL_UNKNOWN, 2}, /* complex32, which is no logical type */
};

#define KIND_COUNT (sizeof(kinds) / sizeof(*kinds))

enum storing { STORED, DEFLATED, STORINGS };

static uint64_t elements_of(const struct view *view)
{
    uint64_t elements = 1;

    for (unsigned i = 0; i < view->rank; i++)
        elements *= view->shape[i];
    return elements;
}

static uint64_t span_of(const struct view *view)
{
    uint64_t span = 1;

    for (unsigned i = 0; i < view->rank; i++) {
        if (view->shape[i] == 0)
            return 0;
        span += (view->shape[i] - 1) * view->strides[i];
    }
    return span;
}

static uint8_t stored_byte(uint64_t at)
{
    return (uint8_t)(at * 2654435761u >> 11);
}

static bool is_flipped(enum zt_sign_flip flip, unsigned word)
{
    return flip == ZT_FLIP_ALL || (flip == ZT_FLIP_IMAGINARY && word == 1) ||
           (flip == ZT_FLIP_REAL && word == 0);
}

/* One word of the view, straight from the storage. */
static void expected_word(const struct zt_component *component, uint64_t at, bool flipped,
                          uint8_t *out)
{
    const unsigned width = zt_dtype_width((enum zt_dtype)component->dtype);
    uint64_t value = 0;

    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)stored_byte(at + i) << 8 * (component->big_endian ? width - 1 - i : i);
    if (flipped)
        value = component->dtype <= ZT_BF16 ? value ^ (uint64_t)1 << (8 * width - 1) : 0 - value;
    for (unsigned i = 0; i < width; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static void expected_bytes(const struct view *view, const struct kind *kind,
                           const struct zt_component *component, uint8_t *out)
{
    const unsigned width = zt_dtype_width(kind->dtype);

    for (uint64_t i = 0; i < elements_of(view); i++) {
        uint64_t rest = i;
        uint64_t at = view->offset;

        for (unsigned d = view->rank; d-- > 0;) {
            at += rest % view->shape[d] * view->strides[d];
            rest /= view->shape[d];
        }
        for (unsigned word = 0; word < kind->words; word++, out += width)
            expected_word(component, (at * kind->words + word) * width,
                          is_flipped((enum zt_sign_flip)component->arrangement->flip, word), out);
    }
}

static void assert_decodes_to(const struct zt_component *component, struct zt_source *source,
                              const uint8_t *expected, size_t capacity)
{
    struct zt_decoder *decoder = NULL;
    struct zt_error error;
    uint8_t buffer[4096];
    uint64_t total = 0;
    size_t length = 1;

    assert_ok(zt_decoder_open(component, source, &decoder, &error));
    while (length > 0) {
        assert_ok(zt_decoder_read(decoder, buffer, capacity, &length, &error));
        assert_true(total + length <= component->decoded_length);
        assert_memory_equal(buffer, expected + total, length);
        total += length;
    }
    assert_int_equal(total, component->decoded_length);
    zt_decoder_close(decoder);
}

/* The storage, and one of its files. */
struct storage {
    struct bytes file;
    uint64_t at;
    uint64_t length;
};

static void make_storage(enum storing storing, struct storage *storage)
{
    uint8_t bytes[STORAGE_BYTES];
    struct bytes plain = {0};
    struct zip_file zip = {0};

    for (size_t i = 0; i < STORAGE_BYTES; i++)
        bytes[i] = stored_byte(i);
    if (storing == STORED) {
        static const uint8_t before[STORAGE_AT];

        bytes_append(&plain, before, sizeof(before));
        bytes_append(&plain, bytes, sizeof(bytes));
        *storage = (struct storage){plain, STORAGE_AT, STORAGE_BYTES};
        return;
    }
    bytes_append(&plain, bytes, sizeof(bytes));
    zip_file_add(&zip, "a", ZIP_FILE_DEFLATED, &plain);
    *storage = (struct storage){zip.bytes, zip.data_at[0], zip.bytes.length - zip.data_at[0]};
    bytes_free(&plain);
    bytes_free(&zip.records);
}

static void try_view(const struct view *view, const struct kind *kind, bool big_endian,
                     enum zt_sign_flip flip, const struct storage *storages)
{
    static const size_t capacities[] = {1, 7, 4096};
    const unsigned width = zt_dtype_width(kind->dtype) * kind->words;
    const struct zt_arrangement arrangement = {.rank = (uint8_t)view->rank,
                                               .flip = (uint8_t)flip,
                                               .shape = view->shape,
                                               .strides = view->strides,
                                               .skipped_bytes = view->offset * width,
                                               .partial = true};
    struct zt_component component = {.dtype = (uint8_t)kind->dtype,
                                     .logical = (uint8_t)kind->logical,
                                     .big_endian = big_endian,
                                     .arrangement = &arrangement,
                                     .decoded_length = elements_of(view) * width};
    uint8_t *expected = malloc(component.decoded_length + 1);

    assert_non_null(expected);
    expected_bytes(view, kind, &component, expected);
    for (enum storing storing = STORED; storing < STORINGS; storing++) {
        const struct storage *storage = &storages[storing];
        struct zt_source *source;

        component.encoding = storing == STORED ? ZT_ENCODING_STRIDED : ZT_ENCODING_DEFLATE;
        component.offset = storage->at + (storing == STORED ? view->offset * width : 0);
        component.length = storing == STORED ? span_of(view) * width : storage->length;
        source = memory_source(storage->file.at, storage->file.length);
        assert_false(zt_component_is_plain(&component));
        for (size_t i = 0; i < sizeof(capacities) / sizeof(*capacities); i++)
            assert_decodes_to(&component, source, expected, capacities[i]);
        zt_source_close(source);
    }
    free(expected);
}

static void try_kind(const struct view *view, const struct kind *kind,
                     const struct storage *storages)
{
    for (enum zt_sign_flip flip = ZT_FLIP_NONE; flip <= ZT_FLIP_REAL; flip++) {
        if (kind->words == 1 && (flip == ZT_FLIP_IMAGINARY || flip == ZT_FLIP_REAL))
            continue;
        try_view(view, kind, false, flip, storages);
        try_view(view, kind, true, flip, storages);
    }
}

TEST(every_view_decodes_to_its_elements_in_row_major_order)
{
    struct storage storages[STORINGS];

    for (enum storing storing = STORED; storing < STORINGS; storing++)
        make_storage(storing, &storages[storing]);
    for (size_t view = 0; view < VIEW_COUNT; view++)
        for (size_t kind = 0; kind < KIND_COUNT; kind++)
            try_kind(&views[view], &kinds[kind], storages);
    for (enum storing storing = STORED; storing < STORINGS; storing++)
        bytes_free(&storages[storing].file);
}

/* --- more than one block --- */

#define WIDE 1300

static void assert_large(uint64_t row_stride, uint64_t column_stride)
{
    const uint64_t shape[] = {WIDE, WIDE};
    const uint64_t strides[] = {row_stride, column_stride};
    const struct zt_arrangement arrangement = {.rank = 2, .shape = shape, .strides = strides};
    const uint64_t elements = (WIDE - 1) * (row_stride + column_stride) + 1;
    struct zt_component component = {.dtype = ZT_U64,
                                     .encoding = ZT_ENCODING_STRIDED,
                                     .arrangement = &arrangement,
                                     .length = elements * 8,
                                     .decoded_length = (uint64_t)WIDE * WIDE * 8};
    uint64_t *stored = malloc(elements * 8);
    uint64_t *expected = malloc(component.decoded_length);
    struct zt_source *source;

    assert_non_null(stored);
    assert_non_null(expected);
    for (uint64_t i = 0; i < elements; i++)
        stored[i] = i * 11400714819323198485u;
    for (uint64_t i = 0; i < (uint64_t)WIDE * WIDE; i++)
        expected[i] = stored[i / WIDE * row_stride + i % WIDE * column_stride];
    source = memory_source(stored, component.length);
    assert_decodes_to(&component, source, (const uint8_t *)expected, 4096);
    zt_source_close(source);
    free(expected);
    free(stored);
}

TEST(views_of_several_blocks_decode)
{
    assert_large(WIDE, 1);
    assert_large(1, WIDE);
    assert_large(1, 1);
    assert_large(0, 1);
    assert_large(1, 0);
    assert_large(WIDE + 700, 1);
    assert_large(2, 3);
}

/* --- what cannot be read --- */

TEST(overlaps_in_a_large_deflated_storage_are_refused)
{
    const uint64_t shape[] = {(uint64_t)57 << 20, 2};
    const uint64_t strides[] = {1, 1};
    const struct zt_arrangement arrangement = {
        .rank = 2, .shape = shape, .strides = strides, .partial = true};
    const struct zt_component component = {.dtype = ZT_U8,
                                           .encoding = ZT_ENCODING_DEFLATE,
                                           .arrangement = &arrangement,
                                           .offset = 7,
                                           .length = 100000,
                                           .decoded_length = (uint64_t)114 << 20};
    struct zt_decoder *decoder = NULL;
    struct zt_error error;
    struct zt_source *source = memory_source("", 0);

    assert_int_equal(zt_decoder_open(&component, source, &decoder, &error), ZT_LIMIT);
    assert_int_equal(error.offset, 7);
    assert_non_null(strstr(error.message, "overlap"));
    assert_null(decoder);
    zt_source_close(source);
}

/* A storage that ends before the view does. */
TEST(a_view_past_the_end_of_a_deflated_storage_is_corrupt)
{
    const uint64_t shape[] = {STORAGE_BYTES};
    const struct zt_arrangement arrangement = {
        .rank = 1, .shape = shape, .skipped_bytes = 1, .partial = true};
    struct storage storage;
    struct zt_component component = {.dtype = ZT_U8,
                                     .encoding = ZT_ENCODING_DEFLATE,
                                     .arrangement = &arrangement,
                                     .decoded_length = STORAGE_BYTES};
    struct zt_decoder *decoder = NULL;
    struct zt_source *source;
    struct zt_error error;
    enum zt_status status;
    uint8_t buffer[STORAGE_BYTES];
    size_t length = 1;

    make_storage(DEFLATED, &storage);
    component.offset = storage.at;
    component.length = storage.length;
    source = memory_source(storage.file.at, storage.file.length);
    status = zt_decoder_open(&component, source, &decoder, &error);
    while (status == ZT_OK && length > 0)
        status = zt_decoder_read(decoder, buffer, sizeof(buffer), &length, &error);
    assert_int_equal(status, ZT_CORRUPT);
    zt_decoder_close(decoder);
    zt_source_close(source);
    bytes_free(&storage.file);
}
