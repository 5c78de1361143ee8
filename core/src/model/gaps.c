/* The spaces between head, manifest, tail and components of a file, in file order.
 *
 * At most three ranges belong to the container itself (the header of an NPY file is its manifest).
 * They are merged with the sorted components on the way, without a list of all ranges. */
#include "zt/gaps.h"

#include <assert.h>

#include "cbor/cbor_read.h"
#include "model/extents.h"

#define PIECE_BYTES 4096

/* --- the ranges of the container itself --- */

#define ZT_MAGIC_BYTES           8
#define ZT2_FOOTER_BYTES         40
#define SAFETENSORS_LENGTH_BYTES 8
/* Header of the .mag variant whose manifest is not at the start of the file. */
#define MAG_HEADER_BYTES 44

struct range {
    uint64_t offset;
    uint64_t end;
};

#define OWN_RANGES 3

static uint64_t head_length(const struct zt_model *model)
{
    switch (model->format) {
    case ZT_FORMAT_ZT01:
    case ZT_FORMAT_ZT1:
    case ZT_FORMAT_ZT2:
        return ZT_MAGIC_BYTES;
    case ZT_FORMAT_SAFETENSORS:
        return SAFETENSORS_LENGTH_BYTES;
    case ZT_FORMAT_MAG:
        return model->manifest_offset > 0 ? MAG_HEADER_BYTES : 0;
    default:
        return 0;
    }
}

/* In zTensor 0.1 and 1.x everything after the manifest is the tail. */
static uint64_t tail_offset(const struct zt_model *model)
{
    switch (model->format) {
    case ZT_FORMAT_ZT01:
    case ZT_FORMAT_ZT1:
        return model->manifest_offset + model->manifest_length;
    case ZT_FORMAT_ZT2:
        return model->file_size - ZT2_FOOTER_BYTES;
    default:
        return model->file_size;
    }
}

/* --- padding --- */

/* The alignments that writers of the format use, ended by 0. */
struct alignments {
    uint64_t bytes[4];
};

/* If the file states a value, rule gguf §Metadata Alignment has checked it. */
static uint64_t gguf_alignment(const struct zt_model *model)
{
    struct zt_cbor_reader reader;
    struct zt_cbor_item item;
    struct zt_error ignored;

    if (model->attributes.length > 0 &&
        zt_cbor_map_find(model->attributes, "general.alignment", &reader) &&
        zt_cbor_next(&reader, &item, &ignored) == ZT_OK && item.kind == ZT_CBOR_UINT &&
        item.value > 0)
        return item.value < PIECE_BYTES ? item.value : PIECE_BYTES;
    return 32;
}

static struct alignments alignments_of(const struct zt_model *model)
{
    switch (model->format) {
    case ZT_FORMAT_ZT01:
    case ZT_FORMAT_ZT1:
        return (struct alignments){{64}};
    case ZT_FORMAT_ZT2:
        return (struct alignments){{4096, 65536}};
    case ZT_FORMAT_MAG:
        return (struct alignments){{16, 64, 4096}};
    case ZT_FORMAT_GGUF:
        return (struct alignments){{gguf_alignment(model)}};
    default:
        return (struct alignments){{0}};
    }
}

static bool is_padding(const struct alignments *alignments, const struct zt_gap *gap)
{
    for (unsigned i = 0; alignments->bytes[i] > 0; i++)
        if (gap->length < alignments->bytes[i] &&
            (gap->offset + gap->length) % alignments->bytes[i] == 0)
            return true;
    return false;
}

/* --- the walk --- */

struct walk {
    const struct zt_model *model;
    struct zt_source *source;
    void (*visit)(void *context, const struct zt_gap *gap);
    void *context;
    struct alignments alignments;
    struct zt_extents_order order;
    uint32_t next_component; /* in order */
    struct range own[OWN_RANGES];
    unsigned next_own;
};

/* Sets dirty_at if a byte of the gap is not zero. */
static enum zt_status find_dirt(const struct walk *walk, struct zt_gap *gap, struct zt_error *error)
{
    uint8_t piece[PIECE_BYTES];

    for (uint64_t done = 0; done < gap->length; done += sizeof(piece)) {
        uint64_t rest = gap->length - done;
        size_t length = rest < sizeof(piece) ? (size_t)rest : sizeof(piece);
        enum zt_status status =
            zt_source_read_at(walk->source, gap->offset + done, piece, length, error);

        if (status != ZT_OK)
            return status;
        for (size_t i = 0; i < length; i++) {
            if (piece[i] != 0) {
                gap->dirty_at = gap->offset + done + i;
                return ZT_OK;
            }
        }
    }
    return ZT_OK;
}

static enum zt_status visit_gap(const struct walk *walk, uint64_t offset, uint64_t end,
                                struct zt_error *error)
{
    struct zt_gap gap = {.offset = offset, .length = end - offset, .dirty_at = ZT_NO_OFFSET};
    enum zt_status status;

    assert(offset < end);
    gap.is_padding = is_padding(&walk->alignments, &gap);
    status = gap.is_padding ? find_dirt(walk, &gap, error) : ZT_OK;
    if (status == ZT_OK)
        walk->visit(walk->context, &gap);
    return status;
}

/* The next range of the container or of a component in file order; false after the last. */
static bool take_next(struct walk *walk, struct range *out_range)
{
    const struct zt_extents_order *order = &walk->order;
    bool has_own = walk->next_own < OWN_RANGES;

    assert(walk->next_own <= OWN_RANGES && walk->next_component <= order->own_count);
    if (walk->next_component < order->own_count) {
        const struct zt_component *component =
            &walk->model->components[order->sorted[walk->next_component]];

        if (!has_own || component->offset < walk->own[walk->next_own].offset) {
            walk->next_component++;
            *out_range = (struct range){component->offset, component->offset + component->length};
            return true;
        }
    }
    if (has_own)
        *out_range = walk->own[walk->next_own++];
    return has_own;
}

static enum zt_status walk_ranges(struct walk *walk, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    struct range range;
    uint64_t end = 0;

    while (status == ZT_OK && take_next(walk, &range)) {
        if (range.offset > end)
            status = visit_gap(walk, end, range.offset, error);
        end = range.end > end ? range.end : end;
    }
    return status;
}

enum zt_status zt_gaps_walk(const struct zt_model *model, struct zt_source *source,
                            void (*visit)(void *context, const struct zt_gap *gap), void *context,
                            struct zt_error *error)
{
    const uint64_t manifest_end = model->manifest_offset + model->manifest_length;
    struct walk walk = {.model = model,
                        .source = source,
                        .visit = visit,
                        .context = context,
                        .alignments = alignments_of(model),
                        .own = {{0, head_length(model)},
                                {model->manifest_offset, manifest_end},
                                {tail_offset(model), model->file_size}}};
    enum zt_status status;

    /* What lies between the data belongs to the archive, or the message. */
    if (model->format == ZT_FORMAT_NPZ || model->format == ZT_FORMAT_PYTORCH ||
        model->format == ZT_FORMAT_ONNX)
        return ZT_OK;
    status = zt_extents_sort(model, &walk.order, error);
    if (status == ZT_OK) {
        status = walk_ranges(&walk, error);
        zt_extents_order_free(&walk.order);
    }
    return status;
}
