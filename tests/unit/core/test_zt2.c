/* Opening zTensor 2: the container, where parts lie, and shards, by rule and offset. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "zt2_file.h"

static struct zt2_file file;
static struct zt_error error;

static uint8_t *footer(void)
{
    return file.bytes + file.length - ZT2_FILE_FOOTER;
}

/* --- the container --- */

static void open_fills_the_model(void **state)
{
    struct zt_model *model;
    const struct zt_object *object;
    const struct zt_component *part;

    (void)state;
    zt2_file_make(
        &file, ZT2_MANIFEST_AT,
        "{\"shards\":{\"base\":{\"size\":9000,\"digest\":\"sha256:00\"}},\"objects\":{"
        "\"b\":{\"parts\":{\"data\":{\"blob\":[4096,2],\"type\":\"f4_e2m1\",\"dtype\":\"u8\","
        "\"digest\":\"xxh3:0011\"}},\"shape\":[3],\"layout\":\"dense\",\"attributes\":{\"k\":1}},"
        "\"aa\":{\"parts\":{\"x\":{\"blob\":[4096,7],\"dtype\":\"f32\",\"shard\":\"base\","
        "\"encoding\":"
        "\"zt.zstd-seekable/1\",\"decoded_length\":16}},\"shape\":[2,2],\"layout\":\"x/1\"}},"
        "\"attributes\":{\"n\":-1}}");
    assert_int_equal(zt2_file_open(&file, &model, &error), ZT_OK);
    assert_int_equal(model->format, ZT_FORMAT_ZT2);
    assert_string_equal(model->format_name, "zt");
    assert_int_equal(model->file_size, file.length);
    assert_int_equal(model->manifest_offset, ZT2_MANIFEST_AT);
    assert_int_equal(model->manifest_length, file.length - ZT2_FILE_FOOTER - ZT2_MANIFEST_AT);
    assert_int_equal(model->attributes.length, 4);
    assert_memory_equal(model->attributes.bytes, "\xa1\x61n\x20", 4);
    assert_int_equal(model->object_count, 2);

    object = zt_model_find(model, (struct zt_text){"b", 1});
    part = zt_object_components(model, object);
    assert_ptr_equal(object, &model->objects[1]);
    assert_int_equal(object->rank, 1);
    assert_int_equal(zt_object_shape(model, object)[0], 3);
    assert_int_equal(object->layout, ZT_LAYOUT_DENSE);
    assert_memory_equal(object->attributes, "\xa1\x61k\x01", object->attributes_length);
    assert_int_equal(part->dtype, ZT_U8);
    assert_int_equal(part->logical, ZT_LOGICAL_F4_E2M1);
    assert_int_equal(part->offset, 4096);
    assert_int_equal(part->decoded_length, 2);
    assert_string_equal(part->encoding_name, "raw");
    assert_memory_equal(part->digest, "xxh3:0011", part->digest_length);

    part = zt_object_components(model, &model->objects[0]);
    assert_int_equal(model->objects[0].layout, ZT_LAYOUT_OTHER);
    assert_null(model->objects[0].attributes);
    assert_int_equal(part->encoding, ZT_ENCODING_ZSTD_SEEKABLE);
    assert_int_equal(part->length, 7);
    assert_int_equal(part->decoded_length, 16);
    assert_int_equal(part->shard, 1);
    assert_null(part->digest);
    assert_null(part->type);
    zt_model_free(model);
}

static void other_encodings_are_kept_but_unknown(void **state)
{
    struct zt_model *model;

    (void)state;
    zt2_file_make(
        &file, ZT2_MANIFEST_AT,
        ZT2_OBJECT(
            "{\"blob\":[4096,2],\"dtype\":\"u8\",\"encoding\":\"zstd\",\"decoded_length\":8}",
            ZT2_REST));
    assert_int_equal(zt2_file_open(&file, &model, &error), ZT_OK);
    assert_int_equal(model->components[0].encoding, ZT_ENCODING_UNKNOWN);
    assert_memory_equal(model->components[0].encoding_name, "zstd", 4);
    zt_model_free(model);
}

static void refuses_what_is_too_small_for_a_container(void **state)
{
    (void)state;
    zt2_file_make(&file, 8, "{}");
    file.length = 47;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 FileTooSmall", 0);
}

static void refuses_a_wrong_magic_at_either_end(void **state)
{
    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    file.bytes[7] ^= 1;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 HeaderMagic", 0);
    file.bytes[7] ^= 1;
    footer()[39] ^= 1;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 FooterMagic", file.length - 8);
}

static void refuses_a_footer_of_another_version(void **state)
{
    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    footer()[24] = 3;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 Version", file.length - 16);
}

