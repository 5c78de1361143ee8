/* Opening zTensor 1.0, 1.1 and 1.2: what is read, and every rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "cbor_text.h"
#include "container.h"
#include "tests.h"

/* A valid dense object of 16 bytes at offset 64, and the same with room for one change. */
#define COMPONENT         "{'dtype':'f32','offset':64,'length':16}"
#define OBJECT_WITH(c)    "{'shape':[2,2],'format':'dense','components':{'data':" c "}}"
#define MANIFEST_WITH(o)  "{'version':'1.2.0','objects':{'x':" o "}}"
#define COMPONENT_FILE(c) MANIFEST_WITH(OBJECT_WITH(c))
#define TENSOR_1_0                                                                                 \
    "{'dtype':'float32','shape':[2,2],'format':'dense','components':{'data':{'offset':64,'length'" \
    ":16}}}"

static struct zt_model *opened(enum container_version version, size_t data_length,
                               const char *manifest)
{
    struct container container = {0};
    struct zt_model *model;

    container_make(&container, version, data_length, manifest);
    model = container_model(&container);
    container_free(&container);
    return model;
}

static const struct zt_component *only_component(const struct zt_model *model)
{
    assert_int_equal(model->component_count, 1);
    return &model->components[0];
}

/* --- what is read --- */

TEST(open_reads_every_field)
{
    const struct zt_component *component;
    struct zt_model *model = opened(
        CONTAINER_ZT1, 16,
        "{'version':'1.2.0','attributes':{'a':1},'objects':{'x':{'shape':[2,3],'format':'dense','"
        "attributes':{'b':[2]},'components':{'data':{'dtype':'u8','type':'f8_e5m2','offset':64,'"
        "length':9,'uncompressed_length':6,'encoding':'zstd','digest':'crc32c:0x1'}}}}}");
    const struct zt_object *object = zt_model_find(model, zt_text_from("x"));

    assert_int_equal(model->format, ZT_FORMAT_ZT1);
    assert_text(model->version.bytes, model->version.length, "1.2.0");
    assert_text(model->attributes.bytes, model->attributes.length,
                "\xA1\x61"
                "a\x01");
    assert_text((const char *)object->attributes, object->attributes_length,
                "\xA1\x61"
                "b\x81\x02");
    assert_int_equal(object->rank, 2);
    assert_int_equal(zt_object_shape(model, object)[1], 3);
    assert_int_equal(zt_object_elements(model, object), 6);
    assert_int_equal(object->layout, ZT_LAYOUT_DENSE);
    component = zt_object_find(model, object, zt_text_from("data"));
    assert_non_null(component);
    assert_int_equal(component->dtype, ZT_U8);
    assert_int_equal(component->logical, ZT_LOGICAL_F8_E5M2);
    assert_text(component->type, component->type_length, "f8_e5m2");
    assert_int_equal(component->encoding, ZT_ENCODING_ZSTD);
    assert_text(component->encoding_name, component->encoding_length, "zstd");
    assert_text(component->digest, component->digest_length, "crc32c:0x1");
    assert_int_equal(component->offset, 64);
    assert_int_equal(component->length, 9);
    assert_int_equal(component->decoded_length, 6);
    assert_null(zt_model_find(model, zt_text_from("y")));
    assert_null(zt_object_find(model, object, zt_text_from("dat")));
    zt_model_free(model);
}

TEST(open_takes_null_for_absent)
{
    struct zt_model *model =
        opened(CONTAINER_ZT1, 16,
               "{'version':'1.1.0','attributes':null,'objects':{'x':{'shape':[4],'format':'"
               "dense','attributes':null,'components':{'data':{'dtype':'f32','type':null,'"
               "offset':64,'length':16,'uncompressed_length':null,'digest':null}}}}}");
    const struct zt_component *component = only_component(model);

    assert_null(component->type);
    assert_null(component->digest);
    assert_int_equal(component->decoded_length, 16);
    assert_text(component->encoding_name, component->encoding_length, "raw");
    assert_null(model->objects[0].attributes);
    assert_int_equal(model->attributes.length, 0);
    zt_model_free(model);
}

