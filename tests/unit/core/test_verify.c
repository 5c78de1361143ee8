/* Digests of components: the verdicts, which bytes are covered, and reading no more than is
 * needed. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handmade.h"
#include "zt/verify.h"

#define PLAIN_SIZE 700000

static uint8_t plain[PLAIN_SIZE];
static const uint64_t shape[] = {PLAIN_SIZE};

static int fill_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLAIN_SIZE; i++)
        plain[i] = (uint8_t)(i * i >> 8 ^ i / 100);
    return 0;
}

static void digest_text(enum zt_digest_algorithm algorithm, const void *bytes, size_t length,
                        char *out_text)
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_ok(zt_hasher_new(algorithm, &hasher));
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    zt_digest_format(&digest, out_text);
}

static void state_digest(struct zt_component *part, const char *text)
{
    part->digest = text;
    part->digest_length = (uint32_t)strlen(text);
}

static struct zt_component_check check(struct handmade *made, const struct zt_progress *progress)
{
    struct zt_component_check result;

    memset(&result, 0x5a, sizeof(result));
    if (made->source == NULL)
        handmade_open(made);
    assert_ok(
        zt_component_check(&made->model, &made->parts[0], made->source, progress, &result, NULL));
    return result;
}

/* Makes one part "data" of bytes as they are, whose digest is stated as that text. */
static struct zt_component *make(struct handmade *made, enum zt_format format, const void *bytes,
                                 size_t length, const char *digest)
{
    struct zt_component *part;

    handmade_init(made, format, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(made, "data", ZT_U8, bytes, length);
    state_digest(part, digest);
    return part;
}

TEST(stored_bytes_are_hashed_up_to_1_2)
{
    static const enum zt_digest_algorithm algorithms[] = {ZT_DIGEST_SHA256, ZT_DIGEST_CRC32C,
                                                          ZT_DIGEST_XXH3};
    static const enum zt_format formats[] = {ZT_FORMAT_ZT01, ZT_FORMAT_ZT1};
    char text[ZT_DIGEST_TEXT_SIZE];
    struct bytes frame = {NULL, 0};
    struct handmade made;

    bytes_append_zstd(&frame, plain, PLAIN_SIZE, false);
    for (int i = 0; i < 6; i++) {
        struct zt_component *part;
        struct zt_component_check result;

        digest_text(algorithms[i % 3], frame.at, frame.length, text);
        part = make(&made, formats[i / 3], frame.at, frame.length, text);
        part->encoding = ZT_ENCODING_ZSTD;
        part->decoded_length = PLAIN_SIZE;
        result = check(&made, NULL);
        assert_int_equal(result.verdict, ZT_VERDICT_VERIFIED);
        assert_true(result.hashed_bytes == frame.length);
        assert_string_equal(result.expected, text);
        assert_string_equal(result.actual, text);
        handmade_free(&made);
    }
    bytes_free(&frame);
}

/* A right digest of a stream that does not decode: up to 1.2 nothing is decoded to find out. */
TEST(stored_digest_does_not_decode)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;
    struct zt_component *part;

    digest_text(ZT_DIGEST_CRC32C, plain, 1000, text);
    part = make(&made, ZT_FORMAT_ZT1, plain, 1000, text);
    part->encoding = ZT_ENCODING_UNKNOWN;
    assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_VERIFIED);
    handmade_free(&made);
}

TEST(big_endian_data_is_hashed_as_it_is_stored)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    uint8_t sha256[32];
    struct handmade made;
    struct zt_component *part;

    digest_text(ZT_DIGEST_SHA256, plain, 1000, text);
    handmade_init(&made, ZT_FORMAT_ZT01, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(&made, "data", ZT_F32, plain, 1000);
    part->big_endian = 1;
    state_digest(part, text);
    assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_VERIFIED);
    assert_false(zt_component_decoded_sha256(&made.model, part, sha256));
    part->big_endian = 0;
    assert_true(zt_component_decoded_sha256(&made.model, part, sha256));
    handmade_free(&made);
}

