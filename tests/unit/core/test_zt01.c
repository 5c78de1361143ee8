/* Opening zTensor 0.1: what is read, and every rule. */
#include <string.h>

#include "cbor_text.h"
#include "container.h"
#include "sources.h"
#include "tests.h"

#define PLACE         "'name':'x','offset':64,'size':16,"
#define TENSOR        "{" PLACE "'dtype':'float32','shape':[4],'encoding':'raw'}"
#define TENSOR_AND(f) "[{" PLACE "'dtype':'float32','shape':[4],'encoding':'raw'," f "}]"

static struct zt_model *opened(const char *manifest)
{
    struct container container = {0};
    struct zt_model *model;

    container_make(&container, CONTAINER_ZT01, 128, manifest);
    model = container_model(&container);
    container_free(&container);
    return model;
}

/* --- what is read --- */

TEST(open_reads_every_field)
{
    const struct zt_component *component;
    struct zt_model *model =
        opened(TENSOR_AND("'layout':'dense','data_endianness':'big','checksum':'crc32c:0x1'"));
    const struct zt_object *object = zt_model_find(model, zt_text_from("x"));

    assert_int_equal(model->format, ZT_FORMAT_ZT01);
    assert_text(model->version.bytes, model->version.length, "0.1.0");
    assert_int_equal(object->layout, ZT_LAYOUT_DENSE);
    assert_null(object->attributes);
    component = zt_object_find(model, object, zt_text_from("data"));
    assert_non_null(component);
    assert_int_equal(component->dtype, ZT_F32);
    assert_int_equal(component->big_endian, 1);
    assert_int_equal(component->encoding, ZT_ENCODING_RAW);
    assert_int_equal(component->offset, 64);
    assert_int_equal(component->decoded_length, 16);
    assert_text(component->digest, component->digest_length, "crc32c:0x1");
    zt_model_free(model);
}

TEST(open_takes_absent_and_null_fields)
{
    struct zt_model *model = opened(TENSOR_AND("'data_endianness':null,'checksum':null"));

    assert_text(model->objects[0].format, model->objects[0].format_length, "dense");
    assert_int_equal(model->components[0].big_endian, 0);
    assert_null(model->components[0].digest);
    zt_model_free(model);
}

TEST(open_keeps_custom_fields_as_attributes)
{
    struct zt_model *model =
        opened("[{'a':1," PLACE
               "'dtype':'float32','shape':[4],'encoding':'raw','b':[2]},{'name':'y','offset':"
               "64,'size':16,'dtype':'float32','shape':[4],'encoding':'raw','c':3},{'name':'z',"
               "'offset':64,'size':16,'dtype':'float32','shape':[4],'encoding':'raw'}]");

    assert_text((const char *)model->objects[0].attributes, model->objects[0].attributes_length,
                "\xA2\x61"
                "a\x01\x61"
                "b\x81\x02");
    assert_text((const char *)model->objects[1].attributes, model->objects[1].attributes_length,
                "\xA1\x61"
                "c\x03");
    assert_null(model->objects[2].attributes);
    zt_model_free(model);
}

TEST(open_reads_both_spellings_of_sparse)
{
    struct zt_model *model;

    model =
        opened("[{'name':'a','offset':64,'size':3,'dtype':'float32','shape':[4,4],'encoding':'raw',"
               "'layout':'sparse','sparse_format':'csr'},{'name':'b','offset':128,'size':3,'dtype':"
               "'uint8','shape':[4],'encoding':'raw','layout':'sparsecoo'},{'name':'c','offset':"
               "128,'size':3,'dtype':'uint8','shape':[4],'encoding':'zstd','layout':'sparsecsr'}]");
    assert_int_equal(model->objects[0].layout, ZT_LAYOUT_OTHER);
    assert_int_equal(model->objects[0].attributes_length, 1 + 14 + 4);
    assert_int_equal(model->objects[1].layout, ZT_LAYOUT_ZT01_COO);
    assert_int_equal(model->objects[2].layout, ZT_LAYOUT_ZT01_CSR);
    assert_true(model->components[2].decoded_length == ZT_LENGTH_UNKNOWN);
    zt_model_free(model);
}

