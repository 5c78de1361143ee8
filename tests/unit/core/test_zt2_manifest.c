/* Opening zTensor 2: the manifest's encoding and schema, names and shapes, by rule and offset. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "zt2_file.h"

static struct zt_error error;

/* --- encoding before schema --- */

TEST(encoding_faults_come_before_schema_faults)
{
    zt2_text_refused("{} ^0", "zt2 §2 CborSyntax", &error);
    zt2_text_refused("{'objects':7,'attributes':^!c000}", "zt2 §2 CborSyntax", &error);
    zt2_text_refused("{'objects':{'':7},'attributes':{'b':1,^'a':2}}", "zt2 §2 CborDeterminism",
                     &error);
    zt2_text_refused("{'objects':{'a':1,^'a':2}}", "zt2 §2 CborDuplicateKey", &error);
}

/* --- schema --- */

TEST(refuses_a_manifest_that_breaks_the_schema)
{
    static const char *const manifests[] = {
        "^{}",
        "^7",
        "^[]",
        "{'objects':^7}",
        "{'objects':^[]}",
        "{'objects':{^1:{}}}",
        "{'objects':{'a':^1}}",
        "{'objects':{},'attributes':^7}",
        "{'objects':{},'attributes':^null}",
        "{'objects':{},'attributes':{^1:2}}",
        "{'shards':^7,'objects':{}}",
        "{'shards':{^1:{'size':48,'digest':'xxh3:00'}},'objects':{}}",
        "{'shards':{'a':^{'size':48}},'objects':{}}",
        "{'shards':{'a':^{'digest':'xxh3:00'}},'objects':{}}",
        "{'shards':{'a':{'size':^'48','digest':'xxh3:00'}},'objects':{}}",
        "{'shards':{'a':{'size':48,'digest':^7}},'objects':{}}",
        "{'shards':{@'a':{'size':47,'digest':'xxh3:00'}},'objects':{}}",
    };

    for (size_t i = 0; i < sizeof(manifests) / sizeof(manifests[0]); i++)
        zt2_text_refused(manifests[i], "zt2 §3 Schema", &error);
}

TEST(refuses_an_object_that_breaks_the_schema)
{
    static const char *const objects[] = {
        "^{'parts':{'data':" ZT2_PART "},'shape':[8]}",
        "^{'parts':{'data':" ZT2_PART "},'layout':'dense'}",
        "^{'shape':[8],'layout':'dense'}",
        "{'parts':^{},'shape':[8],'layout':'dense'}",
        "{'parts':^[],'shape':[8],'layout':'dense'}",
        "{'parts':{^1:" ZT2_PART "},'shape':[8],'layout':'dense'}",
        "{'parts':{'data':^1},'shape':[8],'layout':'dense'}",
        "{'parts':{'data':" ZT2_PART "},'shape':^8,'layout':'dense'}",
        "{'parts':{'data':" ZT2_PART "},'shape':[^-8],'layout':'dense'}",
        "{'parts':{'data':" ZT2_PART "},'shape':[8,^1.0],'layout':'dense'}",
        "{'parts':{'data':" ZT2_PART "},'shape':[8],'layout':^null}",
        "{'parts':{'data':" ZT2_PART "},'shape':[8],'layout':'dense','attributes':^[]}",
        "{'parts':{'data':" ZT2_PART "},'shape':[8],'layout':'dense','attributes':{^1:2}}",
    };
    char manifest[400];

    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        snprintf(manifest, sizeof(manifest), "{'objects':{'a':%s}}", objects[i]);
        zt2_text_refused(manifest, "zt2 §3 Schema", &error);
        assert_string_equal(error.object, "a");
    }
}

TEST(refuses_a_part_that_breaks_the_schema)
{
    static const char *const parts[] = {
        "^{'dtype':'u8'}",
        "^{'blob':[4096,8]}",
        "{'blob':^[4096],'dtype':'u8'}",
        "{'blob':^[0,4096,8],'dtype':'u8'}",
        "{'blob':^{4096:8,8192:8},'dtype':'u8'}",
        "{'blob':[4096,^-8],'dtype':'u8'}",
        "{'blob':[^'4096',8],'dtype':'u8'}",
        "{'blob':[4096,8],'dtype':^'f4'}",
        "{'blob':[4096,8],'dtype':^'bool'}",
        "{'blob':[4096,8],'dtype':^8}",
        "{'blob':[4096,8],'dtype':^h'7538'}",
        "{'blob':[4096,8],'dtype':'u8','digest':^'xxh3=00'}",
        ("{'blob':[4096,8],'dtype':'u8','encoding':'x','decoded_length':^18446744073709551615}"),
        "{'blob':[4096,8],'type':^null,'dtype':'u8'}",
        "{'blob':[4096,8],'dtype':'u8','shard':^1}",
        "{'blob':[4096,8],'dtype':'u8','digest':^null}",
        "{'blob':[4096,8],'dtype':'u8','digest':^'xxh3:00FF'}",
        "{'blob':[4096,8],'dtype':'u8','digest':^'xxh3:'}",
        "{'blob':[4096,8],'dtype':'u8','digest':^':00'}",
        "{'blob':[4096,8],'dtype':'u8','digest':^'00'}",
        "{'blob':[4096,8],'dtype':'u8','digest':^''}",
        "{'blob':[4096,8],'dtype':'u8','digest':^'a:0\\0'}",
        "^{'blob':[4096,8],'dtype':'u8','encoding':'zt.zstd-seekable/1'}",
        "^{'blob':[4096,8],'dtype':'u8','decoded_length':8}",
        "{'blob':[4096,8],'dtype':'u8','encoding':'x','decoded_length':^-1}",
    };
    char manifest[400];

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(manifest, sizeof(manifest), "{'objects':{'a':{'parts':{'data':%s}," ZT2_REST "}}}",
                 parts[i]);
        zt2_text_refused(manifest, "zt2 §3 Schema", &error);
        assert_string_equal(error.object, "a");
        assert_string_equal(error.component, "data");
    }
}

