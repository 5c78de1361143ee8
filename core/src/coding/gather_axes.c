/* The axes of an array that is gathered: found from its arrangement, merged, and put in order. */
#include "coding/gather_axes.h"

#include <assert.h>

/* --- finding them --- */

/* Adds the next inner axis, which is merged with the one before it if the two are one. */
static void add_axis(struct gather_axes *axes, uint64_t extent, uint64_t step)
{
    struct gather_axis *outer = axes->rank > 0 ? &axes->axes[axes->rank - 1] : NULL;

    if (extent == 1)
        return;
    /* (extent - 1) * step is less than 2^63, so that this product fits. */
    if (outer != NULL && outer->step == extent * step) {
        outer->extent *= extent;
        outer->step = step;
        return;
    }
    assert(axes->rank < ZT_RANK_MAX);
    axes->axes[axes->rank++] = (struct gather_axis){.extent = extent, .step = step};
}

static void add_axes(const struct zt_arrangement *arrangement, struct gather_axes *axes)
{
    uint64_t steps[ZT_RANK_MAX];
    uint64_t step = axes->element_bytes;

    assert(arrangement->rank <= ZT_RANK_MAX);
    for (unsigned i = 0; i < arrangement->rank; i++) {
        unsigned axis = arrangement->fortran ? i : arrangement->rank - 1 - i;

        steps[axis] = step;
        step *= arrangement->shape[axis];
    }
    for (unsigned i = 0; i < arrangement->rank; i++) {
        if (arrangement->strides != NULL && arrangement->shape[i] > 1)
            steps[i] = arrangement->strides[i] * axes->element_bytes;
        add_axis(axes, arrangement->shape[i], steps[i]);
    }
}

/* Whether each of the axes, taken in this order from the fastest on, clears what the ones before it
 * span. */
static bool is_ascending(const struct gather_axes *axes, const uint8_t *order, unsigned count)
{
    uint64_t span = axes->element_bytes;

    for (unsigned i = 0; i < count; i++) {
        const struct gather_axis *axis = &axes->axes[order[i]];

        if (axis->extent > 1 && axis->step < span)
            return false;
        span += (axis->extent - 1) * axis->step;
    }
    return true;
}

/* The size of an element follows from length and shape, for any type. */
static void find_axes(const struct zt_component *component, struct gather_axes *axes)
{
    const struct zt_arrangement *arrangement = component->arrangement;
    uint64_t elements = 1;

    /* Without a shape the words are a single run. */
    if (arrangement == NULL || arrangement->shape == NULL) {
        axes->element_bytes = zt_dtype_width((enum zt_dtype)component->dtype);
        add_axis(axes, component->decoded_length / axes->element_bytes, axes->element_bytes);
        return;
    }
    for (unsigned i = 0; i < arrangement->rank; i++)
        elements *= arrangement->shape[i];
    assert(elements > 0 && component->decoded_length % elements == 0);
    axes->element_bytes = (size_t)(component->decoded_length / elements);
    add_axes(arrangement, axes);
}

void gather_axes_find(const struct zt_component *component, struct gather_axes *out_axes)
{
    uint8_t inwards[ZT_RANK_MAX] = {0};

    *out_axes = (struct gather_axes){.rank = 0};
    if (component->decoded_length == 0)
        return;
    find_axes(component, out_axes);
    if (out_axes->rank == 0)
        out_axes->axes[out_axes->rank++] =
            (struct gather_axis){.extent = 1, .step = out_axes->element_bytes};
    out_axes->bytes = out_axes->element_bytes;
    out_axes->span = out_axes->element_bytes;
    for (unsigned i = out_axes->rank; i-- > 0;) {
        struct gather_axis *axis = &out_axes->axes[i];

        axis->row = out_axes->bytes;
        out_axes->bytes *= axis->extent;
        out_axes->span += (axis->extent - 1) * axis->step;
        inwards[out_axes->rank - 1 - i] = (uint8_t)i;
    }
    out_axes->ascends = is_ascending(out_axes, inwards, out_axes->rank);
}

/* --- blocks --- */

/* Whether axis a is read faster than axis b. Repeated elements are cheapest one after the other,
 * and repeated runs run by run. */
static bool is_faster(const struct gather_axes *axes, unsigned a, unsigned b)
{
    const struct gather_axis *x = &axes->axes[a];
    const struct gather_axis *y = &axes->axes[b];

    if ((x->step == 0) != (y->step == 0)) {
        const struct gather_axis *repeat = x->step == 0 ? x : y;

        return (repeat->row == axes->element_bytes) == (repeat == x);
    }
    return x->step != y->step ? x->step < y->step : x->row < y->row;
}

static void put_in_order(struct gather_axes *axes)
{
    axes->order_count = 0;
    for (unsigned axis = axes->split; axis < axes->rank; axis++) {
        unsigned place = axes->order_count++;

        for (; place > 0 && is_faster(axes, axis, axes->order[place - 1]); place--)
            axes->order[place] = axes->order[place - 1];
        axes->order[place] = (uint8_t)axis;
    }
}

void gather_axes_split(struct gather_axes *axes, size_t block_max)
{
    const struct gather_axis *split;

    assert(axes->rank > 0 && block_max >= axes->element_bytes);
    axes->split = 0;
    while (axes->axes[axes->split].row > block_max)
        axes->split++;
    assert(axes->split < axes->rank);
    split = &axes->axes[axes->split];
    axes->block_steps = block_max / split->row;
    if (axes->block_steps > split->extent)
        axes->block_steps = split->extent;
    put_in_order(axes);
    axes->block_ascends = is_ascending(axes, axes->order, axes->order_count);
}

uint64_t gather_axes_stored(const struct gather_axes *axes, uint64_t position)
{
    uint64_t at = 0;

    assert(axes->split < axes->rank);
    for (unsigned i = 0; i <= axes->split; i++)
        at += position / axes->axes[i].row % axes->axes[i].extent * axes->axes[i].step;
    return at;
}
