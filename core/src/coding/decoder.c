/* Decoding a component from its first byte to its last, with one small reader for each way of
 * storing it.
 *
 * Raw bytes are passed on; big-endian words (zTensor 0.1, NPY, PyTorch) are swapped; zstd,
 * zt.zstd-seekable/1 and deflate are decompressed; varints become words (varints.c); arrays in
 * Fortran order and views with strides are gathered (gather.c). */
#include "zt/decode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "coding/gather.h"
#include "coding/inflate_stream.h"
#include "coding/seek_table.h"
#include "coding/varints.h"
#include "coding/zstd_stream.h"

static const struct zt_zstd_rules zstd_rules = {
    .frame = "zt1 §5 ZstdFrame",
    .length = "zt1 §5 ZstdLength",
    .window = "zt1 §5 ZstdWindow",
    .ratio = "zt1 §5 ZstdRatio",
};

/* The widest word that is swapped. */
#define WORD_MAX 8

struct zt_decoder {
    const struct zt_component *component;
    struct zt_source *source;
    enum zt_status (*read)(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                           size_t *out_length, struct zt_error *error);
    uint64_t produced;
    uint64_t consumed; /* stored bytes, not counting those read by the current stream */
    struct zt_zstd_stream *stream;
    struct zt_seek_table *table;
    uint64_t frame_left; /* decoded bytes of the current frame */
    struct zt_inflate_stream *inflated;
    struct zt_gather *gather;
    struct zt_varints *varints;
    /* A word of an inflated stream that did not fit whole into the caller's buffer. */
    uint8_t word[WORD_MAX];
    size_t word_left; /* number of its last bytes not yet returned */
    /* Why decoding failed. Kept so that a later read does not report the end. */
    enum zt_status failure;
};

/* --- raw --- */

static size_t raw_part(const struct zt_decoder *decoder, size_t capacity)
{
    uint64_t left = decoder->component->length - decoder->produced;

    assert(decoder->produced <= decoder->component->length);
    return left < capacity ? (size_t)left : capacity;
}

static enum zt_status read_raw(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                               size_t *out_length, struct zt_error *error)
{
    const uint64_t at = decoder->component->offset + decoder->produced;
    size_t part = raw_part(decoder, capacity);
    enum zt_status status;

    assert(decoder->produced <= decoder->component->length);
    zt_source_read_on(decoder->source, at, decoder->component->length - decoder->produced, 0);
    status = zt_source_read_at(decoder->source, at, buffer, part, error);
    if (status != ZT_OK)
        return status;
    decoder->consumed += part;
    *out_length = part;
    return ZT_OK;
}

/* Bytes after the last whole word, which a sparse blob of 0.1 may have, have no meaning and are not
 * swapped. */
static enum zt_status read_swapped(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                                   size_t *out_length, struct zt_error *error)
{
    unsigned width = zt_dtype_width((enum zt_dtype)decoder->component->dtype);
    unsigned inside = (unsigned)(decoder->produced % width);
    uint64_t word_at = decoder->component->offset + decoder->produced - inside;
    uint64_t left = decoder->component->length - decoder->produced + inside;
    size_t part = raw_part(decoder, capacity);
    uint8_t word[WORD_MAX];
    size_t word_length = left < width ? (size_t)left : width;
    enum zt_status status;

    assert(width > 0 && width <= WORD_MAX);
    if (inside == 0 && part >= width) {
        part -= part % width;
        status = read_raw(decoder, buffer, part, out_length, error);
        if (status == ZT_OK)
            zt_words_reverse(buffer, part, width);
        return status;
    }
    status = zt_source_read_at(decoder->source, word_at, word, word_length, error);
    if (status != ZT_OK)
        return status;
    zt_words_reverse(word, word_length, width);
    part = part < word_length - inside ? part : word_length - inside;
    memcpy(buffer, word + inside, part);
    decoder->consumed += part;
    *out_length = part;
    return ZT_OK;
}

static enum zt_status read_gathered(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                                    size_t *out_length, struct zt_error *error)
{
    const struct zt_component *component = decoder->component;
    enum zt_status status = zt_gather_read(decoder->gather, buffer, capacity, out_length, error);

    if (status != ZT_OK || component->encoding == ZT_ENCODING_DEFLATE)
        return status;
    /* Stored bytes may be read several times or not at all: this is only a measure. */
    decoder->consumed += *out_length;
    if (decoder->consumed > component->length)
        decoder->consumed = component->length;
    return ZT_OK;
}

static enum zt_status open_gathered(struct zt_decoder *decoder, struct zt_error *error)
{
    decoder->read = read_gathered;
    return zt_gather_open(decoder->component, decoder->source, &decoder->gather, error);
}

