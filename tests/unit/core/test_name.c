/* Normalisation form C of names. */
#include "support.h"

#include <string.h>

#include "base/name.h"

static bool is_nfc(const char *name)
{
    bool composed = false;

    assert_int_equal(zt_name_is_nfc((struct zt_text){name, strlen(name)}, &composed), ZT_OK);
    return composed;
}

static void composed_and_plain_names_are_nfc(void **state)
{
    (void)state;
    assert_true(is_nfc(""));
    assert_true(is_nfc("model.layers.0"));
    assert_true(is_nfc("\xc3\xa9"));         /* e with acute */
    assert_true(is_nfc("\xea\xb0\x80"));     /* a Hangul syllable */
    assert_true(is_nfc("q\xcc\x81"));        /* q with acute has no composed form */
    assert_true(is_nfc("\xf0\x9f\x98\x80")); /* beyond 16 bits */
}

static void decomposed_names_are_not_nfc(void **state)
{
    (void)state;
    assert_false(is_nfc("e\xcc\x81"));
    assert_false(is_nfc("\xe1\x84\x80\xe1\x85\xa1")); /* Hangul letters */
    assert_false(is_nfc("\xe2\x84\xab"));             /* the Angstrom sign is a letter in form C */
    assert_false(is_nfc("a\xcc\x81\xcc\xa3"));        /* marks out of order */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composed_and_plain_names_are_nfc),
        cmocka_unit_test(decomposed_names_are_not_nfc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
