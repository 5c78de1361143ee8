/* Slices: parsing a text into a cut of each dimension, and turning cuts into runs of bytes.
 *
 * The text is read twice, first only for its syntax, so that MALFORMED takes precedence over
 * OUT_OF_RANGE. The cuts then become one run of bytes or loops over runs, merged where runs are
 * contiguous. Everything is counted in elements until the end, because an element of a sub-byte
 * type does not fill a whole number of bytes. */
#include "zt/slice.h"
#include "base/decimal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/layout.h"
#include "model/slice_loops.h"

/* The part of a dimension that is taken. */
struct cut {
    uint64_t start;
    uint64_t count;
    bool is_dropped; /* an index: the result does not have this dimension */
};

struct bound {
    bool is_given;
    bool is_negative;
    uint64_t magnitude; /* UINT64_MAX also for anything larger */
};

enum item_kind { ITEM_INDEX, ITEM_SPAN, ITEM_ELLIPSIS };

struct item {
    enum item_kind kind;
    struct bound first; /* also the index */
    struct bound end;
};

struct reading {
    struct zt_text text;
    size_t at;
    struct zt_error *error;
};

__attribute__((format(printf, 3, 4))) static enum zt_slice_verdict fail_slice(
    struct zt_error *error, enum zt_slice_verdict verdict, const char *format, ...)
{
    char message[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return verdict;
}

/* --- the text --- */

static bool has_more(const struct reading *reading)
{
    return reading->at < reading->text.length;
}

static bool take(struct reading *reading, char wanted)
{
    if (!has_more(reading) || reading->text.bytes[reading->at] != wanted)
        return false;
    reading->at++;
    return true;
}

/* Reads a bound. It may be absent, but a minus without digits is malformed. */
static enum zt_slice_verdict read_bound(struct reading *reading, struct bound *out_bound)
{
    struct bound bound = {.is_negative = take(reading, '-')};
    struct zt_text rest = {reading->text.bytes + reading->at, reading->text.length - reading->at};

    bound.is_given = zt_decimal_take(&rest, &bound.magnitude);
    reading->at = reading->text.length - rest.length;
    assert(reading->at <= reading->text.length);
    if (bound.is_negative && !bound.is_given)
        return fail_slice(reading->error, ZT_SLICE_MALFORMED,
                          "no digits after the minus at character %zu", reading->at);
    /* -0 is 0, not the end. */
    bound.is_negative = bound.is_negative && bound.magnitude != 0;
    *out_bound = bound;
    return ZT_SLICE_FITS;
}

static bool take_ellipsis(struct reading *reading)
{
    static const char ellipsis[] = "...";
    const size_t length = sizeof(ellipsis) - 1;

    if (reading->text.length - reading->at < length ||
        memcmp(reading->text.bytes + reading->at, ellipsis, length) != 0)
        return false;
    reading->at += length;
    return true;
}

/* Reports text where an item should have ended. */
static enum zt_slice_verdict fail_rest(const struct reading *reading, const struct item *item)
{
    if (!has_more(reading))
        return fail_slice(reading->error, ZT_SLICE_MALFORMED,
                          "an item is missing at the end, after character %zu", reading->at);
    if (item->kind == ITEM_SPAN && reading->text.bytes[reading->at] == ':')
        return fail_slice(reading->error, ZT_SLICE_MALFORMED,
                          "steps are not supported (the second colon, character %zu)",
                          reading->at + 1);
    return fail_slice(
        reading->error, ZT_SLICE_MALFORMED,
        "an integer, start:stop or ... is expected, and a comma between them (character %zu)",
        reading->at + 1);
}

/* Reads one item and the comma after it; *out_more is whether there was a comma. */
static enum zt_slice_verdict read_item(struct reading *reading, struct item *item, bool *out_more)
{
    enum zt_slice_verdict verdict;

