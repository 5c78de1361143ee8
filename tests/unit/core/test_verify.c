/* Digests of components: the verdicts, which bytes are covered, and reading no more than is
 * needed. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handmade.h"
#include "zip_file.h"
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

    assert_int_equal(zt_hasher_new(algorithm, &hasher), ZT_OK);
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
    assert_int_equal(
        zt_component_check(&made->model, &made->parts[0], made->source, progress, &result, NULL),
        ZT_OK);
    return result;
}

static void stored_bytes_are_hashed_up_to_1_2(void **state)
{
    static const enum zt_digest_algorithm algorithms[] = {ZT_DIGEST_SHA256, ZT_DIGEST_CRC32C,
                                                          ZT_DIGEST_XXH3};
    static const enum zt_format formats[] = {ZT_FORMAT_ZT01, ZT_FORMAT_ZT1};
    char text[ZT_DIGEST_TEXT_SIZE];
    struct bytes frame = {NULL, 0};
    struct handmade made;

    (void)state;
    bytes_append_zstd(&frame, plain, PLAIN_SIZE, false);
    for (int i = 0; i < 6; i++) {
        struct zt_component *part;
        struct zt_component_check result;

        digest_text(algorithms[i % 3], frame.at, frame.length, text);
        handmade_init(&made, formats[i / 3], ZT_LAYOUT_DENSE, 1, shape);
        part = handmade_add(&made, "data", ZT_U8, frame.at, frame.length);
        part->encoding = ZT_ENCODING_ZSTD;
        part->decoded_length = PLAIN_SIZE;
        state_digest(part, text);
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
static void stored_digest_does_not_decode(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;
    struct zt_component *part;

    (void)state;
    digest_text(ZT_DIGEST_CRC32C, plain, 1000, text);
    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(&made, "data", ZT_U8, plain, 1000);
    part->encoding = ZT_ENCODING_UNKNOWN;
    state_digest(part, text);
    assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_VERIFIED);
    handmade_free(&made);
}

static void big_endian_data_is_hashed_as_it_is_stored(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    uint8_t sha256[32];
    struct handmade made;
    struct zt_component *part;

    (void)state;
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

static void decoded_bytes_are_hashed_in_2(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct bytes stream = {NULL, 0};
    struct handmade made;
    uint8_t sha256[32];
    struct zt_component *part;
    struct zt_component_check result;

    (void)state;
    digest_text(ZT_DIGEST_SHA256, plain, PLAIN_SIZE, text);
    bytes_append_seekable(&stream, plain, PLAIN_SIZE, 65536);
    handmade_init(&made, ZT_FORMAT_ZT2, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(&made, "data", ZT_U8, stream.at, stream.length);
    part->encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    part->decoded_length = PLAIN_SIZE;
    state_digest(part, text);
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_VERIFIED);
    assert_true(result.hashed_bytes > 0 && result.hashed_bytes <= stream.length);
    assert_true(zt_component_decoded_sha256(&made.model, part, sha256));
    assert_int_equal(sha256[0] >> 4, text[7] >= 'a' ? text[7] - 'a' + 10 : text[7] - '0');
    handmade_free(&made);
    bytes_free(&stream);
}

static void decoded_sha256_is_given_only_if_it_covers_the_decoded_bytes(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;
    uint8_t sha256[32];
    struct zt_component *part;

    (void)state;
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

static void wrong_digest_fails_with_both_texts(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;
    struct zt_component_check result;

    (void)state;
    digest_text(ZT_DIGEST_CRC32C, plain, 1000, text);
    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
    state_digest(handmade_add(&made, "data", ZT_U8, plain, 1000), "crc32c:deadbeef");
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
    assert_string_equal(result.expected, "crc32c:deadbeef");
    assert_string_equal(result.actual, text);
    assert_true(result.hashed_bytes == 1000);
    handmade_free(&made);
}

static void every_flipped_bit_fails(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct handmade made;

    (void)state;
    digest_text(ZT_DIGEST_XXH3, plain, 64, text);
    handmade_init(&made, ZT_FORMAT_ZT2, ZT_LAYOUT_DENSE, 1, shape);
    state_digest(handmade_add(&made, "data", ZT_U8, plain, 64), text);
    handmade_open(&made);
    for (unsigned bit = 0; bit < 64 * 8; bit++) {
        made.data.at[64 + bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_FAILED);
        made.data.at[64 + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_VERIFIED);
    handmade_free(&made);
}

static void bytes_that_do_not_decode_fail_without_a_digest_of_their_own(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct bytes stream = {NULL, 0};
    struct handmade made;
    struct zt_component *part;
    struct zt_component_check result;

    (void)state;
    digest_text(ZT_DIGEST_XXH3, plain, 1000, text);
    bytes_append_seekable(&stream, plain, 1000, 512);
    handmade_init(&made, ZT_FORMAT_ZT2, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(&made, "data", ZT_U8, stream.at, stream.length);
    part->encoding = ZT_ENCODING_ZSTD_SEEKABLE;
    part->decoded_length = 1000;
    state_digest(part, text);
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

static void what_cannot_be_judged_is_not_read(void **state)
{
    static const char *const texts[] = {"", "md5:00", "sha512:00", "nonsense"};
    int calls = 0;
    const struct zt_progress progress = {stop, &calls};
    struct handmade made;
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_component *part;
    struct zt_component_check result;

    (void)state;
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
    assert_int_equal(zt_component_check(&made.model, part, NULL, &progress, &result, NULL), ZT_OK);
    assert_int_equal(result.verdict, ZT_VERDICT_UNSUPPORTED);
    part->encoding = ZT_ENCODING_UNKNOWN;
    assert_int_equal(check(&made, &progress).verdict, ZT_VERDICT_UNSUPPORTED);
    assert_int_equal(calls, 0);
    handmade_free(&made);
}

/* Each byte of a digest counts. */
static void digest_that_is_wrong_in_one_byte_fails(void **state)
{
    static const enum zt_digest_algorithm algorithms[] = {ZT_DIGEST_SHA256, ZT_DIGEST_CRC32C,
                                                          ZT_DIGEST_XXH3};

    (void)state;
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        char text[ZT_DIGEST_TEXT_SIZE];
        size_t at;

        digest_text(algorithms[i], plain, 1000, text);
        at = strlen(text);
        while (text[--at] != ':' && text[at] != 'x') {
            char right = text[at];
            struct handmade made;

            text[at] = right == '0' ? '1' : '0';
            handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
            state_digest(handmade_add(&made, "data", ZT_U8, plain, 1000), text);
            assert_int_equal(check(&made, NULL).verdict, ZT_VERDICT_FAILED);
            handmade_free(&made);
            text[at] = right;
        }
    }
}

