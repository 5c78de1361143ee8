/* Safetensors: headers that are read, and headers that are refused. */
#include <stdio.h>
#include <string.h>

#include "formats/formats.h"
#include "safetensors_file.h"
#include "tests.h"
#include "zip_file.h"

/* An entry of four bytes and its valid fields. */
#define ENTRY(fields) "{'a':{" fields "}}"
#define DTYPE         "'dtype':'U8'"
#define SHAPE         "'shape':[4]"
#define OFFSETS       "'data_offsets':[0,4]"
#define AT(b, e)      "{'dtype':'U8','shape':[" #e "],'data_offsets':[" #b "," #e "]}"

static struct zt_model *open_header(struct container *container, const char *header,
                                    size_t data_length)
{
    safetensors_make(container, header, data_length);
    return container_model(container);
}

TEST(open_reads_tensors_and_metadata)
{
    static const char header[] =
        "{'__metadata__':{'format':'pt','\\u00e9':''},'w\\n':{'shape':[2,1],'data_offsets':[4,12],'"
        "dtype':'F32','later':[{}]},'b':{'dtype':'I8','shape':[4],'data_offsets':[0,4]},'':{'dtype'"
        ":'F64','shape':[3,0],'data_offsets':[12,12]},'s':{'dtype':'I16','shape':[],'data_offsets':"
        "[12,14]}}   ";
    struct container container = {0};
    struct zt_model *model = open_header(&container, header, 14);
    const struct zt_object *object;
    const struct zt_component *data;

    assert_int_equal(model->format, ZT_FORMAT_SAFETENSORS);
    assert_string_equal(model->format_name, "safetensors");
    assert_int_equal(model->version.length, 0);
    assert_int_equal(model->object_count, 4);
    assert_int_equal(model->manifest_offset, 8);
    assert_int_equal(model->manifest_length, sizeof(header) - 1);
    assert_int_equal(model->attributes.length, 15);
    assert_memory_equal(model->attributes.bytes,
                        "\xa2\x66"
                        "format\x62pt\x62\xc3\xa9\x60",
                        15);
    object = zt_model_find(model, (struct zt_text){"w\n", 2});
    assert_non_null(object);
    assert_string_equal(object->format, "dense");
    assert_int_equal(object->layout, ZT_LAYOUT_DENSE);
    assert_int_equal(object->rank, 2);
    assert_int_equal(zt_object_shape(model, object)[0], 2);
    assert_int_equal(zt_object_shape(model, object)[1], 1);
    data = zt_object_find(model, object, zt_text_from("data"));
    assert_non_null(data);
    assert_int_equal(data->dtype, ZT_F32);
    assert_int_equal(data->logical, ZT_LOGICAL_NONE);
    assert_int_equal(data->encoding, ZT_ENCODING_RAW);
    assert_int_equal(data->offset, 8 + sizeof(header) - 1 + 4);
    assert_int_equal(data->length, 8);
    assert_int_equal(data->decoded_length, 8);
    assert_null(data->type);
    zt_model_free(model);
    container_free(&container);
}