    *item = (struct item){.kind = ITEM_ELLIPSIS};
    if (!take_ellipsis(reading)) {
        item->kind = ITEM_INDEX;
        verdict = read_bound(reading, &item->first);
        if (verdict != ZT_SLICE_FITS)
            return verdict;
        if (take(reading, ':')) {
            item->kind = ITEM_SPAN;
            verdict = read_bound(reading, &item->end);
            if (verdict != ZT_SLICE_FITS)
                return verdict;
        } else if (!item->first.is_given) {
            return fail_rest(reading, item);
        }
    }
    *out_more = take(reading, ',');
    return *out_more || !has_more(reading) ? ZT_SLICE_FITS : fail_rest(reading, item);
}

/* Checks the syntax of the whole text. *out_spread is the number of dimensions without an item of
 * their own, for which "..." stands. */
static enum zt_slice_verdict scan(const struct zt_slice_tensor *tensor, struct zt_text text,
                                  unsigned *out_spread, struct zt_error *error)
{
    struct reading reading = {.text = text, .error = error};
    size_t items = 0;
    bool has_ellipsis = false;
    bool more = true;

    while (more) {
        struct item item;
        enum zt_slice_verdict verdict = read_item(&reading, &item, &more);

        if (verdict != ZT_SLICE_FITS)
            return verdict;
        if (item.kind != ITEM_ELLIPSIS)
            items++;
        else if (has_ellipsis)
            return fail_slice(error, ZT_SLICE_MALFORMED, "a second ... ends at character %zu",
                              reading.at);
        else
            has_ellipsis = true;
    }
    if (items > tensor->rank)
        return fail_slice(error, ZT_SLICE_OUT_OF_RANGE,
                          "%zu dimensions are given, the tensor has %u", items, tensor->rank);
    *out_spread = tensor->rank - (unsigned)items;
    return ZT_SLICE_FITS;
}

/* --- the cuts --- */

static bool index_cut(const struct bound *index, uint64_t extent, struct cut *cut)
{
    if (index->is_negative ? index->magnitude > extent : index->magnitude >= extent)
        return false;
    *cut = (struct cut){.start = index->is_negative ? extent - index->magnitude : index->magnitude,
                        .count = 1,
                        .is_dropped = true};
    assert(cut->start < extent);
    return true;
}

/* Resolves a bound as NumPy does: negative bounds count from the end, and all are clipped to the
 * dimension. */
static uint64_t clip(const struct bound *bound, uint64_t extent, uint64_t otherwise)
{
    uint64_t inside = bound->magnitude < extent ? bound->magnitude : extent;

    if (!bound->is_given)
        return otherwise;
    return bound->is_negative ? extent - inside : inside;
}

static struct cut span_cut(const struct item *item, uint64_t extent)
{
    uint64_t start = clip(&item->first, extent, 0);
    uint64_t end = clip(&item->end, extent, extent);

    return (struct cut){.start = start, .count = end > start ? end - start : 0};
}

static void take_whole(const struct zt_slice_tensor *tensor, struct cut *cuts)
{
    for (unsigned i = 0; i < tensor->rank; i++)
        cuts[i] = (struct cut){.count = tensor->shape[i]};
}

/* scan() has checked the syntax and that there are no more items than dimensions. */
static enum zt_slice_verdict cut_dimensions(const struct zt_slice_tensor *tensor,
                                            struct zt_text text, unsigned spread, struct cut *cuts,
                                            struct zt_error *error)
{
    struct reading reading = {.text = text, .error = error};
    unsigned dimension = 0;
    bool more = true;

