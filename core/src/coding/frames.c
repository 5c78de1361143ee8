/* Frames of zt.zstd-seekable/1 (zTensor 2 section 6), for reading parts of a component: frame by
 * frame, or as a source of decoded bytes.
 *
 * All frames except the last have the same length, so a position determines the frame. A frame that
 * is needed whole is decoded directly into the caller's memory. A frame that is needed in part is
 * decoded into the kept frame, where sequential reading finds it again, or into temporary memory if
 * another thread is using the kept frame. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/source_range.h"
#include "coding/seek_table.h"
#include "zt/decode.h"

#define NO_FRAME UINT32_MAX

/* --- the table, and one frame --- */

static enum zt_status collect(struct zt_seek_table *table, struct zt_frame *frames,
                              struct zt_error *error)
{
    uint32_t count = 0;
    bool more = true;

    while (more) {
        enum zt_status status = zt_seek_table_next(table, &more, error);

        if (status != ZT_OK)
            return status;
        assert(count < table->count || !more);
        if (more)
            frames[count++] = table->frame;
    }
    assert(count == table->count);
    return ZT_OK;
}

enum zt_status zt_frames_read(const struct zt_component *component, struct zt_source *source,
                              struct zt_frames *out_frames, struct zt_error *error)
{
    struct zt_seek_table table;
    struct zt_frame *frames;
    enum zt_status status;

    if (component->encoding != ZT_ENCODING_ZSTD_SEEKABLE)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, component->offset,
                       "the encoding has no seek table");
    status = zt_seek_table_open(component, source, &table, error);
    if (status != ZT_OK)
        return status;
    /* The table has been checked to have an entry and at least 13 stored bytes for each frame, so
     * the file's length bounds the count. */
    frames = calloc((size_t)table.count + 1, sizeof(*frames));
    if (frames == NULL)
        return zt_fail_memory(error, "a seek table");
    status = collect(&table, frames, error);
    if (status != ZT_OK) {
        free(frames);
        return status;
    }
    out_frames->frames = frames;
    out_frames->count = table.count;
    return ZT_OK;
}

enum zt_status zt_frame_decode(const struct zt_frame *frame, struct zt_source *source, void *buffer,
                               struct zt_error *error)
{
    struct zt_zstd_stream *stream = NULL;
    size_t length = 0;
    enum zt_status status = zt_zstd_stream_new(source, &zt_seekable_rules, &stream, error);

    if (status != ZT_OK)
        return status;
    status = zt_zstd_stream_start(stream, frame->stored_offset, frame->stored_length,
                                  frame->decoded_length, error);
    if (status == ZT_OK)
        status = zt_zstd_stream_read(stream, buffer, frame->decoded_length, &length, error);
    assert(status != ZT_OK || length == frame->decoded_length);
    zt_zstd_stream_free(stream);
    return status;
}

void zt_frames_free(struct zt_frames *frames)
{
    free(frames->frames);
    frames->frames = NULL;
    frames->count = 0;
}

/* --- the source --- */

struct frames_source {
    struct zt_source base;
    struct zt_source *stored;
    struct zt_frames frames;
    uint64_t decoded_length;
    /* Set by the thread that is using the fields below. Other threads do not wait for it. */
    atomic_flag is_busy;
    uint32_t kept_index;
    uint8_t *kept; /* NULL until needed; has the length of the first frame, the longest */
};

/* A part of a frame and its destination. */
struct portion {
    uint32_t index;
    uint32_t within;
    size_t length;
    uint8_t *to;
};

static bool is_whole(const struct frames_source *source, const struct portion *portion)
{
    return portion->length == source->frames.frames[portion->index].decoded_length;
}

static enum zt_status decode(const struct frames_source *source, uint32_t index, uint8_t *to,
                             struct zt_error *error)
{
    return zt_frame_decode(&source->frames.frames[index], source->stored, to, error);
}

/* Decodes a frame into the kept frame. The caller holds is_busy. */
static enum zt_status keep(struct frames_source *source, uint32_t index, struct zt_error *error)
{
    enum zt_status status;

    if (source->kept_index == index)
        return ZT_OK;
    assert(source->frames.frames[index].decoded_length <= source->frames.frames[0].decoded_length);
    if (source->kept == NULL)
        source->kept = malloc(source->frames.frames[0].decoded_length);
    if (source->kept == NULL)
        return zt_fail_memory(error, "a frame");
    source->kept_index = NO_FRAME;
    status = decode(source, index, source->kept, error);
    if (status == ZT_OK)
        source->kept_index = index;
    return status;
}

