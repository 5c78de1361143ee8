/* CBOR values as JSON: every point of RFC 8949 section 6.1, and diagnostic notation in keys. */
#include <stdlib.h>
#include <string.h>

#include "tests.h"
#include "zt/attributes.h"

static void check(const char *cbor, size_t length, const char *json)
{
    assert_json((struct zt_text){cbor, length}, json);
}

/* The bytes of a literal, without its NUL. */
#define CHECK(cbor, json) check(cbor, sizeof(cbor) - 1, json)

TEST(no_bytes_are_an_empty_map)
{
    check(NULL, 0, "{}");
    CHECK("\xA0", "{}");
}

TEST(integers_are_exact_beyond_what_a_double_holds)
{
    CHECK("\x00", "0");
    CHECK("\x1B\x00\x20\x00\x00\x00\x00\x00\x01", "9007199254740993");
    CHECK("\x1B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "18446744073709551615");
    CHECK("\x20", "-1");
    CHECK("\x3B\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "-9223372036854775808");
    CHECK("\x3B\x80\x00\x00\x00\x00\x00\x00\x00", "-9223372036854775809");
    CHECK("\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "-18446744073709551616");
}

TEST(floats_are_the_shortest_that_read_back_equal)
{
    CHECK("\xF9\x3C\x00", "1.0");
    CHECK("\xF9\x80\x00", "-0.0");
    CHECK("\xFB\x3F\xB9\x99\x99\x99\x99\x99\x9A", "0.1");
    CHECK("\xFB\x3F\xD3\x33\x33\x33\x33\x33\x34", "0.30000000000000004");
    CHECK("\xFB\x7E\x37\xE4\x3C\x88\x00\x75\x9C", "1e+300");
}

TEST(nan_and_infinities_are_null)
{
    CHECK("\x83\xF9\x7E\x00\xF9\x7C\x00\xF9\xFC\x00", "[null,null,null]");
}

TEST(simple_values_keep_their_meaning)
{
    CHECK("\x84\xF4\xF5\xF6\xF7", "[false,true,null,null]");
    CHECK("\x83\xE0\xF3\xF8\xFF", "[null,null,null]");
}

TEST(texts_are_escaped)
{
    CHECK("\x69"
          "a\"\\\n\x01\x00\xC3\xBCz",
          "\"a\\\"\\\\\\n\\u0001\\u0000\xC3\xBCz\"");
}

TEST(byte_strings_are_base64url_without_padding)
{
    CHECK("\x40", "\"\"");
    CHECK("\x42\xFF\xFE", "\"__4\"");
    CHECK("\x44\x01\x02\x03\x04", "\"AQIDBA\"");
}

TEST(tags_say_how_byte_strings_are_shown)
{
    CHECK("\xC2\x42\xFF\xFE", "\"__4\"");
    CHECK("\xC3\x42\xFF\xFE", "\"~__4\"");
    CHECK("\xD5\x42\xFF\xFE", "\"__4\"");
    CHECK("\xD6\x42\xFF\xFE", "\"//4=\"");
    CHECK("\xD7\x81\x42\xFF\xFE", "[\"FFFE\"]");
    CHECK("\xC0\x61z", "\"z\"");
}

TEST(chunked_strings_are_joined)
{
    CHECK("\x7F\x61"
          "a\x61"
          "b\xFF",
          "\"ab\"");
    CHECK("\x5F\x42\x01\x02\x42\x03\x04\xFF", "\"AQIDBA\"");
}

TEST(containers_nest)
{
    CHECK("\xA2\x61"
          "a\x82\x01\xA0\x61"
          "b\x9F\x02\x80\xFF",
          "{\"a\":[1,{}],\"b\":[2,[]]}");
}

TEST(keys_other_than_text_are_diagnostic_notation)
{
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

static void ignore(void *context, const char *text, size_t length)
{
    (void)context, (void)text, (void)length;
}

TEST(nesting_is_bounded)
{
    char deep[100000];
    const struct zt_text text = {deep, sizeof(deep)};
    struct zt_error error;

    memset(deep, '\xC1', sizeof(deep));
    assert_int_equal(zt_attributes_write_json(text, ignore, NULL, &error), ZT_INVALID);
    assert_string_equal(error.rule, "zt1 §1 CborDepth");
}
