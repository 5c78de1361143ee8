/* Sorting indices: orders, stability, and cost. */
#include "tests.h"

#include <stdlib.h>

#include "base/index_sort.h"

#define COUNT_MAX 5000

static uint32_t keys[COUNT_MAX];
static unsigned comparisons;

static bool is_after(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *all = context;

    comparisons++;
    return all[a] > all[b];
}

static const struct zt_index_order by_key = {is_after, keys};

/* Sorts the first count keys and checks that equal ones keep their order. */
static void assert_sorts(uint32_t count)
{
    uint32_t *index = NULL;

    assert_ok(zt_index_make(count, &by_key, &index));
    for (uint32_t i = 1; i < count; i++) {
        assert_true(keys[index[i - 1]] <= keys[index[i]]);
        if (keys[index[i - 1]] == keys[index[i]])
            assert_true(index[i - 1] < index[i]);
    }
    free(index);
}

TEST(any_order_is_sorted_stably)
{
    for (uint32_t count = 0; count < 300; count++) {
        for (uint32_t i = 0; i < count; i++)
            keys[i] = i * 2654435761u >> 24;
        assert_sorts(count);
        for (uint32_t i = 0; i < count; i++)
            keys[i] = count - i;
        assert_sorts(count);
        for (uint32_t i = 0; i < count; i++)
            keys[i] = i % 7;
        assert_sorts(count);
    }
    for (uint32_t i = 0; i < COUNT_MAX; i++)
        keys[i] = i * 2654435761u;
    assert_sorts(COUNT_MAX);
}

TEST(ascending_entries_cost_one_comparison_each)
{
    for (uint32_t i = 0; i < COUNT_MAX; i++)
        keys[i] = i / 3;
    comparisons = 0;
    assert_sorts(COUNT_MAX);
    assert_true(comparisons < COUNT_MAX);
}

TEST(a_few_runs_cost_a_few_comparisons_each)
{
    for (uint32_t i = 0; i < COUNT_MAX; i++)
        keys[i] = i % (COUNT_MAX / 8);
    comparisons = 0;
    assert_sorts(COUNT_MAX);
    assert_true(comparisons < 5 * COUNT_MAX);
}

TEST(part_of_an_index_can_be_sorted)
{
    uint32_t index[] = {5, 3, 1, 4};

    for (uint32_t i = 0; i < 6; i++)
        keys[i] = i;
    assert_ok(zt_index_sort(index, 3, &by_key));
    assert_int_equal(index[0], 1);
    assert_int_equal(index[1], 3);
    assert_int_equal(index[2], 5);
    assert_int_equal(index[3], 4);
}