TEST(decoded_bytes_are_hashed_in_2)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct bytes stream = {NULL, 0};
    struct handmade made;
    uint8_t sha256[32];
    struct zt_component *part;
    struct zt_component_check result;

    digest_text(ZT_DIGEST_SHA256, plain, PLAIN_SIZE, text);
    bytes_append_seekable(&stream, plain, PLAIN_SIZE, 65536);
    part = make(&made, ZT_FORMAT_ZT2, stream.at, stream.length, text);
    part->encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    part->decoded_length = PLAIN_SIZE;
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_VERIFIED);
    assert_true(result.hashed_bytes > 0 && result.hashed_bytes <= stream.length);
    assert_true(zt_component_decoded_sha256(&made.model, part, sha256));
    assert_int_equal(sha256[0] >> 4, text[7] >= 'a' ? text[7] - 'a' + 10 : text[7] - '0');
    handmade_free(&made);
    bytes_free(&stream);
}

TEST(decoded_sha256_is_given_only_if_it_covers_the_decoded_bytes)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;
    uint8_t sha256[32];
    struct zt_component *part;

    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(&made, "data", ZT_U8, plain, 1000);
    assert_false(zt_component_decoded_sha256(&made.model, part, sha256));
    digest_text(ZT_DIGEST_SHA256, plain, 1000, text);
    state_digest(part, text);
    assert_true(zt_component_decoded_sha256(&made.model, part, sha256));
    part->encoding = ZT_ENCODING_ZSTD;
    assert_false(zt_component_decoded_sha256(&made.model, part, sha256));
    state_digest(part, "crc32c:1");
    part->encoding = ZT_ENCODING_RAW;
    assert_false(zt_component_decoded_sha256(&made.model, part, sha256));
    assert_true(zt_digest_covers_stored(&made.model));
    made.model.format = ZT_FORMAT_ZT2;
    assert_false(zt_digest_covers_stored(&made.model));
    handmade_free(&made);
}

TEST(wrong_digest_fails_with_both_texts)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;
    struct zt_component_check result;

    digest_text(ZT_DIGEST_CRC32C, plain, 1000, text);
    make(&made, ZT_FORMAT_ZT1, plain, 1000, "crc32c:deadbeef");
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
    assert_string_equal(result.expected, "crc32c:deadbeef");
    assert_string_equal(result.actual, text);
    assert_true(result.hashed_bytes == 1000);
    handmade_free(&made);
}

TEST(every_flipped_bit_fails)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;

    digest_text(ZT_DIGEST_XXH3, plain, 64, text);
    make(&made, ZT_FORMAT_ZT2, plain, 64, text);
    handmade_open(&made);
    for (unsigned bit = 0; bit < 64 * 8; bit++) {
        made.data.at[64 + bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_FAILED);
        made.data.at[64 + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_VERIFIED);
    handmade_free(&made);
}

TEST(bytes_that_do_not_decode_fail_without_a_digest_of_their_own)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct bytes stream = {NULL, 0};
    struct handmade made;
    struct zt_component *part;
    struct zt_component_check result;

    digest_text(ZT_DIGEST_XXH3, plain, 1000, text);
    bytes_append_seekable(&stream, plain, 1000, 512);
    part = make(&made, ZT_FORMAT_ZT2, stream.at, stream.length, text);
    part->encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    part->decoded_length = 1000;
    assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_VERIFIED);
    made.data.at[64 + 20] ^= 0x40;
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
    assert_string_equal(result.actual, "");
    assert_string_equal(result.expected, text);
    /* A table that is wrong. */
    made.data.at[64 + stream.length - 1] ^= 1;
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
    assert_true(result.hashed_bytes == 0);
    handmade_free(&made);
    bytes_free(&stream);
}

static bool count_advance(void *context, uint64_t stored_bytes)
{
    uint64_t *left = context;

    *left -= stored_bytes;
    return *left != UINT64_MAX;
}

static bool stop(void *context, uint64_t stored_bytes)
{
    (void)stored_bytes;
    ++*(int *)context;
    return false;
}

TEST(what_cannot_be_judged_is_not_read)
{
    static const char *const texts[] = {"", "md5:00", "sha512:00", "nonsense"};
    int calls = 0;
    const struct zt_progress progress = {stop, &calls};
    struct handmade made;
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_component *part;
    struct zt_component_check result;

    digest_text(ZT_DIGEST_SHA256, plain, 1000, text);
    handmade_init(&made, ZT_FORMAT_ZT2, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(&made, "data", ZT_U8, plain, 1000);
    result = check(&made, &progress);
    assert_int_equal(result.verdict, ZT_VERDICT_UNDIGESTED);
    assert_string_equal(result.expected, "");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        state_digest(part, texts[i]);
        result = check(&made, &progress);
        assert_int_equal(result.verdict, ZT_VERDICT_UNSUPPORTED);
        assert_string_equal(result.expected, texts[i]);
        assert_string_equal(result.actual, "");
        assert_true(result.hashed_bytes == 0);
    }
    state_digest(part, text);
    zt_source_close(made.source);
    made.source = NULL;
    assert_ok(zt_component_check(&made.model, part, NULL, &progress, &result, NULL));
    assert_int_equal(result.verdict, ZT_VERDICT_UNSUPPORTED);
    part->encoding = ZT_ENCODING_UNKNOWN;
    assert_int_equal(check(&made, &progress).verdict, ZT_VERDICT_UNSUPPORTED);
    assert_int_equal(calls, 0);
    handmade_free(&made);
}

