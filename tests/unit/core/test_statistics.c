/* Statistics and previews of elements in memory, against sums that are made one by one. */
#include "tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "zt/preview.h"
#include "zt/statistics.h"

/* More than two pieces of f64. */
#define COUNT 300000

static struct zt_elements open_elements(const void *values, uint64_t count, enum zt_dtype dtype)
{
    struct zt_elements elements = {.count = count, .dtype = dtype};

    elements.source = memory_source(values, (size_t)count * zt_dtype_width(dtype));
    return elements;
}

static struct zt_tally tally_of(const struct zt_elements *elements)
{
    struct zt_tally all = {0};

    for (uint64_t piece = 0; piece < zt_elements_pieces(elements); piece++) {
        struct zt_tally next;

        assert_ok(zt_tally_piece(elements, piece, &next, NULL));
        zt_tally_merge(&all, &next, zt_number_kind(elements->dtype));
    }
    return all;
}

static void count_bins(const struct zt_elements *elements, const struct zt_axis *axis,
                       uint64_t *counts)
{
    memset(counts, 0, axis->bins * sizeof(*counts));
    for (uint64_t piece = 0; piece < zt_elements_pieces(elements); piece++)
        assert_ok(zt_histogram_piece(elements, piece, axis, counts, NULL));
}

static double *make_values(void)
{
    double *values = malloc(COUNT * sizeof(*values));
    uint64_t state = 1;

    assert_non_null(values);
    for (size_t i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (double)(state >> 40) / 1000 - 5000;
    }
    values[7] = NAN;
    values[COUNT - 1] = INFINITY;
    values[COUNT / 2] = -INFINITY;
    return values;
}

TEST(moments_are_of_the_finite_elements)
{
    double *values = make_values();
    struct zt_elements elements = open_elements(values, COUNT, ZT_F64);
    struct zt_tally tally = tally_of(&elements);
    long double sum = 0;
    long double squares = 0;

    assert_true(zt_elements_pieces(&elements) > 2);
    for (size_t i = 0; i < COUNT; i++)
        sum += isfinite(values[i]) ? (long double)values[i] : 0;
    sum /= COUNT - 3;
    for (size_t i = 0; i < COUNT; i++)
        squares += isfinite(values[i]) ? (values[i] - sum) * (values[i] - sum) : 0;
    assert_int_equal(tally.finite, COUNT - 3);
    assert_int_equal(tally.nan, 1);
    assert_int_equal(tally.positive_inf, 1);
    assert_int_equal(tally.negative_inf, 1);
    assert_true(fabs(tally.mean + tally.mean_rest - (double)sum) <= 1e-12 * fabs((double)sum));
    assert_true(fabs(tally.squares / (double)squares - 1) <= 1e-12);
    zt_source_close(elements.source);
    free(values);
}

/* The slow way: the last bin whose lower edge is not above the value. */
TEST(each_element_is_in_the_bin_of_its_edges)
{
    double *values = make_values();
    struct zt_elements elements = open_elements(values, COUNT, ZT_F64);
    const struct zt_tally tally = tally_of(&elements);
    struct zt_axis *axis = calloc(1, sizeof(*axis));
    uint64_t counts[ZT_BINS_MAX];
    uint64_t expected[ZT_BINS_MAX];

    assert_non_null(axis);
    for (unsigned bins = 1; bins <= ZT_BINS_MAX; bins = bins * 3 + 1) {
        assert_true(zt_axis_make(&tally, ZT_NUMBER_REAL, bins, axis));
        assert_true(axis->is_even);
        memset(expected, 0, sizeof(expected));
        for (size_t i = 0; i < COUNT; i++) {
            unsigned bin = bins - 1;

            while (bin > 0 && values[i] < axis->edges[bin])
                bin--;
            expected[bin] += isfinite(values[i]) ? 1 : 0;
        }
        count_bins(&elements, axis, counts);
        assert_memory_equal(counts, expected, bins * sizeof(*counts));
        /* The same without computing bins. */
        axis->is_even = false;
        count_bins(&elements, axis, counts);
        assert_memory_equal(counts, expected, bins * sizeof(*counts));
    }
    free(axis);
    zt_source_close(elements.source);
    free(values);
}