TEST(open_reads_every_dtype)
{
    static const struct {
        const char *name;
        enum zt_dtype dtype;
        enum zt_logical logical;
        const char *type;
        unsigned bytes; /* of eight elements */
    } cases[] = {
        {"F64", ZT_F64, ZT_LOGICAL_NONE, NULL, 64},
        {"F32", ZT_F32, ZT_LOGICAL_NONE, NULL, 32},
        {"F16", ZT_F16, ZT_LOGICAL_NONE, NULL, 16},
        {"BF16", ZT_BF16, ZT_LOGICAL_NONE, NULL, 16},
        {"I64", ZT_I64, ZT_LOGICAL_NONE, NULL, 64},
        {"I32", ZT_I32, ZT_LOGICAL_NONE, NULL, 32},
        {"I16", ZT_I16, ZT_LOGICAL_NONE, NULL, 16},
        {"I8", ZT_I8, ZT_LOGICAL_NONE, NULL, 8},
        {"U64", ZT_U64, ZT_LOGICAL_NONE, NULL, 64},
        {"U32", ZT_U32, ZT_LOGICAL_NONE, NULL, 32},
        {"U16", ZT_U16, ZT_LOGICAL_NONE, NULL, 16},
        {"U8", ZT_U8, ZT_LOGICAL_NONE, NULL, 8},
        {"BOOL", ZT_BOOL, ZT_LOGICAL_NONE, NULL, 8},
        {"F8_E4M3", ZT_U8, ZT_LOGICAL_F8_E4M3FN, "f8_e4m3fn", 8},
        {"F8_E5M2", ZT_U8, ZT_LOGICAL_F8_E5M2, "f8_e5m2", 8},
        {"F8_E4M3FNUZ", ZT_U8, ZT_LOGICAL_F8_E4M3FNUZ, "f8_e4m3fnuz", 8},
        {"F8_E5M2FNUZ", ZT_U8, ZT_LOGICAL_F8_E5M2FNUZ, "f8_e5m2fnuz", 8},
        {"F8_E8M0", ZT_U8, ZT_LOGICAL_F8_E8M0, "f8_e8m0", 8},
        {"F4", ZT_U8, ZT_LOGICAL_F4_E2M1, "f4_e2m1", 4},
        {"F6_E2M3", ZT_U8, ZT_LOGICAL_UNKNOWN, "f6_e2m3", 6},
        {"F6_E3M2", ZT_U8, ZT_LOGICAL_UNKNOWN, "f6_e3m2", 6},
        {"C64", ZT_F32, ZT_LOGICAL_COMPLEX64, "complex64", 64},
    };
    struct container container = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char header[128];
        struct zt_model *model;
        const struct zt_component *data;

        snprintf(header, sizeof(header), ENTRY("'dtype':'%s','shape':[2,4],'data_offsets':[0,%u]"),
                 cases[i].name, cases[i].bytes);
        model = open_header(&container, header, cases[i].bytes);
        data = &model->components[0];
        assert_int_equal(data->dtype, cases[i].dtype);
        assert_int_equal(data->logical, cases[i].logical);
        assert_int_equal(data->type_length, cases[i].type != NULL ? strlen(cases[i].type) : 0);
        if (cases[i].type != NULL)
            assert_string_equal(data->type, cases[i].type);
        zt_model_free(model);
        snprintf(header, sizeof(header), ENTRY("'dtype':'%s','shape':[2,4],'data_offsets':^[0,%u]"),
                 cases[i].name, cases[i].bytes + 1);
        safetensors_refused(header, cases[i].bytes + 1, "safetensors §Header BlobSize");
    }
    container_free(&container);
}

TEST(open_reads_a_header_without_tensors)
{
    struct container container = {0};
    struct zt_model *model = open_header(&container, "{}", 0);

    assert_int_equal(model->object_count, 0);
    assert_int_equal(model->attributes.length, 0);
    zt_model_free(model);
    model = open_header(&container, "{'__metadata__':{}}", 0);
    assert_int_equal(model->attributes.length, 1);
    zt_model_free(model);
    model = open_header(&container, "{'__metadata__':null}", 0);
    assert_int_equal(model->attributes.length, 0);
    zt_model_free(model);
    container_free(&container);
}

/* As the package reads it. */
TEST(open_takes_white_space_around_the_header)
{
    static const char *const headers[] = {" {}", "\n\t\r {} ", "{}\n", "{}\r\n\t ", "\n{ \n}\n"};
    struct container container = {0};
    struct zt_model *model;

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        model = open_header(&container, headers[i], 0);
        assert_int_equal(model->object_count, 0);
        zt_model_free(model);
    }
    container_free(&container);
}

TEST(open_takes_long_white_space_before_the_header)
{
    static char header[70000];
    struct container container = {0};
    struct zt_model *model;

    for (size_t spaces = 20; spaces < 65536; spaces = spaces * 3 + 1) {
        memset(header, ' ', spaces);
        strcpy(header + spaces, "{}");
        model = open_header(&container, header, 0);
        zt_model_free(model);
    }
    container_free(&container);
}

