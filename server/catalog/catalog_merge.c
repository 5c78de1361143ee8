/* Makes the index that results from changes. The ranges between two changes are found by binary
 * search and copied as runs of pointers: a batch costs a copy of the arrays and a few steps per
 * change, but does not examine unchanged files. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_index.h"
#include "parts/split_path.h"

typedef int comparison(const struct generation *a, const struct generation *b);

static int compare_paths(const struct generation *a, const struct generation *b)
{
    return strcmp(a->path, b->path);
}

/* If the extensions of two files differ only in case, the lower-case one, which is the form in
 * which files are written, comes first. */
static unsigned rank_of(const struct generation *generation)
{
    size_t length;
    unsigned rank = 0;

    (void)catalog_path_split(generation->path, &length, &rank);
    return 2 * rank + (model_path_has_noncanonical_extension(generation->path) ? 1 : 0);
}

static int compare_names(const struct generation *a, const struct generation *b)
{
    int order = zt_text_compare(generation_name(a), generation_name(b));
    unsigned rank_a;
    unsigned rank_b;

    if (order != 0)
        return order;
    rank_a = rank_of(a);
    rank_b = rank_of(b);
    if (rank_a != rank_b)
        return rank_a > rank_b ? 1 : -1;
    /* Splits of one model into different numbers of parts. */
    return compare_paths(a, b);
}

static int compare_names_for_sort(const void *a, const void *b)
{
    return compare_names(*(struct generation *const *)a, *(struct generation *const *)b);
}

/* A run of generations in one of the two orders. */
struct run {
    struct generation *const *items;
    size_t count;
};

/* Returns the first index, starting at `from`, whose generation does not sort before the given
 * one. */
static size_t bound_from(struct run run, size_t from, const struct generation *generation,
                         comparison *compare)
{
    size_t low = from;
    size_t high = run.count;

    assert(from <= run.count);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (compare(run.items[middle], generation) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Writes old without dropped and with added; all use the same order. Returns the number written. */
static size_t merge(struct run old, struct run dropped, struct run added, comparison *compare,
                    struct generation **out)
{
    size_t used = 0;
    size_t at = 0;
    size_t gone = 0;
    size_t next = 0;

    while (gone < dropped.count || next < added.count) {
        /* A replaced file has the same sort key as its successor; the replaced one comes first. */
        const bool drops =
            next == added.count ||
            (gone < dropped.count && compare(dropped.items[gone], added.items[next]) <= 0);
        struct generation *change = drops ? dropped.items[gone++] : added.items[next++];
        const size_t end = bound_from(old, at, change, compare);

        if (end > at)
            memcpy(out + used, old.items + at, (end - at) * sizeof(struct generation *));
        used += end - at;
        at = end;
        assert(!drops || (at < old.count && old.items[at] == change));
        if (drops)
            at++;
        else
            out[used++] = change;
    }
    if (old.count > at)
        memcpy(out + used, old.items + at, (old.count - at) * sizeof(struct generation *));
    assert(used + old.count - at == old.count + added.count - dropped.count);
    return used + old.count - at;
}

/* The generations that go and those that come, in order of path, with room to sort them
 * differently. */
struct turnover {
    struct run dropped;
    struct run added;
    struct generation **dropped_copy;
    struct generation **added_copy;
};

/* Splits the changes into the generations that go and those that come. */
static void split(const struct catalog_index *index, const struct catalog_change *changes,
                  size_t count, struct generation **out_dropped, struct generation **out_added,
                  struct turnover *out_turnover)
{
    size_t dropped = 0;
    size_t added = 0;

    for (size_t i = 0; i < count; i++) {
        struct generation *known = catalog_index_find_path(index, zt_text_from(changes[i].path));

        assert(i == 0 || strcmp(changes[i - 1].path, changes[i].path) < 0);
        assert(changes[i].generation == NULL ||
               strcmp(changes[i].generation->path, changes[i].path) == 0);
        if (known != NULL)
            out_dropped[dropped++] = known;
        if (changes[i].generation != NULL)
            out_added[added++] = changes[i].generation;
    }
    out_turnover->dropped = (struct run){out_dropped, dropped};
    out_turnover->added = (struct run){out_added, added};
}

/* Moves generations with shards to the front of a copy. Returns their number. */
static size_t pick_sharded(struct run from, struct generation **out)
{
    size_t count = 0;

    for (size_t i = 0; i < from.count; i++)
        if (from.items[i]->shards.count > 0)
            out[count++] = from.items[i];
    return count;
}

static size_t sort_by_name(struct run from, struct generation **out)
{
    for (size_t i = 0; i < from.count; i++)
        out[i] = from.items[i];
    if (from.count > 1)
        qsort(out, from.count, sizeof(*out), compare_names_for_sort);
    return from.count;
}

static void merge_all(const struct catalog_index *index, const struct turnover *turnover,
                      struct catalog_index *out_next)
{
    struct run dropped = turnover->dropped;
    struct run added = turnover->added;

    out_next->count = merge((struct run){index->by_path, index->count}, dropped, added,
                            compare_paths, out_next->by_path);
    assert(out_next->count == index->count - dropped.count + added.count);
    dropped.items = turnover->dropped_copy;
    added.items = turnover->added_copy;
    dropped.count = pick_sharded(turnover->dropped, turnover->dropped_copy);
    added.count = pick_sharded(turnover->added, turnover->added_copy);
    out_next->sharded_count = merge((struct run){index->sharded, index->sharded_count}, dropped,
                                    added, compare_paths, out_next->sharded);
    assert(out_next->sharded_count == index->sharded_count - dropped.count + added.count);
    dropped.count = sort_by_name(turnover->dropped, turnover->dropped_copy);
    added.count = sort_by_name(turnover->added, turnover->added_copy);
    (void)merge((struct run){index->by_name, index->count}, dropped, added, compare_names,
                out_next->by_name);
}

bool catalog_index_merge(const struct catalog_index *index, const struct catalog_change *changes,
                         size_t count, struct catalog_index *out_next,
                         struct generation **out_dropped, size_t *out_dropped_count)
{
    const size_t most = index->count + count;
    struct catalog_index next = {
        .by_path = malloc((most + 1) * sizeof(struct generation *)),
        .by_name = malloc((most + 1) * sizeof(struct generation *)),
        .sharded = malloc((index->sharded_count + count + 1) * sizeof(struct generation *)),
    };
    struct generation **added = malloc((count + 1) * sizeof(*added));
    struct generation **copies = malloc((2 * count + 1) * sizeof(*copies));
    const bool has_memory = next.by_path != NULL && next.by_name != NULL && next.sharded != NULL &&
                            added != NULL && copies != NULL &&
                            catalog_parts_merge(index, changes, count, &next);

    if (has_memory) {
        struct turnover turnover = {.dropped_copy = copies, .added_copy = copies + count};

        split(index, changes, count, out_dropped, added, &turnover);
        merge_all(index, &turnover, &next);
        *out_dropped_count = turnover.dropped.count;
        assert(turnover.dropped.count <= count);
        *out_next = next;
    } else {
        catalog_index_free_arrays(&next);
    }
    free(added);
    free(copies);
    return has_memory;
}
