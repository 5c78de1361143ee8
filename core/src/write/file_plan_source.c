/* Images as sources: any range of a file to be, put together when it is read. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/source_range.h"
#include "zt/file_plan.h"

struct image_source {
    struct zt_source base;
    const struct zt_file_plan *plan;
    struct zt_component_bytes bytes;
};

static uint64_t image_size(const struct zt_source *source)
{
    return ((const struct image_source *)source)->plan->length;
}

/* range: in the file, and inside the piece. */
static enum zt_status read_piece(const struct image_source *source, const struct zt_piece *piece,
                                 const struct zt_piece *range, uint8_t *buffer,
                                 struct zt_error *error)
{
    uint64_t within = range->offset - piece->offset;

    if (piece->is_component)
        return source->bytes.read(source->bytes.context, piece->component, within, buffer,
                                  (size_t)range->length, error);
    memcpy(buffer, source->plan->added + piece->added_at + within, (size_t)range->length);
    return ZT_OK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static enum zt_status image_read_at(struct zt_source *base, uint64_t offset, void *buffer,
                                    size_t length, struct zt_error *error)
{
    const struct image_source *source = (const struct image_source *)base;
    const uint64_t end = offset + length;
    enum zt_status status = zt_source_check_range(source->plan->length, offset, length, error);
    size_t number = status == ZT_OK ? zt_file_plan_find(source->plan, offset) : 0;

    for (uint8_t *at = buffer; status == ZT_OK && offset < end; number++) {
        const struct zt_piece *piece = &source->plan->pieces[number];
        struct zt_piece range;
        uint64_t gap;

        /* The plan ends with its last piece. */
        assert(number < source->plan->piece_count);
        gap = offset < piece->offset ? least(piece->offset, end) - offset : 0;
        if (gap > 0)
            memset(at, 0, (size_t)gap);
        range.offset = offset + gap;
        range.length = least(piece->offset + piece->length, end) - range.offset;
        if (range.length > 0)
            status = read_piece(source, piece, &range, at + gap, error);
        at += gap + range.length;
        offset = range.offset + range.length;
    }
    return status;
}

static const uint8_t *image_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void image_close(struct zt_source *source)
{
    free(source);
}

enum zt_status zt_file_plan_source(const struct zt_file_plan *plan,
                                   const struct zt_component_bytes *bytes,
                                   struct zt_source **out_source, struct zt_error *error)
{
    static const struct zt_source_ops ops = {image_size, image_read_at, image_map, image_close};
    struct image_source *source = calloc(1, sizeof(*source));

    if (source == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a plan");
    source->base.ops = &ops;
    source->plan = plan;
    source->bytes = *bytes;
    *out_source = &source->base;
    return ZT_OK;
}
