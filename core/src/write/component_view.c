/* Component views. A cut is read through a slice source that is made for each read, and so are
 * widened floats; integers are widened in blocks. */
#include "zt/component_view.h"

#include <assert.h>
#include <string.h>

#include "write/widening.h"

/* Size of a block of the source's words on the stack. */
#define BLOCK_BYTES 4096
#define WIDTH_MAX   8

struct zt_widening zt_widening_of(const struct zt_origin *origin, const struct zt_component *from,
                                  const struct zt_component *to)
{
    enum zt_dtype dtype = (enum zt_dtype)from->dtype;
    struct zt_widening widening = {.from_width = 0};

    if (origin->change == ZT_CHANGE_FLOAT) {
        assert(origin->widener != NULL && to->decoded_length % sizeof(float) == 0);
        widening.widener = origin->widener;
        widening.elements = to->decoded_length / sizeof(float);
    }
    if (origin->change != ZT_CHANGE_INDEX)
        return widening;
    widening.from_width = (uint8_t)zt_dtype_width(dtype);
    widening.to_width = (uint8_t)zt_dtype_width((enum zt_dtype)to->dtype);
    widening.is_signed = dtype >= ZT_I64 && dtype <= ZT_I8;
    assert(widening.from_width <= widening.to_width && widening.to_width <= WIDTH_MAX);
    return widening;
}

struct zt_widening zt_widening_to_f32(const struct zt_model *model, const struct zt_object *object)
{
    const struct zt_widener *widener = zt_object_widener(model, object);

    if (widener == NULL)
        return (struct zt_widening){.widener = NULL};
    return (struct zt_widening){.widener = widener, .elements = zt_object_elements(model, object)};
}

bool zt_widen(const struct zt_widening *widening, const uint8_t *word, uint8_t *out_wide)
{
    assert(widening->from_width > 0 && widening->from_width <= widening->to_width);
    if (widening->is_signed && (word[widening->from_width - 1] & 0x80) != 0)
        return false;
    memset(out_wide, 0, widening->to_width);
    memcpy(out_wide, word, widening->from_width);
    return true;
}

static enum zt_status read_cut(const struct zt_component_view *view, uint64_t offset, void *buffer,
                               size_t length, struct zt_error *error)
{
    struct zt_source *slices = NULL;
    enum zt_status status;

    assert(offset <= view->cut->length && length <= view->cut->length - offset);
    if (zt_slice_is_contiguous(view->cut))
        return zt_source_read_at(view->source, view->base + view->cut->offset + offset, buffer,
                                 length, error);
    status = zt_slice_source(view->cut, view->source, view->base, &slices, error);
    if (status == ZT_OK)
        status = zt_source_read_at(slices, offset, buffer, length, error);
    zt_source_close(slices);
    return status;
}

/* --- wider integers --- */

/* The output still to be written, which starts at byte `skip` of the next word. */
struct wanted {
    uint8_t *at;
    size_t left;
    size_t skip;
};

/* Copies the wanted bytes of one widened word. False if the word is negative. */
static bool copy_word(const struct zt_widening *widening, const uint8_t *word,
                      struct wanted *wanted)
{
    uint8_t wide[WIDTH_MAX];
    size_t length = widening->to_width - wanted->skip;

    assert(wanted->skip < widening->to_width);
    if (!zt_widen(widening, word, wide))
        return false;
    if (length > wanted->left)
        length = wanted->left;
    memcpy(wanted->at, wide + wanted->skip, length);
    wanted->at += length;
    wanted->left -= length;
    wanted->skip = 0;
    return true;
}

static enum zt_status read_wider(const struct zt_component_view *view, uint64_t offset,
                                 void *buffer, size_t length, struct zt_error *error)
{
    const struct zt_widening *widening = &view->widening;
    uint8_t block[BLOCK_BYTES];
    struct wanted wanted = {buffer, length, (size_t)(offset % widening->to_width)};
    uint64_t word = offset / widening->to_width;

    while (wanted.left > 0) {
        uint64_t words = (wanted.skip + wanted.left + widening->to_width - 1) / widening->to_width;
        size_t most = BLOCK_BYTES / widening->from_width;
        size_t count = words < most ? (size_t)words : most;
        enum zt_status status =
            zt_source_read_at(view->source, view->base + word * widening->from_width, block,
                              count * widening->from_width, error);

        assert(count > 0);
        if (status != ZT_OK)
            return status;
        for (size_t i = 0; i < count; i++)
            if (!copy_word(widening, block + i * widening->from_width, &wanted))
                return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "a negative index");
        word += count;
    }
    return ZT_OK;
}

/* --- floats --- */

static enum zt_status read_floats(const struct zt_component_view *view, uint64_t offset,
                                  void *buffer, size_t length, struct zt_error *error)
{
    struct zt_component_view inner = {.cut = view->cut};
    enum zt_status status = zt_widened_open(view->widening.widener, view->source, view->base,
                                            view->widening.elements, &inner.source, error);

    if (status != ZT_OK)
        return status;
    status = zt_component_view_read(&inner, offset, buffer, length, error);
    zt_source_close(inner.source);
    return status;
}

enum zt_status zt_component_view_read(const struct zt_component_view *view, uint64_t offset,
                                      void *buffer, size_t length, struct zt_error *error)
{
    /* Only dense tensors are cut, and only indices of sparse ones are widened. */
    assert(view->cut == NULL || view->widening.to_width == 0);
    if (length == 0)
        return ZT_OK;
    if (view->widening.widener != NULL)
        return read_floats(view, offset, buffer, length, error);
    if (view->cut != NULL)
        return read_cut(view, offset, buffer, length, error);
    if (view->widening.to_width > 0)
        return read_wider(view, offset, buffer, length, error);
    return zt_source_read_at(view->source, view->base + offset, buffer, length, error);
}
