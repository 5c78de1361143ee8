/* Normalisation form C of names. */
#include "tests.h"

#include <string.h>

#include "base/name.h"

static bool is_nfc(const char *name)
{
    bool composed = false;

    assert_ok(zt_name_is_nfc(zt_text_from(name), &composed));
    return composed;
}

TEST(composed_and_plain_names_are_nfc)
{
    assert_true(is_nfc(""));
    assert_true(is_nfc("model.layers.0"));
    assert_true(is_nfc("\xc3\xa9"));         /* e with acute */
    assert_true(is_nfc("\xea\xb0\x80"));     /* a Hangul syllable */
    assert_true(is_nfc("q\xcc\x81"));        /* q with acute has no composed form */
    assert_true(is_nfc("\xf0\x9f\x98\x80")); /* beyond 16 bits */
}

TEST(decomposed_names_are_not_nfc)
{
    assert_false(is_nfc("e\xcc\x81"));
    assert_false(is_nfc("\xe1\x84\x80\xe1\x85\xa1")); /* Hangul letters */
    assert_false(is_nfc("\xe2\x84\xab"));             /* the Angstrom sign is a letter in form C */
    assert_false(is_nfc("a\xcc\x81\xcc\xa3"));        /* marks out of order */
}
