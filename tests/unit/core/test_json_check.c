/* Which bytes are a JSON text, and where those that are not go wrong. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "zt/json_text.h"

static enum zt_status check(const void *bytes, size_t length, struct zt_error *error)
{
    struct zt_source *source;
    enum zt_status status;

    zt_error_clear(error);
    source = memory_source(bytes, length);
    status = zt_json_check(source, error);
    zt_source_close(source);
    return status;
}

/* The reader's own tests have every value that is refused. */
TEST(values_and_the_end_after_them_are_checked)
{
    static const struct {
        const char *text;
        enum zt_status status;
    } cases[] = {{"{}", ZT_OK},
                 {" \t\r\n[ ]\n", ZT_OK},
                 {"\"\\u00e4\\ud83d\\ude00 \xc3\xa4\"", ZT_OK},
                 {"1e999", ZT_OK},
                 {"123456789012345678901234567890", ZT_OK},
                 {"{\"a\":[1,true,false,null,{\"b\":\"\"}],\"\":0}", ZT_OK},
                 {"{\"a\":NaN,\"b\":[Infinity,-Infinity]}", ZT_OK},
                 {"", ZT_INVALID},
                 {"[1", ZT_INVALID},
                 {"{} {}", ZT_INVALID},
                 {"\xef\xbb\xbf{}", ZT_INVALID},
                 {"\"\xff\"", ZT_INVALID},
                 {"nan", ZT_INVALID}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zt_error error;

        if (check(cases[i].text, strlen(cases[i].text), &error) != cases[i].status)
            fail_msg("%s: %s", cases[i].text, error.message);
        assert_true(cases[i].status == ZT_OK || error.offset <= strlen(cases[i].text));
    }
}

TEST(zeros_end_no_text)
{
    struct zt_error error;

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

TEST(values_within_values)
{
    assert_depth(1, ZT_OK);
    assert_depth(64, ZT_OK);
    assert_depth(65, ZT_INVALID);
    assert_depth(1000000, ZT_INVALID);
}
