/* The second pass: a histogram with the edges that numpy.linspace makes and the counts of
 * numpy.histogram.
 *
 * What decides is a comparison with the edges, as after numpy's correction. The bin is first
 * computed, a little too low, and then raised by one if the element is not below the bin's upper
 * edge. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "numbers/values.h"
#include "zt/statistics.h"

/* How much too low the computed bin may be, in bins: far more than rounding can shift it. */
#define MARGIN 0x1p-10
/* A bin must be this many times as wide as the last place of an edge, so that the rounding of edges
 * stays below the margin too. */
#define WIDTH_MIN 4096.0
/* Tables that are counted in by turns: equal elements in a row would wait for each other. */
#define TABLES 4

/* Whether bins can be computed. */
static bool is_even(double first, double last, double scale, unsigned bins)
{
    const double magnitude = fmax(fabs(first), fabs(last));

    return isfinite(scale) && (last - first) / bins >= magnitude * 0x1p-52 * WIDTH_MIN;
}

/* Sets the edges. False if two of them are equal. */
static bool set_edges(struct zt_axis *axis, double first, double last)
{
    const unsigned bins = axis->bins;
    const double range = last - first;
    const double step = range / bins;
    bool ascends = true;

    for (unsigned i = 0; i < bins; i++)
        axis->edges[i] = (step != 0 ? i * step : (double)i / bins * range) + first;
    axis->edges[bins] = last;
    for (unsigned i = 0; i < bins; i++)
        ascends &= axis->edges[i] < axis->edges[i + 1];
    return ascends;
}

bool zt_axis_make(const struct zt_tally *tally, enum zt_number_kind kind, unsigned bins,
                  struct zt_axis *out_axis)
{
    double first, last, range;

    assert(bins > 0 && bins <= ZT_BINS_MAX);
    if (tally->finite == 0)
        return false;
    first = zt_number_real(kind, tally->min);
    last = zt_number_real(kind, tally->max);
    if (first == last) {
        first -= 0.5;
        last += 0.5;
    }
    range = last - first;
    if (!isfinite(range))
        return false;
    out_axis->bins = bins;
    if (!set_edges(out_axis, first, last))
        return false;
    out_axis->scale = bins / range;
    out_axis->is_even = is_even(first, last, out_axis->scale, bins);
    for (unsigned i = 0; i < bins; i++)
        out_axis->above[i] = i + 1 < bins ? out_axis->edges[i + 1] : (double)INFINITY;
    out_axis->above[bins] = out_axis->above[bins + 1] = (double)INFINITY;
    return true;
}

struct counting {
    const struct zt_axis *axis;
    /* The two after the last bin hold what is not finite. A piece has fewer than 2^32 elements. */
    uint32_t tables[TABLES][ZT_BINS_MAX + 2];
};

/* Bins that may be one too low; axis->bins for what is not finite. */
static void compute_bins(const struct zt_axis *axis, const double *restrict values, size_t count,
                         int32_t *restrict out_bins)
{
    const double first = axis->edges[0];
    const double last = axis->edges[axis->bins];
    const double scale = axis->scale;
    const double most = axis->bins - 1;
    const double none = axis->bins;

    for (size_t i = 0; i < count; i++) {
        const double value = values[i];
        double bin = (value - first) * scale - MARGIN;

        bin = bin < most ? bin : most;
        bin = value >= first ? bin : none;
        bin = value <= last ? bin : none;
        out_bins[i] = (int32_t)bin;
    }
}

/* By bisection: the last bin whose lower edge is not above the value. */
static void search_bins(const struct zt_axis *axis, const double *values, size_t count,
                        int32_t *out_bins)
{
    for (size_t i = 0; i < count; i++) {
        unsigned low = 0;
        unsigned high = axis->bins;

        while (high - low > 1) {
            const unsigned middle = (low + high) / 2;

            if (values[i] >= axis->edges[middle])
                low = middle;
            else
                high = middle;
        }
        out_bins[i] = (int32_t)(isfinite(values[i]) ? low : axis->bins);
    }
}

static void count_in(struct counting *counting, const double *values, size_t count,
                     const int32_t *bins)
{
    const double *above = counting->axis->above;
    size_t at = 0;

    for (; at + TABLES <= count; at += TABLES)
        for (unsigned table = 0; table < TABLES; table++) {
            const int32_t bin = bins[at + table];

            counting->tables[table][bin + (values[at + table] >= above[bin])]++;
        }
    for (; at < count; at++)
        counting->tables[0][bins[at] + (values[at] >= above[bins[at]])]++;
}

static void add_chunk(void *context, const uint8_t *bytes, double *values, size_t count)
{
    struct counting *counting = context;
    int32_t bins[VALUES_MAX];

    (void)bytes;
    if (counting->axis->is_even)
        compute_bins(counting->axis, values, count, bins);
    else
        search_bins(counting->axis, values, count, bins);
    count_in(counting, values, count, bins);
}

enum zt_status zt_histogram_piece(const struct zt_elements *elements, uint64_t piece,
                                  const struct zt_axis *axis, uint64_t *counts,
                                  struct zt_error *error)
{
    struct counting counting = {.axis = axis};
    enum zt_status status;
    uint64_t first;
    uint64_t count;

    zt_elements_piece(elements, piece, &first, &count);
    status = zt_values_visit(elements, first, count, add_chunk, &counting, error);
    for (unsigned bin = 0; status == ZT_OK && bin < axis->bins; bin++)
        for (unsigned table = 0; table < TABLES; table++)
            counts[bin] += counting.tables[table][bin];
    return status;
}
