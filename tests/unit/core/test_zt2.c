/* Opening zTensor 2: every rule of the container, the manifest's schema and placement, by rule and offset. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "zt2_file.h"

/* An object "a" of one part "data", with the fields given; blobs may lie in [4096, 16384). */
#define MANIFEST_AT        16384
#define OBJECT(part, rest) "{\"objects\":{@\"a\":{\"parts\":{\"data\":" part "}," rest "}}}"
#define PART               "{\"blob\":[4096,8],\"dtype\":\"u8\"}"
#define REST               "\"shape\":[8],\"layout\":\"dense\""

static struct zt2_file file;
static struct zt_error error;

static enum zt_status open_file(void)
{
    struct zt_model *model = NULL;

    zt_error_clear(&error);
    enum zt_status status = zt2_file_open(&file, &model, &error);
    assert_true((status == ZT_OK) == (model != NULL));
    zt_model_free(model);
    return status;
}

static enum zt_status open_manifest(const char *manifest)
{
    zt2_file_make(&file, MANIFEST_AT, manifest);
    return open_file();
}

static void assert_refused(const char *manifest, const char *rule)
{
    enum zt_status status = open_manifest(manifest);

    if (status != ZT_INVALID || !error.rule || strcmp(error.rule, rule) != 0 || error.offset != file.mark)
        print_message("%s\n -> %s at +%d, wanted at +%d: %s\n", manifest, error.rule ? error.rule : "no rule",
                      (int)(error.offset - MANIFEST_AT), (int)(file.mark - MANIFEST_AT), error.message);
    assert_failure(&error, ZT_INVALID, rule, file.mark);
}

static uint8_t *footer(void)
{
    return file.bytes + file.length - ZT2_FILE_FOOTER;
}

/* --- the container --- */

static void open_fills_the_model(void **state)
{
    struct zt_model *model;

    (void)state;
    zt2_file_make(&file, MANIFEST_AT,
                  "{\"shards\":{\"base\":{\"size\":9000,\"digest\":\"sha256:00\"}},\"objects\":{"
                  "\"b\":{\"parts\":{\"data\":{\"blob\":[4096,2],\"type\":\"f4_e2m1\",\"dtype\":\"u8\","
                  "\"digest\":\"xxh3:0011\"}},\"shape\":[3],\"layout\":\"dense\",\"attributes\":{\"k\":1}},"
                  "\"aa\":{\"parts\":{\"x\":{\"blob\":[4096,7],\"dtype\":\"f32\",\"shard\":\"base\",\"encoding\":"
                  "\"zt.zstd-seekable/1\",\"decoded_length\":16}},\"shape\":[2,2],\"layout\":\"x/1\"}},"
                  "\"attributes\":{\"n\":-1}}");
    assert_int_equal(zt2_file_open(&file, &model, &error), ZT_OK);
    assert_int_equal(model->format, ZT_FORMAT_ZT2);
    assert_string_equal(model->format_name, "zt");
    assert_int_equal(model->file_size, file.length);
    assert_int_equal(model->manifest_offset, MANIFEST_AT);
    assert_int_equal(model->manifest_length, file.length - ZT2_FILE_FOOTER - MANIFEST_AT);
    assert_int_equal(model->attributes.length, 4);
    assert_memory_equal(model->attributes.bytes, "\xa1\x61n\x20", 4);
    assert_int_equal(model->object_count, 2);

    const struct zt_object *object = zt_model_find(model, (struct zt_text){"b", 1});
    const struct zt_component *part = zt_object_components(model, object);
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
    zt2_file_make(&file, MANIFEST_AT,
                  OBJECT("{\"blob\":[4096,2],\"dtype\":\"u8\",\"encoding\":\"zstd\",\"decoded_length\":8}", REST));
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
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 FileTooSmall", 0);
}

static void refuses_a_wrong_magic_at_either_end(void **state)
{
    (void)state;
    zt2_file_make(&file, MANIFEST_AT, OBJECT(PART, REST));
    file.bytes[7] ^= 1;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 HeaderMagic", 0);
    file.bytes[7] ^= 1;
    footer()[39] ^= 1;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 FooterMagic", file.length - 8);
}

static void refuses_a_footer_of_another_version(void **state)
{
    (void)state;
    zt2_file_make(&file, MANIFEST_AT, OBJECT(PART, REST));
    footer()[24] = 3;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 Version", file.length - 16);
}

static void ignores_the_reserved_word_and_padding(void **state)
{
    (void)state;
    zt2_file_make(&file, MANIFEST_AT, OBJECT(PART, REST));
    footer()[28] = 0xff;
    memset(file.bytes + 8, 0xab, 4096 - 8);
    assert_int_equal(open_file(), ZT_OK);
}

