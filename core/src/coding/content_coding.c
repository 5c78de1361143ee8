/* Compressing bytes in memory: zstd with the encoder of components, gzip with ISA-L, which only
 * this file and digest.c use. */
#include <assert.h>
#include <stdlib.h>

#include <isa-l/igzip_lib.h>

#include "base/memory.h"
#include "zt/coding.h"
#include "zt/encode.h"

/* For a manifest of 100,000 objects, higher levels save at most a tenth and take several times as
 * long. */
#define ZSTD_LEVEL 3
/* Smaller output than zlib's level 3 in a quarter of its time. */
#define GZIP_LEVEL 2
/* Bytes of input and output per step. */
#define GZIP_PIECE ((size_t)256 << 10)

static enum zt_status take(void *context, const void *bytes, size_t length, struct zt_error *error)
{
    struct zt_buffer *buffer = context;

    zt_buffer_append(buffer, bytes, length);
    return buffer->failed ? zt_fail_memory(error, "compressing") : ZT_OK;
}

static enum zt_status encode_zstd(const void *bytes, size_t length, const struct zt_sink *sink,
                                  struct zt_error *error)
{
    const struct zt_encoder_options options = {.encoding = ZT_ENCODING_ZSTD, .level = ZSTD_LEVEL};
    struct zt_encoder *encoder = NULL;
    enum zt_status status = zt_encoder_open(&options, sink, &encoder, error);

    if (status == ZT_OK)
        status = zt_encoder_append(encoder, bytes, length, error);
    if (status == ZT_OK)
        status = zt_encoder_finish(encoder, error);
    zt_encoder_close(encoder);
    return status;
}

/* --- gzip --- */

struct gzip {
    struct isal_zstream stream;
    uint8_t room[ISAL_DEF_LVL2_DEFAULT];
    uint8_t output[GZIP_PIECE];
};

/* Compresses one piece; the last one ends the stream. */
static enum zt_status put_piece(struct gzip *gzip, struct zt_text piece, bool last,
                                const struct zt_sink *sink, struct zt_error *error)
{
    struct isal_zstream *stream = &gzip->stream;

    assert(piece.length <= GZIP_PIECE);
    /* ISA-L only reads from it. */
    stream->next_in = (uint8_t *)(uintptr_t)piece.bytes;
    stream->avail_in = (uint32_t)piece.length;
    stream->end_of_stream = last;
    do {
        enum zt_status status = ZT_OK;
        size_t made;
        int outcome;

        stream->next_out = gzip->output;
        stream->avail_out = sizeof(gzip->output);
        outcome = isal_deflate(stream);
        assert(outcome == COMP_OK);
        made = sizeof(gzip->output) - stream->avail_out;
        if (made > 0)
            status = sink->take(sink->context, gzip->output, made, error);
        if (status != ZT_OK)
            return status;
    } while (stream->avail_in > 0 || stream->avail_out == 0);
    return ZT_OK;
}

static enum zt_status encode_gzip(const char *bytes, size_t length, const struct zt_sink *sink,
                                  struct zt_error *error)
{
    struct gzip *gzip = malloc(sizeof(*gzip));
    enum zt_status status = ZT_OK;
    size_t at = 0;

    if (gzip == NULL)
        return zt_fail_memory(error, "compressing");
    isal_deflate_init(&gzip->stream);
    gzip->stream.gzip_flag = IGZIP_GZIP;
    gzip->stream.level = GZIP_LEVEL;
    gzip->stream.level_buf = gzip->room;
    gzip->stream.level_buf_size = sizeof(gzip->room);
    do {
        size_t part = length - at < GZIP_PIECE ? length - at : GZIP_PIECE;

        status =
            put_piece(gzip, (struct zt_text){bytes + at, part}, at + part == length, sink, error);
        at += part;
    } while (status == ZT_OK && at < length);
    assert(status != ZT_OK || at == length);
    free(gzip);
    return status;
}

enum zt_status zt_coding_encode(enum zt_coding coding, const void *bytes, size_t length,
                                uint8_t **out_bytes, size_t *out_length, struct zt_error *error)
{
    struct zt_buffer buffer = {0};
    const struct zt_sink sink = {take, &buffer};
    enum zt_status status = coding == ZT_CODING_ZSTD ? encode_zstd(bytes, length, &sink, error)
                                                     : encode_gzip(bytes, length, &sink, error);
    uint8_t *fitted;

    if (status != ZT_OK) {
        zt_buffer_free(&buffer);
        return status;
    }
    /* Both formats begin with a header. */
    assert(buffer.length > 0);
    /* The caller may keep the bytes for long, so the unused end of the buffer is released. */
    fitted = realloc(buffer.bytes, buffer.length);
    *out_bytes = fitted != NULL ? fitted : buffer.bytes;
    *out_length = buffer.length;
    return ZT_OK;
}