TEST(integers_beyond_doubles_are_exact)
{
    const int64_t values[] = {INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1};
    const uint64_t naturals[] = {UINT64_MAX - 1, UINT64_MAX - 2};
    struct zt_elements elements = open_elements(values, 3, ZT_I64);
    struct zt_tally tally = tally_of(&elements);

    assert_true(tally.min.integer == INT64_MIN && tally.max.integer == INT64_MAX);
    assert_true(zt_tally_abs_max(&tally, ZT_NUMBER_INTEGER).natural == UINT64_C(1) << 63);
    zt_source_close(elements.source);
    elements = open_elements(naturals, 2, ZT_U64);
    tally = tally_of(&elements);
    assert_true(tally.min.natural == UINT64_MAX - 2 && tally.max.natural == UINT64_MAX - 1);
    zt_source_close(elements.source);
}

TEST(equal_elements_have_a_range_of_one)
{
    const uint8_t values[] = {7, 7, 7};
    struct zt_elements elements = open_elements(values, 3, ZT_U8);
    const struct zt_tally tally = tally_of(&elements);
    const struct zt_tally nothing = {0};
    struct zt_axis axis;
    uint64_t counts[2];

    assert_true(zt_axis_make(&tally, ZT_NUMBER_NATURAL, 2, &axis));
    assert_true(axis.edges[0] == 6.5 && axis.edges[1] == 7 && axis.edges[2] == 7.5);
    count_bins(&elements, &axis, counts);
    assert_true(counts[0] == 0 && counts[1] == 3);
    assert_false(zt_axis_make(&nothing, ZT_NUMBER_NATURAL, 2, &axis));
    assert_true(isnan(zt_tally_std(&nothing)));
    zt_source_close(elements.source);
}

/* The squares of one piece do not fit in a double, those of the other are 0. */
TEST(pieces_of_any_magnitude_are_merged)
{
    double *values = malloc(COUNT * sizeof(*values));
    struct zt_elements elements;
    struct zt_tally tally;
    uint64_t large = 0;

    assert_non_null(values);
    for (size_t i = 0; i < COUNT; i++) {
        const bool is_large = i >= COUNT / 2;

        large += is_large;
        values[i] = (i % 2 == 0 ? 1 : -1) * (is_large ? 1e308 : 1e-308);
    }
    elements = open_elements(values, COUNT, ZT_F64);
    tally = tally_of(&elements);
    assert_true(fabs(zt_tally_std(&tally) / (1e308 * sqrt((double)large / COUNT)) - 1) <= 1e-12);
    assert_true(fabs(zt_tally_mean(&tally, ZT_NUMBER_REAL)) <= 1e292);
    zt_source_close(elements.source);
    free(values);
}

TEST(a_short_source_is_an_error)
{
    const float values[] = {1, 2, 3};
    struct zt_elements elements = open_elements(values, 3, ZT_F32);
    struct zt_tally tally = {.finite = 99};

    elements.count = 4;
    assert_int_equal(zt_tally_piece(&elements, 0, &tally, NULL), ZT_IO);
    assert_int_equal(tally.finite, 99);
    zt_source_close(elements.source);
}

TEST(a_preview_reduces_blocks)
{
    const float values[] = {1, 2, -9, NAN, 4, INFINITY, 3, NAN, NAN};
    const struct zt_slice_tensor matrix = {.shape = (uint64_t[]){3, 3}, .rank = 2};
    const double expected[][4] = {{7.0 / 3, -9, 3, NAN}, {4, 9, 3, NAN}, {1, -9, 3, NAN}};
    struct zt_elements elements = open_elements(values, 9, ZT_F32);
    struct zt_preview preview;
    double cells[4];

    assert_true(zt_preview_plan(&matrix, NULL, 0, 2, 2, &preview));
    assert_true(preview.out_rows == 2 && preview.out_cols == 2 && preview.block_rows == 2);
    for (int reduction = 0; reduction < 3; reduction++) {
        preview.reduction = (enum zt_reduction)reduction;
        for (uint32_t row = 0; row < 2; row++)
            assert_ok(zt_preview_row(&preview, &elements, row, &(struct zt_cancellation){0},
                                     cells + (size_t)2 * row, NULL));
        for (int i = 0; i < 4; i++)
            assert_true(cells[i] == expected[reduction][i] ||
                        (isnan(cells[i]) && isnan(expected[reduction][i])));
    }
    zt_source_close(elements.source);
}

