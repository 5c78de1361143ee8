#include "hub/xet/xorb.h"

#include <assert.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>

#define FOOTER "XETBLOB"

static uint32_t load_24(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
}

const char *xorb_chunk_read(const uint8_t header[XORB_HEADER_BYTES], struct xorb_chunk *out_chunk)
{
    const uint32_t stored = load_24(header + 1);
    const uint32_t length = load_24(header + 5);

    if (header[0] != 0)
        return "a chunk is of an unknown version";
    if (header[4] > XORB_LZ4_PLANES)
        return "a chunk is compressed in an unknown way";
    if (length == 0 || stored == 0)
        return "a chunk is empty";
    if (length > XORB_CHUNK_MAX || stored > XORB_STORED_MAX)
        return "a chunk is too long";
    if (header[4] == XORB_PLAIN && stored != length)
        return "a chunk that is not compressed has two lengths";
    *out_chunk = (struct xorb_chunk){(enum xorb_scheme)header[4], stored, length};
    return NULL;
}

/* --- layout --- */

static bool fail(struct xorb_layout *layout, const char *mistake)
{
    layout->mistake = mistake;
    return false;
}

static bool begin_chunk(struct xorb_layout *layout)
{
    struct xorb_chunk chunk;
    const char *mistake;

    layout->header_length = 0;
    if (memcmp(layout->header, FOOTER, sizeof(FOOTER) - 1) == 0) {
        layout->is_in_footer = true;
        return true;
    }
    mistake = xorb_chunk_read(layout->header, &chunk);
    if (mistake != NULL)
        return fail(layout, mistake);
    if (layout->count == XORB_CHUNKS_MAX)
        return fail(layout, "there are too many chunks");
    layout->decoded += chunk.length;
    if (layout->decoded > XORB_DECODED_MAX)
        return fail(layout, "the chunks have more than 64 MiB");
    layout->left = chunk.stored;
    layout->at += XORB_HEADER_BYTES + chunk.stored;
    layout->ends[layout->count++] = layout->at;
    return true;
}

/* Returns the number of bytes taken. */
static size_t take_header(struct xorb_layout *layout, const uint8_t *bytes, size_t length)
{
    const size_t missing = XORB_HEADER_BYTES - layout->header_length;
    const size_t taken = length < missing ? length : missing;

    memcpy(layout->header + layout->header_length, bytes, taken);
    layout->header_length += (unsigned)taken;
    return taken;
}

bool xorb_layout_take(struct xorb_layout *layout, const uint8_t *bytes, size_t length)
{
    while (length > 0 && layout->mistake == NULL && !layout->is_in_footer) {
        size_t taken;

        if (layout->left > 0) {
            taken = length < layout->left ? length : layout->left;
            layout->left -= (uint32_t)taken;
        } else {
            taken = take_header(layout, bytes, length);
            if (layout->header_length == XORB_HEADER_BYTES && !begin_chunk(layout))
                return false;
        }
        bytes += taken;
        length -= taken;
    }
    return layout->mistake == NULL;
}

bool xorb_layout_finish(struct xorb_layout *layout)
{
    if (layout->mistake != NULL)
        return false;
    if (layout->left > 0 || layout->header_length > 0)
        return fail(layout, "it ends within a chunk");
    return layout->count > 0 || fail(layout, "there are no chunks");
}

/* --- decoding --- */

struct xorb_decoder {
    LZ4F_dctx *frames;
    uint8_t planes[XORB_CHUNK_MAX];
};

struct xorb_decoder *xorb_decoder_new(void)
{
    struct xorb_decoder *decoder = malloc(sizeof(*decoder));

    if (decoder != NULL &&
        LZ4F_isError(LZ4F_createDecompressionContext(&decoder->frames, LZ4F_VERSION))) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

void xorb_decoder_free(struct xorb_decoder *decoder)
{
    if (decoder == NULL)
        return;
    LZ4F_freeDecompressionContext(decoder->frames);
    free(decoder);
}

/* Decodes one frame with exactly these lengths. If it decodes to more it does not fit, and decoding
 * makes no progress. */
static bool decode_frame(struct xorb_decoder *decoder, const struct xorb_chunk *chunk,
                         const uint8_t *stored, uint8_t *out_bytes)
{
    size_t read = 0;
    size_t written = 0;

    LZ4F_resetDecompressionContext(decoder->frames);
    for (;;) {
        size_t in = chunk->stored - read;
        size_t out = chunk->length - written;
        const size_t hint =
            LZ4F_decompress(decoder->frames, out_bytes + written, &out, stored + read, &in, NULL);

        if (LZ4F_isError(hint))
            return false;
        read += in;
        written += out;
        assert(read <= chunk->stored && written <= chunk->length);
        if (hint == 0)
            return read == chunk->stored && written == chunk->length;
        if (in == 0 && out == 0)
            return false;
    }
}

/* The first plane has the bytes 0, 4, 8, …. If the length is not a multiple of four, the first
 * planes are longer by one. */
static void join_planes(const uint8_t *planes, uint32_t length, uint8_t *out_bytes)
{
    for (uint32_t plane = 0; plane < 4; plane++)
        for (uint32_t at = plane; at < length; at += 4)
            out_bytes[at] = *planes++;
}

bool xorb_decode(struct xorb_decoder *decoder, const struct xorb_chunk *chunk,
                 const uint8_t *stored, uint8_t *out_bytes)
{
    assert(chunk->length <= XORB_CHUNK_MAX);
    switch (chunk->scheme) {
    case XORB_PLAIN:
        memcpy(out_bytes, stored, chunk->length);
        return true;
    case XORB_LZ4:
        return decode_frame(decoder, chunk, stored, out_bytes);
    case XORB_LZ4_PLANES:
        break;
    }
    if (!decode_frame(decoder, chunk, stored, decoder->planes))
        return false;
    join_planes(decoder->planes, chunk->length, out_bytes);
    return true;
}
