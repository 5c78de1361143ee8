/* Preconditions: their order, comparison of tags, and the three forms of a date. */
#include "support.h"

#include "http/fields/conditional.h"

#include <string.h>

#define TAG "\"abc\""
/* Sun, 06 Nov 1994 08:49:37 GMT */
#define MOMENT ((time_t)784111777)
#define AT     "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER  "Sun, 06 Nov 1994 08:49:38 GMT"

#define PASS      PRECONDITION_PASS
#define UNCHANGED PRECONDITION_NOT_MODIFIED
#define FAILED    PRECONDITION_FAILED

static enum precondition_outcome check(struct preconditions fields, bool read)
{
    return precondition_check(&fields, TAG, MOMENT, read);
}

static enum precondition_outcome if_match(const char *field)
{
    return check((struct preconditions){.if_match = field}, true);
}

static enum precondition_outcome if_none_match(const char *field)
{
    return check((struct preconditions){.if_none_match = field}, true);
}

static void no_precondition_passes(void **state)
{
    (void)state;
    assert_int_equal(check((struct preconditions){0}, true), PASS);
    assert_int_equal(check((struct preconditions){0}, false), PASS);
}

static void if_match_compares_strongly(void **state)
{
    (void)state;
    assert_int_equal(if_match(TAG), PASS);
    assert_int_equal(if_match("*"), PASS);
    assert_int_equal(if_match(" * "), PASS);
    assert_int_equal(if_match("\"x\", \"abc\""), PASS);
    assert_int_equal(if_match("W/\"abc\""), FAILED);
    assert_int_equal(if_match("\"abcd\""), FAILED);
    assert_int_equal(if_match("\"ab\""), FAILED);
    assert_int_equal(if_match("abc"), FAILED);
    assert_int_equal(if_match(""), FAILED);
}

static void if_none_match_compares_weakly(void **state)
{
    (void)state;
    assert_int_equal(if_none_match(TAG), UNCHANGED);
    assert_int_equal(if_none_match("W/\"abc\""), UNCHANGED);
    assert_int_equal(if_none_match("*"), UNCHANGED);
    assert_int_equal(if_none_match("\"x\",W/\"y\" ,\t\"abc\""), UNCHANGED);
    assert_int_equal(if_none_match("\"x\", \"y\""), PASS);
    assert_int_equal(check((struct preconditions){.if_none_match = TAG}, false), FAILED);
    assert_int_equal(check((struct preconditions){.if_none_match = "*"}, false), FAILED);
}

static void commas_inside_quotes_belong_to_the_tag(void **state)
{
    struct preconditions fields = {.if_none_match = "\"a\", \"b,c\", \"d\""};

    (void)state;
    assert_int_equal(precondition_check(&fields, "\"b,c\"", 0, true), UNCHANGED);
    assert_int_equal(precondition_check(&fields, "\"c\"", 0, true), PASS);
    assert_int_equal(precondition_check(&fields, "\"d\"", 0, true), UNCHANGED);
}

static void malformed_tags_match_nothing_and_hide_nothing(void **state)
{
    (void)state;
    assert_int_equal(if_none_match("\"abc"), PASS);
    assert_int_equal(if_none_match("abc\""), PASS);
    assert_int_equal(if_none_match("w/\"abc\""), PASS);
    assert_int_equal(if_none_match("W/abc"), PASS);
    assert_int_equal(if_none_match("\"abc\"x"), PASS);
    assert_int_equal(if_none_match("*x"), PASS);
    assert_int_equal(if_none_match("*, \"x\""), PASS);
    assert_int_equal(if_none_match("junk, \"abc\""), UNCHANGED);
    assert_int_equal(if_none_match(",, \"abc\""), UNCHANGED);
}

static void only_lists_of_tags_are_valid(void **state)
{
    (void)state;
    assert_true(tag_list_is_valid(" * "));
    assert_true(tag_list_is_valid("\"a\""));
    assert_true(tag_list_is_valid(", \"a,b\" , W/\"c\","));
    assert_false(tag_list_is_valid(""));
    assert_false(tag_list_is_valid(" , "));
    assert_false(tag_list_is_valid("\"a\", *"));
    assert_false(tag_list_is_valid("*, \"a\""));
    assert_false(tag_list_is_valid("\"a\" \"b\""));
    assert_false(tag_list_is_valid("\"a"));
    assert_false(tag_list_is_valid("a"));
}

static void without_a_tag_nothing_matches(void **state)
{
    struct preconditions replace = {.if_match = "*"};
    struct preconditions create = {.if_none_match = "*"};

    (void)state;
    assert_int_equal(precondition_check(&replace, NULL, 0, false), FAILED);
    assert_int_equal(precondition_check(&create, NULL, 0, false), PASS);
}

static void dates_compare_by_the_second(void **state)
{
    (void)state;
    assert_int_equal(check((struct preconditions){.if_modified_since = AT}, true), UNCHANGED);
    assert_int_equal(check((struct preconditions){.if_modified_since = AFTER}, true), UNCHANGED);
    assert_int_equal(check((struct preconditions){.if_modified_since = BEFORE}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_modified_since = AT}, false), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = AT}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = AFTER}, false), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = BEFORE}, true), FAILED);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = BEFORE}, false), FAILED);
}

