/* Opening zTensor 2: the container, where parts lie, and shards, by rule and offset. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "zip_file.h"
#include "zt2_file.h"

static struct zt2_file file;
static struct zt_error error;

static uint8_t *footer(void)
{
    return file.bytes + file.length - ZT2_FILE_FOOTER;
}

/* --- the container --- */

TEST(open_fills_the_model)
{
    struct zt_model *model;
    const struct zt_object *object;
    const struct zt_component *part;

    zt2_file_make(&file, ZT2_MANIFEST_AT,
                  "{'shards':{'base':{'size':9000,'digest':'sha256:00'}},'objects':{'b':{'parts':{'"
                  "data':{'blob':[4096,2],'type':'f4_e2m1','dtype':'u8','digest':'xxh3:0011'}},'"
                  "shape':[3],'layout':'dense','attributes':{'k':1}},'aa':{'parts':{'x':{'blob':["
                  "4096,7],'dtype':'f32','shard':'base','encoding':'zt.zstd-seekable/"
                  "1','decoded_length':16}},'shape':[2,2],'layout':'x/1'}},'attributes':{'n':-1}}");
    assert_ok(zt2_file_open(&file, &model, &error));
    assert_int_equal(model->format, ZT_FORMAT_ZT2);
    assert_string_equal(model->format_name, "zt");
    assert_int_equal(model->file_size, file.length);
    assert_int_equal(model->manifest_offset, ZT2_MANIFEST_AT);
    assert_int_equal(model->manifest_length, file.length - ZT2_FILE_FOOTER - ZT2_MANIFEST_AT);
    assert_int_equal(model->attributes.length, 4);
    assert_memory_equal(model->attributes.bytes, "\xa1\x61n\x20", 4);
    assert_int_equal(model->object_count, 2);

    object = zt_model_find(model, zt_text_from("b"));
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

TEST(other_encodings_are_kept_but_unknown)
{
    struct zt_model *model;

    zt2_file_make(&file, ZT2_MANIFEST_AT,
                  ZT2_OBJECT("{'blob':[4096,2],'dtype':'u8','encoding':'zstd','decoded_length':8}",
                             ZT2_REST));
    assert_ok(zt2_file_open(&file, &model, &error));
    assert_int_equal(model->components[0].encoding, ZT_ENCODING_UNKNOWN);
    assert_memory_equal(model->components[0].encoding_name, "zstd", 4);
    zt_model_free(model);
}

TEST(refuses_what_is_too_small_for_a_container)
{
    zt2_file_make(&file, 8, "{}");
    file.length = 47;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 FileTooSmall", 0);
}

/* A number of so many bytes is put so far before the end of the file. */
TEST(refuses_a_container_with_one_wrong_number)
{
    static const struct {
        size_t from_end;
        unsigned width;
        uint64_t value;
        const char *rule;
        size_t at_from_end;
    } cases[] = {
        {1, 1, 'x', "zt2 §1 FooterMagic", 8},
        {16, 1, 3, "zt2 §1 Version", 16},
        {32, 8, ((uint64_t)1 << 30) + 1, "zt2 §1 ManifestTooLarge", 32},
        {32, 8, (uint64_t)1 << 30, "zt2 §1 ManifestBounds", 40},
        {40, 8, ZT2_MANIFEST_AT + 4, "zt2 §1 BlobAlignment", 40},
        {40, 8, 0, "zt2 §1 BlobAlignment", 40},
        {32, 1, 0xff, "zt2 §1 ManifestBounds", 40},         /* more bytes than there are */
        {38, 6, ~(uint64_t)0, "zt2 §1 ManifestBounds", 40}, /* offset plus length wraps */
        {43, 1, 0xff, "zt2 §1 ManifestHash", 24},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
        bytes_put_le(file.bytes + file.length - cases[i].from_end, cases[i].value, cases[i].width);
        if (zt2_file_try(&file, &error) != ZT_INVALID || strcmp(error.rule, cases[i].rule) != 0)
            fail_msg("row %zu: %s, not %s", i, error.message, cases[i].rule);
        assert_failure(&error, ZT_INVALID, cases[i].rule, file.length - cases[i].at_from_end);
    }
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    file.bytes[7] ^= 1;
    assert_int_equal(zt2_file_try(&file, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 HeaderMagic", 0);
}

TEST(ignores_the_reserved_word_and_padding)
{
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    footer()[28] = 0xff;
    memset(file.bytes + 8, 0xab, 4096 - 8);
    assert_ok(zt2_file_try(&file, &error));
}

TEST(reports_a_data_shard)
{
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

/* --- placement --- */

TEST(refuses_blobs_that_are_not_aligned)
{
    zt2_text_refused("{'objects':{'a':{'parts':{@'data':{'blob':[4100,8],'dtype':'u8'}}," ZT2_REST
                     "}}}",
                     "zt2 §1 BlobAlignment", &error);
    assert_string_equal(error.component, "data");
    zt2_text_refused("{'objects':{'a':{'parts':{@'data':{'blob':[0,8],'dtype':'u8'}}," ZT2_REST
                     "}}}",
                     "zt2 §1 BlobAlignment", &error);
    zt2_text_refused("{'objects':{'a':{'parts':{@'data':{'blob':[1,0],'dtype':'u8'}},'shape':[0],'"
                     "layout':'dense'}}}",
                     "zt2 §1 BlobAlignment", &error);
}

TEST(refuses_blobs_outside_the_file)
{
    zt2_text_refused("{'objects':{'a':{'parts':{@'data':{'blob':[20480,8],'dtype':'u8'}}," ZT2_REST
                     "}}}",
                     "zt2 §1 BlobBounds", &error);
    zt2_text_refused("{'objects':{'a':{'parts':{@'data':{'blob':[4096,18446744073709551615],'dtype'"
                     ":'u8'}},'shape':[8],'layout':'x'}}}",
                     "zt2 §1 BlobBounds", &error);
    zt2_text_refused("{'objects':{'a':{'parts':{@'data':{'blob':[18446744073709547520,8192],'dtype'"
                     ":'u8'}},'shape':[8],'layout':'x'}}}",
                     "zt2 §1 BlobBounds", &error);
    zt2_text_refused("{'shards':{'s':{'size':4143,'digest':'xxh3:00'}},'objects':{'a':{'parts':{@'"
                     "data':{'blob':[4096,8],'dtype':'u8','shard':'s'}}," ZT2_REST "}}}",
                     "zt2 §1 BlobBounds", &error);
}

TEST(refuses_blobs_that_overlap)
{
    assert_int_equal(zt2_text_try("{'objects':{'a':{'parts':{'x':{'blob':[4096,4097],'dtype':'u8'},"
                                  "'y':{'blob':[8192,8],'dtype':'u8'}},'shape':[],'layout':'x'}}}",
                                  &error),
                     ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", 8192);
    assert_string_equal(error.object, "a");
    assert_string_equal(error.component, "y");
}

TEST(refuses_blobs_that_run_into_the_manifest)
{
    assert_int_equal(zt2_text_try("{'objects':{'a':{'parts':{'x':{'blob':[12288,4097],'dtype':'u8'}"
                                  "},'shape':[],'layout':'x'}}}",
                                  &error),
                     ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", ZT2_MANIFEST_AT);
}

TEST(refuses_overlap_inside_a_shard)
{
    assert_int_equal(
        zt2_text_try("{'shards':{'s':{'size':99999,'digest':'xxh3:00'}},'objects':{'a':{'parts':{'"
                     "x':{'blob':[4096,8192],'dtype':'u8','shard':'s'},'y':{'blob':[8192,8],'dtype'"
                     ":'u8','shard':'s'}},'shape':[],'layout':'x'}}}",
                     &error),
        ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", 8192);
}

TEST(refuses_types_on_the_wrong_storage)
{
    zt2_text_refused("{'objects':{'a':{'parts':{@'data':{'blob':[4096,8],'type':'complex64','dtype'"
                     ":'f64'}},'shape':[1],'layout':'dense'}}}",
                     "zt2 §3 Schema", &error);
}

/* --- shards --- */

TEST(refuses_shard_names_that_could_be_paths)
{
    static const char *const names[] = {
        "",    ".a",   "a/b",
        "a b", "a\\0", "0123456789012345678901234567890123456789012345678901234567890123x"};
    char manifest[300];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(manifest, sizeof(manifest),
                 "{'shards':{@'%s':{'size':48,'digest':'xxh3:00'}},'objects':{}}", names[i]);
        zt2_text_refused(manifest, "zt2 §9 ShardName", &error);
    }
    assert_ok(
        zt2_text_try("{'shards':{'A-Z_a.0':{'size':48,'digest':'xxh3:00'}},'objects':{}}", &error));
}

TEST(refuses_parts_in_undeclared_shards)
{
    zt2_text_refused(
        "{'objects':{'a':{'parts':{@'data':{'blob':[4096,8],'dtype':'u8','shard':'s'}}," ZT2_REST
        "}}}",
        "zt2 §9 ShardRef", &error);
    zt2_text_refused("{'shards':{'t':{'size':4900,'digest':'xxh3:00'}},'objects':{'a':{'parts':{@'"
                     "data':{'blob':[4096,8],'dtype':'u8','shard':'s'}}," ZT2_REST "}}}",
                     "zt2 §9 ShardRef", &error);
}

TEST(numbers_shards_in_the_order_of_their_names)
{
    struct zt_model *model;

    zt2_file_make(&file, ZT2_MANIFEST_AT,
                  "{'shards':{'z':{'size':4800,'digest':'xxh3:00'},'aa':{'size':4900,'digest':'"
                  "xxh3:11'}},'objects':{'a':{'parts':{'l':{'blob':[4096,8],'dtype':'u8'},'x':{'"
                  "blob':[4096,8],'dtype':'u8','shard':'z'},'y':{'blob':[4096,8],'dtype':'u8','"
                  "shard':'aa'}},'shape':[],'layout':'x'}}}");
    assert_ok(zt2_file_open(&file, &model, &error));
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

AROUND_ALL_TESTS(NULL, free_file)
