/* Texts: equality and order. */
#include "support.h"

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
        cmocka_unit_test(order_is_by_unsigned_bytes_and_then_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