    take_whole(tensor, cuts);
    while (more) {
        struct item item;
        enum zt_slice_verdict verdict = read_item(&reading, &item, &more);
        uint64_t extent;

        assert(verdict == ZT_SLICE_FITS);
        (void)verdict;
        if (item.kind == ITEM_ELLIPSIS) {
            dimension += spread;
            continue;
        }
        assert(dimension < tensor->rank);
        extent = tensor->shape[dimension];
        if (item.kind == ITEM_SPAN)
            cuts[dimension] = span_cut(&item, extent);
        else if (!index_cut(&item.first, extent, &cuts[dimension]))
            return fail_slice(error, ZT_SLICE_OUT_OF_RANGE,
                              "the index into dimension %u is out of range: it has %" PRIu64,
                              dimension, extent);
        dimension++;
    }
    assert(dimension <= tensor->rank);
    return ZT_SLICE_FITS;
}

/* --- the bytes --- */

void zt_slice_add_dimension(struct zt_slice *slice, uint64_t *run, uint64_t count, uint64_t stride)
{
    unsigned last = slice->loop_count - 1;

    if (count == 1)
        return;
    if (slice->loop_count == 0 && *run == stride) {
        *run *= count;
    } else if (slice->loop_count > 0 &&
               slice->loops[last].count * slice->loops[last].stride_bytes == stride) {
        slice->loops[last].count *= count;
    } else {
        assert(slice->loop_count < ZT_SLICE_RANK_MAX);
        slice->loops[slice->loop_count].count = count;
        slice->loops[slice->loop_count].stride_bytes = stride;
        slice->loop_count++;
    }
}

void zt_slice_reverse_loops(struct zt_slice *slice)
{
    assert(slice->loop_count <= ZT_SLICE_RANK_MAX);
    for (unsigned i = 0, j = slice->loop_count; i + 1 < j; i++) {
        uint64_t count, stride;

        j--;
        count = slice->loops[i].count;
        stride = slice->loops[i].stride_bytes;
        slice->loops[i] = slice->loops[j];
        slice->loops[j].count = count;
        slice->loops[j].stride_bytes = stride;
    }
}

/* Whether every run begins and ends at a byte boundary, except that the last one may end with the
 * data. */
static bool is_aligned(const struct zt_slice *slice, uint64_t run, uint64_t elements, unsigned pack)
{
    uint64_t end = slice->offset + run;

    assert(pack > 0);
    if (slice->offset % pack != 0)
        return false;
    if (slice->loop_count == 0)
        return end % pack == 0 || end == elements;
    for (unsigned i = 0; i < slice->loop_count; i++)
        if (slice->loops[i].stride_bytes % pack != 0)
            return false;
    return run % pack == 0;
}

/* Converts elements to bytes: either `pack` elements share a byte, or each has width_bytes. */
static void count_bytes(struct zt_slice *slice, uint64_t run, unsigned pack, unsigned width_bytes)
{
    assert(pack == 1 || width_bytes == 1);
    slice->offset = slice->offset / pack * width_bytes;
    slice->run_bytes = (run / pack + (run % pack != 0)) * width_bytes;
    slice->length = slice->run_bytes;
    for (unsigned i = 0; i < slice->loop_count; i++) {
        slice->loops[i].stride_bytes = slice->loops[i].stride_bytes / pack * width_bytes;
        slice->length *= slice->loops[i].count;
    }
}

/* Every cut has at least one element, so no dimension of the tensor is 0. */
static enum zt_slice_verdict lay_out_runs(const struct zt_slice_tensor *tensor,
                                          const struct cut *cuts, struct zt_slice *slice,
                                          struct zt_error *error)
{
    unsigned bits = zt_element_bits(tensor->dtype, tensor->logical);
    unsigned pack = bits < 8 ? 8 / bits : 1;
    uint64_t stride = 1, run = 1, elements, bytes;

