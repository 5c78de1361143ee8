/* Opens the elements of a component: widened if need be, and sliced. */
#include "zt/elements.h"

#include <assert.h>
#include <string.h>

#include "zt/widen.h"

/* Whether elements are read as they are. */
static bool is_number(enum zt_dtype dtype, enum zt_logical logical)
{
    if (logical != ZT_LOGICAL_NONE)
        return logical == ZT_LOGICAL_BOOL;
    return dtype != ZT_F16 && dtype != ZT_BF16;
}

/* NULL if elements are read as they are, or cannot be read. */
static const struct zt_widener *find_widener(const struct zt_object *object,
                                             const struct zt_component *component)
{
    const enum zt_logical logical = (enum zt_logical)component->logical;

    if (object->layout == ZT_LAYOUT_DENSE && is_number((enum zt_dtype)component->dtype, logical))
        return NULL;
    return zt_widener_find_numbers(object, component);
}

static bool has_length(const struct zt_component *component, uint64_t bytes)
{
    return component->decoded_length == ZT_LENGTH_UNKNOWN || component->decoded_length == bytes;
}

static uint64_t blocks_of(const struct zt_widener *widener, uint64_t elements)
{
    const unsigned each = zt_widener_elements(widener);

    return elements / each + (elements % each != 0);
}

/* Of elements that are read as they are. */
static bool find_plain(const struct zt_object *object, const struct zt_component *component,
                       uint64_t elements, struct zt_slice_tensor *tensor)
{
    const enum zt_dtype dtype = (enum zt_dtype)component->dtype;
    const enum zt_logical logical = (enum zt_logical)component->logical;
    uint64_t bytes;

    if (object->layout != ZT_LAYOUT_DENSE || !is_number(dtype, logical) ||
        !zt_text_is(zt_component_name(component), "data") ||
        zt_element_bytes(dtype, logical, elements, &bytes) != ZT_OK ||
        !has_length(component, bytes))
        return false;
    tensor->dtype = logical == ZT_LOGICAL_BOOL ? ZT_BOOL : dtype;
    return true;
}

bool zt_elements_tensor(const struct zt_model *model, const struct zt_object *object,
                        const struct zt_component *component, struct zt_slice_tensor *out_tensor)
{
    const struct zt_widener *widener = find_widener(object, component);
    const uint64_t elements = zt_object_elements(model, object);
    uint64_t bytes;

    *out_tensor = (struct zt_slice_tensor){.shape = zt_object_shape(model, object),
                                           .rank = object->rank,
                                           .dtype = ZT_F32,
                                           .logical = ZT_LOGICAL_NONE};
    if (widener == NULL)
        return find_plain(object, component, elements, out_tensor);
    return !__builtin_mul_overflow(blocks_of(widener, elements),
                                   (uint64_t)zt_widener_bytes(widener), &bytes) &&
           has_length(component, bytes);
}

uint64_t zt_elements_bytes(const struct zt_object *object, const struct zt_component *component,
                           const struct zt_slice *slice, uint64_t count)
{
    const struct zt_widener *widener = find_widener(object, component);
    const unsigned width =
        zt_dtype_width(widener != NULL ? ZT_F32 : (enum zt_dtype)component->dtype);
    uint64_t run = count;
    uint64_t bytes;

    if (count == 0)
        return 0;
    if (slice != NULL && slice->run_bytes / width < count)
        run = slice->run_bytes / width;
    assert(run > 0);
    bytes = widener != NULL ? blocks_of(widener, run) * zt_widener_bytes(widener) : run * width;
    if (__builtin_mul_overflow(bytes, count / run + (count % run != 0), &bytes))
        return UINT64_MAX;
    return bytes;
}

enum zt_status zt_elements_open(const struct zt_stored_tensor *stored, const struct zt_slice *slice,
                                struct zt_elements *out_elements, struct zt_error *error)
{
    struct zt_elements elements = {.source = stored->decoded, .base = stored->base};
    struct zt_slice_tensor tensor;
    uint64_t whole = zt_object_elements(stored->model, stored->object);
    bool is_known = zt_elements_tensor(stored->model, stored->object, stored->component, &tensor);
    const struct zt_widener *widener = find_widener(stored->object, stored->component);
    enum zt_status status = ZT_OK;

    assert(is_known);
    (void)is_known;
    elements.dtype = tensor.dtype;
    elements.count = whole;
    if (widener != NULL) {
        status = zt_widened_open(widener, stored->decoded, stored->base, whole, &elements.widened,
                                 error);
        elements.source = elements.widened;
        elements.base = 0;
    }
    if (status == ZT_OK && slice != NULL) {
        assert(slice->length % zt_dtype_width(tensor.dtype) == 0);
        elements.count = slice->length / zt_dtype_width(tensor.dtype);
        if (zt_slice_is_contiguous(slice)) {
            elements.base += slice->offset;
        } else {
            status =
                zt_slice_source(slice, elements.source, elements.base, &elements.sliced, error);
            elements.source = elements.sliced;
            elements.base = 0;
        }
    }
    if (status != ZT_OK) {
        zt_source_close(elements.widened);
        return status;
    }
    *out_elements = elements;
    return ZT_OK;
}

void zt_elements_close(struct zt_elements *elements)
{
    zt_source_close(elements->sliced);
    zt_source_close(elements->widened);
    memset(elements, 0, sizeof(*elements));
}

static uint64_t piece_elements(const struct zt_elements *elements)
{
    return ZT_PIECE_BYTES / zt_dtype_width(elements->dtype);
}

uint64_t zt_elements_pieces(const struct zt_elements *elements)
{
    const uint64_t each = piece_elements(elements);

    return elements->count / each + (elements->count % each != 0);
}

void zt_elements_piece(const struct zt_elements *elements, uint64_t piece, uint64_t *out_first,
                       uint64_t *out_count)
{
    const uint64_t each = piece_elements(elements);
    const uint64_t left = elements->count - piece * each;

    assert(piece < zt_elements_pieces(elements));
    *out_first = piece * each;
    *out_count = left < each ? left : each;
}
