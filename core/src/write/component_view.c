/* Reading parts: cut by a source of slices that lives for one read, integers made wider a block at
 * a time. */
#include "zt/component_view.h"

#include <string.h>

/* Of the source's words, on the stack. */
#define BLOCK_BYTES 4096

void zt_component_view_set_change(struct zt_component_view *part, enum zt_change change,
                                  const struct zt_component *from, const struct zt_component *to)
{
    enum zt_dtype dtype = (enum zt_dtype)from->dtype;

    part->from_width = change == ZT_CHANGE_INDEX ? (uint8_t)zt_dtype_width(dtype) : 0;
    part->to_width =
        change == ZT_CHANGE_INDEX ? (uint8_t)zt_dtype_width((enum zt_dtype)to->dtype) : 0;
    part->is_signed = dtype >= ZT_I64 && dtype <= ZT_I8;
}

static enum zt_status read_cut(const struct zt_component_view *part, uint64_t offset, void *buffer,
                               size_t length, struct zt_error *error)
{
    struct zt_source *slices = NULL;
    enum zt_status status;

    if (zt_slice_is_contiguous(part->cut))
        return zt_source_read_at(part->source, part->base + part->cut->offset + offset, buffer,
                                 length, error);
    status = zt_slice_source(part->cut, part->source, part->base, &slices, error);
    if (status == ZT_OK)
        status = zt_source_read_at(slices, offset, buffer, length, error);
    zt_source_close(slices);
    return status;
}

/* --- wider integers --- */

/* What is copied of the words of a block: from byte skip of the first one on. */
struct wanted {
    uint8_t *at;
    size_t left;
    size_t skip;
};

/* False when the word is negative. */
static bool widen(const struct zt_component_view *part, const uint8_t *word, struct wanted *wanted)
{
    uint8_t wide[8] = {0};
    size_t length = part->to_width - wanted->skip;

    if (part->is_signed && (word[part->from_width - 1] & 0x80) != 0)
        return false;
    memcpy(wide, word, part->from_width);
    if (length > wanted->left)
        length = wanted->left;
    memcpy(wanted->at, wide + wanted->skip, length);
    wanted->at += length;
    wanted->left -= length;
    wanted->skip = 0;
    return true;
}

static enum zt_status read_wider(const struct zt_component_view *part, uint64_t offset,
                                 void *buffer, size_t length, struct zt_error *error)
{
    uint8_t block[BLOCK_BYTES];
    struct wanted wanted = {buffer, length, (size_t)(offset % part->to_width)};
    uint64_t word = offset / part->to_width;

    while (wanted.left > 0) {
        uint64_t words = (wanted.skip + wanted.left + part->to_width - 1) / part->to_width;
        size_t count =
            words < BLOCK_BYTES / part->from_width ? (size_t)words : BLOCK_BYTES / part->from_width;
        enum zt_status status =
            zt_source_read_at(part->source, part->base + word * part->from_width, block,
                              count * part->from_width, error);

        if (status != ZT_OK)
            return status;
        for (size_t i = 0; i < count; i++)
            if (!widen(part, block + i * part->from_width, &wanted))
                return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "a negative index");
        word += count;
    }
    return ZT_OK;
}

enum zt_status zt_component_view_read(const struct zt_component_view *part, uint64_t offset,
                                      void *buffer, size_t length, struct zt_error *error)
{
    if (length == 0)
        return ZT_OK;
    if (part->cut != NULL)
        return read_cut(part, offset, buffer, length, error);
    if (part->to_width > 0)
        return read_wider(part, offset, buffer, length, error);
    return zt_source_read_at(part->source, part->base + offset, buffer, length, error);
}
