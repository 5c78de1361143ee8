/* A merge sort of runs over an index, then one permutation in place.
 *
 * Files of a million objects are ordinary. Writers leave names either sorted or (zTensor 2) as a
 * few dozen ascending runs, one for each length of name, which merging runs as they are found makes
 * cheap; any other order costs n log n. */
#include "model/name_sort.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A run is at least half as long again as the one above it, so that 2^32 entries never need more.
 */
#define MOST_RUNS 64

struct run {
    uint32_t begin;
    uint32_t length;
};

struct sorter {
    const struct zt_named_array *array;
    uint32_t *index;
    uint32_t *spare;
    struct run runs[MOST_RUNS];
    unsigned run_count;
};

struct zt_text zt_names_at(const struct zt_named_array *array, size_t place)
{
    const char *entry = (const char *)array->entries + place * array->stride;
    const char *name;
    uint32_t length;

    memcpy(&name, entry, sizeof(name));
    memcpy(&length, entry + array->length_at, sizeof(length));
    return (struct zt_text){name, length};
}

static int compare_names(struct zt_text a, struct zt_text b)
{
    size_t shared = a.length < b.length ? a.length : b.length;
    int order = shared > 0 ? memcmp(a.bytes, b.bytes, shared) : 0;

    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static bool is_after(const struct zt_named_array *array, size_t a, size_t b)
{
    return compare_names(zt_names_at(array, a), zt_names_at(array, b)) > 0;
}

static bool is_sorted(const struct zt_named_array *array)
{
    for (size_t i = 1; i < array->count; i++)
        if (is_after(array, i - 1, i))
            return false;
    return true;
}

/* Merges the two topmost runs, which lie side by side. Of equal names the one that came first stays
 * first. */
static void merge_top(struct sorter *sorter)
{
    struct run *left = &sorter->runs[sorter->run_count - 2];
    const struct run *right = &sorter->runs[sorter->run_count - 1];
    uint32_t *target = sorter->index + left->begin;
    const uint32_t *b = sorter->index + right->begin;
    const uint32_t *b_end = b + right->length;
    const uint32_t *a = sorter->spare;
    const uint32_t *a_end = a + left->length;

    memcpy(sorter->spare, target, left->length * sizeof(*target));
    while (a < a_end && b < b_end)
        *target++ = is_after(sorter->array, *a, *b) ? *b++ : *a++;
    memcpy(target, a, (size_t)(a_end - a) * sizeof(*target));
    left->length += right->length;
    sorter->run_count--;
}

static void push_run(struct sorter *sorter, struct run run)
{
    assert(sorter->run_count < MOST_RUNS);
    sorter->runs[sorter->run_count++] = run;
    while (sorter->run_count > 1) {
        const struct run *top = &sorter->runs[sorter->run_count - 1];

        if (top[-1].length / 2 >= top->length)
            break;
        merge_top(sorter);
    }
}

static void sort_index(struct sorter *sorter)
{
    uint32_t count = (uint32_t)sorter->array->count;

    for (uint32_t i = 0; i < count; i++)
        sorter->index[i] = i;
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && !is_after(sorter->array, end - 1, end); end++) {
        }
        push_run(sorter, (struct run){begin, end - begin});
    }
    while (sorter->run_count > 1)
        merge_top(sorter);
}

/* Moves every entry to its place, cycle by cycle; index[place] says which entry belongs there. */
static void permute(const struct zt_named_array *array, uint32_t *index, void *held)
{
    char *entries = array->entries;
    size_t stride = array->stride;

    for (size_t start = 0; start < array->count; start++) {
        size_t place;

        if (index[start] == start)
            continue;
        memcpy(held, entries + start * stride, stride);
        place = start;
        while (index[place] != start) {
            size_t source = index[place];

            memcpy(entries + place * stride, entries + source * stride, stride);
            index[place] = (uint32_t)place;
            place = source;
        }
        memcpy(entries + place * stride, held, stride);
        index[place] = (uint32_t)place;
    }
}

enum zt_status zt_names_sort(const struct zt_named_array *array, struct zt_error *error)
{
    struct sorter sorter;
    enum zt_status status;
    void *held;

    if (is_sorted(array))
        return ZT_OK;
    sorter = (struct sorter){.array = array};
    status = ZT_NO_MEMORY;
    sorter.index = malloc(2 * array->count * sizeof(*sorter.index));
    held = malloc(array->stride);
    if (sorter.index == NULL || held == NULL) {
        zt_fail(error, status, NULL, ZT_NO_OFFSET, "out of memory");
        goto out;
    }
    sorter.spare = sorter.index + array->count;
    sort_index(&sorter);
    permute(array, sorter.index, held);
    status = ZT_OK;
out:
    free(sorter.index);
    free(held);
    return status;
}

size_t zt_names_duplicate(const struct zt_named_array *array)
{
    for (size_t i = 1; i < array->count; i++)
        if (compare_names(zt_names_at(array, i - 1), zt_names_at(array, i)) == 0)
            return i;
    return 0;
}

void *zt_names_find(const struct zt_named_array *array, struct zt_text name)
{
    size_t low = 0;
    size_t high = array->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_names(zt_names_at(array, middle), name);

        if (order == 0)
            return (char *)array->entries + middle * array->stride;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
