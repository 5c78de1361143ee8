/* Layout rules of zTensor 1.x at open, on objects made by hand. */
#include "tests.h"

#include <string.h>

#include "cbor_text.h"
#include "model/layout.h"

#define LAYOUT "zt1 §3 LayoutRule"
#define DENSE  "zt1 §3 DenseSize"

/* A part's name, type and decoded length. */
struct part {
    const char *name;
    enum zt_dtype dtype;
    uint64_t bytes;
};

struct shape {
    unsigned rank;
    uint64_t extents[3];
};

static struct zt_error error;

static enum zt_status check(enum zt_layout layout, struct shape shape, const struct part *parts,
                            const char *attributes)
{
    struct zt_component components[4] = {0};
    struct zt_buffer encoded = {0};
    struct zt_object object = {
        .name = "a", .name_length = 1, .rank = (uint8_t)shape.rank, .layout = (uint8_t)layout};
    struct zt_model model = {.objects = &object,
                             .object_count = 1,
                             .components = components,
                             .dimensions = shape.extents};
    enum zt_status status;

    for (; parts[object.component_count].name != NULL; object.component_count++) {
        const struct part *part = &parts[object.component_count];

        components[object.component_count] =
            (struct zt_component){.name = part->name,
                                  .name_length = (uint32_t)strlen(part->name),
                                  .decoded_length = part->bytes,
                                  .dtype = (uint8_t)part->dtype};
    }
    model.component_count = object.component_count;
    if (attributes != NULL) {
        cbor_text_append(&encoded, attributes);
        object.attributes = encoded.bytes;
        object.attributes_length = (uint32_t)encoded.length;
    }
    zt_error_clear(&error);
    status = zt_layout_check(&model, &object, ZT_LAYOUTS_ZT1, &error);
    zt_buffer_free(&encoded);
    return status;
}

static void refused(enum zt_status status, const char *rule, const char *component)
{
    assert_int_equal(status, ZT_INVALID);
    assert_failure(&error, ZT_INVALID, rule, ZT_NO_OFFSET); /* the model has no manifest */
    assert_string_equal(error.object, "a");
    assert_string_equal(error.component, component);
}

#define PARTS(...) ((const struct part[]){__VA_ARGS__, {NULL, ZT_U8, 0}})

TEST(dense_needs_data_of_the_shapes_size)
{
    const struct shape shape = {2, {2, 3}};
    const enum zt_layout dense = ZT_LAYOUT_DENSE;

    assert_ok(check(dense, shape, PARTS({"data", ZT_F32, 24}), NULL));
    assert_ok(check(dense, shape, PARTS({"data", ZT_F32, 24}, {"more", ZT_U8, 1}), NULL));
    assert_ok(check(dense, shape, PARTS({"data", ZT_F32, ZT_LENGTH_UNKNOWN}), NULL));
    refused(check(dense, shape, PARTS({"data", ZT_F32, 23}), NULL), DENSE, "data");
    refused(check(dense, shape, PARTS({"dat", ZT_F32, 24}), NULL), LAYOUT, "");
    refused(check(dense, shape, &(struct part){NULL, ZT_U8, 0}, NULL), LAYOUT, "");
    refused(check(dense, (struct shape){1, {UINT64_C(1) << 61}}, PARTS({"data", ZT_F64, 0}), NULL),
            DENSE, "data");
}

TEST(products_that_overflow_are_refused_in_any_layout)
{
    refused(
        check(ZT_LAYOUT_OTHER, (struct shape){3, {UINT64_MAX, 2, 0}}, PARTS({"x", ZT_U8, 1}), NULL),
        "zt1 §1 Shape", "");
    assert_ok(check(ZT_LAYOUT_OTHER, (struct shape){3, {0, UINT64_MAX, 2}}, PARTS({"x", ZT_U8, 1}),
                    NULL));
}

TEST(csr_takes_any_integers_as_indices)
{
    const struct shape shape = {2, {2, 5}};
    const enum zt_layout csr = ZT_LAYOUT_SPARSE_CSR;
    const struct part values = {"values", ZT_F32, 12};

    assert_ok(
        check(csr, shape, PARTS({"indices", ZT_U64, 24}, {"indptr", ZT_U64, 24}, values), NULL));
    assert_ok(
        check(csr, shape, PARTS({"indices", ZT_I16, 6}, {"indptr", ZT_U32, 12}, values), NULL));
    refused(check(csr, shape, PARTS({"indices", ZT_F32, 12}, {"indptr", ZT_U32, 12}, values), NULL),
            LAYOUT, "indices");
    refused(check(csr, shape, PARTS({"indices", ZT_BOOL, 3}, {"indptr", ZT_U32, 12}, values), NULL),
            LAYOUT, "indices");
    refused(check(csr, shape, PARTS({"indices", ZT_U64, 24}, {"indptr", ZT_U64, 16}, values), NULL),
            LAYOUT, "indptr");
    refused(check(csr, shape, PARTS({"indices", ZT_U64, 16}, {"indptr", ZT_U64, 24}, values), NULL),
            LAYOUT, "values");
    refused(check(csr, shape, PARTS({"indices", ZT_U64, 24}, values), NULL), LAYOUT, "");
    refused(check(csr, (struct shape){1, {2}},
                  PARTS({"indices", ZT_U64, 24}, {"indptr", ZT_U64, 24}, values), NULL),
            LAYOUT, "");
}

