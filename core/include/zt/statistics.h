/* Statistics of numbers, in two passes over a tensor's elements: first extremes and moments, then,
 * once the extremes are known, a histogram.
 *
 * Every function works on one piece (zt/elements.h). Pieces may be worked on side by side; merged
 * in their order they give the same result each time. Moments and histogram are of the finite
 * elements, in double precision. */
#ifndef ZT_STATISTICS_H
#define ZT_STATISTICS_H

#include "zt/elements.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* An element without loss: integer for signed types, natural for unsigned ones and bool, real for
 * floats. */
union zt_number {
    double real;
    int64_t integer;
    uint64_t natural;
};

enum zt_number_kind { ZT_NUMBER_REAL, ZT_NUMBER_INTEGER, ZT_NUMBER_NATURAL };

/* Not for f16 and bf16. */
enum zt_number_kind zt_number_kind(enum zt_dtype dtype);
double zt_number_real(enum zt_number_kind kind, union zt_number number);

/* The results of the first pass. All members are 0 to begin with. */
struct zt_tally {
    uint64_t finite;
    uint64_t nan;
    uint64_t positive_inf;
    uint64_t negative_inf;
    uint64_t zero;
    /* Of the finite elements; meaningless if there are none. */
    union zt_number min;
    union zt_number max;
    /* Moments in units of 2^exponent, which keep squares within the range of doubles. */
    int exponent;
    double mean;
    double mean_rest; /* what rounding has left out of mean; far less than it */
    double squares;   /* the sum of the squares of the differences from the mean */
};

/* The first pass over one piece; *out_tally is replaced. ZT_NO_MEMORY, or the source's status. */
enum zt_status zt_tally_piece(const struct zt_elements *elements, uint64_t piece,
                              struct zt_tally *out_tally, struct zt_error *error);

/* Adds the tally of the elements that follow. */
void zt_tally_merge(struct zt_tally *tally, const struct zt_tally *next, enum zt_number_kind kind);

/* Mean and population standard deviation; not numbers if there is no finite element. Neither
 * overflows. */
double zt_tally_mean(const struct zt_tally *tally, enum zt_number_kind kind);
double zt_tally_std(const struct zt_tally *tally);
/* The larger of the magnitudes of min and max: a natural number for integers. */
union zt_number zt_tally_abs_max(const struct zt_tally *tally, enum zt_number_kind kind);

#define ZT_BINS_MAX 1024

/* Bins of equal width. Bin i holds what is not below edge i and below edge i + 1; the last one its
 * upper edge too. */
struct zt_axis {
    unsigned bins;
    double edges[ZT_BINS_MAX + 1];
    /* For the kernel: whether an element's bin can be computed to within one below. */
    bool is_even;
    double scale;
    double above[ZT_BINS_MAX + 2];
};

/* The bins, 1 to ZT_BINS_MAX, from the tally's min to its max that numpy.histogram makes for
 * doubles; half a unit is added on both sides if the two are equal. False if there are no finite
 * elements, the range does not fit in a double, or doubles are too far apart for the bins: edges
 * would be equal (numpy.histogram raises an error). */
bool zt_axis_make(const struct zt_tally *tally, enum zt_number_kind kind, unsigned bins,
                  struct zt_axis *out_axis);

/* The second pass over one piece: adds it to axis->bins counts. Errors as zt_tally_piece. */
enum zt_status zt_histogram_piece(const struct zt_elements *elements, uint64_t piece,
                                  const struct zt_axis *axis, uint64_t *counts,
                                  struct zt_error *error);

/* Differences between the elements of two tensors. All members are 0 to begin with. */
struct zt_difference {
    uint64_t count;
    uint64_t changed;      /* elements whose bits differ: also 0 and -0 */
    uint64_t unmeasurable; /* of these, where one of the two is not finite */
    /* Absolute differences of the other elements, in double precision. */
    double max;
    double sum;
};

/* Compares one piece (zt/elements.h) of two tensors of one dtype and count; *out_difference is
 * replaced. ZT_NO_MEMORY, or a source's status. */
enum zt_status zt_difference_piece(const struct zt_elements *one, const struct zt_elements *other,
                                   uint64_t piece, struct zt_difference *out_difference,
                                   struct zt_error *error);

/* Adds the difference of the elements that follow. */
void zt_difference_merge(struct zt_difference *difference, const struct zt_difference *next);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
