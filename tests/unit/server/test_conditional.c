/* Preconditions: their order, and comparison of tags and dates. */
#include "tests.h"

#include "http/fields/conditional.h"

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

TEST(no_precondition_passes)
{
    assert_int_equal(check((struct preconditions){0}, true), PASS);
    assert_int_equal(check((struct preconditions){0}, false), PASS);
}

TEST(if_match_compares_strongly)
{
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

TEST(if_none_match_compares_weakly)
{
    assert_int_equal(if_none_match(TAG), UNCHANGED);
    assert_int_equal(if_none_match("W/\"abc\""), UNCHANGED);
    assert_int_equal(if_none_match("*"), UNCHANGED);
    assert_int_equal(if_none_match("\"x\",W/\"y\" ,\t\"abc\""), UNCHANGED);
    assert_int_equal(if_none_match("\"x\", \"y\""), PASS);
    assert_int_equal(check((struct preconditions){.if_none_match = TAG}, false), FAILED);
    assert_int_equal(check((struct preconditions){.if_none_match = "*"}, false), FAILED);
}

TEST(commas_inside_quotes_belong_to_the_tag)
{
    struct preconditions fields = {.if_none_match = "\"a\", \"b,c\", \"d\""};

    assert_int_equal(precondition_check(&fields, "\"b,c\"", 0, true), UNCHANGED);
    assert_int_equal(precondition_check(&fields, "\"c\"", 0, true), PASS);
    assert_int_equal(precondition_check(&fields, "\"d\"", 0, true), UNCHANGED);
}

TEST(malformed_tags_match_nothing_and_hide_nothing)
{
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

TEST(only_lists_of_tags_are_valid)
{
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

TEST(without_a_tag_nothing_matches)
{
    struct preconditions replace = {.if_match = "*"};
    struct preconditions create = {.if_none_match = "*"};

    assert_int_equal(precondition_check(&replace, NULL, 0, false), FAILED);
    assert_int_equal(precondition_check(&create, NULL, 0, false), PASS);
}

TEST(dates_compare_by_the_second)
{
    assert_int_equal(check((struct preconditions){.if_modified_since = AT}, true), UNCHANGED);
    assert_int_equal(check((struct preconditions){.if_modified_since = AFTER}, true), UNCHANGED);
    assert_int_equal(check((struct preconditions){.if_modified_since = BEFORE}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_modified_since = AT}, false), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = AT}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = AFTER}, false), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = BEFORE}, true), FAILED);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = BEFORE}, false), FAILED);
}

TEST(malformed_dates_are_ignored)
{
    struct preconditions unknown = {.if_modified_since = AT};

    assert_int_equal(check((struct preconditions){.if_modified_since = "yesterday"}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_modified_since = AT ", " AT}, true), PASS);
    assert_int_equal(check((struct preconditions){.if_unmodified_since = "0"}, true), PASS);
    assert_int_equal(precondition_check(&unknown, TAG, 0, true), PASS);
}

TEST(tags_take_precedence_over_dates)
{
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

TEST(if_range_needs_a_strong_match)
{
    assert_true(if_range_holds(NULL, TAG, MOMENT, MOMENT + 60));
    assert_true(if_range_holds(TAG, TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("\"x\"", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("W/\"abc\"", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("\"abc\", \"abc\"", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds("*", TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds(TAG, NULL, MOMENT, MOMENT + 60));
}

TEST(if_range_takes_the_exact_date_once_it_is_strong)
{
    assert_true(if_range_holds(AT, TAG, MOMENT, MOMENT + 1));
    assert_false(if_range_holds(AT, TAG, MOMENT, MOMENT));
    assert_false(if_range_holds(AFTER, TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds(BEFORE, TAG, MOMENT, MOMENT + 60));
    assert_false(if_range_holds(AT, TAG, 0, MOMENT + 60));
    assert_false(if_range_holds("Thu, 01 Jan 1970 00:00:00 GMT", TAG, 0, MOMENT));
}
