/* Slices: every text for small shapes, compared with a naive implementation, for bytes and half
 * bytes. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "zt/slice.h"

#define RANK_TRIED    3
#define ELEMENTS_MAX  64
#define ITEMS_MAX     200
#define ITEM_LENGTH   16
#define BOUND_MISSING INT64_MAX

/* --- the oracle: the elements of a slice, one by one --- */

struct chosen {
    size_t count;
    unsigned elements[ELEMENTS_MAX];
    unsigned rank;
    uint64_t shape[RANK_TRIED];
};

/* The indices that one item takes of a dimension, in order. */
struct taken {
    bool is_index;
    unsigned count;
    unsigned indices[8];
};

struct choice {
    char text[ITEM_LENGTH];
    struct taken taken;
};

static void choose(const uint64_t *shape, unsigned rank, const struct choice *const *choices,
                   struct chosen *chosen)
{
    unsigned at[RANK_TRIED] = {0};

    memset(chosen, 0, sizeof(*chosen));
    for (unsigned i = 0; i < rank; i++) {
        if (!choices[i]->taken.is_index)
            chosen->shape[chosen->rank++] = choices[i]->taken.count;
        if (choices[i]->taken.count == 0)
            at[0] = 1000;
    }
    while (at[0] < 1000) {
        unsigned element = 0, i = rank;

        for (unsigned j = 0; j < rank; j++)
            element = element * (unsigned)shape[j] + choices[j]->taken.indices[at[j]];
        chosen->elements[chosen->count++] = element;
        while (i-- > 0 && ++at[i] == choices[i]->taken.count)
            at[i] = 0;
        if (i == UINT32_MAX)
            return;
    }
}

/* A bound, clipped by Python's rule. */
static int64_t place(int64_t bound, int64_t otherwise, int64_t extent)
{
    if (bound == BOUND_MISSING)
        return otherwise;
    if (bound < 0)
        bound += extent;
    return bound < 0 ? 0 : bound > extent ? extent : bound;
}

static void add_span(struct choice *choice, int64_t first, int64_t end, int64_t extent)
{
    char from[8] = "", to[8] = "";

    if (first != BOUND_MISSING)
        snprintf(from, sizeof(from), "%d", (int)first);
    if (end != BOUND_MISSING)
        snprintf(to, sizeof(to), "%d", (int)end);
    snprintf(choice->text, sizeof(choice->text), "%s:%s", from, to);
    for (int64_t i = place(first, 0, extent); i < place(end, extent, extent); i++)
        choice->taken.indices[choice->taken.count++] = (unsigned)i;
}

/* Every item for a dimension: each index in both spellings, and each pair of bounds from before its
 * start to after its end. */
static unsigned list_choices(uint64_t extent, struct choice *choices)
{
    int64_t length = (int64_t)extent;
    unsigned count = 0;

    memset(choices, 0, ITEMS_MAX * sizeof(*choices));
    for (int64_t i = -length; i < length; i++) {
        snprintf(choices[count].text, ITEM_LENGTH, "%d", (int)i);
        choices[count].taken = (struct taken){
            .is_index = true, .count = 1, .indices = {(unsigned)((i + length) % length)}};
        count++;
    }
    for (int64_t first = -length - 1; first <= length + 2; first++) {
        for (int64_t end = -length - 1; end <= length + 2; end++)
            add_span(&choices[count++], first == length + 2 ? BOUND_MISSING : first,
                     end == length + 2 ? BOUND_MISSING : end, length);
    }
    return count;
}

/* --- checking slices --- */

struct laid_out {
    size_t count;
    uint64_t runs[ELEMENTS_MAX];
};

static void lay_out(const struct zt_slice *slice, unsigned loop, uint64_t at, struct laid_out *out)
{
    if (loop == slice->loop_count) {
        assert_true(out->count < ELEMENTS_MAX);
        out->runs[out->count++] = at;
        return;
    }
    for (uint64_t i = 0; i < slice->loops[loop].count; i++)
        lay_out(slice, loop + 1, at + i * slice->loops[loop].stride_bytes, out);
}

