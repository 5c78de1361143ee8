/* The JSON reader: what is JSON, what is not, and the offset of the error. */
#include "cbor/json_read.h"

#include <stdlib.h>
#include <string.h>

#include "tests.h"

#define BASE 100

static const struct zt_json_rules rules = {"json Syntax", "json Depth"};

/* Skips a value, and the end after it, in a copy of the text. */
static enum zt_status read_whole(const char *text, size_t length, struct zt_error *error)
{
    char *bytes = malloc(length > 0 ? length : 1);
    struct zt_json_reader reader;
    enum zt_status status;

    assert_non_null(bytes);
    memcpy(bytes, text, length);
    reader = (struct zt_json_reader){
        .bytes = bytes, .length = length, .base_offset = BASE, .rules = &rules};
    zt_error_clear(error);
    status = zt_json_skip(&reader, error);
    if (status == ZT_OK) {
        assert_int_equal(reader.depth, 0);
        status = zt_json_end(&reader, error);
    }
    free(bytes);
    return status;
}

TEST(skip_accepts_json)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "12",
        "-1.5e+10",
        "1E5",
        "0.0e-0",
        "true",
        "false",
        "null",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1]",
        "[1,2 , 3]",
        "{\"a\":1}",
        "{ \"a\" : [ { } ] , \"b\" : \"c\" }",
        "\t\r\n [ ]  ",
        "\"\\u0000\\ud83d\\ude00\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\xc3\xa9\x7f\"",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct zt_error error;

        assert_ok(read_whole(texts[i], strlen(texts[i]), &error));
    }
}

TEST(skip_refuses_what_is_not_json)
{
    static const struct {
        const char *text;
        uint64_t at;
    } cases[] = {
        {"", 0},
        {" ", 1},
        {"+1", 0},
        {"01", 1},
        {"-", 1},
        {".5", 0},
        {"1.", 2},
        {"1e", 2},
        {"1e+", 3},
        {"tru", 0},
        {"nul", 0},
        {"True", 0},
        {"[1,]", 3},
        {"[,1]", 1},
        {"[1 2]", 3},
        {"[1", 2},
        {"[1}", 2},
        {"{\"a\"}", 4},
        {"{\"a\":}", 5},
        {"{\"a\":1,}", 7},
        {"{a:1}", 1},
        {"{1:1}", 1},
        {"{\"a\" 1}", 5},
        {"{\"a\":1]", 6},
        {"\"a", 2},
        {"\"\\", 2},
        {"\"\\\"", 3},
        {"\"\n\"", 1},
        {"\"\\x\"", 1},
        {"\"\\u12\"", 1},
        {"\"\\u12G4\"", 1},
        {"\"\xff\"", 1},
        {"\"\xed\xa0\x80\"", 1},
        {"\"a\\ud800\"", 2},
        {"\"\\udc00\"", 1},
        {"\"\\ud800\\u0041\"", 1},
        {"\"\\ud800x\"", 1},
        {"\"\\ud800\\ud800\"", 1},
        {"\"\\ud83d\\ude0\"", 1},
        {"{} x", 3},
        {"{}\n\t x", 5},
        {"{}\f", 2},
        {"{}{}", 2},
        {"'a'", 0},
        {"[1/**/]", 2},
        {"\"a\x1f\"", 2},
        {"\"\\udc00\\udc00\"", 1},
        {"\xef\xbb\xbf{}", 0},
        {"\"\\\xc3\xa9\"", 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zt_error error;

        read_whole(cases[i].text, strlen(cases[i].text), &error);
        if (error.status != ZT_INVALID || error.offset != BASE + cases[i].at) {
            print_error("%s: %d at %d\n", cases[i].text, (int)error.status,
                        (int)(error.offset - BASE));
        }
        assert_failure(&error, ZT_INVALID, "json Syntax", BASE + cases[i].at);
    }
}

static enum zt_status read_non_finite(const char *text, struct zt_json_item *item,
                                      struct zt_error *error)
{
    /* The item's text points into it after the call. */
    static char bytes[32];
    size_t length = strlen(text);
    struct zt_json_reader reader;
    enum zt_status status;

    memcpy(bytes, text, length);
    reader = (struct zt_json_reader){.bytes = bytes,
                                     .length = length,
                                     .base_offset = BASE,
                                     .takes_non_finite = true,
                                     .rules = &rules};
    zt_error_clear(error);
    status = zt_json_next(&reader, item, error);
    return status == ZT_OK ? zt_json_end(&reader, error) : status;
}

TEST(next_takes_non_finite_numbers_if_asked)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    struct zt_json_item item;
    struct zt_error error;
    uint64_t value;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        assert_int_equal(read_whole(words[i], strlen(words[i]), &error), ZT_INVALID);
        assert_ok(read_non_finite(words[i], &item, &error));
        assert_int_equal(item.kind, ZT_JSON_NUMBER);
        assert_int_equal(item.text.length, strlen(words[i]));
        assert_false(zt_json_uint(&item, &value));
        for (size_t length = 0; length < strlen(words[i]); length++) {
            char prefix[16] = "";

            memcpy(prefix, words[i], length);
            assert_int_equal(read_non_finite(prefix, &item, &error), ZT_INVALID);
        }
    }
}

