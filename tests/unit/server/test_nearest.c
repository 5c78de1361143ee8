/* What is suggested for a word that does not exist. */
#include <string.h>

#include "base/nearest.h"
#include "tests.h"

static const char *nearest_of(const char *text)
{
    static const char *const words[] = {"serve", "ls", "verify", "convert", "completion", "slice"};
    struct nearest nearest;

    nearest_begin(&nearest, text);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        nearest_offer(&nearest, words[i]);
    return nearest.word;
}

TEST(a_slip_of_the_keyboard_finds_its_word)
{
    assert_string_equal(nearest_of("verfy"), "verify");
    assert_string_equal(nearest_of("vreify"), "verify");
    assert_string_equal(nearest_of("covnert"), "convert");
    assert_string_equal(nearest_of("sevre"), "serve");
    assert_string_equal(nearest_of("l"), "ls");
    assert_string_equal(nearest_of("slices"), "slice");
}

TEST(the_beginning_of_a_word_finds_it)
{
    assert_string_equal(nearest_of("comp"), "completion");
    assert_string_equal(nearest_of("con"), "convert");
}

TEST(what_resembles_nothing_finds_nothing)
{
    static char long_text[200];

    memset(long_text, 'v', sizeof(long_text) - 1);
    assert_null(nearest_of("frobnicate"));
    assert_null(nearest_of("xy"));
    assert_null(nearest_of(""));
    assert_null(nearest_of(long_text));
}