static void tells_a_data_shard_apart(void **state)
{
    (void)state;
    zt2_file_make(&file, 4096, "");
    memset(footer(), 0, 24);
    assert_int_equal(open_file(), ZT_DATA_SHARD);
    footer()[1] = 0x10;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
    footer()[1] = 0;
    footer()[16] = 1;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 24);
}

static void refuses_a_manifest_above_1_gib_before_reading_it(void **state)
{
    static const uint8_t one_more[8] = {1, 0, 0, 0x40};

    (void)state;
    zt2_file_make(&file, MANIFEST_AT, OBJECT(PART, REST));
    memcpy(footer() + 8, one_more, 8);
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestTooLarge", file.length - 32);
    footer()[8] = 0; /* 1 GiB exactly: allowed, but not here */
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
}

static void refuses_a_manifest_that_is_not_aligned_or_in_the_header(void **state)
{
    (void)state;
    zt2_file_make(&file, MANIFEST_AT, OBJECT(PART, REST));
    footer()[0] = 4;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobAlignment", file.length - 40);
    memset(footer(), 0, 8);
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobAlignment", file.length - 40);
}

static void refuses_a_manifest_outside_the_file(void **state)
{
    (void)state;
    zt2_file_make(&file, MANIFEST_AT, OBJECT(PART, REST));
    footer()[8]++;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
    memset(footer() + 2, 0xff, 6); /* offset plus length wraps */
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestBounds", file.length - 40);
}

