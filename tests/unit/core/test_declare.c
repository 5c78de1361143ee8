/* Declarations: what clients say in JSON and in texts is read exactly, or refused. */
#include "tests.h"

#include <string.h>

#include "zt/declare.h"

static struct zt_error error;

static void assert_declared(struct zt_text actual, const char *expected)
{
    assert_text(actual.bytes, actual.length, expected);
}

TEST(file_of_nothing_is_zt1_without_attributes)
{
    static const char *const texts[] = {"", " \n", "{}", "\r\n\t{ }\r\n\t ",
                                        "{\"version\":\"1.2.0\"}"};

    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct zt_declaration declaration;

        assert_ok(zt_declare_file(zt_text_from(texts[i]), &declaration, &error));
        assert_int_equal(declaration.target, ZT_TARGET_ZT1);
        assert_int_equal(declaration.attributes.length, 0);
        zt_declaration_free(&declaration);
    }
}

TEST(attributes_become_cbor_in_the_order_of_the_version)
{
    struct zt_declaration declaration;

    /* Shorter keys come first in zTensor 2, and ascend by content in 1.2; the version may come
     * last. */
    assert_ok(
        zt_declare_file(zt_text_from("{\"attributes\":{\"b\":1,\"aa\":true},\"version\":\"2\"}"),
                        &declaration, &error));
    assert_int_equal(declaration.target, ZT_TARGET_ZT2);
    assert_declared(declaration.attributes, "\xA2\x61"
                                            "b\x01\x62"
                                            "aa\xF5");
    zt_declaration_free(&declaration);
    assert_ok(zt_declare_file(zt_text_from("{\"attributes\":{\"b\":1,\"aa\":true}}"), &declaration,
                              &error));
    assert_declared(declaration.attributes, "\xA2\x62"
                                            "aa\xF5\x61"
                                            "b\x01");
    zt_declaration_free(&declaration);
}

TEST(object_keeps_shape_format_and_attributes)
{
    struct zt_declaration declaration;

    assert_int_equal(
        zt_declare_object(
            ZT_TARGET_ZT1,
            zt_text_from("{\"format\":\"spars\\u0065\",\"shape\":[2,18446744073709551615,0],"
                         "\"attributes\":{}}"),
            &declaration, &error),
        ZT_ARGUMENT);
    assert_ok(zt_declare_object(
        ZT_TARGET_ZT1,
        zt_text_from("{\"format\":\"spars\\u0065\",\"shape\":[2,3,0],\"attributes\":{}}"),
        &declaration, &error));
    assert_declared(declaration.format, "sparse");
    assert_int_equal(declaration.shape.rank, 3);
    assert_int_equal(declaration.shape.extents[1], 3);
    assert_declared(declaration.attributes, "\xA0");
    zt_declaration_free(&declaration);
}

TEST(malformed_declarations_are_refused)
{
    static const char *const texts[] = {
        "[]",
        "{",
        "{} x",
        "{\"shape\":5}",
        "{\"shape\":[-1]}",
        "{\"shape\":[1.0]}",
        "{\"shape\":[1],\"shape\":[1]}",
        "{\"format\":\"other\"}",
        "{\"format\":null}",
        "{\"attributes\":[]}",
        "{\"attributes\":{\"a\":1,\"a\":1}}",
        "{\"version\":\"2\"}",
        "{\"attributes\":{\"a\":1e400}}",
        "{\"attributes\":{\"a\":[-1e400]}}",
        "{\"attributes\":{\"a\":18446744073709551616}}",
        "{\"attributes\":{\"a\":-18446744073709551617}}",
    };

    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct zt_declaration declaration;

        assert_int_equal(
            zt_declare_object(ZT_TARGET_ZT2, zt_text_from(texts[i]), &declaration, &error),
            ZT_ARGUMENT);
        assert_int_equal(error.status, ZT_ARGUMENT);
        assert_null(error.rule);
        assert_true(error.message[0] != '\0');
    }
}

TEST(zt2_refuses_attributes_that_are_too_deep)
{
    struct zt_declaration declaration;
    char json[256] = "{\"attributes\":";

    for (int i = 0; i < 31; i++)
        strcat(json, "{\"\":");
    strcat(json, "1");
    for (int i = 0; i < 31; i++)
        strcat(json, "}");
    strcat(json, "}");
    assert_int_equal(zt_declare_object(ZT_TARGET_ZT2, zt_text_from(json), &declaration, &error),
                     ZT_ARGUMENT);
    assert_ok(zt_declare_object(ZT_TARGET_ZT1, zt_text_from(json), &declaration, &error));
    zt_declaration_free(&declaration);
}

