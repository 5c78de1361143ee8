/* Projecting: what becomes of names, types, layouts and attributes, and what each target
 * refuses. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "cbor/attributes_encode.h"
#include "cbor_text.h"
#include "container.h"
#include "written.h"
#include "zt2_file.h"

static struct zt_error error;

#define FILE_OF(objects)    "{\"version\":\"1.2.0\",\"objects\":{" objects "}}"
#define DATA(more)          "{\"data\":{" more "}}"
#define DENSE(shape, parts) "{\"shape\":" shape ",\"format\":\"dense\",\"components\":" parts "}"
#define U8(length)          DATA("\"dtype\":\"u8\",\"offset\":64,\"length\":" length)

/* Opens zTensor 1.2 whose data is zero. */
static void open_zeros(struct written *written, const char *manifest)
{
    struct container container = {0};
    struct zt_buffer bytes = {0};

    container_make(&container, CONTAINER_ZT1, 1024, manifest);
    memset(container.bytes + CONTAINER_DATA, 0, 1024);
    zt_buffer_append(&bytes, container.bytes, container.length);
    container_free(&container);
    written_open(written, bytes);
}

static void open_zt2(struct written *written, const char *manifest)
{
    struct zt2_file file = {0};
    struct zt_buffer bytes = {0};

    zt2_file_make(&file, ZT2_MANIFEST_AT, manifest);
    zt_buffer_append(&bytes, file.bytes, file.length);
    zt2_file_free(&file);
    written_open(written, bytes);
}

/* Fails unless the target refuses the model, naming the object. */
static void assert_refused(const struct written *written, enum zt_target target, const char *object,
                           const char *why)
{
    struct zt_projection *projection = NULL;

    zt_error_clear(&error);
    assert_int_equal(zt_model_project(written->model, target, &projection, &error), ZT_UNSUPPORTED);
    assert_null(projection);
    assert_string_equal(error.object, object);
    if (strstr(error.message, why) == NULL)
        fail_msg("\"%s\" does not tell \"%s\"", error.message, why);
}

static void refuses(enum zt_target target, const char *objects, const char *why)
{
    struct written written = {0};

    open_zeros(&written, objects);
    assert_refused(&written, target, "x", why);
    written_free(&written);
}

static void assert_text(const char *bytes, size_t length, const char *wanted)
{
    assert_int_equal(length, strlen(wanted));
    assert_memory_equal(bytes, wanted, length);
}

static void assert_cbor(const void *bytes, size_t length, const char *wanted)
{
    struct zt_buffer buffer = {0};

    cbor_text_append(&buffer, wanted);
    assert_int_equal(length, buffer.length);
    assert_memory_equal(bytes, buffer.bytes, length);
    zt_buffer_free(&buffer);
}

/* --- types --- */