/* The number of runs if each is as long as possible: elements that are contiguous. */
static unsigned count_runs(const struct chosen *chosen)
{
    unsigned runs = chosen->count > 0;

    for (size_t i = 1; i < chosen->count; i++)
        runs += chosen->elements[i] != chosen->elements[i - 1] + 1;
    return runs;
}

/* The runs have the bytes of the elements, in order, and there are as few of them as possible. */
static void assert_bytes(const struct zt_slice *slice, const struct chosen *chosen, unsigned width)
{
    struct laid_out laid = {.count = 0};
    size_t at = 0;

    assert_true(slice->length == chosen->count * width);
    assert_int_equal(slice->rank, chosen->rank);
    for (unsigned i = 0; i < chosen->rank; i++)
        assert_true(slice->shape[i] == chosen->shape[i]);
    assert_int_equal(zt_slice_is_contiguous(slice), count_runs(chosen) <= 1);
    if (chosen->count == 0) {
        assert_int_equal(slice->run_bytes, 0);
        assert_int_equal(slice->loop_count, 0);
        return;
    }
    lay_out(slice, 0, slice->offset, &laid);
    assert_int_equal(laid.count, count_runs(chosen));
    for (size_t i = 0; i < laid.count; i++)
        for (uint64_t byte = 0; byte < slice->run_bytes; byte += width)
            assert_true(laid.runs[i] + byte == (uint64_t)chosen->elements[at++] * width);
    assert_int_equal(at, chosen->count);
}

/* No loop could be merged into its neighbour, and none counts 1. */
static void assert_merged(const struct zt_slice *slice)
{
    for (unsigned i = 0; i < slice->loop_count; i++) {
        assert_true(slice->loops[i].count > 1);
        if (i > 0)
            assert_true(slice->loops[i].count * slice->loops[i].stride_bytes <
                        slice->loops[i - 1].stride_bytes);
    }
}

/* For f4_e2m1: whether each run begins and ends at a byte boundary, or ends with the data. */
static bool is_aligned(const struct chosen *chosen, unsigned elements)
{
    for (size_t i = 0; i < chosen->count; i++) {
        unsigned element = chosen->elements[i];
        bool begins = i == 0 || element != chosen->elements[i - 1] + 1;
        bool ends = i + 1 == chosen->count || chosen->elements[i + 1] != element + 1;

        if ((begins && element % 2 != 0) || (ends && element % 2 == 0 && element + 1 != elements))
            return false;
    }
    return true;
}

static void assert_half_bytes(const struct zt_slice_tensor *tensor, struct zt_text text,
                              const struct chosen *chosen, unsigned elements)
{
    struct zt_slice_tensor halves = *tensor;
    struct zt_slice slice;
    struct laid_out laid = {.count = 0};
    enum zt_slice_verdict verdict;
    size_t at = 0;

    halves.dtype = ZT_U8;
    halves.logical = ZT_LOGICAL_F4_E2M1;
    verdict = zt_slice_parse(&halves, text, &slice, NULL);
    assert_int_equal(verdict, is_aligned(chosen, elements) ? ZT_SLICE_FITS : ZT_SLICE_NOT_ALIGNED);
    if (verdict != ZT_SLICE_FITS)
        return;
    assert_true(slice.length == (chosen->count + 1) / 2);
    if (slice.length > 0)
        lay_out(&slice, 0, slice.offset, &laid);
    for (size_t i = 0; i < laid.count; i++)
        for (uint64_t byte = 0; byte < slice.run_bytes; byte++, at += 2)
            assert_true(laid.runs[i] + byte == chosen->elements[at] / 2);
    assert_true(at == chosen->count || at == chosen->count + 1);
}