static enum zt_status copy_from_kept(struct frames_source *source, const struct portion *portion,
                                     struct zt_error *error)
{
    enum zt_status status;

    assert(portion->index < source->frames.count);
    if (is_whole(source, portion) && source->kept_index != portion->index)
        return decode(source, portion->index, portion->to, error);
    status = keep(source, portion->index, error);
    if (status == ZT_OK)
        memcpy(portion->to, source->kept + portion->within, portion->length);
    return status;
}

static enum zt_status copy_without_kept(const struct frames_source *source,
                                        const struct portion *portion, struct zt_error *error)
{
    uint8_t *decoded;
    enum zt_status status;

    if (is_whole(source, portion))
        return decode(source, portion->index, portion->to, error);
    assert(portion->within <= source->frames.frames[portion->index].decoded_length &&
           portion->length <=
               source->frames.frames[portion->index].decoded_length - portion->within);
    decoded = malloc(source->frames.frames[portion->index].decoded_length);
    if (decoded == NULL)
        return zt_fail_memory(error, "a frame");
    status = decode(source, portion->index, decoded, error);
    if (status == ZT_OK)
        memcpy(portion->to, decoded + portion->within, portion->length);
    free(decoded);
    return status;
}

static enum zt_status copy_portion(struct frames_source *source, const struct portion *portion,
                                   struct zt_error *error)
{
    enum zt_status status;

    if (atomic_flag_test_and_set_explicit(&source->is_busy, memory_order_acquire))
        return copy_without_kept(source, portion, error);
    status = copy_from_kept(source, portion, error);
    atomic_flag_clear_explicit(&source->is_busy, memory_order_release);
    return status;
}

/* The portion to copy from the frame at offset, which must be within the component. */
static struct portion portion_at(const struct frames_source *source, uint64_t offset, uint8_t *to,
                                 size_t length)
{
    uint32_t frame_length = source->frames.frames[0].decoded_length;
    struct portion portion = {.index = (uint32_t)(offset / frame_length),
                              .within = (uint32_t)(offset % frame_length),
                              .to = to};
    size_t rest;

    assert(portion.index < source->frames.count);
    rest = source->frames.frames[portion.index].decoded_length - portion.within;
    assert(rest > 0 && length > 0);
    portion.length = rest < length ? rest : length;
    return portion;
}

static uint64_t frames_size(const struct zt_source *source)
{
    return ((const struct frames_source *)source)->decoded_length;
}

static enum zt_status frames_read_at(struct zt_source *base, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    struct frames_source *source = (struct frames_source *)base;
    uint8_t *to = buffer;
    enum zt_status status = zt_source_check_range(source->decoded_length, offset, length, error);

    while (status == ZT_OK && length > 0) {
        struct portion portion = portion_at(source, offset, to, length);

        assert(portion.length > 0 && portion.length <= length);
        status = copy_portion(source, &portion, error);
        offset += portion.length;
        to += portion.length;
        length -= portion.length;
    }
    return status;
}

static const uint8_t *frames_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static uint32_t frames_unit(const struct zt_source *source)
{
    return ((const struct frames_source *)source)->frames.frames[0].decoded_length;
}

static void frames_close(struct zt_source *base)
{
    struct frames_source *source = (struct frames_source *)base;

    zt_frames_free(&source->frames);
    free(source->kept);
    free(source);
}

enum zt_status zt_frames_source(const struct zt_component *component, struct zt_source *source,
                                struct zt_source **out_source, struct zt_error *error)
{
    static const struct zt_source_ops ops = {.size = frames_size,
                                             .read_at = frames_read_at,
                                             .map = frames_map,
                                             .close = frames_close,
                                             .unit = frames_unit};
    struct frames_source *made = calloc(1, sizeof(*made));
    enum zt_status status;

    if (made == NULL)
        return zt_fail_memory(error, "a frame");
    status = zt_frames_read(component, source, &made->frames, error);
    if (status != ZT_OK) {
        free(made);
        return status;
    }
    made->base.ops = &ops;
    made->stored = source;
    /* The seek table's rules ensure that the frames add up to this. */
    made->decoded_length = component->decoded_length;
    atomic_flag_clear(&made->is_busy);
    made->kept_index = NO_FRAME;
    *out_source = &made->base;
    return ZT_OK;
}
