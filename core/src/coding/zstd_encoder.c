/* Compressing with zstd in whole blocks of 1 MiB, however the bytes arrive. Besides this file,
 * only zstd_stream.c and xor_encoder.c use <zstd.h>.
 *
 * Frames state no content size. In a seekable stream each frame has a checksum and holds 1 MiB, and
 * a seek table follows the frames. */
#include "zt/encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/memory.h"

/* Decoded bytes in a block, which is also a frame of a seekable stream, as in the reference
 * writer. */
#define BLOCK_BYTES ((size_t)1 << 20)
#define LEVEL_MAX   22
/* From this level on, zstd's window and tables would be larger than these powers of two. 2^20 is a
 * block. */
#define BOUNDED_LEVEL_MIN  4
#define BOUNDED_WINDOW_LOG 20
#define BOUNDED_TABLE_LOG  18
/* The seek table: a skippable frame of entries, their count, a descriptor without flags, and a
 * magic number. */
#define SKIPPABLE_MAGIC 0x184D2A5E
#define TABLE_MAGIC     0x8F92EAB1
#define FOOTER_LENGTH   9
#define ENTRY_LENGTH    8

/* A frame may be compressed by several threads in pieces of a block. Each piece after the first
 * sees this share of the window before it: 1/8. */
#define OVERLAP_LOG 6

/* Frames of a seekable stream that are being compressed by threads of zstd's, one each. */
struct frame {
    ZSTD_CCtx *context;
    uint8_t *packed;
    size_t packed_length; /* 0: a thread is still compressing it */
    uint32_t decoded;     /* bytes in it; 0: none is being compressed */
};

struct zt_encoder {
    ZSTD_CCtx *context;
    struct zt_sink out;
    bool seekable;
    uint8_t *block;
    size_t filled;
    uint8_t *packed;
    size_t packed_size;
    struct frame *frames; /* a ring; NULL: there are no threads, or the stream is one frame */
    unsigned frame_count;
    unsigned next_frame;    /* of the ring; the oldest one if it is not empty */
    struct zt_buffer table; /* entries, eight bytes for each block */
};

static void set_parameters(const struct zt_encoder *encoder,
                           const struct zt_encoder_options *options, ZSTD_CCtx *context)
{
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel,
                           options->level == 0 ? ZSTD_CLEVEL_DEFAULT : options->level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, encoder->seekable ? 1 : 0);
    /* A zstd that was built without threads refuses the first and works without. */
    if (options->threads > 0) {
        ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers,
                               encoder->seekable ? 1 : (int)options->threads);
        ZSTD_CCtx_setParameter(context, ZSTD_c_jobSize, (int)BLOCK_BYTES);
        ZSTD_CCtx_setParameter(context, ZSTD_c_overlapLog, OVERLAP_LOG);
    }
    if (!options->bounds_memory || options->level < BOUNDED_LEVEL_MIN)
        return;
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, BOUNDED_WINDOW_LOG);
    ZSTD_CCtx_setParameter(context, ZSTD_c_chainLog, BOUNDED_TABLE_LOG);
    ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, BOUNDED_TABLE_LOG);
}

static bool open_frames(struct zt_encoder *encoder, const struct zt_encoder_options *options)
{
    assert(options->threads > 0 && options->threads <= ZT_ENCODER_THREADS_MAX);
    encoder->frames = calloc(options->threads, sizeof(*encoder->frames));
    if (encoder->frames == NULL)
        return false;
    encoder->frame_count = options->threads;
    for (unsigned i = 0; i < encoder->frame_count; i++) {
        struct frame *frame = &encoder->frames[i];

        frame->context = ZSTD_createCCtx();
        frame->packed = malloc(encoder->packed_size);
        if (frame->context == NULL || frame->packed == NULL)
            return false;
        set_parameters(encoder, options, frame->context);
    }
    return true;
}

enum zt_status zt_encoder_open(const struct zt_encoder_options *options, const struct zt_sink *out,
                               struct zt_encoder **out_encoder, struct zt_error *error)
{
    struct zt_encoder *encoder;

