/* zTensor 2's content digest depends on the model, not on its file. */
#include "tests.h"

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
    assert_ok(zt2_file_open(&file, &model, &error));
    zt_error_clear(&error);
    status = zt_content_digest(model, algorithm, out_digest, &error);
    zt_model_free(model);
    zt2_file_free(&file);
    return status;
}

#define MODEL(blob, extra, digest)                                                                 \
    "{'objects':{'b':{'parts':{'data':{'blob':[" blob                                              \
    ",8],'type':'bool','dtype':'u8','digest':'xxh3:00'" extra                                      \
    "}},'shape':[8],'layout':'dense','attributes':{'k':-1}},'aa':{'parts':{'x':{'blob':[8192,1],'" \
    "dtype':'f32','digest':'" digest "'}},'shape':[],'layout':'x'}}}"

TEST(is_the_digest_of_the_objects_without_places)
{
    static const char content[] =
        "['zt.content/"
        "1',{'b':{'parts':{'data':{'type':'bool','dtype':'u8','digest':'xxh3:00'}},'shape':[8],'"
        "layout':'dense','attributes':{'k':-1}},'aa':{'parts':{'x':{'dtype':'f32','digest':'crc32c:"
        "00'}},'shape':[],'layout':'x'}}]";
    struct zt_buffer encoded = {0};
    struct zt_digest digest;
    char text[ZT_DIGEST_TEXT_SIZE];
    char wanted[ZT_DIGEST_TEXT_SIZE];

    cbor_text_append(&encoded, content);
    snprintf(wanted, sizeof(wanted), "xxh3:%016llx",
             (unsigned long long)zt_xxh3(encoded.bytes, encoded.length));
    zt_buffer_free(&encoded);
    assert_ok(digest_of(MODEL("4096", "", "crc32c:00"), ZT_DIGEST_XXH3, &digest));
    zt_digest_format(&digest, text);
    assert_string_equal(text, wanted);
}

TEST(does_not_change_with_places_and_unknown_keys)
{
    struct zt_digest first;
    struct zt_digest second;

    assert_ok(digest_of(MODEL("4096", "", "crc32c:00"), ZT_DIGEST_SHA256, &first));
    assert_ok(digest_of(MODEL("12288", ",'future':1", "crc32c:00"), ZT_DIGEST_SHA256, &second));
    assert_true(zt_digest_equal(&first, &second));
    assert_ok(digest_of(MODEL("4096", "", "crc32c:01"), ZT_DIGEST_SHA256, &second));
    assert_false(zt_digest_equal(&first, &second));
}

TEST(attributes_of_the_file_are_not_content)
{
    struct zt_digest with;
    struct zt_digest without;

    assert_ok(digest_of("{'objects':{},'attributes':{'not':'said'}}", ZT_DIGEST_SHA256, &with));
    assert_ok(digest_of("{'objects':{}}", ZT_DIGEST_SHA256, &without));
    assert_true(zt_digest_equal(&with, &without));
}

TEST(needs_a_digest_of_every_part)
{
    struct zt_digest digest = {.length_bytes = 7};

    assert_int_equal(digest_of(ZT2_OBJECT(ZT2_PART, ZT2_REST), ZT_DIGEST_SHA256, &digest),
                     ZT_ARGUMENT);
    assert_string_equal(error.object, "a");
    assert_string_equal(error.component, "data");
    assert_int_equal(digest.length_bytes, 7);
}

TEST(is_made_by_sha256_or_xxh3_of_zt2_alone)
{
    const struct zt_model older = {.format = ZT_FORMAT_ZT1};
    struct zt_digest digest;

    assert_int_equal(digest_of("{'objects':{}}", ZT_DIGEST_CRC32C, &digest), ZT_ARGUMENT);
    assert_int_equal(zt_content_digest(&older, ZT_DIGEST_SHA256, &digest, &error), ZT_ARGUMENT);
}