/* The stream inflates to as many bytes as are declared, but they are others. */
static void crc32_of_a_deflated_entry_is_compared(void **state)
{
    struct zip_file zip = {0};
    struct zt_model *model = NULL;
    struct zt_source *source;
    struct zt_component_check result;

    (void)state;
    zip_file_add_u8(&zip, "a.npy", ZIP_FILE_DEFLATED, 200);
    zip_file_end(&zip, "", false);
    assert_int_equal(bytes_open(&zip.bytes, zip.bytes.length, &model, NULL), ZT_OK);
    assert_int_equal(model->components[0].encoding, ZT_ENCODING_DEFLATE);
    assert_int_equal(zt_source_from_memory(zip.bytes.at, zip.bytes.length, &source, NULL), ZT_OK);
    assert_int_equal(zt_component_check(model, &model->components[0], source, NULL, &result, NULL),
                     ZT_OK);
    assert_int_equal(result.verdict, ZT_VERDICT_VERIFIED);
    for (size_t digit = 6; digit < 14; digit++) {
        struct zt_component other = model->components[0];
        char text[15];

        memcpy(text, result.expected, sizeof(text));
        text[digit] = text[digit] == '0' ? '1' : '0';
        state_digest(&other, text);
        assert_int_equal(zt_component_check(model, &other, source, NULL, &result, NULL), ZT_OK);
        assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
        assert_string_equal(result.expected, text);
        memcpy(text, result.actual, sizeof(text));
        state_digest(&other, text);
        assert_int_equal(zt_component_check(model, &other, source, NULL, &result, NULL), ZT_OK);
        assert_int_equal(result.verdict, ZT_VERDICT_VERIFIED);
    }
    zt_source_close(source);
    zt_model_free(model);
    zip_file_free(&zip);
}

