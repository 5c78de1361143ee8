/* Headers as they lie in memory after the library's parsing: NULs where separators were. */
#include "support.h"

#include <string.h>

#include "http/fields/header_block.h"

#define LINE        "GET\0/a?b\0HTTP/1.1\0\0"
#define LINE_LENGTH (sizeof(LINE) - 1)

/* Fields stand where the texts of the list are found, one after the other. */
static bool is_plain(const char *bytes, size_t length, const char *const *texts, unsigned count)
{
    const struct header_block block = {bytes, length, 4, bytes + 9};
    struct header_field fields[4];
    const char *from = bytes + LINE_LENGTH;

    for (unsigned i = 0; i < count; i++) {
        const char *name =
            memmem(from, (size_t)(bytes + length - from), texts[2 * i], strlen(texts[2 * i]));
        const char *value;

        assert_non_null(name);
        from = name + strlen(name) + 1;
        value = memmem(from, (size_t)(bytes + length - from), texts[2 * i + 1],
                       strlen(texts[2 * i + 1]));
        assert_non_null(value);
        from = value + strlen(value);
        fields[i] =
            (struct header_field){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
    }
    return header_block_is_plain(&block, fields, count);
}

#define IS_PLAIN(fields, count, ...)                        \
    is_plain(LINE fields, LINE_LENGTH + sizeof(fields) - 1, \
             (const char *const[]){__VA_ARGS__, NULL}, count)

static void lines_without_a_gap_are_plain(void **state)
{
    (void)state;
    assert_true(IS_PLAIN("\0\0", 0, NULL));
    assert_true(IS_PLAIN("Host\0 x\0\0\0\0", 1, "Host", "x"));
    assert_true(IS_PLAIN("Host\0x\0\0Long\0\t  y z  \0\0\0\0", 2, "Host", "x", "Long", "y z  "));
}

static void an_empty_name_is_seen(void **state)
{
    (void)state;
    assert_false(IS_PLAIN("Host\0 x\0\0\0 y\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0: y\0\0", 1, "Host", "x"));
}

static void what_a_value_hides_is_seen(void **state)
{
    (void)state;
    assert_false(IS_PLAIN("Host\0 x\0y\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0 folded\0\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0\0Gone\0 y\0\0\0\0", 1, "Host", "x"));
}

static void a_bare_line_feed_is_seen(void **state)
{
    (void)state;
    assert_false(IS_PLAIN("Host\0 x\0\0\0", 1, "Host", "x"));
    assert_false(IS_PLAIN("Host\0 x\0Gone\0 y\0\0\0\0", 2, "Host", "x", "Gone", "y"));
    assert_false(IS_PLAIN("\0", 0, NULL));
}

static void a_cut_target_is_seen(void **state)
{
    static const char bytes[] = "GET\0/a\0b\0HTTP/1.1\0\0\0\0";
    struct header_block block = {bytes, sizeof(bytes) - 1, 2, bytes + 9};

    (void)state;
    assert_false(header_block_is_plain(&block, NULL, 0));
    block.target_length = 4;
    assert_true(header_block_is_plain(&block, NULL, 0));
    block.target_length = sizeof(bytes);
    assert_false(header_block_is_plain(&block, NULL, 0));
}

static void texts_elsewhere_are_seen(void **state)
{
    static const char elsewhere[] = "Host";
    static const char bytes[] = LINE "Host\0 x\0\0\0";
    const struct header_block block = {bytes, sizeof(bytes), 4, bytes + 9};
    const struct header_field field = {elsewhere, bytes + LINE_LENGTH + 6, 4, 1};

    (void)state;
    assert_false(header_block_is_plain(&block, &field, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_without_a_gap_are_plain), cmocka_unit_test(an_empty_name_is_seen),
        cmocka_unit_test(what_a_value_hides_is_seen),    cmocka_unit_test(a_bare_line_feed_is_seen),
        cmocka_unit_test(a_cut_target_is_seen),          cmocka_unit_test(texts_elsewhere_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