static void malformed_dates_are_ignored(void **state)
{
    struct preconditions unknown = {.if_modified_since = AT};

    (void)state;
    assert_int_equal(check((struct preconditions){.if_modified_since = "yesterday"}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_modified_since = AT ", " AT}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = "0"}, true), PASS);
    assert_int_equal(precondition_check(&unknown, TAG, 0, true), PASS);
}

static void tags_take_precedence_over_dates(void **state)
{
    (void)state;
    assert_int_equal(
        check((struct preconditions){.if_match = TAG, .if_unmodified_since = BEFORE}, true), PASS);
    assert_int_equal(
        check((struct preconditions){.if_none_match = "\"x\"", .if_modified_since = AT}, true),
        PASS);
    assert_int_equal(
        check((struct preconditions){.if_none_match = TAG, .if_modified_since = BEFORE}, true),
        UNCHANGED);
    assert_int_equal(check((struct preconditions){.if_match = "\"x\"", .if_none_match = TAG}, true),
                     FAILED);
    assert_int_equal(check((struct preconditions){.if_match = TAG, .if_none_match = TAG}, true),
                     UNCHANGED);
    assert_int_equal(
        check((struct preconditions){.if_unmodified_since = AT, .if_modified_since = AT}, true),
        UNCHANGED);
}

static void if_range_needs_a_strong_match(void **state)
{
    (void)state;
    assert_true(if_range_holds(NULL, TAG, MOMENT, MOMENT + 60));
    assert_true(if_range_holds(TAG, TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("\"x\"", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("W/\"abc\"", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("\"abc\", \"abc\"", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("*", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds(TAG, NULL, MOMENT, MOMENT + 60));
}

static void if_range_takes_the_exact_date_once_it_is_strong(void **state)
{
    (void)state;
    assert_true(if_range_holds(AT, TAG, MOMENT, MOMENT + 1));
    assert_false(if_range_holds(AT, TAG, MOMENT, MOMENT));
    assert_false(if_range_holds(AFTER, TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds(BEFORE, TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds(AT, TAG, 0, MOMENT + 60));
    assert_false(if_range_holds("Thu, 01 Jan 1970 00:00:00 GMT", TAG, 0, MOMENT));
}

static void dates_are_read_in_three_forms(void **state)
{
    static const char *const forms[] = {AT, "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    time_t time;

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        time = 0;
        assert_true(http_date_parse(forms[i], &time));
        assert_true(time == MOMENT);
    }
    time = 0;
    assert_true(http_date_parse("Wed Nov 16 08:49:37 1994", &time));
    assert_true(time == MOMENT + 10 * 86400);
    assert_true(http_date_parse("Fri, 31 Dec 1999 23:59:60 GMT", &time));
    assert_true(time == 946684800);
    assert_true(http_date_parse("Thu, 29 Feb 2024 00:00:00 GMT", &time));
    assert_true(time == 1709164800);
}

static void malformed_dates_are_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Nov 1994 08:49:37 UTC",
                                        "sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, 6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 94 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:00:00 GMT",
                                        "Sun, 06 Nov 1994 08:60:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:61 GMT",
                                        "Sun, 00 Nov 1994 08:49:37 GMT",
                                        "Sun, 31 Nov 1994 08:49:37 GMT",
                                        "Thu, 29 Feb 2023 00:00:00 GMT",
                                        "Sun, 06 Foo 1994 08:49:37 GMT",
                                        AT " ",
                                        "1994-11-06T08:49:37Z",
                                        "784111777"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        time_t time = 7;

        assert_false(http_date_parse(texts[i], &time));
        assert_true(time == 7);
    }
}

static void dates_are_written_as_they_are_read(void **state)
{
    static const time_t times[] = {0, 1, MOMENT, 951782400, 1709164800, 4102444800, 253402300799};
    char text[30];

    (void)state;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        time_t time = 0;

        http_date_format(times[i], text);
        assert_int_equal(strlen(text), 29);
        assert_true(http_date_parse(text, &time));
        assert_true(time == times[i]);
    }
    http_date_format(MOMENT, text);
    assert_string_equal(text, AT);
}

static void times_beyond_four_digits_of_year_are_clamped(void **state)
{
    char text[30];

    (void)state;
    http_date_format((time_t)INT64_MAX, text);
    assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    http_date_format((time_t)INT64_MIN, text);
    assert_string_equal(text, "Sat, 01 Jan 0000 00:00:00 GMT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_precondition_passes),
        cmocka_unit_test(if_match_compares_strongly),
        cmocka_unit_test(if_none_match_compares_weakly),
        cmocka_unit_test(commas_inside_quotes_belong_to_the_tag),
        cmocka_unit_test(malformed_tags_match_nothing_and_hide_nothing),
        cmocka_unit_test(only_lists_of_tags_are_valid),
        cmocka_unit_test(without_a_tag_nothing_matches),
        cmocka_unit_test(dates_compare_by_the_second),
        cmocka_unit_test(malformed_dates_are_ignored),
        cmocka_unit_test(tags_take_precedence_over_dates),
        cmocka_unit_test(if_range_needs_a_strong_match),
        cmocka_unit_test(if_range_takes_the_exact_date_once_it_is_strong),
        cmocka_unit_test(dates_are_read_in_three_forms),
        cmocka_unit_test(malformed_dates_are_refused),
        cmocka_unit_test(dates_are_written_as_they_are_read),
        cmocka_unit_test(times_beyond_four_digits_of_year_are_clamped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