static void impossible_digests_fail_and_report_the_actual_one(void **state)
{
    static const enum zt_format formats[] = {ZT_FORMAT_ZT01, ZT_FORMAT_ZT1, ZT_FORMAT_ZT2};
    static const struct {
        const char *stated;
        enum zt_digest_algorithm algorithm;
    } cases[] = {
        {"sha256:", ZT_DIGEST_SHA256},
        {"sha256:00", ZT_DIGEST_SHA256},
        {"sha256:gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg",
         ZT_DIGEST_SHA256},
        {"crc32c:xyz", ZT_DIGEST_CRC32C},
        {"crc32c:0x", ZT_DIGEST_CRC32C},
        {"xxh3:00", ZT_DIGEST_XXH3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        for (size_t j = 0; j < sizeof(cases) / sizeof(*cases); j++) {
            struct handmade made;
            struct zt_component_check result;
            char actual[ZT_DIGEST_TEXT_SIZE];

            handmade_init(&made, formats[i], ZT_LAYOUT_DENSE, 1, shape);
            state_digest(handmade_add(&made, "data", ZT_U8, plain, 1000), cases[j].stated);
            result = check(&made, NULL);
            digest_text(cases[j].algorithm, plain, 1000, actual);
            assert_int_equal(result.verdict, ZT_VERDICT_FAILED);
            assert_string_equal(result.expected, cases[j].stated);
            assert_string_equal(result.actual, actual);
            handmade_free(&made);
        }
    }
}

static void long_digest_texts_are_cut_between_characters(void **state)
{
    char text[301];
    struct handmade made;
    struct zt_component_check result;

    (void)state;
    text[0] = 'x';
    for (int i = 1; i + 1 < 301; i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    text[300] = '\0';
    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
    state_digest(handmade_add(&made, "data", ZT_U8, plain, 10), text);
    result = check(&made, NULL);
    assert_int_equal(result.verdict, ZT_VERDICT_UNSUPPORTED);
    assert_int_equal(strlen(result.expected), ZT_DIGEST_TEXT_SIZE - 1);
    assert_memory_equal(result.expected, text, ZT_DIGEST_TEXT_SIZE - 1);
    handmade_free(&made);
}

static void progress_adds_up_and_can_stop(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    uint64_t left = PLAIN_SIZE;
    int calls = 0;
    struct zt_progress progress = {count_advance, &left};
    struct zt_component_check result = {.verdict = ZT_VERDICT_FAILED};
    struct zt_error error;
    struct handmade made;

    (void)state;
    digest_text(ZT_DIGEST_SHA256, plain, PLAIN_SIZE, text);
    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
    state_digest(handmade_add(&made, "data", ZT_U8, plain, PLAIN_SIZE), text);
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

static void source_that_ends_early_is_an_error_not_a_verdict(void **state)
{
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_component_check result;
    struct zt_error error;
    struct handmade made;

    (void)state;
    digest_text(ZT_DIGEST_SHA256, plain, 100, text);
    handmade_init(&made, ZT_FORMAT_ZT1, ZT_LAYOUT_DENSE, 1, shape);
    state_digest(handmade_add(&made, "data", ZT_U8, plain, 100), text);
    made.data.length -= 1;
    handmade_open(&made);
    assert_int_equal(
        zt_component_check(&made.model, made.parts, made.source, NULL, &result, &error), ZT_IO);
    handmade_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_bytes_are_hashed_up_to_1_2),
        cmocka_unit_test(stored_digest_does_not_decode),
        cmocka_unit_test(big_endian_data_is_hashed_as_it_is_stored),
        cmocka_unit_test(decoded_bytes_are_hashed_in_2),
        cmocka_unit_test(decoded_sha256_is_given_only_if_it_covers_the_decoded_bytes),
        cmocka_unit_test(wrong_digest_fails_with_both_texts),
        cmocka_unit_test(every_flipped_bit_fails),
        cmocka_unit_test(bytes_that_do_not_decode_fail_without_a_digest_of_their_own),
        cmocka_unit_test(what_cannot_be_judged_is_not_read),
        cmocka_unit_test(digest_that_is_wrong_in_one_byte_fails),
        cmocka_unit_test(crc32_of_a_deflated_entry_is_compared),
        cmocka_unit_test(impossible_digests_fail_and_report_the_actual_one),
        cmocka_unit_test(long_digest_texts_are_cut_between_characters),
        cmocka_unit_test(progress_adds_up_and_can_stop),
        cmocka_unit_test(source_that_ends_early_is_an_error_not_a_verdict),
    };

    return cmocka_run_group_tests(tests, fill_plain, NULL);
}