static void bool_is_a_dtype_in_zt1_and_a_logical_type_in_zt2(void **state)
{
    struct written first = {0};
    struct written second = {0};
    struct written back = {0};

    (void)state;
    open_zeros(&first, FILE_OF("\"x\":" DENSE(
                           "[2]", DATA("\"dtype\":\"bool\",\"offset\":64,\"length\":2"))));
    written_make(&second, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_int_equal(second.model->components[0].dtype, ZT_U8);
    assert_int_equal(second.model->components[0].logical, ZT_LOGICAL_BOOL);
    written_make(&back, &second, ZT_TARGET_ZT1, NULL);
    assert_int_equal(back.model->components[0].dtype, ZT_BOOL);
    assert_null(back.model->components[0].type);
    written_free(&back);
    written_make(&back, &second, ZT_TARGET_SAFETENSORS, NULL);
    assert_int_equal(back.model->components[0].dtype, ZT_BOOL);
    written_free(&first);
    written_free(&second);
    written_free(&back);
}

static void types_of_zt2_are_open_types_in_zt1(void **state)
{
    struct written first = {0};
    struct written made = {0};

    (void)state;
    open_zt2(&first,
             ZT2_OBJECT("{\"blob\":[4096,4],\"type\":\"f4_e2m1\",\"dtype\":\"u8\"}", ZT2_REST));
    written_make(&made, &first, ZT_TARGET_ZT1, NULL);
    assert_text(made.model->components[0].type, made.model->components[0].type_length, "f4_e2m1");
    assert_int_equal(made.model->components[0].dtype, ZT_U8);
    written_free(&first);
    written_free(&made);
}

static void six_bit_types_of_safetensors_go_through_zt(void **state)
{
    static const char objects[] = FILE_OF("\"x\":" DENSE(
        "[8]", DATA("\"dtype\":\"u8\",\"type\":\"f6_e2m3\",\"offset\":64,\"length\":6")));
    struct zt_buffer twice = {0};
    struct written first = {0};
    struct written made = {0};
    struct written through = {0};

    (void)state;
    open_zeros(&first, objects);
    written_make(&made, &first, ZT_TARGET_SAFETENSORS, NULL);
    assert_non_null(memmem(made.bytes.bytes, made.bytes.length, "F6_E2M3", 7));
    written_make(&through, &made, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_int_equal(written_convert(&through, ZT_TARGET_SAFETENSORS, NULL, &twice, &error), ZT_OK);
    assert_int_equal(twice.length, made.bytes.length);
    assert_memory_equal(twice.bytes, made.bytes.bytes, twice.length);
    zt_buffer_free(&twice);
    written_free(&first);
    written_free(&made);
    written_free(&through);
    refuses(ZT_TARGET_SAFETENSORS,
            FILE_OF("\"x\":" DENSE(
                "[8]", DATA("\"dtype\":\"u8\",\"type\":\"f6_e2m3\",\"offset\":64,\"length\":5"))),
            "six-bit");
}

/* --- layouts --- */

#define CSR(index)                                                              \
    FILE_OF("\"x\":{\"shape\":[2,2],\"format\":\"sparse_csr\",\"components\":{" \
            "\"values\":{\"dtype\":\"f32\",\"offset\":64,\"length\":0},"        \
            "\"indices\":{\"dtype\":\"" index "\",\"offset\":64,\"length\":0}," \
            "\"indptr\":{\"dtype\":\"u16\",\"offset\":128,\"length\":6}}}")

static void indices_become_as_wide_as_the_target_wants(void **state)
{
    struct written first = {0};
    struct written made = {0};
    uint8_t bytes[64];

    (void)state;
    open_zeros(&first, CSR("i32"));
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_text(made.model->objects[0].format, made.model->objects[0].format_length,
                "zt.sparse_csr/1");
    assert_int_equal(made.model->components[0].dtype, ZT_U32);
    assert_int_equal(made.model->components[1].dtype, ZT_U32);
    assert_int_equal(written_decode(&made, "x", "indptr", bytes, sizeof(bytes)), 12);
    written_free(&made);
    written_make(&made, &first, ZT_TARGET_ZT1, NULL);
    assert_int_equal(made.model->components[1].dtype, ZT_U64);
    assert_int_equal(written_decode(&made, "x", "indptr", bytes, sizeof(bytes)), 24);
    written_free(&made);
    written_free(&first);
}

/* One word of each type is what it was, whatever pieces the decoder gives. */
static void widened_indices_keep_their_value(void **state)
{
    struct container container = {0};
    struct zt_buffer file = {0};
    struct written first = {0};
    struct written made = {0};
    uint8_t bytes[64];

    (void)state;
    container_make(
        &container, CONTAINER_ZT1, 128,
        FILE_OF("\"x\":{\"shape\":[9000,70000],\"format\":\"sparse_coo\",\"components\":{"
                "\"values\":{\"dtype\":\"u8\",\"offset\":128,\"length\":1},"
                "\"coords\":{\"dtype\":\"i16\",\"offset\":64,\"length\":4}}}"));
    memcpy(container.bytes + CONTAINER_DATA, "\x01\x02\xff\x7f", 4);
    zt_buffer_append(&file, container.bytes, container.length);
    container_free(&container);
    written_open(&first, file);
    written_make(&made, &first, ZT_TARGET_ZT1, NULL);
    assert_int_equal(written_decode(&made, "x", "coords", bytes, sizeof(bytes)), 16);
    assert_memory_equal(bytes, "\x01\x02\0\0\0\0\0\0\xff\x7f\0\0\0\0\0\0", 16);
    written_free(&first);
    written_free(&made);
}

static void a_text_without_a_name_elsewhere_stays(void **state)
{
    struct written first = {0};
    struct written made = {0};

    (void)state;
    open_zeros(
        &first,
        FILE_OF("\"x\":{\"shape\":[4,4],\"format\":\"quantized_group\",\"attributes\":{\"bits\":4},"
                "\"components\":{\"packed_weight\":{\"dtype\":\"i32\",\"offset\":64,\"length\":8},"
                "\"scales\":{\"dtype\":\"f16\",\"offset\":128,\"length\":8},"
                "\"zeros\":{\"dtype\":\"f16\",\"offset\":192,\"length\":8}}}"));
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_text(made.model->objects[0].format, made.model->objects[0].format_length,
                "quantized_group");
    assert_text(made.model->components[0].name, made.model->components[0].name_length,
                "packed_weight");
    written_free(&made);
    written_free(&first);
}

#define QUANT_ATTRIBUTES                                                                           \
    "{\"axis\":1,\"bits\":4,\"packing\":{\"word\":\"u32\",\"order\":\"lsb_first\",\"per_word\":8}" \
    ","                                                                                            \
    "\"group_size\":8,\"scale_form\":\"f16_factors\",\"zero_point\":{\"form\":\"tensor\","         \
    "\"packing\":\"plain\"}}"

static void quantized_group_is_quant_group_if_attributes_state_everything(void **state)
{
    struct written first = {0};
    struct written made = {0};
    struct written back = {0};

    (void)state;
    open_zeros(
        &first,
        FILE_OF(
            "\"x\":{\"shape\":[2,8],\"format\":\"quantized_group\",\"attributes\":" QUANT_ATTRIBUTES
            ",\"components\":{\"packed_weight\":{\"dtype\":\"i32\",\"offset\":64,\"length\":8},"
            "\"scales\":{\"dtype\":\"f16\",\"offset\":128,\"length\":4},"
            "\"zeros\":{\"dtype\":\"f16\",\"offset\":192,\"length\":4}}}"));
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_int_equal(made.model->objects[0].layout, ZT_LAYOUT_QUANT_GROUP);
    assert_text(made.model->components[0].name, made.model->components[0].name_length, "data");
    written_make(&back, &made, ZT_TARGET_ZT1, NULL);
    assert_text(back.model->objects[0].format, back.model->objects[0].format_length,
                "quantized_group");
    assert_text(back.model->components[0].name, back.model->components[0].name_length,
                "packed_weight");
    written_free(&first);
    written_free(&made);
    written_free(&back);
}

/* --- names --- */

static void canonical_names_are_composed_and_sorted_again(void **state)
{
    struct written first = {0};
    struct written made = {0};

    (void)state;
    /* "e" and a combining acute come before "f"; composed, after it */
    open_zeros(&first, FILE_OF("\"e\u0301\":" DENSE("[1]", U8("1")) ",\"f\":" DENSE(
                           "[2]", DATA("\"dtype\":\"u8\",\"offset\":128,\"length\":2"))));
    written_make(&made, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_text(made.model->objects[0].name, made.model->objects[0].name_length, "f");
    assert_text(made.model->objects[1].name, made.model->objects[1].name_length, "\u00e9");
    assert_true(made.model->dimensions[made.model->objects[0].first_dimension] == 2);
    assert_true(made.model->components[made.model->objects[0].first_component].length == 2);
    written_free(&made);
    written_make(&made, &first, ZT_TARGET_ZT2, NULL);
    assert_text(made.model->objects[0].name, made.model->objects[0].name_length, "e\u0301");
    written_free(&made);
    written_free(&first);
    open_zeros(&first, FILE_OF("\"e\u0301\":" DENSE("[1]", U8("1")) ",\"\u00e9\":" DENSE(
                           "[2]", DATA("\"dtype\":\"u8\",\"offset\":128,\"length\":2"))));
    assert_refused(&first, ZT_TARGET_ZT2_CANONICAL, "\u00e9", "become equal");
    written_free(&first);
}

static void components_are_composed_too(void **state)
{
    struct written first = {0};
    struct written made = {0};

    (void)state;
#define OWN(parts)   FILE_OF("\"x\":{\"shape\":[1],\"format\":\"own\",\"components\":{" parts "}}")
#define BYTES_AT(at) "{\"dtype\":\"u8\",\"offset\":" at ",\"length\":1}"
    open_zeros(&first, OWN("\"e\u0301\":" BYTES_AT(
                           "64") ",\"f\":{\"dtype\":\"u8\",\"offset\":128,\"length\":2}"));
    written_make(&made, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_text(made.model->components[0].name, made.model->components[0].name_length, "f");
    assert_true(made.model->components[0].length == 2);
    assert_true(made.model->components[1].length == 1);
    written_free(&made);
    written_free(&first);
    refuses(ZT_TARGET_ZT2_CANONICAL,
            OWN("\"e\u0301\":" BYTES_AT("64") ",\"\u00e9\":" BYTES_AT("128")), "become equal");
}

/* --- attributes --- */

static void attributes_are_in_the_order_of_the_target(void **state)
{
    struct written first = {0};
    struct written second = {0};
    struct written third = {0};

    (void)state;
    open_zeros(&first, "{\"version\":\"1.2.0\",\"attributes\":{\"b\":{\"z\":1,\"aa\":2},\"aa\":[{"
                       "\"k\":0,\"a\":-1}]},"
                       "\"objects\":{}}");
    written_make(&second, &first, ZT_TARGET_ZT2_CANONICAL, NULL);
    assert_cbor(second.model->attributes.bytes, second.model->attributes.length,
                "{\"b\":{\"z\":1,\"aa\":2},\"aa\":[{\"a\":-1,\"k\":0}]}");
    written_make(&third, &second, ZT_TARGET_ZT1, NULL);
    assert_cbor(third.model->attributes.bytes, third.model->attributes.length,
                "{\"aa\":[{\"a\":-1,\"k\":0}],\"b\":{\"aa\":2,\"z\":1}}");
    written_free(&first);
    written_free(&second);
    written_free(&third);
}

static void encode(const char *bytes, size_t length, enum zt_attributes_form form,
                   struct zt_buffer *out)
{
    struct zt_text map = {bytes, length};

    zt_buffer_free(out);
    assert_int_equal(zt_attributes_encode(map, form, 30, out, &error), ZT_OK);
}

static void attributes_have_shortest_heads_and_definite_lengths(void **state)
{
    /* {_ "a": 1 in eight bytes, "b": [_ 1.0 as a double, (_ "x" "y") ]} */
    static const char loose[] = "\xBF\x61"
                                "a\x1B\0\0\0\0\0\0\0\x01\x61"
                                "b\x9F\xFB\x3F\xF0\0\0\0\0\0\0\x7F\x61x\x61y\xFF\xFF\xFF";
    struct zt_buffer out = {0};

    (void)state;
    encode(loose, sizeof(loose) - 1, ZT_ATTRIBUTES_ZT1, &out);
    assert_int_equal(out.length, 13);
    assert_memory_equal(out.bytes,
                        "\xA2\x61"
                        "a\x01\x61"
                        "b\x82\xF9\x3C\0\x62xy",
                        13);
    zt_buffer_free(&out);
}

static void canonical_keys_are_composed(void **state)
{
    static const char one[] = "\xA1\x63"
                              "e\u0301\x01";
    static const char two[] = "\xA2\x63"
                              "e\u0301\x01\x62\u00e9\x02";
    struct zt_buffer out = {0};

    (void)state;
    encode(one, sizeof(one) - 1, ZT_ATTRIBUTES_ZT2_CANONICAL, &out);
    assert_int_equal(out.length, 5);
    assert_memory_equal(out.bytes, "\xA1\x62\u00e9\x01", 5);
    encode(one, sizeof(one) - 1, ZT_ATTRIBUTES_ZT2, &out);
    assert_int_equal(out.length, 6);
    assert_int_equal(zt_attributes_encode((struct zt_text){two, sizeof(two) - 1},
                                          ZT_ATTRIBUTES_ZT2_CANONICAL, 30, &out, &error),
                     ZT_UNSUPPORTED);
    zt_buffer_free(&out);
}

static void zt2_refuses_attributes_it_cannot_hold(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } maps[] = {{"\xA1\x61t\xC1\x01", 5}, {"\xA1\x61u\xF7", 4}, {"\xA1\x61s\xE1", 4},
                {"\xA1\x61s\xF8\xFF", 5}, {"\xA1\x60\x01", 3},  {"\xA1\x62k\0\x01", 5}};
    struct zt_buffer out = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        struct zt_text map = {maps[i].bytes, maps[i].length};

        encode(maps[i].bytes, maps[i].length, ZT_ATTRIBUTES_ZT1, &out);
        assert_int_equal(out.length, maps[i].length);
        assert_memory_equal(out.bytes, maps[i].bytes, out.length);
        assert_int_equal(zt_attributes_encode(map, ZT_ATTRIBUTES_ZT2, 30, &out, &error),
                         ZT_UNSUPPORTED);
    }
    assert_int_equal(zt_attributes_encode((struct zt_text){"\xA1\x61k\x81\x81\x01", 6},
                                          ZT_ATTRIBUTES_ZT2, 2, &out, &error),
                     ZT_UNSUPPORTED);
    zt_buffer_free(&out);
}

static void tags_count_as_levels(void **state)
{
    static const char tagged[] = "\xA1\x61t\xC1\xC1\x01";
    const struct zt_text map = {tagged, sizeof(tagged) - 1};
    struct zt_buffer out = {0};

    (void)state;
    assert_int_equal(zt_attributes_encode(map, ZT_ATTRIBUTES_ZT1, 3, &out, &error), ZT_OK);
    assert_int_equal(zt_attributes_encode(map, ZT_ATTRIBUTES_ZT1, 2, &out, &error), ZT_UNSUPPORTED);
    zt_buffer_free(&out);
}

static void dense_targets_keep_what_they_can_and_count_the_rest(void **state)
{
    struct zt_projection *made = NULL;
    struct written first = {0};

    (void)state;
    open_zeros(
        &first,
        "{\"version\":\"1.2.0\",\"attributes\":{\"n\":7,\"text\":\"t\",\"a\":\"u\",\"f\":0.5},"
        "\"objects\":{\"x\":{\"shape\":[1],\"format\":\"dense\",\"attributes\":{\"o\":1,\"p\":2},"
        "\"components\":{\"data\":{\"dtype\":\"f32\",\"offset\":64,\"length\":4}}}}}");
    assert_int_equal(zt_model_project(first.model, ZT_TARGET_SAFETENSORS, &made, &error), ZT_OK);
    assert_cbor(made->model->attributes.bytes, made->model->attributes.length,
                "{\"a\":\"u\",\"text\":\"t\"}");
    assert_true(made->left_out == 4);
    zt_projection_free(made);
    assert_int_equal(zt_model_project(first.model, ZT_TARGET_MAG, &made, &error), ZT_OK);
    assert_cbor(made->model->attributes.bytes, made->model->attributes.length, "{\"n\":7}");
    assert_true(made->left_out == 5);
    zt_projection_free(made);
    assert_int_equal(zt_model_project(first.model, ZT_TARGET_NPZ, &made, &error), ZT_OK);
    assert_int_equal(made->model->attributes.length, 0);
    assert_true(made->left_out == 6);
    zt_projection_free(made);
    written_free(&first);
}

/* --- what is refused --- */

static void dense_targets_refuse_what_is_not_dense(void **state)
{
    static const enum zt_target targets[] = {ZT_TARGET_MAG, ZT_TARGET_SAFETENSORS, ZT_TARGET_NPZ,
                                             ZT_TARGET_NPY};

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        refuses(targets[i], CSR("u64"), "sparse_csr");
}

static void targets_refuse_types_they_lack(void **state)
{
    (void)state;
    refuses(ZT_TARGET_MAG, FILE_OF("\"x\":" DENSE("[1]", U8("1"))), "u8");
    refuses(ZT_TARGET_NPZ,
            FILE_OF("\"x\":" DENSE("[1]", DATA("\"dtype\":\"bf16\",\"offset\":64,\"length\":2"))),
            "bf16");
    refuses(ZT_TARGET_NPY,
            FILE_OF("\"x\":" DENSE(
                "[1]", DATA("\"dtype\":\"u8\",\"type\":\"f8_e5m2\",\"offset\":64,\"length\":1"))),
            "f8_e5m2");
    refuses(
        ZT_TARGET_SAFETENSORS,
        FILE_OF("\"x\":" DENSE(
            "[1]", DATA("\"dtype\":\"f64\",\"type\":\"complex128\",\"offset\":64,\"length\":16"))),
        "complex128");
    refuses(ZT_TARGET_SAFETENSORS,
            FILE_OF("\"x\":" DENSE(
                "[1]", DATA("\"dtype\":\"u8\",\"type\":\"mine\",\"offset\":64,\"length\":1"))),
            "mine");
    refuses(ZT_TARGET_ZT2,
            FILE_OF("\"x\":" DENSE(
                "[1]", DATA("\"dtype\":\"bool\",\"type\":\"mine\",\"offset\":64,\"length\":1"))),
            "bool");
}

static void targets_refuse_shapes_they_lack(void **state)
{
    struct written written = {0};

    (void)state;
#define F32(length) DATA("\"dtype\":\"f32\",\"offset\":64,\"length\":" length)
    refuses(ZT_TARGET_MAG, FILE_OF("\"x\":" DENSE("[]", F32("4"))), "0 dimensions");
    refuses(ZT_TARGET_MAG, FILE_OF("\"x\":" DENSE("[1,1,1,1,1,1,1]", F32("4"))), "7 dimensions");
    refuses(ZT_TARGET_MAG, FILE_OF("\"x\":" DENSE("[2,0]", F32("0"))), "a dimension of 0");
    open_zt2(&written, "{\"objects\":{\"x\":{\"parts\":{\"data\":{\"blob\":[4096,2],\"type\":\"f4_"
                       "e2m1\",\"dtype\":"
                       "\"u8\"}},\"shape\":[3],\"layout\":\"dense\"}}}");
    assert_refused(&written, ZT_TARGET_SAFETENSORS, "x", "odd");
    written_free(&written);
}

static void targets_refuse_names_they_cannot_have(void **state)
{
    static const enum zt_target short_names[] = {ZT_TARGET_ZT2, ZT_TARGET_MAG, ZT_TARGET_NPZ};
    static const char head[] = "{\"version\":\"1.2.0\",\"objects\":{\"";
    static char manifest[66000 + 256];
    struct written written = {0};

    (void)state;
    open_zeros(&written, FILE_OF("\"__metadata__\":" DENSE("[1]", U8("1"))));
    assert_refused(&written, ZT_TARGET_SAFETENSORS, "__metadata__", "uses itself");
    written_free(&written);
    memset(manifest, 'n', sizeof(manifest) - 1);
    memcpy(manifest, head, strlen(head));
    snprintf(manifest + 66000, 256, "\":%s}}", DENSE("[1]", F32("4")));
    open_zeros(&written, manifest);
    for (unsigned i = 0; i < 3; i++) {
        struct zt_projection *projection = NULL;

        assert_int_equal(zt_model_project(written.model, short_names[i], &projection, &error),
                         ZT_UNSUPPORTED);
        assert_non_null(strstr(error.message, "a name"));
    }
    written_free(&written);
}

static void npy_refuses_more_than_one_object(void **state)
{
    struct written written = {0};

    (void)state;
    open_zeros(&written, FILE_OF("\"x\":" DENSE("[1]", U8("1")) ",\"y\":" DENSE("[1]", U8("1"))));
    assert_refused(&written, ZT_TARGET_NPY, "", "one object");
    written_free(&written);
}

static void an_encoding_that_is_not_known_is_refused(void **state)
{
    (void)state;
    refuses(ZT_TARGET_ZT1,
            FILE_OF("\"x\":" DENSE(
                "[1]", DATA("\"dtype\":\"u8\",\"offset\":64,\"length\":1,\"encoding\":\"lz4\""))),
            "lz4");
}

static void zt2_refuses_an_object_that_breaks_its_layout(void **state)
{
    (void)state;
    refuses(
        ZT_TARGET_ZT2,
        FILE_OF("\"x\":" DENSE("[1]", "{\"data\":{\"dtype\":\"u8\",\"offset\":64,\"length\":1},"
                                      "\"more\":{\"dtype\":\"u8\",\"offset\":64,\"length\":1}}")),
        "dense");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bool_is_a_dtype_in_zt1_and_a_logical_type_in_zt2),
        cmocka_unit_test(types_of_zt2_are_open_types_in_zt1),
        cmocka_unit_test(six_bit_types_of_safetensors_go_through_zt),
        cmocka_unit_test(indices_become_as_wide_as_the_target_wants),
        cmocka_unit_test(widened_indices_keep_their_value),
        cmocka_unit_test(a_text_without_a_name_elsewhere_stays),
        cmocka_unit_test(quantized_group_is_quant_group_if_attributes_state_everything),
        cmocka_unit_test(canonical_names_are_composed_and_sorted_again),
        cmocka_unit_test(components_are_composed_too),
        cmocka_unit_test(canonical_keys_are_composed),
        cmocka_unit_test(attributes_are_in_the_order_of_the_target),
        cmocka_unit_test(attributes_have_shortest_heads_and_definite_lengths),
        cmocka_unit_test(zt2_refuses_attributes_it_cannot_hold),
        cmocka_unit_test(tags_count_as_levels),
        cmocka_unit_test(dense_targets_keep_what_they_can_and_count_the_rest),
        cmocka_unit_test(dense_targets_refuse_what_is_not_dense),
        cmocka_unit_test(targets_refuse_types_they_lack),
        cmocka_unit_test(targets_refuse_shapes_they_lack),
        cmocka_unit_test(targets_refuse_names_they_cannot_have),
        cmocka_unit_test(npy_refuses_more_than_one_object),
        cmocka_unit_test(an_encoding_that_is_not_known_is_refused),
        cmocka_unit_test(zt2_refuses_an_object_that_breaks_its_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
