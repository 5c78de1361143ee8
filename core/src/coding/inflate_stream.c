/* Deflated streams: bounded input, zlib's window of 32 KiB, and an exact end. */
#include "coding/inflate_stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include <zlib.h>

#define INPUT_SIZE ((size_t)64 << 10)
/* RFC 1951 section 3.2.5: the longest match is 258 bytes, and a byte holds four of its shortest
 * codes. */
#define RATIO_MAX 1032
/* zlib counts in unsigned int. */
#define OUTPUT_MAX ((size_t)1 << 30)
/* No zlib or gzip header, the largest window. */
#define RAW_WINDOW_BITS (-15)

struct zt_inflate_stream {
    struct zt_source *source;
    z_stream zlib;
    bool is_set_up;
    bool has_ended;
    uint64_t offset;      /* absolute, of the first stored byte */
    uint64_t next_offset; /* absolute, of the stored byte to be read next */
    uint64_t stored_left;
    uint64_t expected_length;
    bool partial;
    uint64_t produced;
    uint8_t buffer[INPUT_SIZE];
};

bool zt_inflate_ratio_possible(uint64_t stored_length, uint64_t decoded_length)
{
    return decoded_length == 0 || (decoded_length - 1) / RATIO_MAX < stored_length;
}

enum zt_status zt_inflate_stream_new(struct zt_source *source,
                                     struct zt_inflate_stream **out_stream, struct zt_error *error)
{
    struct zt_inflate_stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL)
        return zt_fail_memory(error, "a decoder");
    stream->source = source;
    stream->has_ended = true;
    stream->is_set_up = inflateInit2(&stream->zlib, RAW_WINDOW_BITS) == Z_OK;
    if (!stream->is_set_up) {
        zt_inflate_stream_free(stream);
        return zt_fail_memory(error, "a decoder");
    }
    *out_stream = stream;
    return ZT_OK;
}

enum zt_status zt_inflate_stream_start(struct zt_inflate_stream *stream, uint64_t offset,
                                       uint64_t stored_length, uint64_t expected_length,
                                       bool is_partial, struct zt_error *error)
{
    if (!zt_inflate_ratio_possible(stored_length, expected_length))
        return zt_fail(error, ZT_CORRUPT, "zip §Deflate Ratio", offset,
                       "%" PRIu64 " deflated bytes cannot inflate to %" PRIu64 " bytes",
                       stored_length, expected_length);
    assert(stream->is_set_up);
    inflateReset(&stream->zlib);
    stream->zlib.avail_in = 0;
    stream->has_ended = false;
    stream->offset = stream->next_offset = offset;
    stream->stored_left = stored_length;
    stream->expected_length = expected_length;
    stream->partial = is_partial;
    stream->produced = 0;
    return ZT_OK;
}

static enum zt_status fill(struct zt_inflate_stream *stream, struct zt_error *error)
{
    size_t part = stream->stored_left < INPUT_SIZE ? (size_t)stream->stored_left : INPUT_SIZE;
    enum zt_status status;

    if (stream->zlib.avail_in > 0 || part == 0)
        return ZT_OK;
    zt_source_read_on(stream->source, stream->next_offset, stream->stored_left, 0);
    status = zt_source_read_at(stream->source, stream->next_offset, stream->buffer, part, error);
    if (status != ZT_OK)
        return status;
    stream->zlib.next_in = stream->buffer;
    stream->zlib.avail_in = (uInt)part;
    stream->next_offset += part;
    stream->stored_left -= part;
    return ZT_OK;
}

static enum zt_status fail_decoding(const struct zt_inflate_stream *stream, int result,
                                    struct zt_error *error)
{
    if (result == Z_MEM_ERROR)
        return zt_fail_memory(error, "a decoder");
    if (result == Z_BUF_ERROR)
        return zt_fail(error, ZT_CORRUPT, "zip §Deflate Stream", stream->offset,
                       "the stored bytes end inside the deflated stream");
    return zt_fail(error, ZT_CORRUPT, "zip §Deflate Stream", stream->offset, "inflate: %s",
                   stream->zlib.msg != NULL ? stream->zlib.msg : zError(result));
}

/* Decodes until buffer is full or the stream ends. */
static enum zt_status decode(struct zt_inflate_stream *stream, void *buffer, size_t capacity,
                             size_t *out_length, struct zt_error *error)
{
    stream->zlib.next_out = buffer;
    stream->zlib.avail_out = (uInt)capacity;
    while (stream->zlib.avail_out > 0 && !stream->has_ended) {
        enum zt_status status = fill(stream, error);
        int result;

        if (status != ZT_OK)
            return status;
        result = inflate(&stream->zlib, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END)
            return fail_decoding(stream, result, error);
        stream->has_ended = result == Z_STREAM_END;
    }
    assert(stream->zlib.avail_out <= capacity);
    *out_length = capacity - stream->zlib.avail_out;
    return ZT_OK;
}

/* Checks that no bytes follow the expected ones and that all stored bytes have been used. */
static enum zt_status check_end(struct zt_inflate_stream *stream, struct zt_error *error)
{
    uint8_t surplus;
    size_t length = 0;
    enum zt_status status = decode(stream, &surplus, 1, &length, error);

    if (status != ZT_OK)
        return status;
    if (length > 0)
        return zt_fail(error, ZT_CORRUPT, "zip §Deflate Length", stream->offset,
                       "the stored bytes inflate to more than the %" PRIu64 " bytes declared",
                       stream->expected_length);
    if (stream->zlib.avail_in > 0 || stream->stored_left > 0)
        return zt_fail(error, ZT_CORRUPT, "zip §Deflate Stream", stream->offset,
                       "stored bytes follow the end of the deflated stream");
    return ZT_OK;
}

enum zt_status zt_inflate_stream_read(struct zt_inflate_stream *stream, void *buffer,
                                      size_t capacity, size_t *out_length, struct zt_error *error)
{
    uint64_t left = stream->expected_length - stream->produced;
    size_t wanted = capacity < OUTPUT_MAX ? capacity : OUTPUT_MAX;
    size_t length = 0;
    enum zt_status status;

    assert(stream->produced <= stream->expected_length);
    wanted = left < wanted ? (size_t)left : wanted;
    status = decode(stream, buffer, wanted, &length, error);
    if (status != ZT_OK)
        return status;
    if (length < wanted)
        return zt_fail(error, ZT_CORRUPT, "zip §Deflate Length", stream->offset,
                       "the stored bytes inflate to %" PRIu64 " bytes, %" PRIu64 " are declared",
                       stream->produced + length, stream->expected_length);
    if (length == left && !stream->partial && (status = check_end(stream, error)) != ZT_OK)
        return status;
    stream->produced += length;
    *out_length = length;
    return ZT_OK;
}

uint64_t zt_inflate_stream_consumed(const struct zt_inflate_stream *stream)
{
    return stream->next_offset - stream->offset;
}

void zt_inflate_stream_free(struct zt_inflate_stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->is_set_up)
        inflateEnd(&stream->zlib);
    free(stream);
}
