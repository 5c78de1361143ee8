/* Runs of zstd frames: bounded input, a bounded window, and an exact end. */
#include "coding/zstd_stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "base/little_endian.h"
#include "zt/model.h"

/* zstd consumes at most a whole block with its header per call; this is close to that size. */
#define INPUT_SIZE ((size_t)128 << 10)
/* 128 MiB: what `zstd --long` writes and decoders accept by default (RFC 8878 section
 * 3.1.1.1.2). */
#define WINDOW_LOG_MAX 27
/* A block gives at most 128 KiB and takes at least four bytes: its header and a repeated byte. */
#define RATIO_MAX ((uint64_t)(128 << 10) / 4)
/* Magic number, frame header descriptor. */
#define FRAME_START    5
#define CHECKSUM_FLAG  0x04u
#define SKIPPABLE_MASK 0xFFFFFFF0u

struct zt_zstd_stream {
    struct zt_source *source;
    const struct zt_zstd_rules *rules;
    ZSTD_DCtx *context;
    ZSTD_inBuffer input;
    uint8_t *buffer;
    uint64_t offset;      /* absolute, of the first stored byte */
    uint64_t next_offset; /* absolute, of the stored byte to be read next */
    uint64_t stored_left;
    uint64_t expected_length;
    uint64_t produced;
    uint64_t frame_offset;
    uint32_t frame_count;
    bool in_frame;
};

bool zt_zstd_ratio_possible(uint64_t stored_length, uint64_t decoded_length)
{
    return decoded_length == 0 || (decoded_length - 1) / RATIO_MAX < stored_length;
}

static int window_log_max(const struct zt_zstd_rules *rules)
{
    return rules->window_log_max != 0 ? rules->window_log_max : WINDOW_LOG_MAX;
}

enum zt_status zt_zstd_stream_new(struct zt_source *source, const struct zt_zstd_rules *rules,
                                  struct zt_zstd_stream **out_stream, struct zt_error *error)
{
    struct zt_zstd_stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL)
        goto out;
    stream->source = source;
    stream->rules = rules;
    stream->buffer = malloc(INPUT_SIZE);
    stream->context = ZSTD_createDCtx();
    if (stream->buffer == NULL || stream->context == NULL)
        goto out;
    ZSTD_DCtx_setParameter(stream->context, ZSTD_d_windowLogMax, window_log_max(rules));
    stream->input.src = stream->buffer;
    *out_stream = stream;
    return ZT_OK;
out:
    zt_zstd_stream_free(stream);
    return zt_fail_memory(error, "a decoder");
}

enum zt_status zt_zstd_stream_start(struct zt_zstd_stream *stream, uint64_t offset,
                                    uint64_t stored_length, uint64_t expected_length,
                                    struct zt_error *error)
{
    if (expected_length != ZT_LENGTH_UNKNOWN &&
        !zt_zstd_ratio_possible(stored_length, expected_length))
        return zt_fail(error, ZT_CORRUPT, stream->rules->ratio, offset,
                       "%" PRIu64 " stored bytes cannot decode to %" PRIu64 " bytes", stored_length,
                       expected_length);
    ZSTD_DCtx_reset(stream->context, ZSTD_reset_session_only);
    stream->input.size = stream->input.pos = 0;
    stream->offset = stream->next_offset = stream->frame_offset = offset;
    stream->stored_left = stored_length;
    stream->expected_length = expected_length;
    stream->produced = 0;
    stream->frame_count = 0;
    stream->in_frame = false;
    return ZT_OK;
}

/* Fills the buffer until it holds `wanted` bytes, or all remaining bytes if there are fewer. */
static enum zt_status fill(struct zt_zstd_stream *stream, size_t wanted, struct zt_error *error)
{
    size_t held = stream->input.size - stream->input.pos;
    size_t part;
    enum zt_status status;

    if (held >= wanted || stream->stored_left == 0)
        return ZT_OK;
    memmove(stream->buffer, stream->buffer + stream->input.pos, held);
    stream->input.pos = 0;
    stream->input.size = held;
    part =
        stream->stored_left < INPUT_SIZE - held ? (size_t)stream->stored_left : INPUT_SIZE - held;
    zt_source_read_on(stream->source, stream->next_offset, stream->stored_left, 0);
    status =
        zt_source_read_at(stream->source, stream->next_offset, stream->buffer + held, part, error);
    if (status != ZT_OK)
        return status;
    assert(stream->input.size + part <= INPUT_SIZE && part <= stream->stored_left);
    stream->input.size += part;
    stream->next_offset += part;
    stream->stored_left -= part;
    return ZT_OK;
}

static bool is_used_up(const struct zt_zstd_stream *stream)
{
    return stream->stored_left == 0 && stream->input.pos == stream->input.size;
}

static enum zt_status fail_frame(const struct zt_zstd_stream *stream, const char *message,
                                 struct zt_error *error)
{
    return zt_fail(error, ZT_CORRUPT, stream->rules->frame, stream->frame_offset, "%s", message);
}