/* Each byte of a digest counts. */
TEST(digest_that_is_wrong_in_one_byte_fails)
{
    static const enum zt_digest_algorithm algorithms[] = {ZT_DIGEST_SHA256, ZT_DIGEST_CRC32C,
                                                          ZT_DIGEST_XXH3};

    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        char text[ZT_DIGEST_TEXT_SIZE];
        size_t at;

        digest_text(algorithms[i], plain, 1000, text);
        at = strlen(text);
        while (text[--at] != ':' && text[at] != 'x') {
            char right = text[at];
            struct handmade made;

            text[at] = right == '0' ? '1' : '0';
            make(&made, ZT_FORMAT_ZT1, plain, 1000, text);
            assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_FAILED);
            handmade_free(&made);
            text[at] = right;
        }
    }
}

TEST(impossible_digests_fail_and_report_the_actual_one)
{
    static const enum zt_format formats[] = {ZT_FORMAT_ZT01, ZT_FORMAT_ZT1, ZT_FORMAT_ZT2};
    static const struct {
        const char *stated;
        enum zt_digest_algorithm algorithm;
    } cases[] = {{"sha256:00", ZT_DIGEST_SHA256},
                 {"crc32c:0x", ZT_DIGEST_CRC32C},
                 {"xxh3:00", ZT_DIGEST_XXH3}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct handmade made;
        struct zt_component_check result;
        char actual[ZT_DIGEST_TEXT_SIZE];

        make(&made, formats[i], plain, 1000, cases[i].stated);
        result = check(&made, NULL);
        digest_text(cases[i].algorithm, plain, 1000, actual);
        assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
        assert_string_equal(result.expected, cases[i].stated);
        assert_string_equal(result.actual, actual);
        handmade_free(&made);
    }
}

TEST(long_digest_texts_are_cut_between_characters)
{
    char text[301];
    struct handmade made;
    struct zt_component_check result;

    text[0] = 'x';
    for (int i = 1; i + 1 < 301; i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    text[300] = '\0';
    make(&made, ZT_FORMAT_ZT1, plain, 10, text);
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_UNSUPPORTED);
    assert_int_equal(strlen(result.expected), ZT_DIGEST_TEXT_SIZE - 1);
    assert_memory_equal(result.expected, text, ZT_DIGEST_TEXT_SIZE - 1);
    handmade_free(&made);
}

TEST(progress_adds_up_and_can_stop)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    uint64_t left = PLAIN_SIZE;
    int calls = 0;
    struct zt_progress progress = {count_advance, &left};
    struct zt_component_check result = {.verdict = ZT_VERDICT_FAILED};
    struct zt_error error;
    struct handmade made;

    digest_text(ZT_DIGEST_SHA256, plain, PLAIN_SIZE, text);
    make(&made, ZT_FORMAT_ZT1, plain, PLAIN_SIZE, text);
    assert_int_equal(check(&made, &progress).verdict, ZT_VERDICT_VERIFIED);
    assert_true(left == 0);
    progress = (struct zt_progress){stop, &calls};
    assert_int_equal(
        zt_component_check(&made.model, made.parts, made.source, &progress, &result, &error),
        ZT_ARGUMENT);
    assert_string_equal(error.message, "stopped");
    assert_int_equal(calls, 1);
    assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
    handmade_free(&made);
}

TEST(source_that_ends_early_is_an_error_not_a_verdict)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_component_check result;
    struct zt_error error;
    struct handmade made;

    digest_text(ZT_DIGEST_SHA256, plain, 100, text);
    make(&made, ZT_FORMAT_ZT1, plain, 100, text);
    made.data.length -= 1;
    handmade_open(&made);
    assert_int_equal(
        zt_component_check(&made.model, made.parts, made.source, NULL, &result, &error), ZT_IO);
    handmade_free(&made);
}

AROUND_ALL_TESTS(fill_plain, NULL)
