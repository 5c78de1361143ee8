/* JSON as it is written: commas, escapes, exact integers, both layouts. */
#include "tests.h"

#include "base/json_write.h"
#include "zt/utf8.h"

static void assert_written(struct json *json, const char *expected)
{
    assert_false(json->failed);
    assert_int_equal(json->length, strlen(expected));
    assert_memory_equal(json->text, expected, json->length);
    json_free(json);
}

static void write_sample(struct json *json)
{
    json_object_begin(json);
    json_key_string(json, "a");
    json_array_begin(json);
    json_uint(json, 1);
    json_put_null(json);
    json_array_begin(json);
    json_array_end(json);
    json_array_end(json);
    json_key_string(json, "b");
    json_object_begin(json);
    json_object_end(json);
    json_key_string(json, "c");
    json_raw(json, "{\"x\":1}", 7);
    json_object_end(json);
}

TEST(compact_text_has_no_space)
{
    struct json json;

    json_init(&json, false);
    write_sample(&json);
    assert_written(&json, "{\"a\":[1,null,[]],\"b\":{},\"c\":{\"x\":1}}\n");
}

TEST(pretty_text_is_indented)
{
    struct json json;

    json_init(&json, true);
    write_sample(&json);
    assert_written(&json, "{\n  \"a\": [\n    1,\n    null,\n    []\n  ],\n  \"b\": {},\n  \"c\": "
                          "{\"x\":1}\n}\n");
}

TEST(strings_are_escaped)
{
    struct json json;

    json_init(&json, false);
    json_text(&json, (struct zt_text){"a\"b\\c\n\r\t\b\f\x01\x1f\0z\x7f", 15});
    assert_written(&json, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\\u0000z\x7f\"");
}

TEST(characters_stay_as_they_are)
{
    struct json json;

    json_init(&json, false);
    json_put_string(&json, "é€𝄞");
    assert_written(&json, "\"é€𝄞\"");
}

TEST(bytes_that_are_no_text_are_replaced)
{
    struct json json;

    json_init(&json, false);
    json_put_string(&json, "a\xff"
                           "b\xc3");
    assert_written(&json, "\"a\xEF\xBF\xBD"
                          "b\xEF\xBF\xBD\"");
}

TEST(integers_are_exact)
{
    struct json json;

    json_init(&json, false);
    json_array_begin(&json);
    json_uint(&json, 0);
    json_uint(&json, UINT64_C(9007199254740993));
    json_uint(&json, UINT64_MAX);
    json_array_end(&json);
    assert_written(&json, "[0,9007199254740993,18446744073709551615]\n");
}

TEST(long_texts_grow)
{
    struct json json;

    json_init(&json, false);
    json_array_begin(&json);
    for (unsigned i = 0; i < 100000; i++)
        json_put_string(&json, "0123456789");
    json_array_end(&json);
    assert_false(json.failed);
    assert_int_equal(json.length, 100000 * 13 + 2);
    assert_memory_equal(&json.text[json.length - 2], "]\n", 2);
    json_free(&json);
    assert_null(json.text);
}

TEST(a_growth_past_all_memory_fails_and_stays_failed)
{
    struct json json;
    size_t length;

    json_init(&json, false);
    json_put_string(&json, "x");
    json_raw(&json, "", SIZE_MAX - 2);
    assert_true(json.failed);
    length = json.length;
    json_put_string(&json, "y");
    assert_int_equal(json.length, length);
    json_free(&json);
    assert_false(json.failed);
}

TEST(only_well_formed_utf8_is_valid)
{
    static const char *const good[] = {"",
                                       "abc",
                                       "\xC2\x80",
                                       "\xE0\xA0\x80",
                                       "\xED\x9F\xBF",
                                       "\xEE\x80\x80",
                                       "\xF0\x90\x80\x80",
                                       "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\x80",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xC2",
                                      "\xC2\x41",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xE1\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF",
                                      "a\xE1\x80z"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(zt_utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(zt_utf8_valid(bad[i], strlen(bad[i])));
    assert_false(zt_utf8_valid("\xC3\xA9", 1));
}
