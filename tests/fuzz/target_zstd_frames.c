/* Walking zstd frames by their headers, compared with the decoder: both must see the same
 * frames. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "zt/coding.h"
#include "zt/decode.h"

/* A skippable frame of no bytes. */
#define EMPTY_FRAME "\x50\x2A\x4D\x18\0\0\0\0"
#define EMPTY_BYTES 8
/* The most that is decoded. */
#define DECODED_MAX ((uint64_t)1 << 24)

static bool fits(const uint8_t *bytes, size_t length)
{
    const struct zt_component stored = {.length = length, .decoded_length = ZT_LENGTH_UNKNOWN};
    struct zt_source *source = NULL;
    bool fit = false;

    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, NULL) == ZT_OK);
    FUZZ_ASSERT(zt_zstd_fits_all(source, &stored, &fit, NULL) == ZT_OK);
    zt_source_close(source);
    return fit;
}

/* Whether it decodes to its end. */
static bool decodes(const uint8_t *bytes, size_t length)
{
    const struct zt_component component = {.name = "",
                                           .encoding_name = "zstd",
                                           .length = length,
                                           .decoded_length = ZT_LENGTH_UNKNOWN,
                                           .dtype = ZT_U8,
                                           .encoding = ZT_ENCODING_ZSTD};
    static uint8_t buffer[1 << 16];
    struct zt_decoder *decoder = NULL;
    struct zt_source *source = NULL;
    enum zt_status status;
    uint64_t decoded = 0;
    size_t got = 1;

    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, NULL) == ZT_OK);
    status = zt_decoder_open(&component, source, &decoder, NULL);
    while (status == ZT_OK && got > 0 && decoded < DECODED_MAX) {
        status = zt_decoder_read(decoder, buffer, sizeof(buffer), &got, NULL);
        decoded += got;
    }
    zt_decoder_close(decoder);
    zt_source_close(source);
    return status == ZT_OK && got == 0;
}

/* Whether no byte could begin a header with a large window, a large single segment or a dictionary:
 * then everything that decodes must be accepted. Windows above 8 MiB have an exponent of 13 or
 * more. */
static bool may_be_unfit(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i + 5 < length; i++)
        if (memcmp(bytes + i, "\x28\xB5\x2F\xFD", 4) == 0 &&
            ((bytes[i + 4] & 0x23) != 0 || bytes[i + 5] > (13 << 3)))
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    bool fit = fits(bytes, length);
    uint8_t *longer;

    if (!fit && length > 0 && decodes(bytes, length))
        FUZZ_ASSERT(may_be_unfit(bytes, length));
    longer = malloc(length + EMPTY_BYTES);
    FUZZ_ASSERT(longer != NULL);
    memcpy(longer, bytes, length);
    memcpy(longer + length, EMPTY_FRAME, EMPTY_BYTES);
    FUZZ_ASSERT(length == 0 || !fit || fits(longer, length + EMPTY_BYTES));
    free(longer);
    return 0;
}
