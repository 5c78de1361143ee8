/* Slices of views: a slice of a component with strides, in its stored bytes.
 *
 * Offset and strides of a slice of a view follow from the view's own. Only slices whose elements
 * ascend in the file become runs of it: gathering others run by run would go over the file many
 * times. */
#include <assert.h>

#include "model/slice_loops.h"

/* The size of an element; 0 if it cannot be told, because the tensor is empty. */
static uint64_t element_bytes_of(const struct zt_component *component)
{
    const struct zt_arrangement *arrangement = component->arrangement;
    uint64_t elements = 1;

    for (unsigned i = 0; i < arrangement->rank; i++)
        elements *= arrangement->shape[i];
    return elements > 0 ? component->decoded_length / elements : 0;
}

/* Whether the elements are in the file as they are decoded, whatever their places. Where elements
 * share a byte, the dimensions of slice and view differ. */
static bool is_gathered(const struct zt_component *component)
{
    const struct zt_arrangement *arrangement = component->arrangement;

    return component->encoding == ZT_ENCODING_STRIDED && component->decoded_length > 0 &&
           !zt_component_is_swapped(component) && arrangement != NULL &&
           arrangement->flip == ZT_FLIP_NONE && component->logical != ZT_LOGICAL_F4_E2M1 &&
           arrangement->shape != NULL && arrangement->strides != NULL;
}

/* Whether each loop clears what the inner ones span. */
static bool is_ascending(const struct zt_slice *slice)
{
    uint64_t extent = slice->run_bytes;

    for (unsigned i = slice->loop_count; i-- > 0;) {
        if (slice->loops[i].stride_bytes < extent)
            return false;
        extent += (slice->loops[i].count - 1) * slice->loops[i].stride_bytes;
    }
    return true;
}

bool zt_slice_of_view(const struct zt_slice *slice, const struct zt_component *component,
                      struct zt_slice *out_slice)
{
    const struct zt_arrangement *arrangement = component->arrangement;
    struct zt_slice view;
    uint64_t width;

    /* Most components have no strides, and a slice is large: it is not cleared for them. */
    if (!is_gathered(component) || (slice != NULL && slice->length == 0))
        return false;
    assert(arrangement->rank <= ZT_SLICE_RANK_MAX);
    width = element_bytes_of(component);
    view = (struct zt_slice){.run_bytes = width};
    for (unsigned i = arrangement->rank; i-- > 0;) {
        const uint64_t count = slice != NULL ? slice->counts[i] : arrangement->shape[i];
        const uint64_t stride = arrangement->shape[i] > 1 ? arrangement->strides[i] * width : 0;

        if (slice != NULL)
            view.offset += slice->starts[i] * stride;
        zt_slice_add_dimension(&view, &view.run_bytes, count, stride);
    }
    zt_slice_reverse_loops(&view);
    view.length = view.run_bytes;
    for (unsigned i = 0; i < view.loop_count; i++)
        view.length *= view.loops[i].count;
    assert(slice != NULL ? view.length == slice->length : view.length == component->decoded_length);
    if (!is_ascending(&view))
        return false;
    *out_slice = view;
    return true;
}
