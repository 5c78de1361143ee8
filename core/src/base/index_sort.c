/* A merge sort that uses the ascending runs already present.
 *
 * Models of a million objects are common. Writers leave names either sorted or (zTensor 2) in a few
 * dozen ascending runs, one for each length of name, which are cheap to merge. Any other order
 * takes n log n. */
#include "base/index_sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Each run on the stack is at least twice as long as the one above it, so 2^32 entries never need
 * more. */
#define RUNS_MAX 64

struct run {
    uint32_t begin;
    uint32_t length;
};

struct sorter {
    const struct zt_index_order *order;
    uint32_t *index;
    uint32_t *spare; /* has the length of the index */
    struct run runs[RUNS_MAX];
    unsigned run_count;
};

static bool is_after(const struct sorter *sorter, uint32_t a, uint32_t b)
{
    return sorter->order->is_after(sorter->order->context, a, b);
}

/* Merges the two topmost runs, which are adjacent. Equal entries keep their order. */
static void merge_top(struct sorter *sorter)
{
    struct run *left = &sorter->runs[sorter->run_count - 2];
    const struct run *right = &sorter->runs[sorter->run_count - 1];
    uint32_t *target = sorter->index + left->begin;
    const uint32_t *b = sorter->index + right->begin;
    const uint32_t *b_end = b + right->length;
    const uint32_t *a = sorter->spare;
    const uint32_t *a_end = a + left->length;

    assert(sorter->run_count >= 2 && left->begin + left->length == right->begin);
    memcpy(sorter->spare, target, left->length * sizeof(*target));
    while (a < a_end && b < b_end)
        *target++ = is_after(sorter, *a, *b) ? *b++ : *a++;
    memcpy(target, a, (size_t)(a_end - a) * sizeof(*target));
    left->length += right->length;
    sorter->run_count--;
}

static void push_run(struct sorter *sorter, struct run run)
{
    assert(sorter->run_count < RUNS_MAX);
    sorter->runs[sorter->run_count++] = run;
    while (sorter->run_count > 1) {
        const struct run *top = &sorter->runs[sorter->run_count - 1];

        if (top[-1].length / 2 >= top->length)
            break;
        merge_top(sorter);
    }
}

/* The end of the ascending run that begins at begin. */
static uint32_t run_end(const struct sorter *sorter, uint32_t begin, uint32_t count)
{
    uint32_t end = begin + 1;

    assert(begin < count);
    while (end < count && !is_after(sorter, sorter->index[end - 1], sorter->index[end]))
        end++;
    return end;
}

enum zt_status zt_index_sort(uint32_t *index, uint32_t count, const struct zt_index_order *order)
{
    struct sorter sorter = {.order = order, .index = index};
    uint32_t end;

    if (count < 2)
        return ZT_OK;
    end = run_end(&sorter, 0, count);
    if (end == count)
        return ZT_OK;
    sorter.spare = malloc(count * sizeof(*index));
    if (sorter.spare == NULL)
        return ZT_NO_MEMORY;
    push_run(&sorter, (struct run){0, end});
    while (end < count) {
        uint32_t begin = end;

        end = run_end(&sorter, begin, count);
        assert(begin < end && end <= count);
        push_run(&sorter, (struct run){begin, end - begin});
    }
    while (sorter.run_count > 1)
        merge_top(&sorter);
    assert(sorter.runs[0].length == count);
    free(sorter.spare);
    return ZT_OK;
}

enum zt_status zt_index_make(uint32_t count, const struct zt_index_order *order,
                             uint32_t **out_index)
{
    uint32_t *index = malloc(((size_t)count + 1) * sizeof(*index));

    if (index == NULL)
        return ZT_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        index[i] = i;
    if (zt_index_sort(index, count, order) != ZT_OK) {
        free(index);
        return ZT_NO_MEMORY;
    }
    *out_index = index;
    return ZT_OK;
}