static void refuses_a_manifest_that_does_not_hash(void **state)
{
    (void)state;
    zt2_file_make(&file, MANIFEST_AT, OBJECT(PART, REST));
    file.bytes[MANIFEST_AT + 3] ^= 1;
    assert_int_equal(open_file(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestHash", file.length - 24);
}

/* --- encoding before schema --- */

static void encoding_faults_come_before_schema_faults(void **state)
{
    (void)state;
    assert_refused("{} ^0", "zt2 §2 CborSyntax");
    assert_refused("{\"objects\":7,\"attributes\":^!c000}", "zt2 §2 CborSyntax");
    assert_refused("{\"objects\":{\"\":7},\"attributes\":{\"b\":1,^\"a\":2}}", "zt2 §2 CborDeterminism");
    assert_refused("{\"objects\":{\"a\":1,^\"a\":2}}", "zt2 §2 CborDuplicateKey");
}

/* --- schema --- */

static void refuses_a_manifest_that_breaks_the_schema(void **state)
{
    static const char *const manifests[] = {
        "^{}",
        "^7",
        "^[]",
        "{\"objects\":^7}",
        "{\"objects\":^[]}",
        "{\"objects\":{^1:{}}}",
        "{\"objects\":{\"a\":^1}}",
        "{\"objects\":{},\"attributes\":^7}",
        "{\"objects\":{},\"attributes\":^null}",
        "{\"objects\":{},\"attributes\":{^1:2}}",
        "{\"shards\":^7,\"objects\":{}}",
        "{\"shards\":{^1:{\"size\":48,\"digest\":\"xxh3:00\"}},\"objects\":{}}",
        "{\"shards\":{\"a\":^{\"size\":48}},\"objects\":{}}",
        "{\"shards\":{\"a\":^{\"digest\":\"xxh3:00\"}},\"objects\":{}}",
        "{\"shards\":{\"a\":{\"size\":^\"48\",\"digest\":\"xxh3:00\"}},\"objects\":{}}",
        "{\"shards\":{\"a\":{\"size\":48,\"digest\":^7}},\"objects\":{}}",
        "{\"shards\":{@\"a\":{\"size\":47,\"digest\":\"xxh3:00\"}},\"objects\":{}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(manifests) / sizeof(manifests[0]); i++)
        assert_refused(manifests[i], "zt2 §3 Schema");
}

static void refuses_an_object_that_breaks_the_schema(void **state)
{
    static const char *const objects[] = {
        "^{\"parts\":{\"data\":" PART "},\"shape\":[8]}",
        "^{\"parts\":{\"data\":" PART "},\"layout\":\"dense\"}",
        "^{\"shape\":[8],\"layout\":\"dense\"}",
        "{\"parts\":^{},\"shape\":[8],\"layout\":\"dense\"}",
        "{\"parts\":^[],\"shape\":[8],\"layout\":\"dense\"}",
        "{\"parts\":{^1:" PART "},\"shape\":[8],\"layout\":\"dense\"}",
        "{\"parts\":{\"data\":^1},\"shape\":[8],\"layout\":\"dense\"}",
        "{\"parts\":{\"data\":" PART "},\"shape\":^8,\"layout\":\"dense\"}",
        "{\"parts\":{\"data\":" PART "},\"shape\":[^-8],\"layout\":\"dense\"}",
        "{\"parts\":{\"data\":" PART "},\"shape\":[8,^1.0],\"layout\":\"dense\"}",
        "{\"parts\":{\"data\":" PART "},\"shape\":[8],\"layout\":^null}",
        "{\"parts\":{\"data\":" PART "},\"shape\":[8],\"layout\":\"dense\",\"attributes\":^[]}",
        "{\"parts\":{\"data\":" PART "},\"shape\":[8],\"layout\":\"dense\",\"attributes\":{^1:2}}",
    };
    char manifest[400];

    (void)state;
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        snprintf(manifest, sizeof(manifest), "{\"objects\":{\"a\":%s}}", objects[i]);
        assert_refused(manifest, "zt2 §3 Schema");
        assert_string_equal(error.object, "a");
    }
}

static void refuses_a_part_that_breaks_the_schema(void **state)
{
    static const char *const parts[] = {
        "^{\"dtype\":\"u8\"}",
        "^{\"blob\":[4096,8]}",
        "{\"blob\":^[4096],\"dtype\":\"u8\"}",
        "{\"blob\":^[0,4096,8],\"dtype\":\"u8\"}",
        "{\"blob\":^{4096:8,8192:8},\"dtype\":\"u8\"}",
        "{\"blob\":[4096,^-8],\"dtype\":\"u8\"}",
        "{\"blob\":[^\"4096\",8],\"dtype\":\"u8\"}",
        "{\"blob\":[4096,8],\"dtype\":^\"f4\"}",
        "{\"blob\":[4096,8],\"dtype\":^\"bool\"}",
        "{\"blob\":[4096,8],\"dtype\":^8}",
        "{\"blob\":[4096,8],\"type\":^null,\"dtype\":\"u8\"}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"shard\":^1}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"digest\":^null}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"digest\":^\"xxh3:00FF\"}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"digest\":^\"xxh3:\"}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"digest\":^\":00\"}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"digest\":^\"00\"}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"digest\":^\"\"}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"digest\":^\"a:0\\0\"}",
        "^{\"blob\":[4096,8],\"dtype\":\"u8\",\"encoding\":\"zt.zstd-seekable/1\"}",
        "^{\"blob\":[4096,8],\"dtype\":\"u8\",\"decoded_length\":8}",
        "{\"blob\":[4096,8],\"dtype\":\"u8\",\"encoding\":\"x\",\"decoded_length\":^-1}",
    };
    char manifest[400];

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(manifest, sizeof(manifest), "{\"objects\":{\"a\":{\"parts\":{\"data\":%s}," REST "}}}", parts[i]);
        assert_refused(manifest, "zt2 §3 Schema");
        assert_string_equal(error.object, "a");
        assert_string_equal(error.component, "data");
    }
}

static void unknown_keys_of_any_kind_are_ignored(void **state)
{
    (void)state;
    assert_int_equal(open_manifest("{7:{\"a\":null},\"x\":[1.5,h'00'],\"objects\":{\"a\":{1:2,\"parts\":{\"data\":"
                                   "{[]:true,\"blob\":[4096,8],\"dtype\":\"u8\",\"shadow\":0}},\"shape\":[8],"
                                   "\"layout\":\"dense\"}}}"),
                     ZT_INVALID); /* [] sorts after text */
    assert_string_equal(error.rule, "zt2 §2 CborDeterminism");
    assert_int_equal(open_manifest("{7:{\"a\":null},\"x\":[1.5,h'00'],\"objects\":{\"a\":{1:2,\"parts\":{\"data\":"
                                   "{\"blob\":[4096,8],\"dtype\":\"u8\",\"shadow\":0,[]:true}},\"shape\":[8],"
                                   "\"layout\":\"dense\"}}}"),
                     ZT_OK);
}

/* --- names and shapes --- */

static void refuses_names_that_are_empty_too_long_or_hold_nul(void **state)
{
    char manifest[1400];

    (void)state;
    assert_refused("{\"objects\":{^\"\":{\"parts\":{\"data\":" PART "}," REST "}}}", "zt2 §3 Name");
    assert_refused("{\"objects\":{^\"a\\0\":{\"parts\":{\"data\":" PART "}," REST "}}}", "zt2 §3 Name");
    assert_refused("{\"objects\":{\"a\":{\"parts\":{^\"\":" PART "}," REST "}}}", "zt2 §3 Name");
    assert_refused("{\"objects\":{},\"attributes\":{^\"\":1}}", "zt2 §3 Name");
    assert_refused(OBJECT(PART, REST ",\"attributes\":{^\"\\0\":1}"), "zt2 §3 Name");
    snprintf(manifest, sizeof(manifest), "{\"objects\":{^\"%01025d\":{\"parts\":{\"data\":" PART "}," REST "}}}", 0);
    assert_refused(manifest, "zt2 §3 Name");
    snprintf(manifest, sizeof(manifest), "{\"objects\":{\"%01024d\":{\"parts\":{\"data\":" PART "}," REST "}}}", 0);
    assert_int_equal(open_manifest(manifest), ZT_OK);
}

static void nested_attributes_may_have_any_keys(void **state)
{
    (void)state;
    assert_int_equal(open_manifest("{\"objects\":{},\"attributes\":{\"a\":{1:2,\"\":3}}}"), ZT_OK);
}

static void refuses_more_than_64_dimensions(void **state)
{
    char shape[64 * 2 + 1] = "";
    char manifest[400];

    (void)state;
    for (int i = 0; i < 64; i++)
        memcpy(shape + 2L * i, "1,", 3);
    snprintf(manifest, sizeof(manifest),
             "{\"objects\":{\"a\":{\"parts\":{\"data\":" PART "},\"shape\":^[%s1],"
             "\"layout\":\"x\"}}}",
             shape);
    assert_refused(manifest, "zt2 §3 Shape");
    snprintf(manifest, sizeof(manifest),
             "{\"objects\":{\"a\":{\"parts\":{\"data\":" PART "},\"shape\":[%s],"
             "\"layout\":\"x\"}}}",
             shape);
    assert_int_equal(open_manifest(manifest), ZT_OK);
}

static void shape_products_fold_from_left_to_right(void **state)
{
    (void)state;
    assert_refused(OBJECT(PART, "\"shape\":[18446744073709551615,2,0],\"layout\":\"x\""), "zt2 §3 Shape");
    assert_int_equal(open_manifest(OBJECT(PART, "\"shape\":[0,18446744073709551615,2],\"layout\":\"x\"")), ZT_OK);
    assert_int_equal(open_manifest(OBJECT(PART, "\"shape\":[18446744073709551615],\"layout\":\"\"")), ZT_OK);
}

/* --- placement --- */

static void refuses_blobs_that_are_not_aligned(void **state)
{
    (void)state;
    assert_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4100,8],\"dtype\":\"u8\"}}," REST "}}}",
                   "zt2 §1 BlobAlignment");
    assert_string_equal(error.component, "data");
    assert_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[0,8],\"dtype\":\"u8\"}}," REST "}}}",
                   "zt2 §1 BlobAlignment");
    assert_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[1,0],\"dtype\":\"u8\"}},\"shape\":[0],"
                   "\"layout\":\"dense\"}}}",
                   "zt2 §1 BlobAlignment");
}