TEST(shapes_are_numbers_with_commas)
{
    static const char *const wrong[] = {",",  "1,", ",1", "1,,2", "-1",
                                        "+1", "1 ", "x",  "1x",   "18446744073709551616"};
    struct zt_shape shape;

    assert_ok(zt_declare_shape(zt_text_from("768,0,5"), &shape, &error));
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.extents[0], 768);
    assert_ok(zt_declare_shape(zt_text_from(""), &shape, &error));
    assert_int_equal(shape.rank, 0);
    assert_true(shape.stated);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(zt_declare_shape(zt_text_from(wrong[i]), &shape, &error), ZT_ARGUMENT);
    assert_int_equal(zt_declare_shape(zt_text_from("4294967296,4294967296"), &shape, &error),
                     ZT_ARGUMENT);
}

TEST(shapes_have_64_dimensions_at_most)
{
    struct zt_shape shape;
    char dimensions[200] = "1";

    for (int i = 1; i < 64; i++)
        strcat(dimensions, ",1");
    assert_ok(zt_declare_shape(zt_text_from(dimensions), &shape, &error));
    assert_int_equal(shape.rank, 64);
    strcat(dimensions, ",1");
    assert_int_equal(zt_declare_shape(zt_text_from(dimensions), &shape, &error), ZT_ARGUMENT);
}

static enum zt_status declare_type(enum zt_target target, const char *dtype, const char *type,
                                   enum zt_dtype *out_dtype, enum zt_logical *out_logical)
{
    return zt_declare_type(target, zt_text_from(dtype), zt_text_from(type), out_dtype, out_logical,
                           &error);
}

TEST(types_are_those_of_the_version)
{
    enum zt_dtype dtype;
    enum zt_logical logical;

    assert_ok(declare_type(ZT_TARGET_ZT1, "f32", "", &dtype, &logical));
    assert_int_equal(dtype, ZT_F32);
    assert_int_equal(logical, ZT_LOGICAL_NONE);
    assert_ok(declare_type(ZT_TARGET_ZT1, "f32", "f32", &dtype, &logical));
    assert_int_equal(logical, ZT_LOGICAL_NONE);
    assert_ok(declare_type(ZT_TARGET_ZT1, "bool", "", &dtype, &logical));
    assert_int_equal(dtype, ZT_BOOL);
    assert_ok(declare_type(ZT_TARGET_ZT2, "bool", "", &dtype, &logical));
    assert_int_equal(dtype, ZT_U8);
    assert_int_equal(logical, ZT_LOGICAL_BOOL);
    assert_ok(declare_type(ZT_TARGET_ZT2, "u8", "f4_e2m1", &dtype, &logical));
    assert_int_equal(declare_type(ZT_TARGET_ZT1, "float32", "", &dtype, &logical), ZT_UNSUPPORTED);
    assert_int_equal(declare_type(ZT_TARGET_ZT1, "u8", "f9", &dtype, &logical), ZT_UNSUPPORTED);
    assert_int_equal(declare_type(ZT_TARGET_ZT1, "u16", "f8_e5m2", &dtype, &logical),
                     ZT_UNSUPPORTED);
}

TEST(sizes_follow_from_shape_and_type)
{
    struct zt_shape shape;
    uint64_t bytes;

    assert_ok(zt_declare_shape(zt_text_from("3,5"), &shape, &error));
    assert_ok(zt_declared_bytes(&shape, ZT_F32, ZT_LOGICAL_NONE, &bytes, &error));
    assert_int_equal(bytes, 60);
    assert_ok(zt_declared_bytes(&shape, ZT_U8, ZT_LOGICAL_F4_E2M1, &bytes, &error));
    assert_int_equal(bytes, 8);
    assert_ok(zt_declare_shape(zt_text_from("9223372036854775808"), &shape, &error));
    assert_int_equal(zt_declared_bytes(&shape, ZT_F32, ZT_LOGICAL_NONE, &bytes, &error), ZT_LIMIT);
}