    if (!zt_shape_product(tensor->shape, tensor->rank, &elements) ||
        zt_element_bytes(tensor->dtype, tensor->logical, elements, &bytes) != ZT_OK)
        return fail_slice(error, ZT_SLICE_OUT_OF_RANGE, "the tensor's bytes do not fit in 64 bits");
    for (unsigned i = tensor->rank; i-- > 0;) {
        assert(cuts[i].count > 0 && cuts[i].start + cuts[i].count <= tensor->shape[i]);
        slice->offset += cuts[i].start * stride;
        zt_slice_add_dimension(slice, &run, cuts[i].count, stride);
        stride *= tensor->shape[i];
    }
    if (!is_aligned(slice, run, elements, pack))
        return fail_slice(
            error, ZT_SLICE_NOT_ALIGNED,
            "%u elements share a byte, and a run of the slice begins or ends inside one", pack);
    zt_slice_reverse_loops(slice);
    count_bytes(slice, run, pack, bits < 8 ? 1 : bits / 8);
    return ZT_SLICE_FITS;
}

static enum zt_slice_verdict make_slice(const struct zt_slice_tensor *tensor,
                                        const struct cut *cuts, struct zt_slice *out_slice,
                                        struct zt_error *error)
{
    struct zt_slice slice = {.rank = 0};
    bool is_empty = false;
    enum zt_slice_verdict verdict = ZT_SLICE_FITS;

    for (unsigned i = 0; i < tensor->rank; i++) {
        is_empty = is_empty || cuts[i].count == 0;
        slice.starts[i] = cuts[i].count > 0 ? cuts[i].start : 0;
        slice.counts[i] = cuts[i].count;
        if (!cuts[i].is_dropped)
            slice.shape[slice.rank++] = cuts[i].count;
    }
    if (!is_empty)
        verdict = lay_out_runs(tensor, cuts, &slice, error);
    assert(verdict != ZT_SLICE_FITS || slice.loop_count > 0 || zt_slice_is_contiguous(&slice));
    if (verdict == ZT_SLICE_FITS)
        *out_slice = slice;
    return verdict;
}

enum zt_slice_verdict zt_slice_parse(const struct zt_slice_tensor *tensor, struct zt_text text,
                                     struct zt_slice *out_slice, struct zt_error *out_error)
{
    struct cut cuts[ZT_SLICE_RANK_MAX];
    unsigned spread = 0;
    enum zt_slice_verdict verdict;

    assert(tensor->rank <= ZT_SLICE_RANK_MAX && tensor->logical != ZT_LOGICAL_UNKNOWN);
    verdict = scan(tensor, text, &spread, out_error);
    if (verdict == ZT_SLICE_FITS)
        verdict = cut_dimensions(tensor, text, spread, cuts, out_error);
    return verdict == ZT_SLICE_FITS ? make_slice(tensor, cuts, out_slice, out_error) : verdict;
}

enum zt_slice_verdict zt_slice_shard(const struct zt_slice_tensor *tensor, uint64_t part,
                                     uint64_t parts, int64_t axis, struct zt_slice *out_slice,
                                     struct zt_error *out_error)
{
    struct cut cuts[ZT_SLICE_RANK_MAX];
    int64_t rank = tensor->rank;
    struct cut *cut;

    assert(tensor->rank <= ZT_SLICE_RANK_MAX && tensor->logical != ZT_LOGICAL_UNKNOWN);
    if (part >= parts)
        return fail_slice(out_error, ZT_SLICE_MALFORMED,
                          "there is no part %" PRIu64 " of %" PRIu64 " (they count from 0)", part,
                          parts);
    if (axis < -rank || axis >= rank)
        return fail_slice(out_error, ZT_SLICE_OUT_OF_RANGE,
                          "axis %" PRId64 " is outside a tensor of %u dimensions", axis,
                          tensor->rank);
    take_whole(tensor, cuts);
    cut = &cuts[axis < 0 ? axis + rank : axis];
    if (cut->count % parts != 0)
        return fail_slice(out_error, ZT_SLICE_NOT_DIVISIBLE,
                          "dimension %" PRId64 " has %" PRIu64
                          ", not a multiple of the number of parts",
                          axis < 0 ? axis + rank : axis, cut->count);
    cut->count /= parts;
    cut->start = part * cut->count;
    return make_slice(tensor, cuts, out_slice, out_error);
}
