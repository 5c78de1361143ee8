/* Texts: equality, prefixes and suffixes, order, hexadecimal digits. */
#include "support.h"

#include "base/hex.h"
#include "zt/text.h"

static const struct zt_text nothing = {NULL, 0};

static void texts_are_equal_by_length_and_bytes(void **state)
{
    struct zt_text with_nul = {"a\0b", 3};

    (void)state;
    assert_true(zt_text_equal(zt_text_from("abc"), zt_text_from("abc")));
    assert_false(zt_text_equal(zt_text_from("abc"), zt_text_from("abd")));
    assert_false(zt_text_equal(zt_text_from("abc"), zt_text_from("ab")));
    assert_true(zt_text_equal(nothing, zt_text_from("")));
    assert_false(zt_text_is(with_nul, "a"));
    assert_true(zt_text_is(nothing, ""));
    assert_true(zt_text_is(zt_text_from("dense"), "dense"));
}

static void prefixes_are_found_at_the_start_only(void **state)
{
    (void)state;
    assert_true(zt_text_starts_with(zt_text_from("model.layers"), zt_text_from("model.")));
    assert_true(zt_text_starts_with(zt_text_from("model"), nothing));
    assert_true(zt_text_starts_with(nothing, nothing));
    assert_false(zt_text_starts_with(zt_text_from("mod"), zt_text_from("model")));
    assert_false(zt_text_starts_with(zt_text_from("a.model"), zt_text_from("model")));
}

static void suffixes_are_found_at_the_end_only(void **state)
{
    (void)state;
    assert_true(zt_text_ends_with(zt_text_from("a.npy"), zt_text_from(".npy")));
    assert_true(zt_text_ends_with(zt_text_from("a"), nothing));
    assert_true(zt_text_ends_with(nothing, nothing));
    assert_false(zt_text_ends_with(zt_text_from("npy"), zt_text_from(".npy")));
    assert_false(zt_text_ends_with(zt_text_from(".npy.a"), zt_text_from(".npy")));
}

static void hexadecimal_digits_have_either_case_or_just_lower(void **state)
{
    static const char lower[] = "0123456789abcdef";
    uint8_t bytes[3];

    (void)state;
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
    assert_false(zt_hex_read_lower(zt_text_from("00f19x"), bytes, 3));
    assert_true(zt_hex_read_lower(nothing, bytes, 0));
}

static void order_is_by_unsigned_bytes_and_then_length(void **state)
{
    /* Each comes before the next. */
    static const struct zt_text ordered[] = {
        {NULL, 0}, {"\0", 1}, {"a", 1}, {"a\0", 2}, {"ab", 2}, {"b", 1}, {"\xC3\xA9", 2},
    };
    size_t count = sizeof(ordered) / sizeof(*ordered);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = zt_text_compare(ordered[i], ordered[j]);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_equal_by_length_and_bytes),
        cmocka_unit_test(prefixes_are_found_at_the_start_only),
        cmocka_unit_test(suffixes_are_found_at_the_end_only),
        cmocka_unit_test(hexadecimal_digits_have_either_case_or_just_lower),
        cmocka_unit_test(order_is_by_unsigned_bytes_and_then_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