static void ignores_the_reserved_word_and_padding(void **state)
{
    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    footer()[28] = 0xff;
    memset(file.bytes + 8, 0xab, 4096 - 8);
    assert_int_equal(zt2_file_try(&file, &error), ZT_OK);
}

static void reports_a_data_shard(void **state)
{
    (void)state;
    zt2_file_make(&file, 4096, "");
    memset(footer(), 0, 24);
    assert_int_equal(zt2_file_try(&file, &error), ZT_DATA_SHARD);
    footer()[1] = 0x10;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
    footer()[1] = 0;
    footer()[16] = 1;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 24);
}

static void refuses_a_manifest_above_1_gib_before_reading_it(void **state)
{
    static const uint8_t one_more[8] = {1, 0, 0, 0x40};

    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    memcpy(footer() + 8, one_more, 8);
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestTooLarge", file.length - 32);
    footer()[8] = 0; /* 1 GiB exactly: allowed, but not here */
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
}

static void refuses_a_manifest_that_is_not_aligned_or_in_the_header(void **state)
{
    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    footer()[0] = 4;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobAlignment", file.length - 40);
    memset(footer(), 0, 8);
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobAlignment", file.length - 40);
}

static void refuses_a_manifest_outside_the_file(void **state)
{
    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    footer()[8]++;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
    memset(footer() + 2, 0xff, 6); /* offset plus length wraps */
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
}

static void refuses_a_manifest_that_does_not_hash(void **state)
{
    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    file.bytes[ZT2_MANIFEST_AT + 3] ^= 1;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestHash", file.length - 24);
}

/* --- placement --- */

static void refuses_blobs_that_are_not_aligned(void **state)
{
    (void)state;
    zt2_text_refused(
        "{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4100,8],\"dtype\":\"u8\"}}," ZT2_REST
        "}}}",
        "zt2 §1 BlobAlignment", &error);
    assert_string_equal(error.component, "data");
    zt2_text_refused(
        "{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[0,8],\"dtype\":\"u8\"}}," ZT2_REST
        "}}}",
        "zt2 §1 BlobAlignment", &error);
    zt2_text_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[1,0],\"dtype\":\"u8\"}},"
                     "\"shape\":[0],"
                     "\"layout\":\"dense\"}}}",
                     "zt2 §1 BlobAlignment", &error);
}

static void refuses_blobs_outside_the_file(void **state)
{
    (void)state;
    zt2_text_refused(
        "{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[20480,8],\"dtype\":\"u8\"}}," ZT2_REST
        "}}}",
        "zt2 §1 BlobBounds", &error);
    zt2_text_refused(
        "{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4096,18446744073709551615],\"dtype\":"
        "\"u8\"}},\"shape\":[8],\"layout\":\"x\"}}}",
        "zt2 §1 BlobBounds", &error);
    zt2_text_refused(
        "{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[18446744073709547520,8192],\"dtype\":"
        "\"u8\"}},\"shape\":[8],\"layout\":\"x\"}}}",
        "zt2 §1 BlobBounds", &error);
    zt2_text_refused(
        "{\"shards\":{\"s\":{\"size\":4143,\"digest\":\"xxh3:00\"}},\"objects\":{\"a\":{\"parts\":{"
        "@\"data\":{\"blob\":[4096,8],\"dtype\":\"u8\",\"shard\":\"s\"}}," ZT2_REST "}}}",
        "zt2 §1 BlobBounds", &error);
}

static void refuses_blobs_that_overlap(void **state)
{
    (void)state;
    assert_int_equal(
        zt2_text_try(
            "{\"objects\":{\"a\":{\"parts\":{\"x\":{\"blob\":[4096,4097],\"dtype\":\"u8\"},"
            "\"y\":{\"blob\":[8192,8],\"dtype\":\"u8\"}},\"shape\":[],\"layout\":\"x\"}}}",
            &error),
        ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", 8192);
    assert_string_equal(error.object, "a");
    assert_string_equal(error.component, "y");
}

static void refuses_blobs_that_run_into_the_manifest(void **state)
{
    (void)state;
    assert_int_equal(
        zt2_text_try(
            "{\"objects\":{\"a\":{\"parts\":{\"x\":{\"blob\":[12288,4097],\"dtype\":\"u8\"}},"
            "\"shape\":[],\"layout\":\"x\"}}}",
            &error),
        ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", ZT2_MANIFEST_AT);
}

static void refuses_overlap_inside_a_shard(void **state)
{
    (void)state;
    assert_int_equal(
        zt2_text_try(
            "{\"shards\":{\"s\":{\"size\":99999,\"digest\":\"xxh3:00\"}},\"objects\":{\"a\":{"
            "\"parts\":{\"x\":{\"blob\":[4096,8192],\"dtype\":\"u8\",\"shard\":\"s\"},\"y\":{"
            "\"blob\":[8192,8],\"dtype\":\"u8\",\"shard\":\"s\"}},\"shape\":[],\"layout\":\"x\"}}}",
            &error),
        ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", 8192);
}

static void refuses_types_on_the_wrong_storage(void **state)
{
    (void)state;
    zt2_text_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4096,8],\"type\":"
                     "\"complex64\",\"dtype\":"
                     "\"f64\"}},\"shape\":[1],\"layout\":\"dense\"}}}",
                     "zt2 §3 Schema", &error);
}

/* --- shards --- */

static void refuses_shard_names_that_could_be_paths(void **state)
{
    static const char *const names[] = {
        "",    ".a",   "a/b",
        "a b", "a\\0", "0123456789012345678901234567890123456789012345678901234567890123x"};
    char manifest[300];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(manifest, sizeof(manifest),
                 "{\"shards\":{@\"%s\":{\"size\":48,\"digest\":\"xxh3:00\"}},\"objects\":{}}",
                 names[i]);
        zt2_text_refused(manifest, "zt2 §9 ShardName", &error);
    }
    assert_int_equal(
        zt2_text_try(
            "{\"shards\":{\"A-Z_a.0\":{\"size\":48,\"digest\":\"xxh3:00\"}},\"objects\":{}}",
            &error),
        ZT_OK);
}

