/* The first pass: counts, extremes and moments.
 *
 * Elements are taken a chunk at a time. The sum of a chunk of finite elements is finite (or
 * overflows, which is no harm), so only chunks whose sum is not are searched for what must be left
 * out. Moments of chunks are merged as Chan, Golub and LeVeque do, so that nothing cancels.
 * Elements whose squares would not fit in a double are scaled by a power of two first. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "numbers/values.h"
#include "zt/statistics.h"

enum zt_number_kind zt_number_kind(enum zt_dtype dtype)
{
    switch (dtype) {
    case ZT_I64:
    case ZT_I32:
    case ZT_I16:
    case ZT_I8:
        return ZT_NUMBER_INTEGER;
    case ZT_U64:
    case ZT_U32:
    case ZT_U16:
    case ZT_U8:
    case ZT_BOOL:
        return ZT_NUMBER_NATURAL;
    default:
        return ZT_NUMBER_REAL;
    }
}

double zt_number_real(enum zt_number_kind kind, union zt_number number)
{
    if (kind == ZT_NUMBER_INTEGER)
        return (double)number.integer;
    return kind == ZT_NUMBER_NATURAL ? (double)number.natural : number.real;
}

/* --- kernels over a chunk --- */

struct chunk {
    double sum;
    double low;
    double high;
    uint64_t zeros;
};

/* Two halves side by side, so that additions do not wait for each other as long. An odd value is
 * left to the caller. */
static void sum_halves(const double *restrict left, const double *restrict right, size_t count,
                       struct chunk *out)
{
    double sum = 0, other_sum = 0;
    double low = left[0], other_low = left[0];
    double high = left[0], other_high = left[0];
    double zeros = 0;

#pragma omp simd reduction(+ : sum, other_sum, zeros) reduction(min : low, other_low) \
    reduction(max : high, other_high)
    for (size_t i = 0; i < count; i++) {
        sum += left[i];
        other_sum += right[i];
        low = left[i] < low ? left[i] : low;
        other_low = right[i] < other_low ? right[i] : other_low;
        high = left[i] > high ? left[i] : high;
        other_high = right[i] > other_high ? right[i] : other_high;
        zeros += (left[i] == 0 ? 1.0 : 0.0) + (right[i] == 0 ? 1.0 : 0.0);
    }
    *out = (struct chunk){.sum = sum + other_sum,
                          .low = low < other_low ? low : other_low,
                          .high = high > other_high ? high : other_high,
                          .zeros = (uint64_t)zeros};
}

static void sum_up(const double *values, size_t count, struct chunk *out)
{
    const size_t half = count / 2;
    const double last = values[count - 1];

    assert(count > 0);
    sum_halves(values, values + half, half, out);
    if (count % 2 == 0)
        return;
    out->sum += last;
    out->low = last < out->low ? last : out->low;
    out->high = last > out->high ? last : out->high;
    out->zeros += last == 0;
}

/* Sums of the differences from a value, and of their squares. */
static void sum_differences(const double *restrict values, size_t count, double from,
                            double *out_sum, double *out_squares)
{
    double sum = 0;
    double squares = 0;

#pragma omp simd reduction(+ : sum, squares)
    for (size_t i = 0; i < count; i++) {
        const double difference = values[i] - from;

        sum += difference;
        squares += difference * difference;
    }
    *out_sum = sum;
    *out_squares = squares;
}

/* --- scale --- */

/* The exponents of moments that need no scaling: sums of squares of up to 2^60 such elements are in
 * the range of doubles, with all of their digits. */
#define EXPONENT_PLAIN 400
/* Of zeros, which fit any scale: the exponent of the least double. */
#define EXPONENT_LEAST (-1074)

/* The exponent of 2 by which the finite elements of a chunk are divided before they are squared. */
static int exponent_of(const struct chunk *chunk)
{
    const double most = fmax(fabs(chunk->low), fabs(chunk->high));
    const int exponent = most > 0 ? ilogb(most) : EXPONENT_LEAST;

    return exponent >= -EXPONENT_PLAIN && exponent <= EXPONENT_PLAIN ? 0 : exponent;
}

/* Divides by 2^exponent, in two steps, since the factor may be no double. */
static void scale_down(double *restrict values, size_t count, int exponent)
{
    const double first = ldexp(1, -exponent / 2);
    const double second = ldexp(1, -exponent - (-exponent / 2));

    for (size_t i = 0; i < count; i++)
        values[i] = values[i] * first * second;
}