    assert(options->encoding == ZT_ENCODING_ZSTD || options->encoding == ZT_ENCODING_ZSTD_SEEKABLE);
    assert(options->threads <= ZT_ENCODER_THREADS_MAX);
    if (options->level < 0 || options->level > LEVEL_MAX)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "zstd has no level %d: 1 to %d",
                       options->level, LEVEL_MAX);
    encoder = calloc(1, sizeof(*encoder));
    if (encoder == NULL)
        return zt_fail_memory(error, "compressing");
    encoder->out = *out;
    encoder->seekable = options->encoding == ZT_ENCODING_ZSTD_SEEKABLE;
    encoder->packed_size = ZSTD_compressBound(BLOCK_BYTES);
    encoder->context = ZSTD_createCCtx();
    encoder->block = malloc(BLOCK_BYTES);
    encoder->packed = malloc(encoder->packed_size);
    if (encoder->context == NULL || encoder->block == NULL || encoder->packed == NULL ||
        (encoder->seekable && options->threads > 0 && !open_frames(encoder, options))) {
        zt_encoder_close(encoder);
        return zt_fail_memory(error, "compressing");
    }
    set_parameters(encoder, options, encoder->context);
    *out_encoder = encoder;
    return ZT_OK;
}

/* Compresses the block and, if ends_frame, ends the frame. *out_length is the number of bytes
 * written. */
static enum zt_status compress_block(struct zt_encoder *encoder, bool ends_frame,
                                     uint64_t *out_length, struct zt_error *error)
{
    ZSTD_inBuffer input = {encoder->block, encoder->filled, 0};
    size_t left;

    assert(encoder->filled <= BLOCK_BYTES);
    *out_length = 0;
    do {
        ZSTD_outBuffer output = {encoder->packed, encoder->packed_size, 0};
        enum zt_status status = ZT_OK;

        left = ZSTD_compressStream2(encoder->context, &output, &input,
                                    ends_frame ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "cannot compress: %s",
                           ZSTD_getErrorName(left));
        if (output.pos > 0)
            status = encoder->out.take(encoder->out.context, output.dst, output.pos, error);
        if (status != ZT_OK)
            return status;
        *out_length += output.pos;
    } while (ends_frame ? left != 0 : input.pos < input.size);
    encoder->filled = 0;
    return ZT_OK;
}

static enum zt_status note_frame(struct zt_encoder *encoder, uint64_t stored, uint32_t decoded,
                                 struct zt_error *error)
{
    assert(stored > 0 && stored <= UINT32_MAX);
    zt_buffer_append_le32(&encoder->table, (uint32_t)stored);
    zt_buffer_append_le32(&encoder->table, decoded);
    return encoder->table.failed ? zt_fail_memory(error, "a seek table") : ZT_OK;
}

/* Compresses the rest of the input into the frame, and waits for its thread if it has one. */
static enum zt_status end_frame(const struct zt_encoder *encoder, struct frame *frame,
                                ZSTD_inBuffer *input, struct zt_error *error)
{
    ZSTD_outBuffer output = {frame->packed, encoder->packed_size, 0};
    const size_t left = ZSTD_compressStream2(frame->context, &output, input, ZSTD_e_end);

    if (ZSTD_isError(left))
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "cannot compress: %s",
                       ZSTD_getErrorName(left));
    assert(left == 0);
    frame->packed_length = output.pos;
    return ZT_OK;
}

/* Waits for the oldest frame of the ring, unless it is empty, and passes it on. */
static enum zt_status take_frame(struct zt_encoder *encoder, struct zt_error *error)
{
    struct frame *frame = &encoder->frames[encoder->next_frame];
    ZSTD_inBuffer input = {NULL, 0, 0};
    const uint32_t decoded = frame->decoded;
    enum zt_status status = ZT_OK;

    if (decoded == 0)
        return ZT_OK;
    frame->decoded = 0;
    if (frame->packed_length == 0)
        status = end_frame(encoder, frame, &input, error);
    if (status == ZT_OK)
        status =
            encoder->out.take(encoder->out.context, frame->packed, frame->packed_length, error);
    return status == ZT_OK ? note_frame(encoder, frame->packed_length, decoded, error) : status;
}

/* Without room for output the call returns as soon as a thread has the block. Frames of up to 512
 * KiB get no thread, nor do any if zstd was built without threads: those are compressed here. */