static void refuses_parts_in_undeclared_shards(void **state)
{
    (void)state;
    zt2_text_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4096,8],\"dtype\":"
                     "\"u8\",\"shard\":\"s\"}}," ZT2_REST "}}}",
                     "zt2 §9 ShardRef", &error);
    zt2_text_refused("{\"shards\":{\"t\":{\"size\":4900,\"digest\":\"xxh3:00\"}},\"objects\":{"
                     "\"a\":{\"parts\":{@\"data\":{"
                     "\"blob\":[4096,8],\"dtype\":\"u8\",\"shard\":\"s\"}}," ZT2_REST "}}}",
                     "zt2 §9 ShardRef", &error);
}

static void numbers_shards_in_the_order_of_their_names(void **state)
{
    struct zt_model *model;

    (void)state;
    zt2_file_make(&file, ZT2_MANIFEST_AT,
                  "{\"shards\":{\"z\":{\"size\":4800,\"digest\":\"xxh3:00\"},\"aa\":{\"size\":4900,"
                  "\"digest\":\"xxh3:11\"}},"
                  "\"objects\":{\"a\":{\"parts\":{\"l\":{\"blob\":[4096,8],\"dtype\":\"u8\"},\"x\":"
                  "{\"blob\":[4096,8],"
                  "\"dtype\":\"u8\",\"shard\":\"z\"},\"y\":{\"blob\":[4096,8],\"dtype\":\"u8\","
                  "\"shard\":\"aa\"}},"
                  "\"shape\":[],\"layout\":\"x\"}}}");
    assert_int_equal(zt2_file_open(&file, &model, &error), ZT_OK);
    assert_int_equal(model->shard_count, 2);
    assert_memory_equal(model->shards[0].name, "aa", 2);
    assert_int_equal(model->shards[0].size_bytes, 4900);
    assert_int_equal(model->components[0].shard, 0);
    assert_int_equal(model->components[1].shard, 2);
    assert_int_equal(model->components[2].shard, 1);
    zt_model_free(model);
}

static int free_file(void **state)
{
    (void)state;
    zt2_file_free(&file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_fills_the_model),
        cmocka_unit_test(other_encodings_are_kept_but_unknown),
        cmocka_unit_test(refuses_what_is_too_small_for_a_container),
        cmocka_unit_test(refuses_a_wrong_magic_at_either_end),
        cmocka_unit_test(refuses_a_footer_of_another_version),
        cmocka_unit_test(ignores_the_reserved_word_and_padding),
        cmocka_unit_test(reports_a_data_shard),
        cmocka_unit_test(refuses_a_manifest_above_1_gib_before_reading_it),
        cmocka_unit_test(refuses_a_manifest_that_is_not_aligned_or_in_the_header),
        cmocka_unit_test(refuses_a_manifest_outside_the_file),
        cmocka_unit_test(refuses_a_manifest_that_does_not_hash),
        cmocka_unit_test(refuses_blobs_that_are_not_aligned),
        cmocka_unit_test(refuses_blobs_outside_the_file),
        cmocka_unit_test(refuses_blobs_that_overlap),
        cmocka_unit_test(refuses_blobs_that_run_into_the_manifest),
        cmocka_unit_test(refuses_overlap_inside_a_shard),
        cmocka_unit_test(refuses_types_on_the_wrong_storage),
        cmocka_unit_test(refuses_shard_names_that_could_be_paths),
        cmocka_unit_test(refuses_parts_in_undeclared_shards),
        cmocka_unit_test(numbers_shards_in_the_order_of_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, free_file);
}