/* States the moments with a larger exponent. */
static void raise_exponent(struct zt_tally *tally, int exponent)
{
    const int shift = tally->exponent - exponent;

    assert(shift <= 0);
    tally->exponent = exponent;
    tally->mean = ldexp(tally->mean, shift);
    tally->mean_rest = ldexp(tally->mean_rest, shift);
    tally->squares = ldexp(tally->squares, 2 * shift);
}

/* Moves the finite values to the front, counts the others, and returns how many are left. */
static size_t keep_finite(struct zt_tally *tally, double *values, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        const double value = values[i];

        if (isfinite(value))
            values[kept++] = value;
        else if (isnan(value))
            tally->nan++;
        else if (value > 0)
            tally->positive_inf++;
        else
            tally->negative_inf++;
    }
    return kept;
}

/* --- 64-bit integers, which doubles do not hold --- */

static void widen_integers(struct zt_tally *tally, const uint8_t *bytes, size_t count)
{
    int64_t low = tally->min.integer;
    int64_t high = tally->max.integer;

    for (size_t i = 0; i < count; i++) {
        int64_t value;

        memcpy(&value, bytes + i * sizeof(value), sizeof(value));
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    tally->min.integer = low;
    tally->max.integer = high;
}

static void widen_naturals(struct zt_tally *tally, const uint8_t *bytes, size_t count)
{
    uint64_t low = tally->min.natural;
    uint64_t high = tally->max.natural;

    for (size_t i = 0; i < count; i++) {
        uint64_t value;

        memcpy(&value, bytes + i * sizeof(value), sizeof(value));
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    tally->min.natural = low;
    tally->max.natural = high;
}

/* --- tallies --- */

static bool is_less(enum zt_number_kind kind, union zt_number a, union zt_number b)
{
    if (kind == ZT_NUMBER_INTEGER)
        return a.integer < b.integer;
    return kind == ZT_NUMBER_NATURAL ? a.natural < b.natural : a.real < b.real;
}

/* Means far from zero differ in digits that a double no longer has, hence their rests. */
static void merge_scaled(struct zt_tally *tally, const struct zt_tally *next)
{
    const double before = (double)tally->finite;
    const double added = (double)next->finite;
    const double share = added / (before + added);
    const double difference = (next->mean - tally->mean) + (next->mean_rest - tally->mean_rest);
    const double step = difference * share + tally->mean_rest;
    const double mean = tally->mean + step;
    const double taken = mean - tally->mean;

    assert(tally->finite > 0 && next->finite > 0);
    assert(tally->exponent == next->exponent);
    tally->mean_rest = (tally->mean - (mean - taken)) + (step - taken);
    tally->mean = mean;
    tally->squares += next->squares + difference * difference * (before * share);
}

static void merge_moments(struct zt_tally *tally, const struct zt_tally *next)
{
    struct zt_tally scaled = *next;

    if (tally->exponent < next->exponent)
        raise_exponent(tally, next->exponent);
    else if (next->exponent < tally->exponent)
        raise_exponent(&scaled, tally->exponent);
    merge_scaled(tally, &scaled);
}

void zt_tally_merge(struct zt_tally *tally, const struct zt_tally *next, enum zt_number_kind kind)
{
    if (next->finite > 0 && tally->finite == 0) {
        tally->min = next->min;
        tally->max = next->max;
        tally->exponent = next->exponent;
        tally->mean = next->mean;
        tally->mean_rest = next->mean_rest;
        tally->squares = next->squares;
    } else if (next->finite > 0) {
        merge_moments(tally, next);
        if (is_less(kind, next->min, tally->min))
            tally->min = next->min;
        if (is_less(kind, tally->max, next->max))
            tally->max = next->max;
    }
    tally->finite += next->finite;
    tally->nan += next->nan;
    tally->positive_inf += next->positive_inf;
    tally->negative_inf += next->negative_inf;
    tally->zero += next->zero;
}

struct tallying {
    struct zt_tally tally;
    enum zt_dtype dtype;
    enum zt_number_kind kind;
};

/* Extremes of a chunk; stored are the elements, none of which is left out if they are integers. */
static void set_extremes(struct zt_tally *tally, const struct chunk *chunk,
                         const struct tallying *tallying, const uint8_t *stored, size_t count)
{
    if (tallying->kind == ZT_NUMBER_REAL) {
        tally->min.real = chunk->low;
        tally->max.real = chunk->high;
    } else if (tallying->dtype == ZT_I64) {
        memcpy(&tally->min, stored, sizeof(int64_t));
        tally->max = tally->min;
        widen_integers(tally, stored, count);
    } else if (tallying->dtype == ZT_U64) {
        memcpy(&tally->min, stored, sizeof(uint64_t));
        tally->max = tally->min;
        widen_naturals(tally, stored, count);
    } else if (tallying->kind == ZT_NUMBER_INTEGER) {
        tally->min.integer = (int64_t)chunk->low;
        tally->max.integer = (int64_t)chunk->high;
    } else {
        tally->min.natural = (uint64_t)chunk->low;
        tally->max.natural = (uint64_t)chunk->high;
    }
}

/* Moments of a chunk of finite elements, whose sum and extremes are those of the chunk. */
static void set_moments(struct zt_tally *tally, const struct chunk *chunk, double *values)
{
    const size_t count = (size_t)tally->finite;
    struct chunk scaled = *chunk;
    double rest;

    assert(tally->finite > 0);
    tally->exponent = exponent_of(chunk);
    if (tally->exponent != 0 && tally->exponent != EXPONENT_LEAST) {
        scale_down(values, count, tally->exponent);
        sum_up(values, count, &scaled);
    }
    tally->mean = scaled.sum / (double)count;
    sum_differences(values, count, tally->mean, &rest, &tally->squares);
    tally->mean_rest = rest / (double)count;
    tally->squares -= rest * tally->mean_rest;
}

static void add_chunk(void *context, const uint8_t *bytes, double *values, size_t count)
{
    struct tallying *tallying = context;
    struct zt_tally next = {.finite = count};
    struct chunk chunk;

    sum_up(values, count, &chunk);
    if (!isfinite(chunk.sum)) {
        next.finite = keep_finite(&next, values, count);
        if (next.finite > 0)
            sum_up(values, (size_t)next.finite, &chunk);
    }
    if (next.finite > 0) {
        next.zero = chunk.zeros;
        set_extremes(&next, &chunk, tallying, bytes, count);
        set_moments(&next, &chunk, values);
    }
    zt_tally_merge(&tallying->tally, &next, tallying->kind);
}

enum zt_status zt_tally_piece(const struct zt_elements *elements, uint64_t piece,
                              struct zt_tally *out_tally, struct zt_error *error)
{
    struct tallying tallying = {.dtype = elements->dtype, .kind = zt_number_kind(elements->dtype)};
    enum zt_status status;
    uint64_t first;
    uint64_t count;

    zt_elements_piece(elements, piece, &first, &count);
    status = zt_values_visit(elements, first, count, add_chunk, &tallying, error);
    if (status == ZT_OK)
        *out_tally = tallying.tally;
    return status;
}

/* Rounding must not carry it past the extremes, behind which there may be no double. */
double zt_tally_mean(const struct zt_tally *tally, enum zt_number_kind kind)
{
    const double mean = ldexp(tally->mean + tally->mean_rest, tally->exponent);

    if (tally->finite == 0)
        return (double)NAN;
    return fmin(fmax(mean, zt_number_real(kind, tally->min)), zt_number_real(kind, tally->max));
}

double zt_tally_std(const struct zt_tally *tally)
{
    double deviation;

    if (tally->finite == 0)
        return (double)NAN;
    deviation = ldexp(sqrt(tally->squares / (double)tally->finite), tally->exponent);
    return fmin(deviation, DBL_MAX);
}

union zt_number zt_tally_abs_max(const struct zt_tally *tally, enum zt_number_kind kind)
{
    union zt_number result = tally->max;

    if (kind == ZT_NUMBER_INTEGER) {
        const uint64_t low =
            tally->min.integer < 0 ? -(uint64_t)tally->min.integer : (uint64_t)tally->min.integer;
        const uint64_t high =
            tally->max.integer < 0 ? -(uint64_t)tally->max.integer : (uint64_t)tally->max.integer;

        result.natural = low > high ? low : high;
    } else if (kind == ZT_NUMBER_REAL) {
        result.real = fmax(fabs(tally->min.real), fabs(tally->max.real));
    }
    return result;
}