static void check(const uint64_t *shape, unsigned rank, const char *text,
                  const struct choice *const *choices)
{
    static const struct {
        enum zt_dtype dtype;
        enum zt_logical logical;
        unsigned width;
    } types[] = {{ZT_U8, ZT_LOGICAL_NONE, 1},
                 {ZT_BF16, ZT_LOGICAL_NONE, 2},
                 {ZT_F64, ZT_LOGICAL_COMPLEX128, 16}};
    struct chosen chosen;
    unsigned elements = 1;

    choose(shape, rank, choices, &chosen);
    for (unsigned i = 0; i < rank; i++)
        elements *= (unsigned)shape[i];
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        const struct zt_slice_tensor tensor = {shape, rank, types[i].dtype, types[i].logical};
        struct zt_slice slice;

        assert_int_equal(zt_slice_parse(&tensor, zt_text_from(text), &slice, NULL), ZT_SLICE_FITS);
        assert_bytes(&slice, &chosen, types[i].width);
        assert_merged(&slice);
        if (i == 0)
            assert_half_bytes(&tensor, zt_text_from(text), &chosen, elements);
    }
}

static void check_all_choices(const uint64_t *shape, unsigned rank)
{
    static struct choice choices[RANK_TRIED][ITEMS_MAX];
    unsigned counts[RANK_TRIED] = {1, 1, 1};

    for (unsigned i = 0; i < rank; i++)
        counts[i] = list_choices(shape[i], choices[i]);
    for (unsigned a = 0; a < counts[0]; a++) {
        for (unsigned b = 0; b < counts[1]; b++) {
            for (unsigned c = 0; c < counts[2]; c++) {
                const struct choice *const chosen[] = {&choices[0][a], &choices[1][b],
                                                       &choices[2][c]};
                char text[RANK_TRIED * ITEM_LENGTH] = "";

                for (unsigned i = 0; i < rank; i++)
                    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                             i > 0 ? "," : "", chosen[i]->text);
                check(shape, rank, text, chosen);
            }
        }
    }
}

TEST(every_slice_of_small_tensors_matches_the_oracle)
{
    static const uint64_t shapes[][RANK_TRIED] = {{4, 3, 2}, {2, 3, 2}, {3, 1, 3},
                                                  {1, 2, 1}, {2, 0, 3}, {2, 2, 2}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        /* All combinations for the largest shape would take a minute; at rank 2 all are tried. */
        for (unsigned rank = 1; rank <= (i == 0 ? 2 : 3); rank++)
            check_all_choices(shapes[i], rank);
    }
}

/* Every start:stop and every index in three dimensions, each in one spelling. */
TEST(every_box_of_the_largest_small_tensor_matches_the_oracle)
{
    static const uint64_t shape[] = {4, 3, 2};
    static struct choice choices[RANK_TRIED][ITEMS_MAX];
    unsigned counts[RANK_TRIED];

    memset(choices, 0, sizeof(choices));
    for (unsigned i = 0; i < RANK_TRIED; i++) {
        unsigned count = 0;

        for (int64_t first = 0; first < (int64_t)shape[i]; first++) {
            snprintf(choices[i][count].text, ITEM_LENGTH, "%d", (int)first);
            choices[i][count++].taken =
                (struct taken){.is_index = true, .count = 1, .indices = {(unsigned)first}};
            for (int64_t end = first; end <= (int64_t)shape[i]; end++)
                add_span(&choices[i][count++], first, end, (int64_t)shape[i]);
        }
        counts[i] = count;
    }
    for (unsigned n = 0; n < counts[0] * counts[1] * counts[2]; n++) {
        const struct choice *const chosen[] = {&choices[0][n / counts[1] / counts[2]],
                                               &choices[1][n / counts[2] % counts[1]],
                                               &choices[2][n % counts[2]]};
        char text[4 * ITEM_LENGTH];

        snprintf(text, sizeof(text), "%s,%s,%s", chosen[0]->text, chosen[1]->text, chosen[2]->text);
        check(shape, 3, text, chosen);
    }
}
