/* Which bytes are a JSON text, and where those that are not go wrong. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "zt/json_text.h"

static enum zt_status check(const void *bytes, size_t length, struct zt_error *error)
{
    struct zt_source *source;
    enum zt_status status;

    zt_error_clear(error);
    assert_int_equal(zt_source_from_memory(bytes, length, &source, NULL), ZT_OK);
    status = zt_json_check(source, error);
    zt_source_close(source);
    return status;
}

static void assert_text(const char *text)
{
    struct zt_error error;

    if (check(text, strlen(text), &error) != ZT_OK)
        fail_msg("%s: %s", text, error.message);
}

static void assert_no_text(const char *text)
{
    struct zt_error error;

    if (check(text, strlen(text), &error) != ZT_INVALID)
        fail_msg("%s is taken", text);
    assert_true(error.offset <= strlen(text));
}

static void values_of_every_kind(void **state)
{
    (void)state;
    assert_text("{}");
    assert_text(" \t\r\n[ ]\n");
    assert_text("null");
    assert_text("\"\\u00e4\\ud83d\\ude00 \xc3\xa4\"");
    assert_text("-0.5e-10");
    assert_text("1e999");
    assert_text("123456789012345678901234567890");
    assert_text("{\"a\":[1,true,false,null,{\"b\":\"\"}],\"\":0}");
    assert_text("{\"a\":NaN,\"b\":[Infinity,-Infinity]}");
}

static void what_is_no_text(void **state)
{
    static const char *const texts[] = {"",           " ",
                                        "{",          "}",
                                        "[",          "[1",
                                        "[1,]",       "[,]",
                                        "{\"a\"}",    "{\"a\":}",
                                        "{\"a\":1,}", "{a:1}",
                                        "{1:2}",      "{} {}",
                                        "1 2",        "01",
                                        "+1",         ".5",
                                        "1.",         "1e",
                                        "-",          "tru",
                                        "True",       "'a'",
                                        "\"a",        "\"\\x\"",
                                        "\"\\u12\"",  "\"\n\"",
                                        "// a\n1",    "\xef\xbb\xbf{}",
                                        "\"\xff\"",   "\"\xed\xa0\x80\"",
                                        "\"\xc3\"",   "[1 2]",
                                        "{\"a\" 1}",  "-NaN",
                                        "nan"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_no_text(texts[i]);
}

static void zeros_end_no_text(void **state)
{
    struct zt_error error;

    (void)state;
    assert_int_equal(check("{}\0", 3, &error), ZT_INVALID);
    assert_int_equal(error.offset, 2);
    assert_int_equal(check("\"a\0b\"", 5, &error), ZT_INVALID);
}

static void assert_depth(size_t depth, enum zt_status status)
{
    char *text = malloc(2 * depth);
    struct zt_error error;

    assert_non_null(text);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    assert_int_equal(check(text, 2 * depth, &error), status);
    free(text);
}

static void values_within_values(void **state)
{
    (void)state;
    assert_depth(1, ZT_OK);
    assert_depth(64, ZT_OK);
    assert_depth(65, ZT_INVALID);
    assert_depth(1000000, ZT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_kind),
        cmocka_unit_test(what_is_no_text),
        cmocka_unit_test(zeros_end_no_text),
        cmocka_unit_test(values_within_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