TEST(open_refuses_broken_headers)
{
    static const struct {
        const char *header;
        const char *rule;
    } cases[] = {
        {"{'a':^[]}", "Schema"},
        {"{'a':^null}", "Schema"},
        {"{'__metadata__':^[]}", "Schema"},
        {"{'__metadata__':^false}", "Schema"},
        {"{'__metadata__':{'a':^1}}", "Schema"},
        {"{'__metadata__':{'a':^null}}", "Schema"},
        {"{'__metadata__':null,'^__metadata__':{}}", "DuplicateKey"},
        {"{'__metadata__':{},'^__metadata__':null}", "DuplicateKey"},
        {"{'__metadata__':{'a':'','b':'','^a':''}}", "DuplicateKey"},
        {"{'__metadata__':{},'^__metadata__':{}}", "DuplicateKey"},
        {"{'':^{}}", "Schema"},
        {"{'a':^{" DTYPE "," SHAPE "}}", "Schema"},
        {"{'a':^{" DTYPE "," OFFSETS "}}", "Schema"},
        {"{'a':^{" SHAPE "," OFFSETS "}}", "Schema"},
        {ENTRY("'dtype':^1"), "Schema"},
        {ENTRY("'shape':^4"), "Schema"},
        {ENTRY("'shape':[^-1]"), "Schema"},
        {ENTRY("'shape':[^1.0]"), "Schema"},
        {ENTRY("'shape':[1,^18446744073709551616]"), "Schema"},
        {ENTRY("'data_offsets':^{}"), "Schema"},
        {ENTRY("'data_offsets':^[0]"), "Schema"},
        {ENTRY("'data_offsets':[0,4,^4]"), "Schema"},
        {ENTRY("'data_offsets':[0,^'4']"), "Schema"},
        {ENTRY(DTYPE "," SHAPE "," OFFSETS ",'^dtype':'U8'"), "DuplicateKey"},
        {ENTRY(DTYPE "," SHAPE "," OFFSETS ",'^shape':[4]"), "DuplicateKey"},
        {ENTRY(DTYPE "," SHAPE "," OFFSETS ",'^data_offsets':[0,4]"), "DuplicateKey"},
        {"{'a':" AT(0, 4) ",'^\\u0061':" AT(0, 4) "}", "DuplicateKey"},
        {ENTRY("'dtype':^'F4_E2M1'"), "Dtype"},
        {ENTRY("'dtype':^'u8'"), "Dtype"},
        {ENTRY("'shape':^[4294967296,4294967296,0]"), "Shape"},
        {ENTRY("'dtype':'F64','shape':^[288230376151711744],'data_offsets':[0,0]"), "Shape"},
        {ENTRY("'dtype':'F4','shape':^[7],'data_offsets':[0,4]"), "Shape"},
        {ENTRY("'dtype':'F6_E2M3','shape':^[5],'data_offsets':[0,4]"), "Shape"},
        {ENTRY(DTYPE "," SHAPE ",'data_offsets':^[1,5]"), "BlobBounds"},
        {ENTRY(DTYPE "," SHAPE ",'data_offsets':^[4,0]"), "BlobBounds"},
        {ENTRY(DTYPE "," SHAPE ",'data_offsets':^[18446744073709551615,3]"), "BlobBounds"},
        {ENTRY(DTYPE "," SHAPE ",'data_offsets':^[0,3]"), "BlobSize"},
        {ENTRY(DTYPE ",'shape':[],'data_offsets':^[0,4]"), "BlobSize"},
        {"{'a':" AT(0, 4) "^", "JsonSyntax"},
        {"{'a':" AT(0, 4) "} ^\f", "JsonSyntax"},
        {"{'a':" AT(0, 4) "} ^{}", "JsonSyntax"},
        {"{'a':{'x':^01}}", "JsonSyntax"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char rule[64];

        snprintf(rule, sizeof(rule), "safetensors §Header %s", cases[i].rule);
        /* A number that is not JSON is reported one byte further on: after its 0. */
        if (strstr(cases[i].header, "^01") != NULL) {
            struct container container = {0};

            safetensors_make(&container, cases[i].header, 4);
            container_assert_refused(&container, rule, container.mark + 1);
            container_free(&container);
            continue;
        }
        safetensors_refused(cases[i].header, 4, rule);
    }
}

TEST(open_refuses_deep_and_wide_headers)
{
    char header[1024] = "{'a':{'x':";
    struct container container = {0};

    /* The package takes 127 levels. */
    memset(header + strlen(header), '[', 126);
    safetensors_make(&container, header, 0);
    container_assert_refused(&container, "safetensors §Header JsonDepth", container.length - 1);
    header[strlen(header) - 1] = ']';
    safetensors_make(&container, header, 0);
    container_assert_refused(&container, "safetensors §Header JsonSyntax", container.length);
    strcpy(header, "{'a':{'shape':^[");
    for (unsigned i = 0; i < 65; i++)
        strcat(header, i == 0 ? "1" : ",1");
    strcat(header, "]}}");
    safetensors_refused(header, 0, "safetensors §Header Shape");
    container_free(&container);
}

TEST(open_refuses_data_that_is_not_tiled)
{
    static const struct {
        const char *header;
        unsigned at; /* in the data */
        const char *object;
    } cases[] = {
        {"{}", 0, ""},
        {"{'a':" AT(0, 4) "}", 4, ""},
        {"{'a':{'dtype':'U8','shape':[4],'data_offsets':[4,8]}}", 0, "a"},
        {"{'b':{'dtype':'U8','shape':[6],'data_offsets':[2,8]},'a':" AT(0, 4) "}", 2, "b"},
        {"{'b':" AT(0, 8) ",'a':" AT(0, 8) "}", 0, NULL},
        {"{'b':" AT(0, 8) ",'a':{'dtype':'U8','shape':[0],'data_offsets':[3,3]}}", 3, "a"},
    };
    struct container container = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zt_model *model = NULL;
        struct zt_error error;

        zt_error_clear(&error);
        safetensors_make(&container, cases[i].header, 8);
        container_open(&container, container.length, &model, &error);
        assert_null(model);
        assert_failure(&error, ZT_INVALID, "safetensors §Header Tiling",
                       8 + container.manifest_length + cases[i].at);
        if (cases[i].object != NULL)
            assert_string_equal(error.object, cases[i].object);
    }
    container_free(&container);
}

