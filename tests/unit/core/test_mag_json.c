/* .mag of version 300: header, JSON manifest, data. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "zip_file.h"

#define HEADER  44
#define DATA_AT 1024
#define A       "\"a\":{\"shape\":[2,3],\"dtype\":\"float32\",\"dtype_id\":0,\"offset\":0,\"nbytes\":24}"
#define B \
    "\"b\":{\"shape\":[],\"dtype\":\"float8_e4m3fn\",\"dtype_id\":3,\"offset\":64,\"nbytes\":1}"
#define ROOT(tensors)                                                                           \
    "{\"manifest_ver\":1,\"usr_metadata\":{\"lr\":0.5,\"n\":-7,\"l\":[1,null,\"x\"]},\"tensor_" \
    "map\":{" tensors "}}"

static void make(struct bytes *bytes, const char *manifest)
{
    size_t length = strlen(manifest);
    uint8_t head[HEADER] = {'M', 'A', 'G', '!', 0x2C, 1};

    bytes_put_le(head + 12, HEADER, 8);
    bytes_put_le(head + 20, length, 8);
    bytes_put_le(head + 28, DATA_AT, 8);
    bytes_put_le(head + 36, 65, 8);
    bytes_free(bytes);
    bytes_append(bytes, head, sizeof(head));
    bytes_append(bytes, manifest, length);
    while (bytes->length < DATA_AT + 65)
        bytes_append(bytes, "", 1);
}

TEST(open_reads_tensors_and_metadata)
{
    struct bytes bytes = {NULL, 0};
    struct zt_model *model = NULL;
    const struct zt_component *a;
    const struct zt_component *b;

    make(&bytes, ROOT(B "," A));
    model = bytes_model(&bytes);
    assert_string_equal(model->version.bytes, "300");
    assert_int_equal(model->object_count, 2);
    a = zt_object_components(model, &model->objects[0]);
    b = zt_object_components(model, &model->objects[1]);
    assert_int_equal(a->offset, DATA_AT);
    assert_int_equal(a->dtype, ZT_F32);
    assert_int_equal(model->objects[0].rank, 2);
    assert_int_equal(b->offset, DATA_AT + 64);
    assert_int_equal(b->logical, ZT_LOGICAL_F8_E4M3FN);
    assert_int_equal(model->objects[1].rank, 0);
    assert_json(model->attributes, "{\"lr\":0.5,\"n\":-7,\"l\":[1,null,\"x\"]}");
    zt_model_free(model);
    bytes_free(&bytes);
}

TEST(metadata_may_hold_what_python_writes_for_non_finite_numbers)
{
    /* {"a": [NaN, Infinity, -Infinity]}, each as a half */
    static const char attributes[] = "\xA1\x61"
                                     "a\x83\xF9\x7E\x00\xF9\x7C\x00\xF9\xFC\x00";
    struct bytes bytes = {NULL, 0};
    struct zt_model *model = NULL;

    make(&bytes, "{\"manifest_ver\":1,\"usr_metadata\":{\"a\":[NaN,Infinity,-Infinity]},\"seed\":"
                 "NaN,\"tensor_map\":{" A "," B "}}");
    model = bytes_model(&bytes);
    assert_int_equal(model->attributes.length, sizeof(attributes) - 1);
    assert_memory_equal(model->attributes.bytes, attributes, sizeof(attributes) - 1);
    assert_json(model->attributes, "{\"a\":[null,null,null]}");
    zt_model_free(model);
    bytes_free(&bytes);
}

/* ^ marks the offset of the failure. */
static void refused(const char *marked, const char *rule)
{
    struct bytes bytes = {NULL, 0};
    char manifest[DATA_AT - HEADER];
    size_t mark = strcspn(marked, "^");

    assert_true(strlen(marked) < sizeof(manifest) && marked[mark] == '^');
    strcpy(manifest, marked);
    memmove(manifest + mark, manifest + mark + 1, strlen(marked) - mark);
    make(&bytes, manifest);
    bytes_assert_refused(&bytes, rule, HEADER + mark);
    bytes_free(&bytes);
}

#define ENTRY(shape, id, offset, bytes) \
    "{\"shape\":" shape ",\"dtype_id\":" id ",\"offset\":" offset ",\"nbytes\":" bytes "}"

