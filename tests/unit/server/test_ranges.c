/* The Range field: its grammar, what is satisfiable, and merging. */
#include "tests.h"

#include "http/fields/ranges.h"

#include <stdio.h>
#include <string.h>

/* "ABSENT", "416", or the ranges as "first+length …". */
static void assert_ranges(const char *field, uint64_t length, const char *expected)
{
    struct range_set set;
    char text[4096] = "";

    switch (ranges_parse(field, length, &set)) {
    case RANGES_ABSENT:
        strcpy(text, "ABSENT");
        break;
    case RANGES_UNSATISFIABLE:
        strcpy(text, "416");
        break;
    case RANGES_SATISFIABLE:
        for (unsigned i = 0; i < set.count; i++) {
            size_t used = strlen(text);

            snprintf(text + used, sizeof(text) - used, "%s%llu+%llu", i > 0 ? " " : "",
                     (unsigned long long)set.ranges[i].first,
                     (unsigned long long)set.ranges[i].length);
        }
    }
    assert_string_equal(text, expected);
}

TEST(one_range_is_cut_to_the_length)
{
    assert_ranges("bytes=0-0", 100, "0+1");
    assert_ranges("bytes=0-99", 100, "0+100");
    assert_ranges("bytes=0-100", 100, "0+100");
    assert_ranges("bytes=99-", 100, "99+1");
    assert_ranges("bytes=10-", 100, "10+90");
    assert_ranges("bytes=-1", 100, "99+1");
    assert_ranges("bytes=-100", 100, "0+100");
    assert_ranges("bytes=-101", 100, "0+100");
}

TEST(the_unit_is_case_insensitive)
{
    assert_ranges("Bytes=0-1", 100, "0+2");
    assert_ranges("BYTES=0-1", 100, "0+2");
    assert_ranges("items=0-1", 100, "ABSENT");
    assert_ranges("bytes 0-1", 100, "ABSENT");
    assert_ranges("bytes =0-1", 100, "ABSENT");
    assert_ranges("byte=0-1", 100, "ABSENT");
}

TEST(malformed_fields_count_as_absent)
{
    static const char *const fields[] = {
        "",           "bytes",       "bytes=",      "bytes=,",       "bytes= , ",
        "bytes=-",    "bytes=a-b",   "bytes=1",     "bytes=2-1",     "bytes=1-2-3",
        "bytes=--1",  "bytes=0-1;",  "bytes=0 - 1", "bytes=0- 1",    "bytes=0-1 2-3",
        "bytes=+0-1", "bytes=0x0-1", "bytes=1.0-2", "bytes=0-1,a-b", "bytes=5-4,0-1",
        "bytes=0-1,-"};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_ranges(fields[i], 100, "ABSENT");
    assert_ranges(NULL, 100, "ABSENT");
}

TEST(ranges_outside_are_dropped_or_unsatisfiable)
{
    assert_ranges("bytes=100-", 100, "416");
    assert_ranges("bytes=100-200", 100, "416");
    assert_ranges("bytes=-0", 100, "416");
    assert_ranges("bytes=-0,200-300", 100, "416");
    assert_ranges("bytes=200-,0-4", 100, "0+5");
    assert_ranges("bytes=-0,-5", 100, "95+5");
}

TEST(an_empty_representation_satisfies_suffixes_only)
{
    assert_ranges("bytes=0-", 0, "416");
    assert_ranges("bytes=0-0", 0, "416");
    assert_ranges("bytes=-0", 0, "416");
    assert_ranges("bytes=-5", 0, "ABSENT");
}

TEST(numbers_of_any_length_saturate)
{
    assert_ranges("bytes=0-99999999999999999999999999", 100, "0+100");
    assert_ranges("bytes=99999999999999999999999999-", 100, "416");
    assert_ranges("bytes=-99999999999999999999999999", 100, "0+100");
    assert_ranges("bytes=0-18446744073709551615", UINT64_MAX, "0+18446744073709551615");
    assert_ranges("bytes=18446744073709551614-18446744073709551616", UINT64_MAX,
                  "18446744073709551614+1");
    assert_ranges("bytes=18446744073709551616-18446744073709551617", 100, "416");
    assert_ranges("bytes=00000000000000000000000001-2", 100, "1+2");
}

TEST(lists_may_hold_space_and_empty_elements)
{
    assert_ranges("bytes=0-1, 10-11", 100, "0+2 10+2");
    assert_ranges("bytes= 0-1 ,\t10-11 ", 100, "0+2 10+2");
    assert_ranges("bytes=,,0-1,,10-11,", 100, "0+2 10+2");
}

TEST(overlapping_and_adjacent_ranges_merge_in_order_asked)
{
    assert_ranges("bytes=0-4,5-9", 100, "0+10");
    assert_ranges("bytes=5-9,0-4", 100, "0+10");
    assert_ranges("bytes=0-4,6-9", 100, "0+5 6+4");
    assert_ranges("bytes=50-59,0-4,55-64", 100, "50+15 0+5");
    assert_ranges("bytes=50-59,0-4,-100", 100, "0+100");
    assert_ranges("bytes=90-99,0-9,20-29,10-19", 100, "90+10 0+30");
    assert_ranges("bytes=0-9,20-29,40-49,5-44", 100, "0+50");
    assert_ranges("bytes=7-7,7-7", 100, "7+1");
}

TEST(more_than_64_ranges_count_as_absent)
{
    char field[2048] = "bytes=";
    struct range_set set;

    for (unsigned i = 0; i < RANGES_MAX; i++)
        sprintf(field + strlen(field), "%u-%u,", i * 10, i * 10);
    assert_int_equal(ranges_parse(field, 1000, &set), RANGES_SATISFIABLE);
    assert_int_equal(set.count, RANGES_MAX);
    assert_true(set.ranges[63].first == 630 && set.ranges[63].length == 1);
    strcat(field, "1-1");
    assert_ranges(field, 1000, "ABSENT");
}

TEST(ranges_outside_count_towards_the_bound)
{
    char field[1024] = "bytes=";

    for (unsigned i = 0; i <= RANGES_MAX; i++)
        strcat(field, "9999-,");
    assert_ranges(field, 100, "ABSENT");
}
