/* Text from files as a terminal shows it. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "files/opened_file.h"
#include "terminal/plain_text.h"

static void assert_shown(const char *text, size_t length, const char *expected, size_t width)
{
    char *shown = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&shown, &size);

    assert_non_null(stream);
    assert_int_equal(plain_text_write(stream, text, length), width);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(shown, expected);
    free(shown);
    assert_int_equal(plain_text_write(NULL, text, length), width);
}

static void plain_characters_are_shown_as_they_are(void **state)
{
    (void)state;
    assert_shown("", 0, "", 0);
    assert_shown("layer.0/w \\ \"", 13, "layer.0/w \\ \"", 13);
    assert_shown("é€𝄞", 9, "é€𝄞", 3);
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    assert_shown("a\n\x1b\x7f", 4, "a\\u000a\\u001b\\u007f", 19);
    assert_shown("\0", 1, "\\u0000", 6);
    assert_shown("\xC2\x9B", 2, "\\u009b", 6);
    assert_shown("\xC2\xA0", 2, "\xC2\xA0", 1);
    assert_shown("\xE2\x80\xAE", 3, "\\u202e", 6);
    assert_shown("\xE2\x80\xA8", 3, "\\u2028", 6);
    assert_shown("\xE2\x81\xA6", 3, "\\u2066", 6);
    assert_shown("\xE2\x80\x90", 3, "\xE2\x80\x90", 1);
}

static void bytes_that_are_not_utf_8_are_escaped(void **state)
{
    (void)state;
    assert_shown("a\xFF\xC3", 3, "a\\xff\\xc3", 9);
}

static void assert_cut(const char *text, size_t limit, const char *expected, size_t width)
{
    char *shown = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&shown, &size);

    assert_non_null(stream);
    assert_int_equal(plain_text_write_short(stream, text, strlen(text), limit), width);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(shown, expected);
    free(shown);
    assert_int_equal(plain_text_write_short(NULL, text, strlen(text), limit), width);
}

static void a_long_text_is_cut_between_its_characters(void **state)
{
    (void)state;
    assert_cut("abcde", 5, "abcde", 5);
    assert_cut("abcdef", 5, "abcd…", 5);
    assert_cut("éééééé", 5, "éééé…", 5);
    assert_cut("ab\n\n", 9, "ab\\u000a…", 9);
    assert_cut("ab\nc\n", 8, "ab…", 3);
    assert_cut("\xff\xff", 5, "\\xff…", 5);
    assert_cut("abcdefghijklmnopqrstuvwxyz", 2, "a…", 2);
}

static void assert_described(const struct zt_error *error, const char *expected)
{
    char *shown = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&shown, &size);

    assert_non_null(stream);
    failure_write(stream, error);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(shown, expected);
    free(shown);
}

static void a_failure_is_described_in_one_line(void **state)
{
    struct zt_error error;

    (void)state;
    zt_fail(&error, ZT_INVALID, "zt1 §4 BlobAlignment", 70, "offset 3");
    zt_error_at(&error, (struct zt_text){"w", 1}, (struct zt_text){"data", 4});
    assert_described(
        &error, "offset 3 [zt1 §4 BlobAlignment, object \"w\", component \"data\", offset 70]");
    zt_fail(&error, ZT_IO, NULL, ZT_NO_OFFSET, "cannot read");
    assert_described(&error, "cannot read");
    zt_fail(&error, ZT_IO, NULL, 0, "cannot read");
    assert_described(&error, "cannot read [offset 0]");
}

static void names_in_a_failure_are_escaped_and_shown_past_a_nul(void **state)
{
    struct zt_error error;

    (void)state;
    zt_fail(&error, ZT_INVALID, NULL, ZT_NO_OFFSET, "a\tb");
    zt_error_at(&error, (struct zt_text){"x\0y", 3}, (struct zt_text){"\0", 1});
    assert_described(&error, "a\\u0009b [object \"x\\u0000y\", component \"\\u0000\"]");
    zt_error_at(&error, (struct zt_text){"", 0}, (struct zt_text){"", 0});
    assert_described(&error, "a\\u0009b [object \"\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_characters_are_shown_as_they_are),
        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(bytes_that_are_not_utf_8_are_escaped),
        cmocka_unit_test(a_long_text_is_cut_between_its_characters),
        cmocka_unit_test(a_failure_is_described_in_one_line),
        cmocka_unit_test(names_in_a_failure_are_escaped_and_shown_past_a_nul),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
