/* CBOR values as JSON: every point of RFC 8949 section 6.1, and diagnostic notation in keys. */
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "zt/attributes.h"

struct output {
    char text[4096];
    size_t length;
};

static void emit(void *context, const char *text, size_t length)
{
    struct output *output = context;

    assert_true(length < sizeof(output->text) - output->length);
    memcpy(output->text + output->length, text, length);
    output->length += length;
    output->text[output->length] = '\0';
}

static void check(const char *cbor, size_t length, const char *json)
{
    struct output output = {{0}, 0};
    struct zt_error error;

    assert_int_equal(
        zt_attributes_write_json((struct zt_text){cbor, length}, emit, &output, &error), ZT_OK);
    assert_string_equal(output.text, json);
}

/* The bytes of a literal, without its NUL. */
#define CHECK(cbor, json) check(cbor, sizeof(cbor) - 1, json)

static void no_bytes_are_an_empty_map(void **state)
{
    (void)state;
    check(NULL, 0, "{}");
    CHECK("\xA0", "{}");
}

static void integers_are_exact_beyond_what_a_double_holds(void **state)
{
    (void)state;
    CHECK("\x00", "0");
    CHECK("\x1B\x00\x20\x00\x00\x00\x00\x00\x01", "9007199254740993");
    CHECK("\x1B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "18446744073709551615");
    CHECK("\x20", "-1");
    CHECK("\x3B\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "-9223372036854775808");
    CHECK("\x3B\x80\x00\x00\x00\x00\x00\x00\x00", "-9223372036854775809");
    CHECK("\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "-18446744073709551616");
}

static void floats_are_the_shortest_that_read_back_equal(void **state)
{
    (void)state;
    CHECK("\xF9\x3C\x00", "1.0");
    CHECK("\xF9\x80\x00", "-0.0");
    CHECK("\xFB\x3F\xB9\x99\x99\x99\x99\x99\x9A", "0.1");
    CHECK("\xFB\x3F\xD3\x33\x33\x33\x33\x33\x34", "0.30000000000000004");
    CHECK("\xFB\x7E\x37\xE4\x3C\x88\x00\x75\x9C", "1e+300");
}

static void nan_and_infinities_are_null(void **state)
{
    (void)state;
    CHECK("\x83\xF9\x7E\x00\xF9\x7C\x00\xF9\xFC\x00", "[null,null,null]");
}

static void simple_values_keep_their_meaning(void **state)
{
    (void)state;
    CHECK("\x84\xF4\xF5\xF6\xF7", "[false,true,null,null]");
    CHECK("\x83\xE0\xF3\xF8\xFF", "[null,null,null]");
}

static void texts_are_escaped(void **state)
{
    (void)state;
    CHECK("\x69"
          "a\"\\\n\x01\x00\xC3\xBCz",
          "\"a\\\"\\\\\\n\\u0001\\u0000\xC3\xBCz\"");
}

static void byte_strings_are_base64url_without_padding(void **state)
{
    (void)state;
    CHECK("\x40", "\"\"");
    CHECK("\x42\xFF\xFE", "\"__4\"");
    CHECK("\x44\x01\x02\x03\x04", "\"AQIDBA\"");
}

static void tags_say_how_byte_strings_are_shown(void **state)
{
    (void)state;
    CHECK("\xC2\x42\xFF\xFE", "\"__4\"");
    CHECK("\xC3\x42\xFF\xFE", "\"~__4\"");
    CHECK("\xD5\x42\xFF\xFE", "\"__4\"");
    CHECK("\xD6\x42\xFF\xFE", "\"//4=\"");
    CHECK("\xD7\x81\x42\xFF\xFE", "[\"FFFE\"]");
    CHECK("\xC0\x61z", "\"z\"");
}

static void chunked_strings_are_joined(void **state)
{
    (void)state;
    CHECK("\x7F\x61"
          "a\x61"
          "b\xFF",
          "\"ab\"");
    CHECK("\x5F\x42\x01\x02\x42\x03\x04\xFF", "\"AQIDBA\"");
}

static void containers_nest(void **state)
{
    (void)state;
    CHECK("\xA2\x61"
          "a\x82\x01\xA0\x61"
          "b\x9F\x02\x80\xFF",
          "{\"a\":[1,{}],\"b\":[2,[]]}");
}

static void keys_other_than_text_are_diagnostic_notation(void **state)
{
    (void)state;
    CHECK("\xA1\x01\x02", "{\"1\":2}");
    CHECK("\xA1\x20\x02", "{\"-1\":2}");
    CHECK("\xA1\x42\xAB\xCD\x02", "{\"h'abcd'\":2}");
    CHECK("\xA1\xF6\x02", "{\"null\":2}");
    CHECK("\xA1\xF7\x02", "{\"undefined\":2}");
    CHECK("\xA2\xF0\x02\xF8\x20\x03", "{\"simple(16)\":2,\"simple(32)\":3}");
    CHECK("\xA1\xF9\x7C\x00\x02", "{\"Infinity\":2}");
    CHECK("\xA1\x82\x01\x61\"\x02", "{\"[1, \\\"\\\\\\\"\\\"]\":2}");
    CHECK("\xA1\xA1\x01\xF5\x02", "{\"{1: true}\":2}");
    CHECK("\xA1\xC1\x01\x02", "{\"1(1)\":2}");
}

static void nesting_is_bounded(void **state)
{
    char deep[100000];
    struct output output = {{0}, 0};
    struct zt_error error;
    enum zt_status status;

    (void)state;
    memset(deep, '\xC1', sizeof(deep));
    status = zt_attributes_write_json((struct zt_text){deep, sizeof(deep)}, emit, &output, &error);
    assert_int_equal(status, ZT_INVALID);
    assert_string_equal(error.rule, "zt1 §1 CborDepth");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_are_an_empty_map),
        cmocka_unit_test(integers_are_exact_beyond_what_a_double_holds),
        cmocka_unit_test(floats_are_the_shortest_that_read_back_equal),
        cmocka_unit_test(nan_and_infinities_are_null),
        cmocka_unit_test(simple_values_keep_their_meaning),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(byte_strings_are_base64url_without_padding),
        cmocka_unit_test(tags_say_how_byte_strings_are_shown),
        cmocka_unit_test(chunked_strings_are_joined),
        cmocka_unit_test(containers_nest),
        cmocka_unit_test(keys_other_than_text_are_diagnostic_notation),
        cmocka_unit_test(nesting_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
