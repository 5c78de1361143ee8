/* Texts: equality, prefixes and suffixes, order, decimal and hexadecimal digits,
 * base64, percent escapes. */
#include "tests.h"

#include "base/base64.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/percent.h"
#include "zt/text.h"

static const struct zt_text nothing = {NULL, 0};

TEST(texts_are_equal_by_length_and_bytes)
{
    struct zt_text with_nul = {"a\0b", 3};

    assert_true(zt_text_equal(zt_text_from("abc"), zt_text_from("abc")));
    assert_false(zt_text_equal(zt_text_from("abc"), zt_text_from("abd")));
    assert_false(zt_text_equal(zt_text_from("abc"), zt_text_from("ab")));
    assert_true(zt_text_equal(nothing, zt_text_from("")));
    assert_false(zt_text_is(with_nul, "a"));
    assert_true(zt_text_is(nothing, ""));
    assert_true(zt_text_is(zt_text_from("dense"), "dense"));
}

TEST(prefixes_are_found_at_the_start_only)
{
    assert_true(zt_text_starts_with(zt_text_from("model.layers"), zt_text_from("model.")));
    assert_true(zt_text_starts_with(zt_text_from("model"), nothing));
    assert_true(zt_text_starts_with(nothing, nothing));
    assert_false(zt_text_starts_with(zt_text_from("mod"), zt_text_from("model")));
    assert_false(zt_text_starts_with(zt_text_from("a.model"), zt_text_from("model")));
}

TEST(suffixes_are_found_at_the_end_only)
{
    assert_true(zt_text_ends_with(zt_text_from("a.npy"), zt_text_from(".npy")));
    assert_true(zt_text_ends_with(zt_text_from("a"), nothing));
    assert_true(zt_text_ends_with(nothing, nothing));
    assert_false(zt_text_ends_with(zt_text_from("npy"), zt_text_from(".npy")));
    assert_false(zt_text_ends_with(zt_text_from(".npy.a"), zt_text_from(".npy")));
}

TEST(decimal_numbers_are_digits_alone)
{
    static const char *const wrong[] = {"",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1a",
                                        "0x1",
                                        "1.",
                                        "/",
                                        ":",
                                        "²",
                                        "18446744073709551616",
                                        "99999999999999999999999"};
    uint64_t number = 7;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(zt_decimal_read(zt_text_from(wrong[i]), UINT64_MAX, &number));
        assert_int_equal(number, 7);
    }
    assert_false(zt_decimal_read((struct zt_text){"1\0", 2}, UINT64_MAX, &number));
    assert_false(zt_decimal_read(zt_text_from("101"), 100, &number));
    assert_int_equal(number, 7);
    assert_true(zt_decimal_read(zt_text_from("100"), 100, &number) && number == 100);
    assert_true(zt_decimal_read(zt_text_from("000"), 0, &number) && number == 0);
    assert_true(zt_decimal_read(zt_text_from("0000000000000000000000012"), 12, &number) &&
                number == 12);
    assert_true(zt_decimal_read(zt_text_from("18446744073709551615"), UINT64_MAX, &number) &&
                number == UINT64_MAX);
}

TEST(decimal_numbers_may_have_a_minus)
{
    static const char *const wrong[] = {
        "", "-", "--1", "+1", "- 1", "9223372036854775808", "-9223372036854775809"};
    int64_t number = 7;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(zt_decimal_read_signed(zt_text_from(wrong[i]), &number));
    assert_int_equal(number, 7);
    assert_true(zt_decimal_read_signed(zt_text_from("-12"), &number) && number == -12);
    assert_true(zt_decimal_read_signed(zt_text_from("9223372036854775807"), &number) &&
                number == INT64_MAX);
    assert_true(zt_decimal_read_signed(zt_text_from("-9223372036854775808"), &number) &&
                number == INT64_MIN);
}

TEST(decimal_numbers_are_taken_from_the_front)
{
    struct zt_text text = zt_text_from("012-18446744073709551616,x");
    uint64_t number = 0;

    assert_int_equal(zt_decimal_length(text), 3);
    assert_true(zt_decimal_take(&text, &number) && number == 12);
    assert_int_equal(text.bytes[0], '-');
    assert_false(zt_decimal_take(&text, &number));
    text = (struct zt_text){text.bytes + 1, text.length - 1};
    assert_true(zt_decimal_take(&text, &number) && number == UINT64_MAX);
    assert_true(zt_text_is(text, ",x"));
    text.length = 0;
    assert_false(zt_decimal_take(&text, &number));
}

TEST(decimal_numbers_are_written)
{
    static const uint64_t numbers[] = {0, 9, 10, 12345, UINT64_MAX};
    static const char *const texts[] = {"0", "9", "10", "12345", "18446744073709551615"};
    char text[ZT_DECIMAL_SIZE + 1];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        *zt_decimal_write(text, numbers[i]) = '\0';
        assert_string_equal(text, texts[i]);
    }
}

