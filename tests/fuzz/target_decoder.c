/* The decoders, given a component that a reader would allow and any bytes.
 *
 * The first eight bytes are the component: encoding, dtype, flags and rank, three dimensions, lead,
 * and the low byte of the decoded length; the rest is stored data. The last flag makes it a view:
 * its three strides and an unused byte come before the data. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "zt/decode.h"

#define HEAD        8
#define VIEW_HEAD   12
#define DECODED_MAX ((size_t)4 << 20)
#define RANK_MAX    3
/* Small arrays, so that many are tried: one in Fortran order may take 64 MiB of memory. */
#define EXTENTS 64

struct input {
    struct zt_component part;
    struct zt_arrangement arrangement;
    uint64_t shape[RANK_MAX];
    uint64_t strides[RANK_MAX];
    const uint8_t *data;
};

/* Shapes and lengths that agree, as readers ensure. */
static bool arrange(struct input *input, const uint8_t *head)
{
    uint64_t bytes = zt_dtype_width((enum zt_dtype)input->part.dtype);

    input->arrangement.fortran = (head[2] & 2) != 0;
    input->arrangement.rank = head[2] >> 3 & 3;
    input->arrangement.shape = input->shape;
    input->arrangement.lead_bytes = head[6];
    for (unsigned i = 0; i < input->arrangement.rank; i++) {
        input->shape[i] = head[3 + i] % EXTENTS;
        bytes *= input->shape[i];
    }
    input->part.arrangement = &input->arrangement;
    input->part.decoded_length = bytes;
    if (input->part.encoding == ZT_ENCODING_DEFLATE)
        return true;
    if (input->part.length < bytes + head[6])
        return false;
    input->part.offset += head[6];
    input->part.length = bytes;
    return true;
}

/* A view whose elements lie in the data, as readers ensure. */
static bool arrange_view(struct input *input, const uint8_t *head, size_t length)
{
    const uint64_t width = zt_dtype_width((enum zt_dtype)input->part.dtype);
    uint64_t elements = 1;
    uint64_t span = 1;

    if (length < VIEW_HEAD)
        return false;
    input->part.offset = VIEW_HEAD;
    input->arrangement.rank = head[2] >> 3 & 3;
    input->arrangement.shape = input->shape;
    input->arrangement.strides = input->strides;
    input->arrangement.flip = head[2] & 2 ? ZT_FLIP_ALL : ZT_FLIP_NONE;
    for (unsigned i = 0; i < input->arrangement.rank; i++) {
        input->shape[i] = head[3 + i] % EXTENTS;
        input->strides[i] = head[HEAD + i];
        elements *= input->shape[i];
        span += input->shape[i] > 0 ? (input->shape[i] - 1) * input->strides[i] : 0;
    }
    input->part.encoding = ZT_ENCODING_STRIDED;
    input->part.arrangement = &input->arrangement;
    input->part.decoded_length = elements * width;
    input->part.length = elements > 0 ? span * width : 0;
    return input->part.length <= length - VIEW_HEAD;
}

static bool read_input(struct input *input, const uint8_t *bytes, size_t length)
{
    static const uint8_t encodings[] = {ZT_ENCODING_RAW, ZT_ENCODING_ZSTD,
                                        ZT_ENCODING_ZSTD_SEEKABLE, ZT_ENCODING_DEFLATE};

    if (length < HEAD)
        return false;
    memset(input, 0, sizeof(*input));
    input->part = (struct zt_component){.encoding = encodings[bytes[0] % 4],
                                        .encoding_name = "",
                                        .dtype = bytes[1] % ZT_DTYPE_COUNT,
                                        .big_endian = bytes[2] & 1,
                                        .offset = HEAD,
                                        .length = length - HEAD};
    input->data = bytes;
    if ((bytes[2] & 0x80) != 0)
        return arrange_view(input, bytes, length);
    if (input->part.encoding == ZT_ENCODING_DEFLATE ||
        (input->part.encoding == ZT_ENCODING_RAW && (bytes[2] & 4) != 0))
        return arrange(input, bytes);
    if (input->part.encoding == ZT_ENCODING_RAW)
        input->part.decoded_length = input->part.length;
    else
        input->part.decoded_length =
            bytes[7] + ((uint64_t)bytes[6] << 8) + ((uint64_t)bytes[5] << 16);
    if (input->part.encoding == ZT_ENCODING_ZSTD && (bytes[2] & 4) != 0)
        input->part.decoded_length = ZT_LENGTH_UNKNOWN;
    if (input->part.encoding != ZT_ENCODING_RAW)
        input->part.big_endian = 0;
    return true;
}