TEST(open_sorts_names_in_any_order)
{
    const struct zt_component *components;
    struct zt_model *model =
        opened(CONTAINER_ZT1, 16,
               "{'objects':{'b':" OBJECT_WITH(COMPONENT) ",'aa':" OBJECT_WITH(
                   COMPONENT) ",'a':{'shape':[],'format':'x','components':{'z':" COMPONENT
                              ",'y':" COMPONENT "}}},'version':'1.1'}");

    assert_int_equal(model->object_count, 3);
    assert_text(model->objects[0].name, model->objects[0].name_length, "a");
    assert_text(model->objects[1].name, model->objects[1].name_length, "aa");
    assert_text(model->objects[2].name, model->objects[2].name_length, "b");
    components = zt_object_components(model, &model->objects[0]);
    assert_text(components[0].name, components[0].name_length, "y");
    assert_text(components[1].name, components[1].name_length, "z");
    assert_int_equal(zt_object_elements(model, &model->objects[0]), 1);
    zt_model_free(model);
}

TEST(open_reads_indefinite_lengths_and_wide_heads)
{
    struct zt_model *model;
    const struct zt_object *object;

    /* {_ "version": (_ "1.", "2.0"), "objects": {_ "x": {...}}} with "shape" in two pieces and wide
     * integers. */
    model = opened(
        CONTAINER_ZT1, 16,
        "!bf6776657273696f6e7f62312e63322e30ff676f626a65637473bf7f61786179ffbf7f63736861627065ff9f1"
        "8021b0000000000000002ff66666f726d61747f6364656e627365ff6a636f6d706f6e656e7473bf6464617461b"
        "f65647479706563663332666f66667365741a00000040666c656e677468190010ffffffffff");
    object = zt_model_find(model, zt_text_from("xy"));
    assert_text(model->version.bytes, model->version.length, "1.2.0");
    assert_non_null(object);
    assert_int_equal(object->layout, ZT_LAYOUT_DENSE);
    assert_int_equal(zt_object_elements(model, object), 4);
    assert_int_equal(only_component(model)->length, 16);
    zt_model_free(model);
}

