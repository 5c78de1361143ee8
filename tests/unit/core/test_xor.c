/* Differences of tensors: what is encoded gives the tensor back, costs little where both are equal,
 * and is never trusted when it is decoded. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "survives.h"
#include "zt/xor.h"

#define BLOCK     ZT_XOR_BLOCK_BYTES
#define BYTES_MAX (3 * BLOCK + 17)

/* A tensor, and the base it is compared with. */
static uint8_t bytes[BYTES_MAX];
static uint8_t base[BYTES_MAX];
static uint8_t frames[2 * BYTES_MAX];
static uint8_t decoded[BYTES_MAX];

/* Every step-th byte differs, by a few bits; 0: none. */
static void fill(size_t length, size_t step)
{
    uint32_t random = 1;

    for (size_t i = 0; i < length; i++) {
        random = random * 1664525 + 1013904223;
        base[i] = (uint8_t)(random >> 24);
        bytes[i] = base[i];
        if (step > 0 && i % step == step - 1)
            bytes[i] ^= (uint8_t)(1 + (random >> 16) % 255);
    }
}

static enum zt_status encode(size_t length, size_t *out_length)
{
    static uint8_t block[ZT_XOR_BLOCK_BYTES];
    struct zt_xor_encoder *encoder;
    struct zt_error error;
    enum zt_status status = zt_xor_encoder_new(&encoder, &error);
    size_t at = 0;

    *out_length = 0;
    if (status != ZT_OK)
        return status;
    do {
        const size_t part = length - at < BLOCK ? length - at : BLOCK;
        struct zt_text frame;

        memcpy(block, bytes + at, part);
        status = zt_xor_encode(encoder, block, base + at, part, &frame, &error);
        if (status == ZT_OK) {
            assert_true(frame.length <= sizeof(frames) - *out_length);
            memcpy(frames + *out_length, frame.bytes, frame.length);
            *out_length += frame.length;
        }
        at += part;
    } while (status == ZT_OK && at < length);
    zt_xor_encoder_free(encoder);
    return status;
}

/* Takes bytes into decoded, and fails the test if there are too many. */
struct taken {
    size_t length;
    size_t most;
};

static enum zt_status take(void *context, const void *piece, size_t length, struct zt_error *error)
{
    struct taken *taken = context;

    (void)error;
    assert_true(length <= taken->most - taken->length);
    memcpy(decoded + taken->length, piece, length);
    taken->length += length;
    return ZT_OK;
}

static enum zt_status decode(const void *packed, size_t packed_length, size_t length,
                             struct zt_error *error)
{
    struct zt_source *packed_source = NULL;
    struct zt_source *base_source = NULL;
    struct taken taken = {.most = length};
    enum zt_status status = zt_source_from_memory(packed, packed_length, &packed_source, error);

    if (status == ZT_OK)
        status = zt_source_from_memory(base, BYTES_MAX, &base_source, error);
    if (status == ZT_OK)
        status = zt_xor_decode(&(struct zt_xor_difference){packed_source, base_source, 0, length},
                               &(struct zt_sink){take, &taken}, error);
    if (status == ZT_OK)
        assert_int_equal(taken.length, length);
    zt_source_close(packed_source);
    zt_source_close(base_source);
    return status;
}

static const size_t lengths[] = {0,         1,     2,         7,         8,        9,
                                 31,        32,    33,        131071,    131072,   131073,
                                 BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, BYTES_MAX};
static const size_t steps[] = {0, 1, 2, 3, 9, 10, 11, 100, 200000};

TEST(base_and_difference_give_the_tensor)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
            struct zt_error error;
            size_t packed;

            fill(lengths[i], steps[j]);
            assert_ok(encode(lengths[i], &packed));
            assert_ok(decode(frames, packed, lengths[i], &error));
            assert_memory_equal(decoded, bytes, lengths[i]);
        }
}

TEST(every_length_up_to_some_hundreds_works)
{
    for (size_t length = 0; length < 700; length++) {
        struct zt_error error;
        size_t packed;

        fill(length, length % 13);
        assert_ok(encode(length, &packed));
        assert_ok(decode(frames, packed, length, &error));
        assert_memory_equal(decoded, bytes, length);
    }
}

