/* Xorbs: the same chunks whatever the pieces in which they arrive, each of which decodes or does
 * not. The first byte is the length of the pieces. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "hub/xet/xorb.h"

static struct xorb_layout *read_layout(const uint8_t *bytes, size_t length, size_t piece)
{
    struct xorb_layout *layout = calloc(1, sizeof(*layout));

    FUZZ_ASSERT(layout != NULL);
    for (size_t at = 0; at < length; at += piece)
        if (!xorb_layout_take(layout, bytes + at, length - at < piece ? length - at : piece))
            break;
    return layout;
}

static void decode(struct xorb_decoder *decoder, const uint8_t *bytes, size_t length)
{
    struct xorb_chunk chunk;
    uint8_t *decoded;

    FUZZ_ASSERT(xorb_chunk_read(bytes, &chunk) == NULL);
    FUZZ_ASSERT(XORB_HEADER_BYTES + chunk.stored == length);
    decoded = malloc(chunk.length);
    FUZZ_ASSERT(decoded != NULL);
    (void)xorb_decode(decoder, &chunk, bytes + XORB_HEADER_BYTES, decoded);
    free(decoded);
}

static void decode_all(const struct xorb_layout *layout, const uint8_t *bytes, size_t length)
{
    struct xorb_decoder *decoder = xorb_decoder_new();
    uint32_t at = 0;

    FUZZ_ASSERT(decoder != NULL);
    for (uint32_t i = 0; i < layout->count; i++) {
        FUZZ_ASSERT(layout->ends[i] > at && layout->ends[i] <= length);
        decode(decoder, bytes + at, layout->ends[i] - at);
        at = layout->ends[i];
    }
    xorb_decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct xorb_layout *whole;
    struct xorb_layout *pieces;
    bool is_whole;

    if (length < 1)
        return 0;
    whole = read_layout(bytes + 1, length - 1, length);
    pieces = read_layout(bytes + 1, length - 1, (size_t)bytes[0] + 1);
    is_whole = xorb_layout_finish(whole);
    FUZZ_ASSERT(is_whole == xorb_layout_finish(pieces));
    FUZZ_ASSERT(is_whole == (whole->mistake == NULL));
    if (is_whole) {
        FUZZ_ASSERT(whole->count == pieces->count);
        FUZZ_ASSERT(memcmp(whole->ends, pieces->ends, whole->count * sizeof(uint32_t)) == 0);
        decode_all(whole, bytes + 1, length - 1);
    }
    free(whole);
    free(pieces);
    return 0;
}