TEST(open_knows_the_dtypes_that_only_1_1_has)
{
    static const struct {
        const char *dtype;
        enum zt_dtype storage;
        enum zt_logical logical;
        const char *type;
        unsigned elements;
    } cases[] = {
        {"f8_e4m3", ZT_U8, ZT_LOGICAL_F8_E4M3FN, "f8_e4m3fn", 16},
        {"f8_e5m2", ZT_U8, ZT_LOGICAL_F8_E5M2, "f8_e5m2", 16},
        {"complex64", ZT_F32, ZT_LOGICAL_COMPLEX64, "complex64", 2},
        {"complex128", ZT_F64, ZT_LOGICAL_COMPLEX128, "complex128", 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char manifest[512];
        struct zt_model *model;
        const struct zt_component *component;

        snprintf(manifest, sizeof(manifest),
                 "{'version':'1.1.0','objects':{'x':{'shape':[%u],'format':'dense','components':{'"
                 "data':{'dtype':'%s','offset':64,'length':16}}}}}",
                 cases[i].elements, cases[i].dtype);
        model = opened(CONTAINER_ZT1, 16, manifest);
        component = only_component(model);
        assert_int_equal(component->dtype, cases[i].storage);
        assert_int_equal(component->logical, cases[i].logical);
        assert_text(component->type, component->type_length, cases[i].type);
        zt_model_free(model);
    }
}

TEST(open_leaves_unknown_types_and_encodings_to_others)
{
    struct zt_model *model = opened(
        CONTAINER_ZT1, 16,
        COMPONENT_FILE("{'dtype':'u8','type':'int3','encoding':'lz4','offset':64,'length':5}"));
    const struct zt_component *component = only_component(model);

    assert_int_equal(component->logical, ZT_LOGICAL_UNKNOWN);
    assert_int_equal(component->encoding, ZT_ENCODING_UNKNOWN);
    assert_true(component->decoded_length == ZT_LENGTH_UNKNOWN);
    zt_model_free(model);
}

TEST(open_derives_the_decoded_length_of_dense_zstd)
{
    struct zt_model *model =
        opened(CONTAINER_ZT1, 16,
               COMPONENT_FILE("{'dtype':'f64','offset':64,'length':9,'encoding':'zstd'}"));

    assert_int_equal(only_component(model)->decoded_length, 32);
    zt_model_free(model);
}

TEST(open_allows_identical_and_empty_ranges)
{
    struct zt_model *model =
        opened(CONTAINER_ZT1, 64,
               "{'version':'1.2.0','objects':{'x':" OBJECT_WITH(COMPONENT) ",'y':" OBJECT_WITH(
                   COMPONENT) ",'z':{'shape':[0],'format':'dense','components':{'data':{'dtype'"
                              ":'f32','offset':128,'length':0}}}}}");

    assert_int_equal(model->object_count, 3);
    zt_model_free(model);
}

TEST(open_passes_over_unknown_fields_and_tags)
{
    struct zt_model *model =
        opened(CONTAINER_ZT1, 16,
               "{'new':{'a':[1,2.5,null]},'version':'1.9','objects':{'x':{'shape':!c98104,'"
               "format':'dense','more':7,'components':{'data':" COMPONENT "}}}}");

    assert_int_equal(model->object_count, 1);
    zt_model_free(model);
}

TEST(attributes_are_the_map_without_tags_before_it)
{
    struct zt_model *model;

    model =
        opened(CONTAINER_ZT1, 16,
               "{'version':'1.2.0','attributes':!d2d9d9f7a1616101,'objects':{'x':{'shape':[4],'"
               "format':'dense','attributes':!c9a1616202,'components':{'data':" COMPONENT "}}}}");
    assert_text(model->attributes.bytes, model->attributes.length, "\xA1\x61\x61\x01");
    assert_text((const char *)model->objects[0].attributes, model->objects[0].attributes_length,
                "\xA1\x61\x62\x02");
    zt_model_free(model);
}

TEST(open_reads_1_0_by_its_tail)
{
    struct zt_model *model =
        opened(CONTAINER_ZT10, 256,
               "{'version':'1.0','generator':'g','attributes':{},'tensors':{'x':" TENSOR_1_0
               ",'s':{'dtype':'float32','shape':[1,2],'format':'sparse_csr','components':{'"
               "values':{'offset':128,'length':4},'indices':{'offset':192,'length':8,'encoding'"
               ":null},'indptr':{'offset':256,'length':16,'dtype':1}}}}}");
    const struct zt_object *sparse = zt_model_find(model, zt_text_from("s"));

    assert_text(model->version.bytes, model->version.length, "1.0");
    assert_int_equal(sparse->component_count, 3);
    assert_int_equal(zt_object_find(model, sparse, zt_text_from("values"))->dtype, ZT_F32);
    assert_int_equal(zt_object_find(model, sparse, zt_text_from("indices"))->dtype, ZT_U64);
    assert_int_equal(zt_object_find(model, sparse, zt_text_from("indptr"))->dtype, ZT_U64);
    zt_model_free(model);
}

/* --- what is refused --- */

struct refusal {
    const char *rule;
    const char *manifest;
};

static void assert_all_refused(enum container_version version, const struct refusal *refusals,
                               size_t count)
{
    struct container container = {0};

    for (size_t i = 0; i < count; i++) {
        container_make(&container, version, 128, refusals[i].manifest);
        container_assert_refused(&container, refusals[i].rule, container.mark);
    }
    container_free(&container);
}

#define ASSERT_ALL_REFUSED(version, list) \
    assert_all_refused(version, list, sizeof(list) / sizeof(list[0]))

TEST(open_refuses_a_broken_schema)
{
    static const struct refusal list[] = {
        {"zt1 §1 Schema", "^[]"},
        {"zt1 §1 Schema", "^{'objects':{}}"},
        {"zt1 §1 Schema", "^{'version':'1.2.0'}"},
        {"zt1 §1 Schema", "{'version':^1,'objects':{}}"},
        {"zt1 §1 Schema", "{'version':'1.2.0','objects':^[]}"},
        {"zt1 §1 Schema", "{'version':'1.2.0','objects':{^1:2}}"},
        {"zt1 §1 Schema", "{'version':'1.2.0','objects':{},^h'61':1}"},
        {"zt1 §1 Schema", "{'version':'1.2.0','objects':{},'attributes':^1}"},
        {"zt1 §1 Schema", "{'version':'1.2.0','objects':{},'attributes':{^1:2}}"},
        {"zt1 §1 Schema", MANIFEST_WITH("^7")},
        {"zt1 §1 Schema", MANIFEST_WITH("^{'format':'a','components':{}}")},
        {"zt1 §1 Schema", MANIFEST_WITH("^{'shape':[],'components':{}}")},
        {"zt1 §1 Schema", MANIFEST_WITH("^{'shape':[],'format':'a'}")},
        {"zt1 §1 Schema", MANIFEST_WITH("{'shape':^1}")},
        {"zt1 §1 Schema", MANIFEST_WITH("{'shape':[1,^-1]}")},
        {"zt1 §1 Schema", MANIFEST_WITH("{'shape':[^1.5]}")},
        {"zt1 §1 Schema", MANIFEST_WITH("{'format':^null}")},
        {"zt1 §1 Schema", MANIFEST_WITH("{'components':^[]}")},
        {"zt1 §1 Schema", MANIFEST_WITH("{'attributes':^[]}")},
        {"zt1 §1 Schema", COMPONENT_FILE("^[]")},
        {"zt1 §1 Schema", COMPONENT_FILE("^{'dtype':'f32','length':16}")},
        {"zt1 §1 Schema", COMPONENT_FILE("^{'dtype':'f32','offset':64}")},
        {"zt1 §1 Schema", COMPONENT_FILE("^{'offset':64,'length':16}")},
        {"zt1 §1 Schema", COMPONENT_FILE("{'offset':^-64}")},
        {"zt1 §1 Schema", COMPONENT_FILE("{'length':^'16'}")},
        {"zt1 §1 Schema", COMPONENT_FILE("{'encoding':^null}")},
        {"zt1 §1 Schema", COMPONENT_FILE("{'digest':^1}")},
        {"zt1 §1 Schema", COMPONENT_FILE("{'type':^1}")},
        {"zt1 §1 Schema", COMPONENT_FILE("{'uncompressed_length':^1.0}")},
        {"zt1 §1 UncompressedLength",
         COMPONENT_FILE("{'dtype':'f32','offset':64,'length':16,'uncompressed_length':^17}")},
        {"zt1 §1 Version", "{'version':^'2.0.0','objects':{}}"},
        {"zt1 §1 Version", "{'version':^'1','objects':{}}"},
        {"zt1 §1 Shape", MANIFEST_WITH("{'shape':^[18446744073709551615,2,0]}")},
        {"zt1 §2 Dtype", COMPONENT_FILE("{'offset':64,'length':16,'dtype':^'float32'}")},
        {"zt1 §2 Dtype", COMPONENT_FILE("{'offset':64,'length':16,'dtype':^'complex64'}")},
        {"zt1 §2 LogicalType",
         COMPONENT_FILE("{'offset':64,'length':16,'dtype':'f32','type':^'f8_e5m2'}")},
        {"zt1 §2 LogicalType",
         COMPONENT_FILE("{'offset':64,'length':16,'dtype':'complex64','type':^'complex64'}")},
    };

    ASSERT_ALL_REFUSED(CONTAINER_ZT1, list);
}

#define ROOT_1_0 "'version':'1.0','generator':'g','attributes':{}"

TEST(open_refuses_a_broken_1_0_schema)
{
    static const struct refusal list[] = {
        {"zt1 §1 Schema", "^{" ROOT_1_0 "}"},
        {"zt1 §1 Schema", "^{" ROOT_1_0 ",'objects':{}}"},
        {"zt1 §1 Schema", "^{'version':'1.0','attributes':{},'tensors':{}}"},
        {"zt1 §1 Schema", "^{'version':'1.0','generator':'g','tensors':{}}"},
        {"zt1 §1 Schema",
         "{" ROOT_1_0 ",'tensors':{'x':^{'shape':[],'format':'a','components':{}}}}"},
        {"zt1 §2 Dtype",
         "{" ROOT_1_0 ",'tensors':{'x':{'dtype':^'f32','shape':[],'format':'a','components':{}}}}"},
    };

    ASSERT_ALL_REFUSED(CONTAINER_ZT10, list);
}

TEST(open_refuses_keys_that_occur_twice)
{
    static const struct refusal list[] = {
        {"zt1 §1 CborDuplicateKey", "{'version':'1.2.0',^'version':'1.2.0','objects':{}}"},
        {"zt1 §1 CborDuplicateKey", "{'new':1,'version':'1.2.0',^'new':1,'objects':{}}"},
        {"zt1 §1 CborDuplicateKey", "{'version':'1.2.0','objects':{},'attributes':{'a':1,^'a':2}}"},
        {"zt1 §1 CborDuplicateKey",
         "{'version':'1.2.0','objects':{},'attributes':{'a':[{'b':{'c':1,'d':2,^'c':3}}]}}"},
        /* 1 in two widths, and "a" whole and in pieces. */
        {"zt1 §1 CborDuplicateKey", "{'new':{1:0,^!1801:0},'version':'1.2.0','objects':{}}"},
        {"zt1 §1 CborDuplicateKey",
         "{'new':{'ab':0,^!7f61616162ff:0},'version':'1.2.0','objects':{}}"},
        {"zt1 §1 CborDuplicateKey", "{'new':{h'01':0,^!580101:0},'version':'1.2.0','objects':{}}"},
        {"zt1 §1 CborDuplicateKey", "{'new':{[1]:0,null:1,^[1]:0},'version':'1.2.0','objects':{}}"},
        {"zt1 §1 CborDuplicateKey", COMPONENT_FILE("{'dtype':'f32',^'dtype':'f32'}")},
        {"zt1 §1 DuplicateName", "{'version':'1.2.0','objects':{'x':" OBJECT_WITH(
                                     COMPONENT) ",@'x':" OBJECT_WITH(COMPONENT) "}}"},
        {"zt1 §1 DuplicateName",
         MANIFEST_WITH("{'shape':[],'format':'q','components':{'a':" COMPONENT ",'b':" COMPONENT
                       ",@'a':" COMPONENT "}}")},
    };

    ASSERT_ALL_REFUSED(CONTAINER_ZT1, list);
}

TEST(open_refuses_broken_cbor)
{
    static const struct refusal list[] = {
        {"zt1 §1 CborSyntax", "{'version':'1.2.0','objects':{},'a':^!1c00}"},
        {"zt1 §1 CborSyntax", "{'version':'1.2.0','objects':{},'a':^!61ff}"},
        {"zt1 §1 CborSyntax", "{'version':'1.2.0','objects':{},'a':^!ff}"},
        {"zt1 §1 CborSyntax", "{'version':'1.2.0','objects':{},'a':^!9a10000000}"},
        {"zt1 §1 CborSyntax", "{'version':'1.2.0','objects':{},'a':^!bbffffffffffffffff}"},
        {"zt1 §1 CborSyntax", "{'version':'1.2.0','objects':{},'a':^!7bffffffffffffffff}"},
    };

    ASSERT_ALL_REFUSED(CONTAINER_ZT1, list);
}

TEST(open_refuses_misplaced_blobs)
{
    struct container container = {0};
    static const struct {
        const char *rule;
        uint64_t offset;
        const char *manifest;
    } list[] = {
        {"zt1 §4 BlobAlignment", 65, COMPONENT_FILE("{'dtype':'f32','offset':65,'length':16}")},
        {"zt1 §4 BlobBounds", 0, COMPONENT_FILE("{'dtype':'f32','offset':0,'length':16}")},
        {"zt1 §4 BlobBounds", 128, COMPONENT_FILE("{'dtype':'f32','offset':128,'length':65}")},
        {"zt1 §4 BlobBounds", 256, COMPONENT_FILE("{'dtype':'f32','offset':256,'length':0}")},
        {"zt1 §4 BlobBounds", 64,
         COMPONENT_FILE("{'dtype':'f32','offset':64,'length':18446744073709551615}")},
        {"zt1 §4 BlobBounds", 18446744073709551552u,
         COMPONENT_FILE("{'dtype':'f32','offset':18446744073709551552,'length':128}")},
        {"zt1 §4 BlobOverlap", 128,
         "{'version':'1.2.0','objects':{'x':{'shape':[],'format':'q','components':{'a':{'dtype':'"
         "u8','offset':64,'length':65},'b':{'dtype':'u8','offset':128,'length':8}}}}}"},
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        container_make(&container, CONTAINER_ZT1, 128, list[i].manifest);
        container_assert_refused(&container, list[i].rule, list[i].offset);
    }
    container_free(&container);
}

TEST(open_refuses_a_dense_object_of_another_size)
{
    struct container container = {0};
    struct zt_model *model = NULL;
    struct zt_error error;

    container_make(&container, CONTAINER_ZT1, 128,
                   COMPONENT_FILE("{'dtype':'f32','offset':64,'length':15}"));
    assert_int_equal(container_open(&container, container.length, &model, &error), ZT_INVALID);
    assert_string_equal(error.rule, "zt1 §3 DenseSize");
    assert_string_equal(error.object, "x");
    assert_string_equal(error.component, "data");
    container_free(&container);
}

TEST(open_refuses_more_than_64_dimensions)
{
    char manifest[512] = "{'version':'1.2.0','objects':{'x':{'shape':^[1";
    struct container container = {0};

    for (int i = 0; i < 64; i++)
        strcat(manifest, ",1");
    strcat(manifest, "]}}}");
    container_make(&container, CONTAINER_ZT1, 0, manifest);
    container_assert_refused(&container, "zt1 §1 Shape", container.mark);
    container_free(&container);
}

/* --- the container --- */

TEST(open_refuses_a_broken_tail)
{
    struct container container = {0};
    uint8_t *size;
    uint64_t at;

    container_make(&container, CONTAINER_ZT1, 16, COMPONENT_FILE(COMPONENT));
    size = container.bytes + container.length - 16;
    at = container.length - 16;
    zt_store_le64(size, 0);
    container_assert_refused(&container, "zt1 §4 ManifestBounds", at);
    zt_store_le64(size, container.length - 24 + 1);
    container_assert_refused(&container, "zt1 §4 ManifestBounds", at);
    zt_store_le64(size, (1ull << 30) + 1);
    container_assert_refused(&container, "zt1 §5 ManifestTooLarge", at);
    zt_store_le64(size, 1ull << 30);
    container_assert_refused(&container, "zt1 §4 ManifestBounds", at);
    container.bytes[container.length - 1] ^= 1;
    container_assert_refused(&container, "zt1 §4 FooterMagic", container.length - 8);
    container_free(&container);
}

TEST(open_refuses_a_file_that_is_too_small)
{
    struct zt_error error;
    struct container container = {.bytes = (uint8_t[]){"ZTEN1000\0\0\0\0\0\0\0\0ZTEN1000"},
                                  .length = 24};
    struct zt_model *model = NULL;

    assert_int_equal(container_open(&container, 16, &model, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt1 §4 FileTooSmall", 0);
    container_assert_refused(&container, "zt1 §4 FileTooSmall", 0);
}

TEST(open_refuses_bytes_after_the_manifest)
{
    struct container container = {0};
    struct zt_buffer manifest = {0};

    cbor_text_append(&manifest, COMPONENT_FILE(COMPONENT));
    zt_buffer_append(&manifest, "", 1);
    container_make_bytes(&container, CONTAINER_ZT1, 16, &manifest);
    container_assert_refused(&container, "zt1 §1 CborSyntax", container.length - 17);
    zt_buffer_free(&manifest);
    container_free(&container);
}
