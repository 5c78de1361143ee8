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

static bool has_length(const struct zt_component *component, uint64_t bytes)
{
    return component->decoded_length == ZT_LENGTH_UNKNOWN || component->decoded_length == bytes;
}

bool zt_elements_tensor(const struct zt_model *model, const struct zt_object *object,
                        const struct zt_component *component, struct zt_slice_tensor *out_tensor)
{
    const enum zt_dtype dtype = (enum zt_dtype)component->dtype;
    const enum zt_logical logical = (enum zt_logical)component->logical;
    uint64_t bytes;

    *out_tensor = (struct zt_slice_tensor){.shape = zt_object_shape(model, object),
                                           .rank = object->rank,
                                           .dtype = ZT_F32,
                                           .logical = ZT_LOGICAL_NONE};
    if (object->layout != ZT_LAYOUT_DENSE)
        return zt_widener_find(object, component) != NULL;
    if (!zt_text_is(zt_component_name(component), "data") ||
        zt_element_bytes(dtype, logical, zt_object_elements(model, object), &bytes) != ZT_OK ||
        !has_length(component, bytes))
        return false;
    if (!is_number(dtype, logical))
        return zt_widener_find(object, component) != NULL;
    out_tensor->dtype = logical == ZT_LOGICAL_BOOL ? ZT_BOOL : dtype;
    return true;
}

enum zt_status zt_elements_open(const struct zt_model *model, const struct zt_object *object,
                                const struct zt_component *component, struct zt_source *decoded,
                                uint64_t base, const struct zt_slice *slice,
                                struct zt_elements *out_elements, struct zt_error *error)
{
    struct zt_elements elements = {.source = decoded, .base = base};
    struct zt_slice_tensor tensor;
    uint64_t whole = zt_object_elements(model, object);
    bool is_known = zt_elements_tensor(model, object, component, &tensor);
    bool is_widened =
        object->layout != ZT_LAYOUT_DENSE ||
        !is_number((enum zt_dtype)component->dtype, (enum zt_logical)component->logical);
    enum zt_status status = ZT_OK;

    assert(is_known);
    (void)is_known;
    elements.dtype = tensor.dtype;
    elements.count = whole;
    if (is_widened) {
        status = zt_widened_open(zt_widener_find(object, component), decoded, base, whole,
                                 &elements.widened, error);
        elements.source = elements.widened;
        elements.base = 0;
    }
    if (status == ZT_OK && slice != NULL) {
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
