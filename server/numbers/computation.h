/* Statistics and previews of a tensor's elements, made by several threads side by side. The result
 * is the same however many there are. */
#ifndef NUMBERS_COMPUTATION_H
#define NUMBERS_COMPUTATION_H

#include "base/workers.h"
#include "zt/preview.h"
#include "zt/statistics.h"

/* Who does the work. */
struct computing {
    struct workers *workers; /* as for parallel_for: NULL for this thread alone */
    /* Asked by any thread before each of the equal parts that the work has: each of the two passes
     * over the pieces of the elements (zt/elements.h), each row of a preview. */
    struct zt_cancellation cancellation;
};

struct statistics {
    enum zt_number_kind kind;
    uint64_t count;
    struct zt_tally tally;
    bool has_histogram; /* there are finite elements, and their range fits in a double */
    struct zt_axis axis;
    uint64_t counts[ZT_BINS_MAX];
};

/* bins: 1 to ZT_BINS_MAX. ZT_ARGUMENT if it was no longer wanted, ZT_LIMIT, ZT_NO_MEMORY, or the
 * source's status. error must not be NULL. */
enum zt_status statistics_compute(const struct zt_elements *elements, unsigned bins,
                                  const struct computing *computing,
                                  struct statistics *out_statistics, struct zt_error *error);

/* Fills in out_rows * out_cols cells, row by row. Fails as statistics_compute. */
enum zt_status preview_compute(const struct zt_elements *elements, const struct zt_preview *preview,
                               const struct computing *computing, double *out_cells,
                               struct zt_error *error);

#endif