TEST(csr_parts_of_unknown_size_pass)
{
    assert_ok(check(ZT_LAYOUT_SPARSE_CSR, (struct shape){2, {2, 5}},
                    PARTS({"indices", ZT_U64, ZT_LENGTH_UNKNOWN},
                          {"indptr", ZT_U64, ZT_LENGTH_UNKNOWN}, {"values", ZT_F32, 12}),
                    NULL));
}

TEST(coo_has_as_many_coordinates_as_values_need)
{
    const struct shape shape = {2, {4, 4}};
    const enum zt_layout coo = ZT_LAYOUT_SPARSE_COO;

    assert_ok(check(coo, shape, PARTS({"coords", ZT_U64, 32}, {"values", ZT_F32, 8}), NULL));
    assert_ok(check(coo, shape, PARTS({"coords", ZT_I32, 16}, {"values", ZT_F32, 8}), NULL));
    refused(check(coo, shape, PARTS({"coords", ZT_U64, 24}, {"values", ZT_F32, 8}), NULL), LAYOUT,
            "coords");
    refused(check(coo, shape, PARTS({"coords", ZT_U64, 32}, {"values", ZT_F32, 12}), NULL), LAYOUT,
            "values");
    refused(check(coo, shape, PARTS({"coords", ZT_U64, 32}), NULL), LAYOUT, "");
    assert_ok(check(coo, shape, PARTS({"coords", ZT_U64, ZT_LENGTH_UNKNOWN}, {"values", ZT_F32, 8}),
                    NULL));
}

#define GROUPS(packed, scales) \
    PARTS({"packed_weight", ZT_I32, packed}, {"scales", ZT_F16, scales}, {"zeros", ZT_I32, 7})

TEST(quantized_groups_need_their_three_parts)
{
    const struct shape shape = {2, {128, 64}};

    assert_ok(check(ZT_LAYOUT_QUANT_GROUP, shape, GROUPS(1, 1), NULL));
    refused(check(ZT_LAYOUT_QUANT_GROUP, shape,
                  PARTS({"packed_weight", ZT_I32, 4096}, {"scales", ZT_F16, 128}), NULL),
            LAYOUT, "");
}

TEST(quantized_sizes_follow_bits_and_group_size)
{
    const struct shape shape = {2, {128, 64}};
    const struct shape ragged = {2, {100, 3}};
    const enum zt_layout group = ZT_LAYOUT_QUANT_GROUP;
    const char *attributes = "{'bits':4,'group_size':64,'packing':'8_per_i32'}";

    assert_ok(check(group, shape, GROUPS(4096, 256), attributes));
    assert_ok(check(group, shape, GROUPS(1, 1), "{'bits':4}"));
    assert_ok(check(group, shape, GROUPS(4096, 1), "{'bits':4,'group_size':-1}"));
    assert_ok(check(group, shape, GROUPS(4096, 1), "{'bits':4,'group_size':0}"));
    assert_ok(check(group, shape, GROUPS(1, 256), "{'bits':0,'group_size':64}"));
    assert_ok(check(group, shape, GROUPS(1, 256), "{'bits':33,'group_size':64}"));
    assert_ok(
        check(group, shape,
              PARTS({"packed_weight", ZT_I32, 4096}, {"scales", ZT_U8, 1}, {"zeros", ZT_U8, 1}),
              attributes));                                       /* scales in an unknown form */
    assert_ok(check(group, ragged, GROUPS(400, 12), attributes)); /* padded rows */
    refused(check(group, shape, GROUPS(4092, 256), attributes), LAYOUT, "packed_weight");
    refused(check(group, shape, GROUPS(4100, 256), attributes), LAYOUT, "packed_weight");
    refused(check(group, ragged, GROUPS(149, 12), attributes), LAYOUT, "packed_weight");
    refused(check(group, shape, GROUPS(4096, 254), attributes), LAYOUT, "scales");
    refused(check(group, shape, GROUPS(4096, 258), attributes), LAYOUT, "scales");
    refused(check(group, (struct shape){1, {UINT64_MAX}}, GROUPS(4096, 258), attributes), LAYOUT,
            "packed_weight");
}