TEST(open_lists_unknown_encodings)
{
    struct zt_model *model = opened("[{" PLACE "'dtype':'bool','shape':[4],'encoding':'lz4'}]");

    assert_int_equal(model->components[0].encoding, ZT_ENCODING_UNKNOWN);
    assert_text(model->components[0].encoding_name, model->components[0].encoding_length, "lz4");
    assert_true(model->components[0].decoded_length == ZT_LENGTH_UNKNOWN);
    zt_model_free(model);
}

TEST(open_derives_the_decoded_length_of_dense_zstd)
{
    struct zt_model *model =
        opened("[{" PLACE "'dtype':'float64','shape':[5,2],'encoding':'zstd'}]");

    assert_int_equal(model->components[0].decoded_length, 80);
    zt_model_free(model);
}

TEST(open_reads_the_smallest_file)
{
    struct container container = {0};
    struct zt_model *model = NULL;

    container_make(&container, CONTAINER_ZT01, 0, "[]");
    assert_int_equal(container.length, 17);
    model = container_model(&container);
    assert_int_equal(model->object_count, 0);
    zt_model_free(model);
    container_free(&container);
}

/* --- what is refused --- */

TEST(open_refuses_broken_metadata)
{
    struct container container = {0};
#define FIELDS(name, offset, size, dtype, shape, encoding)                                 \
    "'name':" name ",'offset':" offset ",'size':" size ",'dtype':" dtype ",'shape':" shape \
    ",'encoding':" encoding
    static const struct {
        const char *rule;
        const char *manifest;
    } list[] = {
        {"zt0.1 §Metadata Schema", "^{}"},
        {"zt0.1 §Metadata Schema", "[^1]"},
        {"zt0.1 §Metadata Schema", "[^{}]"},
        {"zt0.1 §Metadata Schema",
         "[^{'offset':64,'size':16,'dtype':'int8','shape':[16],'encoding':'raw'}]"},
        {"zt0.1 §Metadata Schema",
         "[^{'name':'x','size':16,'dtype':'int8','shape':[16],'encoding':'raw'}]"},
        {"zt0.1 §Metadata Schema", "[^{" PLACE "'dtype':'int8','shape':[16]}]"},
        {"zt0.1 §Metadata Schema", "[^{" PLACE "'dtype':'int8','encoding':'raw'}]"},
        {"zt0.1 §Metadata Schema", "[^{" PLACE "'shape':[16],'encoding':'raw'}]"},
        {"zt0.1 §Metadata Schema", "[{'name':^1}]"},
        {"zt0.1 §Metadata Schema", "[{'offset':^-1}]"},
        {"zt0.1 §Metadata Schema", "[{'size':^1.5}]"},
        {"zt0.1 §Metadata Schema", "[{'dtype':^null}]"},
        {"zt0.1 §Metadata Schema", "[{" PLACE "'shape':^{}}]"},
        {"zt0.1 §Metadata Schema", "[{" PLACE "'shape':[^-1]}]"},
        {"zt0.1 §Metadata Schema", TENSOR_AND("'layout':^1")},
        {"zt0.1 §Metadata Schema", TENSOR_AND("'checksum':^1")},
        {"zt0.1 §Metadata Schema", TENSOR_AND("^1:1")},
        {"zt0.1 §Metadata Endianness", TENSOR_AND("'data_endianness':^'middle'")},
        {"zt0.1 §Metadata Endianness",
         "[{" FIELDS("'x'", "64", "9", "'int16'", "[4]", "'zstd'") ",'data_endianness':^'big'}]"},
        {"zt0.1 §Metadata Dtype", "[{" FIELDS("'x'", "64", "16", "^'f32'", "[4]", "'raw'") "}]"},
        {"zt0.1 §Metadata Shape", "[{'shape':^[4294967296,4294967296]}]"},
        {"zt0.1 §Metadata Shape",
         "[{" FIELDS("@'x'", "64", "16", "'float64'", "[2305843009213693952]", "'raw'") "}]"},
        {"zt0.1 §Metadata CborDuplicateKey", "[{'name':'x',^'name':'x'}]"},
        {"zt0.1 §Metadata CborDuplicateKey", "[{'a':'x',^'a':'x'}]"},
        {"zt0.1 §Metadata CborDuplicateKey", "[{'a':{1:2,^1:2}}]"},
        {"zt0.1 §Metadata CborSyntax", "[{'a':^!1f}]"},
        {"zt0.1 §Metadata DuplicateName",
         "[" TENSOR ",{" FIELDS("@'x'", "64", "16", "'int8'", "[16]", "'raw'") "}]"},
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        container_make(&container, CONTAINER_ZT01, 128, list[i].manifest);
        container_assert_refused(&container, list[i].rule, container.mark);
    }
    container_free(&container);
}