/* The bytes of a raw component, each straight from the definition of its order. */
static void check_raw(const struct input *input, const uint8_t *decoded)
{
    const struct zt_component *part = &input->part;
    unsigned width = zt_dtype_width((enum zt_dtype)part->dtype);
    bool fortran = part->arrangement != NULL && part->arrangement->fortran;

    for (uint64_t i = 0; i < part->length / width; i++) {
        uint64_t rest = i;
        uint64_t stored = fortran ? 0 : i;
        uint64_t total = part->length / width;

        for (unsigned d = fortran ? input->arrangement.rank : 0; d-- > 0;) {
            total /= input->shape[d];
            stored += rest % input->shape[d] * total;
            rest /= input->shape[d];
        }
        for (unsigned b = 0; b < width; b++) {
            unsigned from = part->big_endian ? width - 1 - b : b;

            FUZZ_ASSERT(decoded[i * width + b] ==
                        input->data[part->offset + stored * width + from]);
        }
    }
}

/* The words of a view, each from its own place. */
static void check_view(const struct input *input, const uint8_t *decoded)
{
    const struct zt_component *part = &input->part;
    const unsigned width = zt_dtype_width((enum zt_dtype)part->dtype);
    const bool is_float = part->dtype <= ZT_BF16;

    for (uint64_t i = 0; i < part->decoded_length / width; i++) {
        uint64_t rest = i;
        uint64_t at = 0;
        uint64_t word = 0;

        for (unsigned d = input->arrangement.rank; d-- > 0;) {
            at += rest % input->shape[d] * input->strides[d];
            rest /= input->shape[d];
        }
        for (unsigned b = 0; b < width; b++)
            word |= (uint64_t)input->data[part->offset + at * width + b]
                    << 8 * (part->big_endian ? width - 1 - b : b);
        if (input->arrangement.flip == ZT_FLIP_ALL)
            word = is_float ? word ^ (uint64_t)1 << (8 * width - 1) : 0 - word;
        for (unsigned b = 0; b < width; b++)
            FUZZ_ASSERT(decoded[i * width + b] == (uint8_t)(word >> 8 * b));
    }
}

/* Reads in pieces; UINT64_MAX when it fails, else the decoded length (DECODED_MAX: not all of
 * it). */
static uint64_t decode(const struct input *input, struct zt_source *source, size_t piece,
                       uint8_t *decoded)
{
    struct zt_decoder *decoder = NULL;
    struct zt_error error;
    size_t total = 0;
    size_t length = 1;
    enum zt_status status = zt_decoder_open(&input->part, source, &decoder, &error);

    while (status == ZT_OK && length > 0 && total < DECODED_MAX) {
        size_t room = DECODED_MAX - total;

        status =
            zt_decoder_read(decoder, decoded + total, piece < room ? piece : room, &length, &error);
        total += status == ZT_OK ? length : 0;
    }
    zt_decoder_close(decoder);
    if (status != ZT_OK)
        fuzz_failure(status, &error, zt_source_size(source));
    if (status == ZT_OK && length == 0)
        FUZZ_ASSERT(input->part.decoded_length == ZT_LENGTH_UNKNOWN ||
                    input->part.decoded_length == total);
    return status == ZT_OK ? total : UINT64_MAX;
}

/* Frames decoded one by one give the same bytes as the whole stream. */
static void check_frames(const struct input *input, struct zt_source *source,
                         const uint8_t *decoded)
{
    struct zt_frames frames;
    struct zt_error error;

    FUZZ_ASSERT(zt_frames_read(&input->part, source, &frames, &error) == ZT_OK);
    for (uint32_t i = 0; i < frames.count; i++) {
        const struct zt_frame *frame = &frames.frames[i];
        uint8_t *buffer = malloc(frame->decoded_length + 1);

        FUZZ_ASSERT(buffer != NULL && zt_frame_decode(frame, source, buffer, &error) == ZT_OK);
        FUZZ_ASSERT(memcmp(buffer, decoded + frame->decoded_offset, frame->decoded_length) == 0);
        free(buffer);
    }
    zt_frames_free(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static uint8_t whole[DECODED_MAX], pieces[DECODED_MAX];
    struct input input;
    struct zt_source *source;
    uint64_t first;
    uint64_t second;

    if (!read_input(&input, bytes, length))
        return 0;
    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, NULL) == ZT_OK);
    first = decode(&input, source, DECODED_MAX, whole);
    second = decode(&input, source, 1 + length % 331, pieces);
    FUZZ_ASSERT(first == second);
    if (first != UINT64_MAX)
        FUZZ_ASSERT(memcmp(whole, pieces, (size_t)first) == 0);
    if (input.part.encoding == ZT_ENCODING_RAW)
        check_raw(&input, whole);
    if (input.part.encoding == ZT_ENCODING_STRIDED && first < DECODED_MAX)
        check_view(&input, whole);
    if (input.part.encoding == ZT_ENCODING_ZSTD_SEEKABLE && first < DECODED_MAX)
        check_frames(&input, source, whole);
    zt_source_close(source);
    return 0;
}
