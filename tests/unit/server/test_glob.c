/* Globs over names of objects. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/glob.h"
#include "support.h"

static struct zt_text text(const char *string)
{
    return (struct zt_text){string, strlen(string)};
}

static bool matches(const char *glob, const char *name)
{
    assert_true(glob_is_valid(text(glob)));
    return glob_match(text(glob), text(name));
}

static void a_plain_glob_matches_itself_only(void **state)
{
    (void)state;
    assert_true(matches("layer.0", "layer.0"));
    assert_false(matches("layer.0", "layer.00"));
    assert_false(matches("layer.0", "layerx0"));
    assert_true(matches("", ""));
    assert_false(matches("", "a"));
}

static void a_star_matches_any_run_with_slashes(void **state)
{
    (void)state;
    assert_true(matches("*", ""));
    assert_true(matches("*", "a/b/c"));
    assert_true(matches("a*c", "a/b/c"));
    assert_true(matches("*.weight", "layer.weight.weight"));
    assert_true(matches("a*b*c", "a--b-b--c"));
    assert_true(matches("a**", "a"));
    assert_false(matches("a*b*c", "a--c-b"));
    assert_false(matches("*.weight", "layer.bias"));
}

static void a_question_mark_matches_one_character_not_byte(void **state)
{
    (void)state;
    assert_true(matches("a?c", "abc"));
    assert_true(matches("a?c", "a\xC3\xBC"
                               "c"));
    assert_true(matches("?", "\xF0\x9F\x98\x80"));
    assert_false(matches("a?c", "ac"));
    assert_false(matches("??", "\xC3\xBC"));
}

static void a_class_matches_its_characters(void **state)
{
    (void)state;
    assert_true(matches("[abc]", "b"));
    assert_true(matches("layer.[0-3].*", "layer.2.w"));
    assert_false(matches("layer.[0-3].*", "layer.4.w"));
    assert_true(matches("[!0-9]", "a"));
    assert_false(matches("[^0-9]", "5"));
    assert_true(matches("[]]", "]"));
    assert_true(matches("[a-]", "-"));
    assert_true(matches("[-a]", "-"));
    assert_true(matches("[[]x[]]", "[x]"));
    assert_true(matches("[\xC3\xA0-\xC3\xBF]", "\xC3\xBC"));
    assert_false(matches("[abc]", ""));
}

static void what_is_no_glob_is_refused(void **state)
{
    (void)state;
    char long_glob[GLOB_MAX + 2];
    memset(long_glob, 'a', sizeof long_glob - 1);
    long_glob[sizeof long_glob - 1] = '\0';
    assert_false(glob_is_valid(text("[abc")));
    assert_false(glob_is_valid(text("[")));
    assert_false(glob_is_valid(text("[]")));
    assert_false(glob_is_valid(text("[!]")));
    assert_false(glob_is_valid(text("a\xFF")));
    assert_false(glob_is_valid(text(long_glob)));
    assert_true(glob_is_valid(text(long_glob + 1)));
}

static void a_match_costs_no_more_than_glob_times_name(void **state)
{
    (void)state;
    static char name[20000];
    char many_stars[GLOB_MAX + 1];
    char long_run[GLOB_MAX + 1];
    for (size_t i = 0; i < GLOB_MAX; i += 2) {
        memcpy(many_stars + i, "*a", 2);
    }
    memset(long_run, 'a', GLOB_MAX);
    memset(name, 'a', sizeof name);
    long_run[0] = '*';
    long_run[GLOB_MAX - 1] = many_stars[GLOB_MAX - 1] = 'b';
    long_run[GLOB_MAX] = many_stars[GLOB_MAX] = '\0';
    clock_t begin = clock();
    assert_false(glob_match(text(many_stars), (struct zt_text){name, sizeof name}));
    assert_false(glob_match(text(long_run), (struct zt_text){name, sizeof name}));
    assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_glob_matches_itself_only),
        cmocka_unit_test(a_star_matches_any_run_with_slashes),
        cmocka_unit_test(a_question_mark_matches_one_character_not_byte),
        cmocka_unit_test(a_class_matches_its_characters),
        cmocka_unit_test(what_is_no_glob_is_refused),
        cmocka_unit_test(a_match_costs_no_more_than_glob_times_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