TEST(unknown_keys_of_any_kind_are_ignored)
{
    assert_int_equal(
        zt2_text_try(
            "{7:{'a':null},'x':[1.5,h'00'],'obj':7,'objects':{'a':{1:2,'parts':{'data':{[]:true,'"
            "blob':[4096,8],'dtype':'u8','shadow':0}},'shape':[8],'layout':'dense'}}}",
            &error),
        ZT_INVALID); /* [] sorts after text */
    assert_string_equal(error.rule, "zt2 §2 CborDeterminism");
    assert_ok(zt2_text_try(
        "{7:{'a':null},'x':[1.5,h'00'],'obj':7,'objects':{'a':{1:2,'parts':{'data':{'blob':["
        "4096,8],'dtype':'u8','shadow':0,[]:true}},'shape':[8],'layout':'dense'}}}",
        &error));
}

TEST(returns_a_status_without_an_error_structure)
{
    static const char *const manifests[] = {
        "{}", "{} 0", "{'objects':{'a':{'parts':{'data':1}}}}",
        ZT2_OBJECT(ZT2_PART, "'shape':[9],'layout':'dense'"),
        "{'objects':{'a':{'parts':{'data':{'blob':[1,8],'dtype':'u8'}}," ZT2_REST "}}}"};
    struct zt2_file file = {0};
    struct zt_model *model = NULL;

    for (size_t i = 0; i < sizeof(manifests) / sizeof(manifests[0]); i++) {
        zt2_file_make(&file, ZT2_MANIFEST_AT, manifests[i]);
        assert_int_equal(zt2_file_open(&file, &model, NULL), ZT_INVALID);
        assert_null(model);
    }
    zt2_file_free(&file);
}

/* --- names and shapes --- */

TEST(refuses_names_that_are_empty_too_long_or_hold_nul)
{
    char manifest[1400];

    zt2_text_refused("{'objects':{^'':{'parts':{'data':" ZT2_PART "}," ZT2_REST "}}}",
                     "zt2 §3 Name", &error);
    zt2_text_refused("{'objects':{^'a\\0':{'parts':{'data':" ZT2_PART "}," ZT2_REST "}}}",
                     "zt2 §3 Name", &error);
    zt2_text_refused("{'objects':{'a':{'parts':{^'':" ZT2_PART "}," ZT2_REST "}}}", "zt2 §3 Name",
                     &error);
    zt2_text_refused("{'objects':{},'attributes':{^'':1}}", "zt2 §3 Name", &error);
    zt2_text_refused(ZT2_OBJECT(ZT2_PART, ZT2_REST ",'attributes':{^'\\0':1}"), "zt2 §3 Name",
                     &error);
    snprintf(manifest, sizeof(manifest),
             "{'objects':{^'%01025d':{'parts':{'data':" ZT2_PART "}," ZT2_REST "}}}", 0);
    zt2_text_refused(manifest, "zt2 §3 Name", &error);
    snprintf(manifest, sizeof(manifest),
             "{'objects':{'%01024d':{'parts':{'data':" ZT2_PART "}," ZT2_REST "}}}", 0);
    assert_ok(zt2_text_try(manifest, &error));
}

TEST(nested_attributes_may_have_any_keys)
{
    assert_ok(zt2_text_try("{'objects':{},'attributes':{'a':{1:2,'':3}}}", &error));
}

TEST(refuses_more_than_64_dimensions)
{
    char shape[64 * 2 + 1] = "";
    char manifest[400];

    for (int i = 0; i < 64; i++)
        memcpy(shape + 2L * i, "1,", 3);
    snprintf(manifest, sizeof(manifest),
             "{'objects':{'a':{'parts':{'data':" ZT2_PART "},'shape':^[%s1],'layout':'x'}}}",
             shape);
    zt2_text_refused(manifest, "zt2 §3 Shape", &error);
    snprintf(manifest, sizeof(manifest),
             "{'objects':{'a':{'parts':{'data':" ZT2_PART "},'shape':[%s],'layout':'x'}}}", shape);
    assert_ok(zt2_text_try(manifest, &error));
}

TEST(shape_products_fold_from_left_to_right)
{
    zt2_text_refused(ZT2_OBJECT(ZT2_PART, "'shape':[18446744073709551615,2,0],'layout':'x'"),
                     "zt2 §3 Shape", &error);
    assert_ok(zt2_text_try(ZT2_OBJECT(ZT2_PART, "'shape':[0,18446744073709551615,2],'layout':'x'"),
                           &error));
    assert_ok(
        zt2_text_try(ZT2_OBJECT(ZT2_PART, "'shape':[18446744073709551615],'layout':''"), &error));
}