static enum zt_status open_raw(struct zt_decoder *decoder)
{
    decoder->read = zt_component_is_swapped(decoder->component) ? read_swapped : read_raw;
    return ZT_OK;
}

/* --- deflate --- */

static enum zt_status read_inflated(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                                    size_t *out_length, struct zt_error *error)
{
    return zt_inflate_stream_read(decoder->inflated, buffer, capacity, out_length, error);
}

/* A stream cannot be read again, so bytes of a word that do not fit into a small buffer are
 * kept. */
static enum zt_status read_inflated_swapped(struct zt_decoder *decoder, uint8_t *buffer,
                                            size_t capacity, size_t *out_length,
                                            struct zt_error *error)
{
    unsigned width = zt_dtype_width((enum zt_dtype)decoder->component->dtype);
    enum zt_status status = ZT_OK;
    size_t part;

    if (decoder->word_left == 0 && capacity >= width) {
        status = read_inflated(decoder, buffer, capacity - capacity % width, out_length, error);
        if (status == ZT_OK)
            zt_words_reverse(buffer, *out_length, width);
        return status;
    }
    if (decoder->word_left == 0) {
        status = read_inflated(decoder, decoder->word, width, &decoder->word_left, error);
        if (status != ZT_OK)
            return status;
        zt_words_reverse(decoder->word, decoder->word_left, width);
    }
    assert(decoder->word_left <= width);
    part = decoder->word_left < capacity ? decoder->word_left : capacity;
    memcpy(buffer, decoder->word + width - decoder->word_left, part);
    decoder->word_left -= part;
    *out_length = part;
    return ZT_OK;
}

static enum zt_status skip_lead(struct zt_decoder *decoder, struct zt_error *error)
{
    uint64_t left =
        decoder->component->arrangement != NULL ? decoder->component->arrangement->lead_bytes : 0;
    uint8_t skipped[512];
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && left > 0) {
        size_t length = 0;

        status =
            zt_inflate_stream_read(decoder->inflated, skipped,
                                   left < sizeof(skipped) ? left : sizeof(skipped), &length, error);
        assert(length <= left);
        left -= length;
    }
    return status;
}

static enum zt_status open_deflate(struct zt_decoder *decoder, struct zt_error *error)
{
    const struct zt_component *component = decoder->component;
    uint64_t lead = component->arrangement != NULL ? component->arrangement->lead_bytes : 0;
    enum zt_status status;

    status = zt_inflate_stream_new(decoder->source, &decoder->inflated, error);
    decoder->read = zt_component_is_swapped(component) ? read_inflated_swapped : read_inflated;
    if (status == ZT_OK)
        status = zt_inflate_stream_start(decoder->inflated, component->offset, component->length,
                                         lead + component->decoded_length, false, error);
    return status == ZT_OK ? skip_lead(decoder, error) : status;
}

/* --- varints --- */

static enum zt_status read_varints(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                                   size_t *out_length, struct zt_error *error)
{
    return zt_varints_read(decoder->varints, buffer, capacity, out_length, error);
}

static enum zt_status open_varints(struct zt_decoder *decoder, struct zt_error *error)
{
    decoder->read = read_varints;
    return zt_varints_open(decoder->component, decoder->source, &decoder->varints, error);
}

/* --- zstd --- */

static enum zt_status read_zstd(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                                size_t *out_length, struct zt_error *error)
{
    return zt_zstd_stream_read(decoder->stream, buffer, capacity, out_length, error);
}

static enum zt_status open_zstd(struct zt_decoder *decoder, struct zt_error *error)
{
    const struct zt_component *component = decoder->component;
    enum zt_status status =
        zt_zstd_stream_new(decoder->source, &zstd_rules, &decoder->stream, error);

    decoder->read = read_zstd;
    if (status != ZT_OK)
        return status;
    return zt_zstd_stream_start(decoder->stream, component->offset, component->length,
                                component->decoded_length, error);
}

/* --- zt.zstd-seekable/1 --- */

static enum zt_status start_next_frame(struct zt_decoder *decoder, bool *out_more,
                                       struct zt_error *error)
{
    const struct zt_frame *frame = &decoder->table->frame;
    enum zt_status status = zt_seek_table_next(decoder->table, out_more, error);

    if (status != ZT_OK)
        return status;
    assert(decoder->produced ==
           (*out_more ? frame->decoded_offset : decoder->component->decoded_length));
    if (!*out_more)
        return ZT_OK;
    decoder->consumed += zt_zstd_stream_consumed(decoder->stream);
    decoder->frame_left = frame->decoded_length;
    return zt_zstd_stream_start(decoder->stream, frame->stored_offset, frame->stored_length,
                                frame->decoded_length, error);
}

