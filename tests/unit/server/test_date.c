/* Dates of HTTP and of RFC 3339: read strictly, written and read again. */
#include "tests.h"

#include "input/date.h"

#define MOMENT ((time_t)784111777)
#define AT     "Sun, 06 Nov 1994 08:49:37 GMT"

TEST(dates_are_read_in_three_forms)
{
    static const char *const forms[] = {AT, "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    time_t time;

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

TEST(malformed_dates_are_refused)
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

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        time_t time = 7;

        assert_false(http_date_parse(texts[i], &time));
        assert_true(time == 7);
    }
}

TEST(dates_are_written_as_they_are_read)
{
    static const time_t times[] = {0, 1, MOMENT, 951782400, 1709164800, 4102444800, 253402300799};
    char text[30];

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

TEST(times_beyond_four_digits_of_year_are_clamped)
{
    char text[30];

    http_date_format((time_t)INT64_MAX, text);
    assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    http_date_format((time_t)INT64_MIN, text);
    assert_string_equal(text, "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(iso_dates_are_read)
{
    static const char *const forms[] = {"1994-11-06T08:49:37Z",     "1994-11-06T08:49:37.999Z",
                                        "1994-11-06T08:49:37.Z",    "1994-11-06T10:19:37+01:30",
                                        "1994-11-06T10:19:37+0130", "1994-11-05T20:49:37.5-12:00"};
    time_t time;

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        time = 0;
        assert_true(iso_date_parse(forms[i], &time));
        assert_true(time == MOMENT);
    }
}

TEST(malformed_iso_dates_are_refused)
{
    static const char *const texts[] = {"",
                                        "1994-11-06",
                                        "1994-11-06T08:49Z",
                                        "1994-11-06T08:49:37",
                                        "1994-11-06 08:49:37Z",
                                        "1994-11-06t08:49:37z",
                                        "1994-13-06T08:49:37Z",
                                        "1994-00-06T08:49:37Z",
                                        "1994-02-30T08:49:37Z",
                                        "1994-11-00T08:49:37Z",
                                        "1994-11-06T24:00:00Z",
                                        "1994-11-06T08:60:37Z",
                                        "1994-11-06T08:49:61Z",
                                        "1994-11-6T08:49:37Z",
                                        "94-11-06T08:49:37Z",
                                        "+994-11-06T08:49:37Z",
                                        " 1994-11-06T08:49:37Z",
                                        "1994-11-06T08:49:37Z ",
                                        "1994-11-06T08:49:37ZZ",
                                        "1994-11-06T08:49:37+24:00",
                                        "1994-11-06T08:49:37+01:60",
                                        "1994-11-06T08:49:37+01",
                                        "1994-11-06T08:49:37,5Z",
                                        AT};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        time_t time = 7;

        if (iso_date_parse(texts[i], &time))
            fail_msg("%s", texts[i]);
        assert_true(time == 7);
    }
}

TEST(iso_dates_are_written)
{
    char text[ISO_DATE_SIZE];

    assert_true(iso_date_format(MOMENT, text));
    assert_string_equal(text, "1994-11-06T08:49:37");
    assert_true(iso_date_format(-1, text));
    assert_string_equal(text, "1969-12-31T23:59:59");
    assert_true(iso_date_format((time_t)253402300800, text));
    assert_string_equal(text, "10000-01-01T00:00:00");
    assert_false(iso_date_format((time_t)INT64_MAX, text));
}
