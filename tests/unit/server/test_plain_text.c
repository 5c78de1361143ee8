/* Text from files as a terminal shows it. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "files/opened_file.h"
#include "terminal/plain_text.h"

/* What a test writes to a stream. */
static char *shown;
static size_t shown_size;

static FILE *show(void)
{
    FILE *stream = open_memstream(&shown, &shown_size);

    assert_non_null(stream);
    return stream;
}

static void assert_stream(FILE *stream, const char *expected)
{
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(shown, expected);
    free(shown);
}

static void assert_shown(const char *text, size_t length, const char *expected, size_t width)
{
    FILE *stream = show();

    assert_int_equal(plain_text_write(stream, text, length), width);
    assert_stream(stream, expected);
    assert_int_equal(plain_text_write(NULL, text, length), width);
}

TEST(plain_characters_are_shown_as_they_are)
{
    assert_shown("", 0, "", 0);
    assert_shown("layer.0/w \\ \"", 13, "layer.0/w \\ \"", 13);
    assert_shown("é€𝄞", 9, "é€𝄞", 3);
}

TEST(control_characters_are_escaped)
{
    assert_shown("a\n\x1b\x7f", 4, "a\\u000a\\u001b\\u007f", 19);
    assert_shown("\0", 1, "\\u0000", 6);
    assert_shown("\xC2\x9B", 2, "\\u009b", 6);
    assert_shown("\xC2\xA0", 2, "\xC2\xA0", 1);
    assert_shown("\xE2\x80\xAE", 3, "\\u202e", 6);
    assert_shown("\xE2\x80\xA8", 3, "\\u2028", 6);
    assert_shown("\xE2\x81\xA6", 3, "\\u2066", 6);
    assert_shown("\xE2\x80\x90", 3, "\xE2\x80\x90", 1);
}

TEST(bytes_that_are_not_utf_8_are_escaped)
{
    assert_shown("a\xFF\xC3", 3, "a\\xff\\xc3", 9);
}

static void assert_cut(const char *text, size_t limit, const char *expected, size_t width)
{
    FILE *stream = show();

    assert_int_equal(plain_text_write_short(stream, text, strlen(text), limit), width);
    assert_stream(stream, expected);
    assert_int_equal(plain_text_write_short(NULL, text, strlen(text), limit), width);
}

TEST(a_long_text_is_cut_between_its_characters)
{
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
    FILE *stream = show();

    failure_write(stream, error);
    assert_stream(stream, expected);
}

TEST(a_failure_is_described_in_one_line)
{
    struct zt_error error;

    zt_fail(&error, ZT_INVALID, "zt1 §4 BlobAlignment", 70, "offset 3");
    zt_error_at(&error, (struct zt_text){"w", 1}, (struct zt_text){"data", 4});
    assert_described(
        &error, "offset 3 [zt1 §4 BlobAlignment, object \"w\", component \"data\", offset 70]");
    zt_fail(&error, ZT_IO, NULL, ZT_NO_OFFSET, "cannot read");
    assert_described(&error, "cannot read");
    zt_fail(&error, ZT_IO, NULL, 0, "cannot read");
    assert_described(&error, "cannot read [offset 0]");
}

TEST(names_in_a_failure_are_escaped_and_shown_past_a_nul)
{
    struct zt_error error;

    zt_fail(&error, ZT_INVALID, NULL, ZT_NO_OFFSET, "a\tb");
    zt_error_at(&error, (struct zt_text){"x\0y", 3}, (struct zt_text){"\0", 1});
    assert_described(&error, "a\\u0009b [object \"x\\u0000y\", component \"\\u0000\"]");
    zt_error_at(&error, (struct zt_text){"", 0}, (struct zt_text){"", 0});
    assert_described(&error, "a\\u0009b [object \"\"]");
}
