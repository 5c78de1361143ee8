/* Differences between two tensors: the elements of one are kept while the other's are visited. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numbers/values.h"
#include "zt/statistics.h"

/* Elements compared at a time: few enough for the second-level cache. */
#define KEPT_MOST ((uint64_t)16 * VALUES_MAX)

struct comparison {
    unsigned width; /* of an element, in bytes */
    size_t count;   /* kept of the one tensor */
    size_t visited; /* of the other */
    uint8_t *bytes;
    double *values;
    struct zt_difference difference;
};

static void keep(void *context, const uint8_t *bytes, double *values, size_t count)
{
    struct comparison *comparison = context;

    assert(comparison->count + count <= KEPT_MOST);
    memcpy(comparison->bytes + comparison->count * comparison->width, bytes,
           count * comparison->width);
    memcpy(comparison->values + comparison->count, values, count * sizeof(*values));
    comparison->count += count;
}

static void add(struct zt_difference *difference, double one, double other)
{
    const double distance = fabs(one - other);

    difference->changed++;
    if (!isfinite(one) || !isfinite(other)) {
        difference->unmeasurable++;
        return;
    }
    difference->sum += distance;
    if (distance > difference->max)
        difference->max = distance;
}

static void compare(void *context, const uint8_t *bytes, double *values, size_t count)
{
    struct comparison *comparison = context;
    const unsigned width = comparison->width;
    const uint8_t *kept = comparison->bytes + comparison->visited * width;
    const double *kept_values = comparison->values + comparison->visited;

    assert(comparison->visited + count <= comparison->count);
    comparison->visited += count;
    comparison->difference.count += count;
    if (memcmp(kept, bytes, count * width) == 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (memcmp(kept + i * width, bytes + i * width, width) != 0)
            add(&comparison->difference, kept_values[i], values[i]);
}

static enum zt_status compare_all(const struct zt_elements *one, const struct zt_elements *other,
                                  uint64_t first, uint64_t count, struct comparison *comparison,
                                  struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    while (count > 0 && status == ZT_OK) {
        const uint64_t some = count < KEPT_MOST ? count : KEPT_MOST;

        comparison->count = 0;
        comparison->visited = 0;
        status = zt_values_visit(one, first, some, keep, comparison, error);
        if (status == ZT_OK)
            status = zt_values_visit(other, first, some, compare, comparison, error);
        first += some;
        count -= some;
    }
    return status;
}

enum zt_status zt_difference_piece(const struct zt_elements *one, const struct zt_elements *other,
                                   uint64_t piece, struct zt_difference *out_difference,
                                   struct zt_error *error)
{
    struct comparison comparison = {.width = zt_dtype_width(one->dtype)};
    enum zt_status status = ZT_OK;
    uint64_t first;
    uint64_t count;

    assert(one->dtype == other->dtype && one->count == other->count);
    zt_elements_piece(one, piece, &first, &count);
    comparison.bytes = malloc(KEPT_MOST * comparison.width);
    comparison.values = malloc(KEPT_MOST * sizeof(*comparison.values));
    if (comparison.bytes == NULL || comparison.values == NULL)
        status = zt_fail_memory(error, "comparing elements");
    else
        status = compare_all(one, other, first, count, &comparison, error);
    free(comparison.bytes);
    free(comparison.values);
    if (status == ZT_OK)
        *out_difference = comparison.difference;
    return status;
}

void zt_difference_merge(struct zt_difference *difference, const struct zt_difference *next)
{
    difference->count += next->count;
    difference->changed += next->changed;
    difference->unmeasurable += next->unmeasurable;
    difference->sum += next->sum;
    if (next->max > difference->max)
        difference->max = next->max;
    assert(difference->unmeasurable <= difference->changed &&
           difference->changed <= difference->count);
}