/* What `zstd -d` does. */
TEST(frames_are_standard_zstd_of_the_xor)
{
    size_t packed;
    size_t at = 0;
    size_t count = 0;

    fill(BYTES_MAX, 100);
    assert_ok(encode(BYTES_MAX, &packed));
    for (size_t from = 0; from < packed; count++) {
        const size_t frame = ZSTD_findFrameCompressedSize(frames + from, packed - from);
        const size_t part = BYTES_MAX - at < BLOCK ? BYTES_MAX - at : BLOCK;

        assert_false(ZSTD_isError(frame));
        assert_int_equal(ZSTD_getFrameContentSize(frames + from, frame), part);
        assert_int_equal(ZSTD_decompress(decoded + at, BYTES_MAX - at, frames + from, frame), part);
        from += frame;
        at += part;
    }
    assert_int_equal(count, 4);
    for (size_t i = 0; i < BYTES_MAX; i++)
        assert_int_equal(decoded[i], bytes[i] ^ base[i]);
}

TEST(equal_blocks_cost_almost_nothing)
{
    size_t packed;

    fill(BYTES_MAX, 0);
    assert_ok(encode(BYTES_MAX, &packed));
    assert_int_equal(packed, 3 * 17 + 13);
}

/* One of 100 elements of two bytes: 1/74 of the bytes, or less. */
TEST(few_changes_cost_little)
{
    size_t packed;

    fill(BYTES_MAX, 200);
    assert_ok(encode(BYTES_MAX, &packed));
    assert_true(packed < BYTES_MAX / 74);
}

TEST(unrelated_bytes_cost_hardly_more_than_themselves)
{
    size_t packed;

    fill(BYTES_MAX, 1);
    assert_ok(encode(BYTES_MAX, &packed));
    assert_true(packed < BYTES_MAX + BYTES_MAX / 100);
}

TEST(decoding_refuses_other_lengths)
{
    struct zt_error error;
    size_t packed;

    fill(BLOCK + 5, 100);
    assert_ok(encode(BLOCK + 5, &packed));
    assert_int_equal(decode(frames, packed, BLOCK + 4, &error), ZT_CORRUPT);
    assert_int_equal(decode(frames, packed, BLOCK + 6, &error), ZT_CORRUPT);
    assert_int_equal(decode(frames, packed, 0, &error), ZT_CORRUPT);
}

TEST(decoding_refuses_every_shorter_answer)
{
    struct zt_error error;
    size_t packed;

    fill(300, 7);
    assert_ok(encode(300, &packed));
    for (size_t length = 0; length < packed; length++)
        assert_int_equal(decode(frames, length, 300, &error), ZT_CORRUPT);
}

TEST(decoding_refuses_large_windows)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_inBuffer input = {bytes, BLOCK, 0};
    ZSTD_outBuffer output = {frames, sizeof(frames), 0};
    struct zt_error error;

    fill(BLOCK, 1);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 24);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    /* Without the end at once, zstd cannot choose a smaller window. */
    assert_int_equal(ZSTD_compressStream2(context, &output, &input, ZSTD_e_flush), 0);
    assert_int_equal(ZSTD_compressStream2(context, &output, &input, ZSTD_e_end), 0);
    ZSTD_freeCCtx(context);
    assert_int_equal(decode(frames, output.pos, BLOCK, &error), ZT_CORRUPT);
    assert_non_null(strstr(error.message, "window above 8 MiB"));
}

/* A bomb states more than the tensor has, or repeats bytes without end. */
TEST(decoding_stops_bombs)
{
    struct zt_error error;
    size_t packed;
    size_t all = 0;

    fill(BYTES_MAX, 0);
    assert_ok(encode(BYTES_MAX, &packed));
    while (all + packed <= sizeof(frames) / 2) {
        memmove(frames + all, frames, packed);
        all += packed;
    }
    assert_int_equal(decode(frames, all, BYTES_MAX, &error), ZT_CORRUPT);
    assert_int_equal(decode(frames, all, 1, &error), ZT_CORRUPT);
}

/* --- memory --- */

static enum zt_status encode_all(void *context)
{
    size_t packed;

    (void)context;
    return encode(BYTES_MAX, &packed);
}

static enum zt_status decode_all(void *context)
{
    struct zt_error error;

    return decode(frames, *(const size_t *)context, BYTES_MAX, &error);
}

TEST(encoding_survives_missing_memory)
{
    fill(BYTES_MAX, 100);
    assert_survives(encode_all, NULL);
}

TEST(decoding_survives_missing_memory)
{
    size_t packed;

    fill(BYTES_MAX, 100);
    assert_ok(encode(BYTES_MAX, &packed));
    assert_survives(decode_all, &packed);
}