static enum zt_status start_frame(struct zt_encoder *encoder, struct zt_error *error)
{
    struct frame *frame = &encoder->frames[encoder->next_frame];
    ZSTD_inBuffer input = {encoder->block, encoder->filled, 0};
    ZSTD_outBuffer output = {0};
    enum zt_status status;
    size_t left;

    assert(encoder->next_frame < encoder->frame_count);
    output.dst = frame->packed;
    status = take_frame(encoder, error);
    if (status != ZT_OK)
        return status;
    frame->packed_length = 0;
    left = ZSTD_compressStream2(frame->context, &output, &input, ZSTD_e_end);
    if (ZSTD_isError(left))
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "cannot compress: %s",
                       ZSTD_getErrorName(left));
    if (input.pos < input.size)
        status = end_frame(encoder, frame, &input, error);
    if (status != ZT_OK)
        return status;
    frame->decoded = (uint32_t)encoder->filled;
    encoder->filled = 0;
    encoder->next_frame = (encoder->next_frame + 1) % encoder->frame_count;
    return ZT_OK;
}

static enum zt_status end_block(struct zt_encoder *encoder, struct zt_error *error)
{
    const uint32_t decoded = (uint32_t)encoder->filled;
    uint64_t stored;
    enum zt_status status;

    if (encoder->frames != NULL)
        return start_frame(encoder, error);
    status = compress_block(encoder, encoder->seekable, &stored, error);
    if (status != ZT_OK || !encoder->seekable)
        return status;
    return note_frame(encoder, stored, decoded, error);
}

static enum zt_status take_all_frames(struct zt_encoder *encoder, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (unsigned i = 0; i < encoder->frame_count && status == ZT_OK; i++) {
        status = take_frame(encoder, error);
        encoder->next_frame = (encoder->next_frame + 1) % encoder->frame_count;
    }
    return status;
}

enum zt_status zt_encoder_append(struct zt_encoder *encoder, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    const uint8_t *at = bytes;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && length > 0) {
        size_t room = BLOCK_BYTES - encoder->filled;
        size_t part = length < room ? length : room;

        assert(encoder->filled < BLOCK_BYTES);
        memcpy(encoder->block + encoder->filled, at, part);
        encoder->filled += part;
        at += part;
        length -= part;
        if (encoder->filled == BLOCK_BYTES)
            status = end_block(encoder, error);
    }
    return status;
}

static enum zt_status put_table(struct zt_encoder *encoder, struct zt_error *error)
{
    struct zt_buffer table = {0};
    size_t entries = encoder->table.length;
    enum zt_status status;

    assert(entries % ENTRY_LENGTH == 0);
    if (entries > UINT32_MAX - FOOTER_LENGTH)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                       "too many frames for a seek table");
    zt_buffer_append_le32(&table, SKIPPABLE_MAGIC);
    zt_buffer_append_le32(&table, (uint32_t)entries + FOOTER_LENGTH);
    zt_buffer_append(&table, encoder->table.bytes, entries);
    zt_buffer_append_le32(&table, (uint32_t)(entries / ENTRY_LENGTH));
    zt_buffer_append(&table, "\0", 1);
    zt_buffer_append_le32(&table, TABLE_MAGIC);
    encoder->table.length = 0;
    status = table.failed
                 ? zt_fail_memory(error, "a seek table")
                 : encoder->out.take(encoder->out.context, table.bytes, table.length, error);
    zt_buffer_free(&table);
    return status;
}

enum zt_status zt_encoder_finish(struct zt_encoder *encoder, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    uint64_t stored;

    if (!encoder->seekable)
        return compress_block(encoder, true, &stored, error);
    if (encoder->filled > 0)
        status = end_block(encoder, error);
    if (status == ZT_OK)
        status = take_all_frames(encoder, error);
    return status == ZT_OK ? put_table(encoder, error) : status;
}

void zt_encoder_close(struct zt_encoder *encoder)
{
    if (encoder == NULL)
        return;
    for (unsigned i = 0; i < encoder->frame_count; i++) {
        ZSTD_freeCCtx(encoder->frames[i].context);
        free(encoder->frames[i].packed);
    }
    free(encoder->frames);
    ZSTD_freeCCtx(encoder->context);
    free(encoder->block);
    free(encoder->packed);
    zt_buffer_free(&encoder->table);
    free(encoder);
}