static bool count_down(void *context)
{
    int *left = context;

    return (*left)-- > 0;
}

/* A row may be all of a large tensor. */
TEST(a_row_of_a_preview_can_be_given_up)
{
    const size_t count = (size_t)9 << 20;
    const struct zt_slice_tensor vector = {.shape = (uint64_t[]){count}, .rank = 1};
    float *values = calloc(count, sizeof(*values));
    struct zt_elements elements = open_elements(values, count, ZT_F32);
    struct zt_preview preview;
    double cell = -1;
    int left = 2;
    const struct zt_cancellation cancellation = {count_down, &left};

    values[count - 1] = (float)count;
    assert_true(zt_preview_plan(&vector, NULL, 0, 1, 1, &preview));
    preview.reduction = ZT_REDUCE_MEAN;
    assert_int_equal(zt_preview_row(&preview, &elements, 0, &cancellation, &cell, NULL),
                     ZT_ARGUMENT);
    assert_true(cell == -1 && left == -1);
    left = 3;
    assert_ok(zt_preview_row(&preview, &elements, 0, &cancellation, &cell, NULL));
    assert_true(cell == 1 && left == 0);
    zt_source_close(elements.source);
    free(values);
}

TEST(a_preview_has_an_index_for_each_leading_axis)
{
    const struct zt_slice_tensor tensor = {.shape = (uint64_t[]){2, 3, 4, 5}, .rank = 4};
    const int64_t places[] = {-1, 2, 0};
    struct zt_preview preview;

    assert_true(zt_preview_plan(&tensor, places, 2, 9, 9, &preview));
    assert_true(preview.first == 100 && preview.count == 20);
    assert_false(zt_preview_plan(&tensor, places, 3, 9, 9, &preview));
    assert_false(zt_preview_plan(&tensor, (int64_t[]){2}, 1, 9, 9, &preview));
    assert_false(zt_preview_plan(&tensor, (int64_t[]){-3}, 1, 9, 9, &preview));
    assert_false(zt_preview_plan(&tensor, (int64_t[]){INT64_MIN}, 1, 9, 9, &preview));
}

static struct zt_difference difference_of(const struct zt_elements *one,
                                          const struct zt_elements *other)
{
    struct zt_difference all = {0};

    for (uint64_t piece = 0; piece < zt_elements_pieces(one); piece++) {
        struct zt_difference next;

        assert_ok(zt_difference_piece(one, other, piece, &next, NULL));
        zt_difference_merge(&all, &next);
    }
    return all;
}

TEST(differences_are_of_all_pieces)
{
    double *values = make_values();
    double *changed = make_values();
    struct zt_elements one = open_elements(values, COUNT, ZT_F64);
    struct zt_elements other = open_elements(changed, COUNT, ZT_F64);
    struct zt_difference difference = difference_of(&one, &other);

    assert_int_equal(difference.count, COUNT);
    assert_int_equal(difference.changed, 0);
    changed[0] += 2.5;
    changed[COUNT - 2] -= 0.5;
    changed[7] = 1;
    changed[COUNT / 2] = INFINITY;
    values[100] = 0.0;
    changed[100] = -0.0;
    difference = difference_of(&one, &other);
    assert_int_equal(difference.changed, 5);
    assert_int_equal(difference.unmeasurable, 2);
    assert_true(fabs(difference.max - 2.5) < 1e-9);
    assert_true(fabs(difference.sum - 3) < 1e-9);
    zt_source_close(one.source);
    zt_source_close(other.source);
    free(values);
    free(changed);
}

TEST(differences_of_integers_are_of_their_values)
{
    const int16_t old[] = {1, -32768, 5, 0};
    const int16_t new[] = {1, 32767, 5, -1};
    struct zt_elements one = open_elements(old, 4, ZT_I16);
    struct zt_elements other = open_elements(new, 4, ZT_I16);
    const struct zt_difference difference = difference_of(&one, &other);

    assert_int_equal(difference.changed, 2);
    assert_true(difference.max == 65535 && difference.sum == 65536);
    zt_source_close(one.source);
    zt_source_close(other.source);
}