/* Checks a frame's first bytes before zstd sees them, because zstd would also accept formats older
 * than RFC 8878. */
static enum zt_status start_frame(struct zt_zstd_stream *stream, struct zt_error *error)
{
    const uint8_t *at = stream->buffer + stream->input.pos;
    size_t held = stream->input.size - stream->input.pos;
    uint32_t magic;

    assert(!stream->in_frame && stream->input.pos <= stream->input.size);
    stream->frame_offset = stream->next_offset - held;
    if (held < FRAME_START)
        return fail_frame(stream, "the stored bytes end inside a zstd frame", error);
    magic = zt_load_le32(at);
    if (magic != ZSTD_MAGICNUMBER && (magic & SKIPPABLE_MASK) != ZSTD_MAGIC_SKIPPABLE_START)
        return fail_frame(stream, "no zstd frame begins here", error);
    if (stream->rules->one_checked_frame && (magic != ZSTD_MAGICNUMBER || stream->frame_count > 0))
        return fail_frame(stream, "an entry of the seek table is not one zstd frame", error);
    if (stream->rules->one_checked_frame && !(at[4] & CHECKSUM_FLAG))
        return fail_frame(stream, "the frame has no content checksum", error);
    stream->frame_count++;
    stream->in_frame = true;
    return ZT_OK;
}

static enum zt_status fail_decoding(const struct zt_zstd_stream *stream, size_t result,
                                    struct zt_error *error)
{
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return zt_fail_memory(error, "a zstd window");
    case ZSTD_error_frameParameter_windowTooLarge:
        return zt_fail(error, ZT_CORRUPT, stream->rules->window, stream->frame_offset,
                       "the zstd frame needs a window above %u MiB",
                       1u << (window_log_max(stream->rules) - 20));
    default:
        return zt_fail(error, ZT_CORRUPT, stream->rules->frame, stream->frame_offset, "zstd: %s",
                       ZSTD_getErrorName(result));
    }
}

/* Decodes until output is full or every stored byte is used. */
static enum zt_status decode(struct zt_zstd_stream *stream, ZSTD_outBuffer *output,
                             struct zt_error *error)
{
    while (output->pos < output->size) {
        enum zt_status status = fill(stream, stream->in_frame ? 1 : FRAME_START, error);
        size_t output_before = output->pos;
        size_t input_before, result;

        if (status != ZT_OK)
            return status;
        if (!stream->in_frame && is_used_up(stream))
            return ZT_OK;
        if (!stream->in_frame && (status = start_frame(stream, error)) != ZT_OK)
            return status;
        input_before = stream->input.pos;
        result = ZSTD_decompressStream(stream->context, output, &stream->input);
        if (ZSTD_isError(result))
            return fail_decoding(stream, result, error);
        stream->in_frame = result != 0;
        if (stream->in_frame && output->pos == output_before && stream->input.pos == input_before)
            return fail_frame(stream, "the stored bytes end inside a zstd frame", error);
    }
    return ZT_OK;
}

/* Checks that no bytes follow the expected ones and that all stored bytes have been used. */
static enum zt_status check_end(struct zt_zstd_stream *stream, struct zt_error *error)
{
    uint8_t surplus;
    ZSTD_outBuffer output = {&surplus, 1, 0};
    enum zt_status status = decode(stream, &output, error);

    if (status == ZT_OK && output.pos > 0)
        return zt_fail(error, ZT_CORRUPT, stream->rules->length, stream->offset,
                       "the stored bytes decode to more than the %" PRIu64 " bytes declared",
                       stream->expected_length);
    return status;
}

enum zt_status zt_zstd_stream_read(struct zt_zstd_stream *stream, void *buffer, size_t capacity,
                                   size_t *out_length, struct zt_error *error)
{
    uint64_t left = stream->expected_length - stream->produced;
    ZSTD_outBuffer output = {buffer, left < capacity ? (size_t)left : capacity, 0};
    enum zt_status status = decode(stream, &output, error);

    if (status != ZT_OK)
        return status;
    if (stream->expected_length != ZT_LENGTH_UNKNOWN) {
        if (output.pos < output.size)
            return zt_fail(error, ZT_CORRUPT, stream->rules->length, stream->offset,
                           "the stored bytes decode to %" PRIu64 " bytes, %" PRIu64 " are declared",
                           stream->produced + output.pos, stream->expected_length);
        if (output.pos == left && (status = check_end(stream, error)) != ZT_OK)
            return status;
    }
    stream->produced += output.pos;
    assert(stream->produced <= stream->expected_length);
    *out_length = output.pos;
    return ZT_OK;
}

uint64_t zt_zstd_stream_consumed(const struct zt_zstd_stream *stream)
{
    return stream->next_offset - stream->offset;
}

void zt_zstd_stream_free(struct zt_zstd_stream *stream)
{
    if (stream == NULL)
        return;
    ZSTD_freeDCtx(stream->context);
    free(stream->buffer);
    free(stream);
}