TEST(open_refuses_manifests_that_are_wrong)
{
    static const char *const cases[][2] = {
        {"^[]", "mag §Manifest Schema"},
        {"{\"manifest_ver\":^2,\"tensor_map\":{}}", "mag §Header Version"},
        {"^{\"manifest_ver\":1}", "mag §Manifest Schema"},
        {"^{\"tensor_map\":{}}", "mag §Manifest Schema"},
        {"{\"manifest_ver\":1,\"tensor_map\":{},^\"tensor_map\":{}}", "mag §Manifest Schema"},
        {"{\"manifest_ver\":1,\"tensor_map\":^[]}", "mag §Manifest Schema"},
        {"{\"manifest_ver\":1,\"usr_metadata\":^3,\"tensor_map\":{}}", "mag §Manifest Schema"},
        {"{\"manifest_ver\":1,\"usr_metadata\":^{\"a\":{\"b\":1,\"b\":2}},\"tensor_map\":{}}",
         "mag §Manifest JsonSyntax"},
        {"{\"manifest_ver\":1,\"tensor_map\":{}}^x", "mag §Manifest JsonSyntax"},
        {ROOT("\"a\":^{\"shape\":[],\"dtype_id\":0,\"offset\":0}"), "mag §Manifest Schema"},
        {ROOT("^\"\":" ENTRY("[]", "0", "0", "4")), "mag §Names Name"},
        {ROOT("^\"a\":" ENTRY("[]", "0", "0", "5")), "mag §Tensors DataSize"},
        {ROOT("\"a\":" ENTRY("[]", "^13", "0", "4")), "mag §Tensors Dtype"},
        {ROOT("\"a\":" ENTRY("[^-1]", "0", "0", "4")), "mag §Manifest Schema"},
        {ROOT("\"a\":" ENTRY("[]", "0", "^Infinity", "4")), "mag §Manifest Schema"},
        {"{\"manifest_ver\":1,\"usr_metadata\":{\"a\":^nan},\"tensor_map\":{}}",
         "mag §Manifest JsonSyntax"},
        {ROOT("^\"a\":" ENTRY("[4294967296,4294967296]", "0", "0", "0")), "mag §Tensors Shape"},
        {ROOT("^\"a\":" ENTRY("[]", "0", "62", "4")), "mag §Tensors DataBounds"},
        {ROOT("^\"a\":" ENTRY("[]", "0", "18446744073709551615", "4")), "mag §Tensors DataBounds"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        refused(cases[i][0], cases[i][1]);
}

TEST(open_refuses_wrong_names_and_overlapping_data)
{
    struct bytes bytes = {NULL, 0};
    struct zt_model *model;
    struct zt_error error;

    make(&bytes, ROOT(A "," A));
    model = NULL;
    assert_int_equal(bytes_open(&bytes, bytes.length, &model, &error), ZT_INVALID);
    assert_string_equal(error.rule, "mag §Names DuplicateName");
    make(&bytes, ROOT(A ",\"c\":" ENTRY("[]", "0", "20", "4")));
    bytes_assert_refused(&bytes, "mag §Data Overlap", DATA_AT + 20);
    bytes_free(&bytes);
}

TEST(open_refuses_headers_with_wrong_numbers)
{
    static const struct {
        size_t at;
        uint64_t value;
        const char *rule;
        uint64_t offset;
    } cases[] = {
        {8, 1 + (HEADER * 0x100000000ull), "mag §Header Reserved", 8},
        {12, 43, "mag §Header ManifestBounds", 12},
        {12, UINT64_MAX, "mag §Header ManifestBounds", 12},
        {20, 0, "mag §Header ManifestBounds", 12},
        {20, UINT64_MAX, "mag §Header ManifestBounds", 12},
        {28, UINT64_MAX, "mag §Header ManifestBounds", 12},
        {36, 64, "mag §Snapshot DataEnd", 36},
        {36, UINT64_MAX, "mag §Snapshot DataEnd", 36},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct bytes bytes = {NULL, 0};

        make(&bytes, ROOT(A));
        bytes_put_le(bytes.at + cases[i].at, cases[i].value, 8);
        bytes_assert_refused(&bytes, cases[i].rule, cases[i].offset);
        bytes_free(&bytes);
    }
}

TEST(open_refuses_prefixes_and_survives_flipped_bits)
{
    struct bytes bytes = {NULL, 0};

    make(&bytes, ROOT(A "," B));
    bytes_assert_survive(&bytes, 4, HEADER + sizeof(ROOT(A "," B)));
    bytes_free(&bytes);
}
