/* Makes zstd frames (RFC 8878) of XORs, which are mostly zeros.
 *
 * zstd is not asked to search for matches: the runs of zeros are the matches, and finding them
 * takes less time than XOR itself. Blocks without any difference become constant frames. */
#include "zt/xor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* For ZSTD_compressSequences, which shared libraries of zstd export since 1.5.0. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/little_endian.h"
#include "coding/xor_bytes.h"

/* Raise this when the frames of the same block change. */
#define REVISION 1
#define LEVEL    1
/* The longest block of a zstd frame (RFC 8878 section 3.1.1.2.4). */
#define ZSTD_BLOCK ((size_t)128 << 10)
/* A shorter run of zeros stays among the literals. A run becomes one zero, which is a literal, and
 * a match with the distance 1. */
#define RUN_LEAST 8
/* Each run follows a byte that is not zero; and each zstd block ends with one entry. */
#define SEQUENCES_MAX (ZT_XOR_BLOCK_BYTES / (RUN_LEAST + 1) + ZT_XOR_BLOCK_BYTES / ZSTD_BLOCK + 1)
/* A content size of four bytes, and no window descriptor. */
#define SIZED_SINGLE_SEGMENT 0xA0
#define HEADER_BYTES         9
#define BLOCK_HEADER         3
#define TYPE_REPEATED        (1u << 1)
#define SIZE_SHIFT           3
#define STEP                 64

struct zt_xor_encoder {
    ZSTD_CCtx *context;
    ZSTD_Sequence *sequences;
    uint8_t *frame;
    size_t frame_size;
};

uint64_t zt_xor_revision(void)
{
    return (uint64_t)REVISION << 32 | ZSTD_versionNumber();
}

enum zt_status zt_xor_encoder_new(struct zt_xor_encoder **out_encoder, struct zt_error *error)
{
    struct zt_xor_encoder *encoder = calloc(1, sizeof(*encoder));

    if (encoder == NULL)
        return zt_fail_memory(error, "a difference");
    encoder->frame_size = ZSTD_compressBound(ZT_XOR_BLOCK_BYTES);
    encoder->context = ZSTD_createCCtx();
    encoder->sequences = malloc(SEQUENCES_MAX * sizeof(*encoder->sequences));
    encoder->frame = malloc(encoder->frame_size);
    if (encoder->context == NULL || encoder->sequences == NULL || encoder->frame == NULL) {
        zt_xor_encoder_free(encoder);
        return zt_fail_memory(error, "a difference");
    }
    ZSTD_CCtx_setParameter(encoder->context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(encoder->context, ZSTD_c_blockDelimiters,
                           ZSTD_sf_explicitBlockDelimiters);
    *out_encoder = encoder;
    return ZT_OK;
}

void zt_xor_encoder_free(struct zt_xor_encoder *encoder)
{
    if (encoder == NULL)
        return;
    ZSTD_freeCCtx(encoder->context);
    free(encoder->sequences);
    free(encoder->frame);
    free(encoder);
}

/* --- blocks without a difference --- */

static uint8_t *put_block_header(uint8_t *to, uint32_t type, size_t size, bool is_last)
{
    const uint32_t header = (uint32_t)(size << SIZE_SHIFT) | type | is_last;

    to[0] = (uint8_t)header;
    to[1] = (uint8_t)(header >> 8);
    to[2] = (uint8_t)(header >> 16);
    return to + BLOCK_HEADER;
}

/* Writes a frame of zeros: repeated bytes, or for no bytes an empty block. */
static size_t make_zeros(uint8_t *frame, size_t length)
{
    uint8_t *to = frame + HEADER_BYTES;

    zt_store_le32(frame, ZSTD_MAGICNUMBER);
    frame[4] = SIZED_SINGLE_SEGMENT;
    zt_store_le32(frame + 5, (uint32_t)length);
    if (length == 0)
        to = put_block_header(to, 0, 0, true);
    while (length > 0) {
        const size_t part = length < ZSTD_BLOCK ? length : ZSTD_BLOCK;

        length -= part;
        to = put_block_header(to, TYPE_REPEATED, part, length == 0);
        *to++ = 0;
    }
    return (size_t)(to - frame);
}

/* --- other blocks --- */

/* Returns a bit for each of 64 bytes that is not zero, the first byte lowest. */
static uint64_t find_literals(const uint8_t *bytes)
{
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    uint64_t zeros = 0;

    for (unsigned i = 0; i < STEP / sizeof(zero); i++) {
        const __m128i part = _mm_loadu_si128((const __m128i *)bytes + i);

        zeros |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(part, zero)) << 16 * i;
    }
    return ~zeros;
#else
    uint64_t found = 0;

    for (unsigned i = 0; i < STEP; i++)
        found |= (uint64_t)(bytes[i] != 0) << i;
    return found;
#endif
}

/* The runs of zeros in one zstd block. */
struct runs {
    ZSTD_Sequence *sequences;
    size_t count;
    size_t literals; /* begin here */
    size_t zero;     /* follows the last byte that is not zero */
};

/* Ends a run of zeros, or nothing, before a byte that is not zero, or the end. */
static inline void end_run(struct runs *runs, size_t at)
{
    const size_t length = at - runs->zero;

    if (length < RUN_LEAST)
        return;
    runs->sequences[runs->count++] =
        (ZSTD_Sequence){.offset = 1,
                        .litLength = (unsigned)(runs->zero + 1 - runs->literals),
                        .matchLength = (unsigned)(length - 1)};
    runs->literals = at;
}

static inline void take_literal(struct runs *runs, size_t at)
{
    end_run(runs, at);
    runs->zero = at + 1;
}

/* Lists the runs of zeros in one zstd block, and its end. */
static size_t list_runs(const uint8_t *bytes, size_t at, size_t end, ZSTD_Sequence *sequences)
{
    struct runs runs = {.sequences = sequences, .literals = at, .zero = at};

    assert(at < end);
    for (; at + STEP <= end; at += STEP)
        for (uint64_t found = find_literals(bytes + at); found != 0; found &= found - 1)
            take_literal(&runs, at + (size_t)__builtin_ctzll(found));
    for (; at < end; at++)
        if (bytes[at] != 0)
            take_literal(&runs, at);
    end_run(&runs, end);
    runs.sequences[runs.count++] = (ZSTD_Sequence){.litLength = (unsigned)(end - runs.literals)};
    return runs.count;
}

enum zt_status zt_xor_encode(struct zt_xor_encoder *encoder, uint8_t *bytes, const uint8_t *base,
                             size_t length, struct zt_text *out_frame, struct zt_error *error)
{
    size_t count = 0;
    size_t packed;

    assert(length <= ZT_XOR_BLOCK_BYTES);
    out_frame->bytes = (const char *)encoder->frame;
    if (length == 0 || memcmp(bytes, base, length) == 0) {
        out_frame->length = make_zeros(encoder->frame, length);
        return ZT_OK;
    }
    zt_xor_bytes(bytes, base, length);
    for (size_t at = 0; at < length; at += ZSTD_BLOCK)
        count += list_runs(bytes, at, length - at < ZSTD_BLOCK ? length : at + ZSTD_BLOCK,
                           encoder->sequences + count);
    assert(count <= SEQUENCES_MAX);
    packed = ZSTD_compressSequences(encoder->context, encoder->frame, encoder->frame_size,
                                    encoder->sequences, count, bytes, length);
    if (ZSTD_isError(packed))
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "cannot make a difference: %s",
                       ZSTD_getErrorName(packed));
    out_frame->length = packed;
    return ZT_OK;
}