/* Files of 0 to 7 bytes, without the detection of formats before the reader. */
TEST(open_refuses_impossible_lengths)
{
    static const struct {
        uint8_t bytes[10];
        size_t length;
        const char *rule;
        uint64_t offset;
    } cases[] = {
        {{0}, 7, "safetensors §Header HeaderBounds", 0},
        {{0, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "safetensors §Header HeaderBounds", 0},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "safetensors §Header HeaderBounds", 0},
        {{0, 0xe1, 0xf5, 5, 0, 0, 0, 0, '{', '}'}, 10, "safetensors §Header HeaderBounds", 0},
        {{1, 0xe1, 0xf5, 5, 0, 0, 0, 0, '{', '}'}, 10, "safetensors §Header HeaderTooLarge", 0},
        {{255, 255, 255, 255, 255, 255, 255, 255, '{', '}'},
         10,
         "safetensors §Header HeaderTooLarge",
         0},
        {{2, 0, 0, 0, 0, 0, 0, 0, ' ', 'x'}, 10, "safetensors §Header HeaderStart", 9},
        {{2, 0, 0, 0, 0, 0, 0, 0, ' ', ' '}, 10, "safetensors §Header HeaderStart", 10},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zt_source *source;
        struct zt_model *model = NULL;
        struct zt_error error;

        zt_error_clear(&error);
        source = memory_source(cases[i].bytes, cases[i].length);
        assert_int_equal(safetensors_open(source, &model, &error), ZT_INVALID);
        assert_failure(&error, ZT_INVALID, cases[i].rule, cases[i].offset);
        assert_null(model);
        zt_source_close(source);
    }
}

static const char whole[] = "{'__metadata__':{'k':'v\\u00e9'},'b':{'dtype':'F32','shape':[2,2],'"
                            "data_offsets':[4,20]},'a':" AT(0, 4) "} ";

TEST(open_survives_prefixes_and_flipped_bits)
{
    struct container container = {0};

    safetensors_make(&container, whole, 20);
    bytes_assert_survive(&(struct bytes){container.bytes, container.length}, 0,
                         container.length - 20);
    container_free(&container);
}