static void refuses_blobs_outside_the_file(void **state)
{
    (void)state;
    assert_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[20480,8],\"dtype\":\"u8\"}}," REST "}}}",
                   "zt2 §1 BlobBounds");
    assert_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4096,18446744073709551615],\"dtype\":"
                   "\"u8\"}},\"shape\":[8],\"layout\":\"x\"}}}",
                   "zt2 §1 BlobBounds");
    assert_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[18446744073709547520,8192],\"dtype\":"
                   "\"u8\"}},\"shape\":[8],\"layout\":\"x\"}}}",
                   "zt2 §1 BlobBounds");
    assert_refused("{\"shards\":{\"s\":{\"size\":4143,\"digest\":\"xxh3:00\"}},\"objects\":{\"a\":{\"parts\":{"
                   "@\"data\":{\"blob\":[4096,8],\"dtype\":\"u8\",\"shard\":\"s\"}}," REST "}}}",
                   "zt2 §1 BlobBounds");
}

static void refuses_blobs_that_overlap(void **state)
{
    (void)state;
    assert_int_equal(open_manifest("{\"objects\":{\"a\":{\"parts\":{\"x\":{\"blob\":[4096,4097],\"dtype\":\"u8\"},"
                                   "\"y\":{\"blob\":[8192,8],\"dtype\":\"u8\"}},\"shape\":[],\"layout\":\"x\"}}}"),
                     ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", 8192);
    assert_string_equal(error.object, "a");
    assert_string_equal(error.component, "y");
}

static void refuses_blobs_that_run_into_the_manifest(void **state)
{
    (void)state;
    assert_int_equal(open_manifest("{\"objects\":{\"a\":{\"parts\":{\"x\":{\"blob\":[12288,4097],\"dtype\":\"u8\"}},"
                                   "\"shape\":[],\"layout\":\"x\"}}}"),
                     ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", MANIFEST_AT);
}

static void refuses_overlap_inside_a_shard(void **state)
{
    (void)state;
    assert_int_equal(
        open_manifest("{\"shards\":{\"s\":{\"size\":99999,\"digest\":\"xxh3:00\"}},\"objects\":{\"a\":{"
                      "\"parts\":{\"x\":{\"blob\":[4096,8192],\"dtype\":\"u8\",\"shard\":\"s\"},\"y\":{"
                      "\"blob\":[8192,8],\"dtype\":\"u8\",\"shard\":\"s\"}},\"shape\":[],\"layout\":\"x\"}}}"),
        ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 BlobOverlap", 8192);
}

static void refuses_types_on_the_wrong_storage(void **state)
{
    (void)state;
    assert_refused("{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4096,8],\"type\":\"complex64\",\"dtype\":"
                   "\"f64\"}},\"shape\":[1],\"layout\":\"dense\"}}}",
                   "zt2 §3 Schema");
}

/* --- shards --- */

static void refuses_shard_names_that_could_be_paths(void **state)
{
    static const char *const names[] = {
        "", ".a", "a/b", "a b", "a\\0", "0123456789012345678901234567890123456789012345678901234567890123x"};
    char manifest[300];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(manifest, sizeof(manifest),
                 "{\"shards\":{@\"%s\":{\"size\":48,\"digest\":\"xxh3:00\"}},\"objects\":{}}", names[i]);
        assert_refused(manifest, "zt2 §9 ShardName");
    }
    assert_int_equal(open_manifest("{\"shards\":{\"A-Z_a.0\":{\"size\":48,\"digest\":\"xxh3:00\"}},\"objects\":{}}"),
                     ZT_OK);
}

static void refuses_parts_in_undeclared_shards(void **state)
{
    (void)state;
    assert_refused(
        "{\"objects\":{\"a\":{\"parts\":{@\"data\":{\"blob\":[4096,8],\"dtype\":\"u8\",\"shard\":\"s\"}}," REST "}}}",
        "zt2 §9 ShardRef");
    assert_refused(
        "{\"shards\":{\"t\":{\"size\":4900,\"digest\":\"xxh3:00\"}},\"objects\":{\"a\":{\"parts\":{@\"data\":{"
        "\"blob\":[4096,8],\"dtype\":\"u8\",\"shard\":\"s\"}}," REST "}}}",
        "zt2 §9 ShardRef");
}

static void numbers_shards_in_the_order_of_their_names(void **state)
{
    struct zt_model *model;

    (void)state;
    zt2_file_make(
        &file, MANIFEST_AT,
        "{\"shards\":{\"z\":{\"size\":4800,\"digest\":\"xxh3:00\"},\"aa\":{\"size\":4900,\"digest\":\"xxh3:11\"}},"
        "\"objects\":{\"a\":{\"parts\":{\"l\":{\"blob\":[4096,8],\"dtype\":\"u8\"},\"x\":{\"blob\":[4096,8],"
        "\"dtype\":\"u8\",\"shard\":\"z\"},\"y\":{\"blob\":[4096,8],\"dtype\":\"u8\",\"shard\":\"aa\"}},"
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
        cmocka_unit_test(tells_a_data_shard_apart),
        cmocka_unit_test(refuses_a_manifest_above_1_gib_before_reading_it),
        cmocka_unit_test(refuses_a_manifest_that_is_not_aligned_or_in_the_header),
        cmocka_unit_test(refuses_a_manifest_outside_the_file),
        cmocka_unit_test(refuses_a_manifest_that_does_not_hash),
        cmocka_unit_test(encoding_faults_come_before_schema_faults),
        cmocka_unit_test(refuses_a_manifest_that_breaks_the_schema),
        cmocka_unit_test(refuses_an_object_that_breaks_the_schema),
        cmocka_unit_test(refuses_a_part_that_breaks_the_schema),
        cmocka_unit_test(unknown_keys_of_any_kind_are_ignored),
        cmocka_unit_test(refuses_names_that_are_empty_too_long_or_hold_nul),
        cmocka_unit_test(nested_attributes_may_have_any_keys),
        cmocka_unit_test(refuses_more_than_64_dimensions),
        cmocka_unit_test(shape_products_fold_from_left_to_right),
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
