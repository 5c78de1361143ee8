/* zTensor 2's content digest depends on the model, not on its file. */
#include "support.h"

#include <stdio.h>

#include "cbor_text.h"
#include "zt/verify.h"
#include "zt2_file.h"

static struct zt_error error;

static enum zt_status digest_of(const char *manifest, enum zt_digest_algorithm algorithm,
                                struct zt_digest *out_digest)
{
    struct zt2_file file = {0};
    struct zt_model *model;
    enum zt_status status;

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    assert_int_equal(zt2_file_open(&file, &model, &error), ZT_OK);
    zt_error_clear(&error);
    status = zt_content_digest(model, algorithm, out_digest, &error);
    zt_model_free(model);
    zt2_file_free(&file);
    return status;
}

#define MODEL(blob, extra, digest)                                                                \
    "{\"objects\":{\"b\":{\"parts\":{\"data\":{\"blob\":[" blob                                   \
    ",8],\"type\":\"bool\",\"dtype\":\"u8\",\"digest\":\""                                        \
    "xxh3:00\"" extra                                                                             \
    "}},\"shape\":[8],\"layout\":\"dense\",\"attributes\":{\"k\":-1}},\"aa\":{\"parts\":{\"x\":{" \
    "\"blob\":[8192,1],\"dtype\":\"f32\",\"digest\":\"" digest                                    \
    "\"}},\"shape\":[],\"layout\":\"x\"}}}"

static void is_the_digest_of_the_objects_without_places(void **state)
{
    static const char said[] = "[\"zt.content/"
                               "1\",{\"b\":{\"parts\":{\"data\":{\"type\":\"bool\",\"dtype\":"
                               "\"u8\",\"digest\":\"xxh3:00\"}},"
                               "\"shape\":[8],\"layout\":\"dense\",\"attributes\":{\"k\":-1}},"
                               "\"aa\":{\"parts\":{\"x\":{\"dtype\":\"f32\","
                               "\"digest\":\"crc32c:00\"}},\"shape\":[],\"layout\":\"x\"}}]";
    struct zt_buffer encoded = {0};
    struct zt_digest digest;
    char text[ZT_DIGEST_TEXT_SIZE];
    char wanted[ZT_DIGEST_TEXT_SIZE];

    (void)state;
    cbor_text_append(&encoded, said);
    snprintf(wanted, sizeof(wanted), "xxh3:%016llx",
             (unsigned long long)zt_xxh3(encoded.bytes, encoded.length));
    zt_buffer_free(&encoded);
    assert_int_equal(digest_of(MODEL("4096", "", "crc32c:00"), ZT_DIGEST_XXH3, &digest), ZT_OK);
    zt_digest_format(&digest, text);
    assert_string_equal(text, wanted);
}

static void does_not_change_with_places_and_unknown_keys(void **state)
{
    struct zt_digest first;
    struct zt_digest second;

    (void)state;
    assert_int_equal(digest_of(MODEL("4096", "", "crc32c:00"), ZT_DIGEST_SHA256, &first), ZT_OK);
    assert_int_equal(
        digest_of(MODEL("12288", ",\"future\":1", "crc32c:00"), ZT_DIGEST_SHA256, &second), ZT_OK);
    assert_true(zt_digest_equal(&first, &second));
    assert_int_equal(digest_of(MODEL("4096", "", "crc32c:01"), ZT_DIGEST_SHA256, &second), ZT_OK);
    assert_false(zt_digest_equal(&first, &second));
}

static void attributes_of_the_file_are_not_content(void **state)
{
    struct zt_digest with;
    struct zt_digest without;

    (void)state;
    assert_int_equal(
        digest_of("{\"objects\":{},\"attributes\":{\"not\":\"said\"}}", ZT_DIGEST_SHA256, &with),
        ZT_OK);
    assert_int_equal(digest_of("{\"objects\":{}}", ZT_DIGEST_SHA256, &without), ZT_OK);
    assert_true(zt_digest_equal(&with, &without));
}

static void needs_a_digest_of_every_part(void **state)
{
    struct zt_digest digest = {.length_bytes = 7};

    (void)state;
    assert_int_equal(digest_of(ZT2_OBJECT(ZT2_PART, ZT2_REST), ZT_DIGEST_SHA256, &digest),
                     ZT_ARGUMENT);
    assert_string_equal(error.object, "a");
    assert_string_equal(error.component, "data");
    assert_int_equal(digest.length_bytes, 7);
}

static void is_made_by_sha256_or_xxh3_of_zt2_alone(void **state)
{
    const struct zt_model older = {.format = ZT_FORMAT_ZT1};
    struct zt_digest digest;

    (void)state;
    assert_int_equal(digest_of("{\"objects\":{}}", ZT_DIGEST_CRC32C, &digest), ZT_ARGUMENT);
    assert_int_equal(zt_content_digest(&older, ZT_DIGEST_SHA256, &digest, &error), ZT_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_digest_of_the_objects_without_places),
        cmocka_unit_test(does_not_change_with_places_and_unknown_keys),
        cmocka_unit_test(attributes_of_the_file_are_not_content),
        cmocka_unit_test(needs_a_digest_of_every_part),
        cmocka_unit_test(is_made_by_sha256_or_xxh3_of_zt2_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
