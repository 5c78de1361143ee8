/* Frames of zt.zstd-seekable/1 for callers who want a part without the rest (zTensor 2 section 6).
 */
#include <assert.h>
#include <stdlib.h>

#include "coding/seek_table.h"
#include "zt/decode.h"
#include "zt/model.h"

static enum zt_status collect(struct zt_seek_table *table, struct zt_frame *frames,
                              struct zt_error *error)
{
    for (uint32_t i = 0; i < table->count; i++) {
        bool more;
        enum zt_status status = zt_seek_table_next(table, &more, error);

        if (status != ZT_OK)
            return status;
        frames[i] = table->frame;
    }
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
    /* The check has shown 13 stored bytes and an entry for each of them: the count is no longer a
     * mere claim. */
    frames = calloc((size_t)table.count + 1, sizeof(*frames));
    if (frames == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for %u frames",
                       (unsigned)table.count);
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