TEST(hexadecimal_digits_have_either_case_or_just_lower)
{
    static const char lower[] = "0123456789abcdef";
    uint8_t bytes[3];

    for (int i = 0; i < 16; i++)
        assert_int_equal(zt_hex_value(lower[i]), i);
    assert_int_equal(zt_hex_value('A'), 10);
    assert_int_equal(zt_hex_value('F'), 15);
    for (const char *at = "/:@G`g \x10\x19\xB0"; *at != '\0'; at++)
        assert_int_equal(zt_hex_value(*at), -1);
    assert_true(zt_hex_read_lower(zt_text_from("00f19c"), bytes, 3));
    assert_memory_equal(bytes, "\x00\xf1\x9c", 3);
    assert_false(zt_hex_read_lower(zt_text_from("00F19c"), bytes, 3));
    assert_false(zt_hex_read_lower(zt_text_from("00f19"), bytes, 3));
    assert_false(zt_hex_read_lower(zt_text_from("00f19c0"), bytes, 3));
    for (const char *at = "AFgG/:@` \x80"; *at != '\0'; at++) {
        const char wrong[] = {'0', '0', 'f', '1', '9', *at, '\0'};

        assert_false(zt_hex_read_lower(zt_text_from(wrong), bytes, 3));
        assert_false(zt_hex_is_lower(zt_text_from(wrong), 6));
    }
    assert_memory_equal(bytes, "\x00\xf1\x9c", 3);
    assert_true(zt_hex_is_lower(zt_text_from("00f19c"), 6));
    assert_false(zt_hex_is_lower(zt_text_from("00f19c"), 7));
    assert_true(zt_hex_is_lower(nothing, 0));
    assert_true(zt_hex_read(zt_text_from("AbfF0a"), bytes, 3));
    assert_memory_equal(bytes, "\xab\xff\x0a", 3);
    assert_false(zt_hex_read(zt_text_from("Abf"), bytes, 1));
    assert_false(zt_hex_read(zt_text_from("Ag"), bytes, 1));
    assert_true(zt_hex_read_lower(nothing, bytes, 0));
}

TEST(hexadecimal_digits_are_written)
{
    char text[9];

    assert_ptr_equal(zt_hex_write(text, "\x00\x9a\xff", 3), text + 6);
    assert_string_equal(text, "009aff");
    assert_ptr_equal(zt_hex_put(text, "\xab", 1, ZT_HEX_UPPER), text + 2);
    assert_string_equal(text, "AB9aff");
    zt_hex_write(text, "", 0);
    assert_string_equal(text, "");
}

TEST(base64_is_written_and_read)
{
    static const struct {
        const char *bytes;
        const char *padded;
        const char *url;
    } cases[] = {{"", "", ""},
                 {"f", "Zg==", "Zg"},
                 {"fo", "Zm8=", "Zm8"},
                 {"foo", "Zm9v", "Zm9v"},
                 {"foob", "Zm9vYg==", "Zm9vYg"},
                 {"\xfb\xff\xbf", "+/+/", "-_-_"}};
    char text[ZT_BASE64_SIZE(4)];
    char bytes[4];
    size_t length;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t size = strlen(cases[i].bytes);

        assert_ptr_equal(zt_base64_write(text, cases[i].bytes, size, ZT_BASE64),
                         text + strlen(cases[i].padded));
        assert_string_equal(text, cases[i].padded);
        zt_base64_write(text, cases[i].bytes, size, ZT_BASE64_URL);
        assert_string_equal(text, cases[i].url);
        assert_true(
            zt_base64_read(zt_text_from(text), ZT_BASE64_URL, bytes, sizeof(bytes), &length));
        assert_int_equal(length, size);
        assert_memory_equal(bytes, cases[i].bytes, size);
        if (size > 0)
            assert_false(
                zt_base64_read(zt_text_from(text), ZT_BASE64_URL, bytes, size - 1, &length));
    }
}

TEST(base64_has_no_other_character)
{
    static const char *const wrong[] = {"Z",    "Zg=",  "Zg==", "Zm9vY", "Zm 9v",   "Zm9v\n",
                                        "Zm+/", "Zm9.", "Zh",   "Zm9",   "\xc3\xa9"};
    char bytes[8];
    size_t length = 0;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(
            zt_base64_read(zt_text_from(wrong[i]), ZT_BASE64_URL, bytes, sizeof(bytes), &length));
    assert_false(zt_base64_read(zt_text_from("Zm-_"), ZT_BASE64, bytes, sizeof(bytes), &length));
    /* Here unused bits are ignored. */
    assert_true(zt_base64_read(zt_text_from("Zh"), ZT_BASE64, bytes, sizeof(bytes), &length));
    assert_int_equal(length, 1);
    assert_int_equal(bytes[0], 'f');
}

TEST(percent_escapes_are_written_and_read)
{
    static const char *const wrong[] = {"", "%", "%4", "4%41", "%4g", "%g4", "%%41", "% 4"};
    char text[32];

    *zt_percent_write(text, zt_text_from("a/b~ %\xff"), true) = '\0';
    assert_string_equal(text, "a/b~%20%25%FF");
    *zt_percent_write(text, zt_text_from("a/b"), false) = '\0';
    assert_string_equal(text, "a%2Fb");
    assert_int_equal(zt_percent_value(zt_text_from("%2f")), '/');
    assert_int_equal(zt_percent_value(zt_text_from("%2Fx")), '/');
    assert_int_equal(zt_percent_value(zt_text_from("%00")), 0);
    assert_int_equal(zt_percent_value((struct zt_text){"%41", 2}), -1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(zt_percent_value(zt_text_from(wrong[i])), -1);
}

TEST(order_is_by_unsigned_bytes_and_then_length)
{
    /* Each comes before the next. */
    static const struct zt_text ordered[] = {
        {NULL, 0}, {"\0", 1}, {"a", 1}, {"a\0", 2}, {"ab", 2}, {"b", 1}, {"\xC3\xA9", 2},
    };
    size_t count = sizeof(ordered) / sizeof(*ordered);

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = zt_text_compare(ordered[i], ordered[j]);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}