TEST(next_refuses_other_spellings_of_them)
{
    static const struct {
        const char *text;
        uint64_t at;
    } cases[] = {{"nan", 0},  {"-NaN", 1},       {"+Infinity", 0}, {"inf", 0},
                 {"NaN1", 3}, {"--Infinity", 1}, {"Inf", 0}};
    struct zt_json_item item;
    struct zt_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        read_non_finite(cases[i].text, &item, &error);
        assert_failure(&error, ZT_INVALID, "json Syntax", BASE + cases[i].at);
    }
}

TEST(skip_refuses_every_prefix)
{
    static const char text[] =
        "{\"a\\u00e9\":[1,-2.5e3,true,null,{\"b\":\"\\ud83d\\ude00\"}],\"c\":{}}";

    for (size_t length = 0; length < sizeof(text) - 1; length++) {
        struct zt_error error;

        assert_int_equal(read_whole(text, length, &error), ZT_INVALID);
        assert_non_null(error.rule);
    }
}

TEST(skip_refuses_more_than_64_levels)
{
    char text[2 * (ZT_JSON_DEPTH_MAX + 1)];
    struct zt_error error;

    for (unsigned levels = ZT_JSON_DEPTH_MAX; levels <= ZT_JSON_DEPTH_MAX + 1; levels++) {
        enum zt_status status;

        memset(text, '[', levels);
        memset(text + levels, ']', levels);
        status = read_whole(text, (size_t)2 * levels, &error);
        assert_int_equal(status, levels == ZT_JSON_DEPTH_MAX ? ZT_OK : ZT_INVALID);
    }
    assert_failure(&error, ZT_INVALID, "json Depth", BASE + ZT_JSON_DEPTH_MAX);
}

TEST(next_replaces_escapes_by_characters)
{
    static const struct {
        const char *json;
        const char *text;
        size_t length;
    } cases[] = {
        {"\"plain\"", "plain", 5},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"\"\\u007f\\u0080\\u07FF\\u0800\\uFFFF\"", "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf",
         11},
        {"\"\\ud800\\udc00\\uDBFF\\uDFFF\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8},
        {"\"\\u00e9\xc3\xa9\"", "\xc3\xa9\xc3\xa9", 4},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char bytes[64];
        size_t length = strlen(cases[i].json);
        struct zt_json_item item;
        struct zt_json_reader reader;

        memcpy(bytes, cases[i].json, length);
        reader = (struct zt_json_reader){.bytes = bytes, .length = length, .rules = &rules};
        assert_ok(zt_json_next(&reader, &item, NULL));
        assert_int_equal(item.kind, ZT_JSON_TEXT);
        assert_int_equal(item.text.length, cases[i].length);
        assert_memory_equal(item.text.bytes, cases[i].text, cases[i].length);
        assert_ptr_equal(item.text.bytes, bytes + 1);
        assert_int_equal(reader.position, length);
    }
}

TEST(uint_takes_only_whole_numbers)
{
    static const struct {
        const char *text;
        bool is_uint;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"184467440737095516150", false, 0},
        {"-0", false, 0},
        {"-1", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
        {"null", false, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char bytes[32];
        struct zt_json_item item;
        uint64_t value = 0;
        struct zt_json_reader reader;

        memcpy(bytes, cases[i].text, strlen(cases[i].text));
        reader = (struct zt_json_reader){
            .bytes = bytes, .length = strlen(cases[i].text), .rules = &rules};
        assert_ok(zt_json_next(&reader, &item, NULL));
        assert_int_equal(zt_json_uint(&item, &value), cases[i].is_uint);
        assert_true(value == cases[i].value);
    }
}