static enum zt_status read_seekable(struct zt_decoder *decoder, uint8_t *buffer, size_t capacity,
                                    size_t *out_length, struct zt_error *error)
{
    size_t length = 0;
    bool more = true;

    while (length == 0 && more) {
        enum zt_status status = ZT_OK;

        if (decoder->frame_left == 0)
            status = start_next_frame(decoder, &more, error);
        /* An empty frame is decoded too, to check that it is valid. */
        if (status == ZT_OK && more)
            status = zt_zstd_stream_read(decoder->stream, buffer, capacity, &length, error);
        if (status != ZT_OK)
            return status;
        assert(length <= decoder->frame_left);
        decoder->frame_left -= length;
    }
    *out_length = length;
    return ZT_OK;
}

static enum zt_status open_seekable(struct zt_decoder *decoder, struct zt_error *error)
{
    enum zt_status status;

    decoder->read = read_seekable;
    decoder->table = malloc(sizeof(*decoder->table));
    if (decoder->table == NULL)
        return zt_fail_memory(error, "a seek table");
    status = zt_seek_table_open(decoder->component, decoder->source, decoder->table, error);
    if (status != ZT_OK)
        return status;
    return zt_zstd_stream_new(decoder->source, &zt_seekable_rules, &decoder->stream, error);
}

/* --- all of them --- */

static enum zt_status open_by_encoding(struct zt_decoder *decoder, struct zt_error *error)
{
    const struct zt_component *component = decoder->component;

    if (zt_gather_is_needed(component))
        return open_gathered(decoder, error);
    switch ((enum zt_encoding)component->encoding) {
    case ZT_ENCODING_RAW:
        return open_raw(decoder);
    case ZT_ENCODING_ZSTD:
        return open_zstd(decoder, error);
    case ZT_ENCODING_ZSTD_SEEKABLE:
        return open_seekable(decoder, error);
    case ZT_ENCODING_DEFLATE:
        return open_deflate(decoder, error);
    case ZT_ENCODING_VARINT:
    case ZT_ENCODING_PROTOBUF:
        return open_varints(decoder, error);
    case ZT_ENCODING_STRIDED:
    case ZT_ENCODING_UNKNOWN:
        break;
    }
    return zt_fail(error, ZT_UNSUPPORTED, NULL, component->offset, "the encoding is unknown");
}

enum zt_status zt_decoder_open(const struct zt_component *component, struct zt_source *source,
                               struct zt_decoder **out_decoder, struct zt_error *error)
{
    struct zt_decoder *decoder = calloc(1, sizeof(*decoder));
    enum zt_status status;

    if (decoder == NULL)
        return zt_fail_memory(error, "a decoder");
    decoder->component = component;
    decoder->source = source;
    status = open_by_encoding(decoder, error);
    if (status != ZT_OK) {
        zt_decoder_close(decoder);
        return status;
    }
    *out_decoder = decoder;
    return ZT_OK;
}

enum zt_status zt_decoder_read(struct zt_decoder *decoder, void *buffer, size_t capacity,
                               size_t *out_length, struct zt_error *error)
{
    size_t length = 0;
    enum zt_status status;

    assert(capacity > 0);
    if (decoder->failure != ZT_OK)
        return zt_fail(error, decoder->failure, NULL, decoder->component->offset,
                       "decoding failed before");
    status = decoder->read(decoder, buffer, capacity, &length, error);
    if (status != ZT_OK) {
        decoder->failure = status;
        return status;
    }
    assert(length <= capacity);
    decoder->produced += length;
    assert(decoder->component->decoded_length == ZT_LENGTH_UNKNOWN ||
           decoder->produced <= decoder->component->decoded_length);
    *out_length = length;
    return ZT_OK;
}

uint64_t zt_decoder_consumed(const struct zt_decoder *decoder)
{
    uint64_t consumed = decoder->consumed;

    if (decoder->stream != NULL)
        consumed += zt_zstd_stream_consumed(decoder->stream);
    if (decoder->inflated != NULL)
        consumed += zt_inflate_stream_consumed(decoder->inflated);
    if (decoder->varints != NULL)
        consumed += zt_varints_consumed(decoder->varints);
    return consumed;
}

void zt_decoder_close(struct zt_decoder *decoder)
{
    if (decoder == NULL)
        return;
    zt_zstd_stream_free(decoder->stream);
    zt_inflate_stream_free(decoder->inflated);
    zt_gather_close(decoder->gather);
    zt_varints_close(decoder->varints);
    free(decoder->table);
    free(decoder);
}