TEST(open_refuses_misplaced_blobs)
{
    struct container container = {0};
    static const struct {
        const char *rule;
        uint64_t offset;
        const char *manifest;
    } list[] = {
        {"zt0.1 §Layout BlobAlignment", 72,
         "[{" FIELDS("'x'", "72", "16", "'int8'", "[16]", "'raw'") "}]"},
        {"zt0.1 §Layout BlobBounds", 0,
         "[{" FIELDS("'x'", "0", "16", "'int8'", "[16]", "'raw'") "}]"},
        {"zt0.1 §Layout BlobBounds", 128,
         "[{" FIELDS("'x'", "128", "65", "'int8'", "[65]", "'raw'") "}]"},
        {"zt0.1 §Metadata DenseSize", 64,
         "[{" FIELDS("'x'", "64", "15", "'int8'", "[16]", "'raw'") "}]"},
        {"zt0.1 §Layout BlobOverlap", 128,
         "[{" FIELDS("'x'", "64", "65", "'int8'", "[65]",
                     "'raw'") "},{" FIELDS("'y'", "128", "1", "'int8'", "[1]", "'raw'") "}]"},
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        container_make(&container, CONTAINER_ZT01, 128, list[i].manifest);
        container_assert_refused(&container, list[i].rule, list[i].offset);
    }
    container_free(&container);
}

TEST(open_refuses_a_broken_tail)
{
    struct container container = {0};
    uint64_t at;

    container_make(&container, CONTAINER_ZT01, 128, "[" TENSOR "]");
    at = container.length - 8;
    container.bytes[container.length - 1] = 1;
    container_assert_refused(&container, "zt0.1 §Layout MetadataBounds", at);
    memset(container.bytes + at, 0, 8);
    container_assert_refused(&container, "zt0.1 §Layout MetadataBounds", at);
    container.length = 16;
    container_assert_refused(&container, "zt0.1 §Layout FileTooSmall", 0);
    container_free(&container);
}

TEST(open_refuses_bytes_after_the_array)
{
    struct container container = {0};
    struct zt_buffer manifest = {0};

    cbor_text_append(&manifest, "[" TENSOR "]");
    zt_buffer_append(&manifest, "\x80", 1);
    container_make_bytes(&container, CONTAINER_ZT01, 128, &manifest);
    container_assert_refused(&container, "zt0.1 §Metadata CborSyntax", container.length - 9);
    zt_buffer_free(&manifest);
    container_free(&container);
}

TEST(open_refuses_metadata_past_1_gib_before_reading_it)
{
    struct sparse_source source = {.base = {&sparse_source_ops},
                                   .size = 1ull << 32,
                                   .head = "ZTEN0001",
                                   .head_length = 8,
                                   .tail = "\x01\x00\x00\x40\0\0\0\0", /* 2^30 + 1 */
                                   .tail_length = 8};
    struct zt_model *model = NULL;
    struct zt_error error;

    zt_model_open(&source.base, &model, &error);
    assert_failure(&error, ZT_INVALID, "zt0.1 §Layout MetadataTooLarge", (1ull << 32) - 8);
    assert_true(source.read_bytes < 4096);
}
