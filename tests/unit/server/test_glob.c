/* Globs. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/glob.h"
#include "glob_oracle.h"
#include "sanitized.h"
#include "support.h"

static struct zt_text text(const char *string)
{
    return (struct zt_text){string, strlen(string)};
}

static bool any_matches(const struct zt_text *globs, size_t count, struct zt_text name)
{
    struct glob_set *set = glob_set_new(globs, count);
    bool matched;

    assert_non_null(set);
    matched = glob_set_matches(set, name);
    glob_set_free(set);
    return matched;
}

static bool matches(const char *glob, const char *name)
{
    const struct zt_text only = text(glob);

    assert_true(glob_is_valid(only));
    return any_matches(&only, 1, text(name));
}

static void a_plain_glob_matches_only_itself(void **state)
{
    (void)state;
    assert_true(matches("layer.0", "layer.0"));
    assert_false(matches("layer.0", "layer.00"));
    assert_false(matches("layer.0", "layerx0"));
    assert_true(matches("", ""));
    assert_false(matches("", "a"));
}

static void a_star_matches_any_run_slashes_included(void **state)
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

static void a_question_mark_matches_one_character_of_any_length(void **state)
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

static void what_is_not_a_glob_is_rejected(void **state)
{
    char long_glob[GLOB_MAX + 2];

    (void)state;
    memset(long_glob, 'a', sizeof(long_glob) - 1);
    long_glob[sizeof(long_glob) - 1] = '\0';
    assert_false(glob_is_valid(text("[abc")));
    assert_false(glob_is_valid(text("[")));
    assert_false(glob_is_valid(text("[]")));
    assert_false(glob_is_valid(text("[!]")));
    assert_false(glob_is_valid(text("a\xFF")));
    assert_false(glob_is_valid(text(long_glob)));
    assert_true(glob_is_valid(text(long_glob + 1)));
}

static void a_byte_that_is_not_utf8_counts_as_a_character(void **state)
{
    (void)state;
    assert_true(matches("?", "\xFF"));
    assert_true(matches("??", "\xC3\xC3"));
    assert_false(matches("?", "\xE2\x86"));
    assert_true(matches("[!a-z]*", "\xFF."));
    assert_false(matches("\xC3\xBF", "\xFF"));
}

static void a_set_matches_what_any_of_its_globs_matches(void **state)
{
    const struct zt_text globs[] = {text("ab"), text("c*"), text("*d"), text("e"), text("")};

    (void)state;
    assert_true(any_matches(globs, 5, text("ab")));
    assert_true(any_matches(globs, 5, text("cx")));
    assert_true(any_matches(globs, 5, text("xd")));
    assert_true(any_matches(globs, 5, text("e")));
    assert_true(any_matches(globs, 5, text("")));
    assert_false(any_matches(globs, 4, text("")));
    assert_false(any_matches(globs, 5, text("abc")));
    assert_false(any_matches(globs, 5, text("abe")));
    assert_false(any_matches(globs, 5, text("de")));
    assert_false(any_matches(globs, 0, text("")));
}

/* 62 to 66 and 254 to 258 elements: the glob ends before, at and after the end of a word and of a
 * block. */
static void a_glob_matches_across_words(void **state)
{
    char glob[300];
    char name[300];

    (void)state;
    for (size_t length = 1; length < sizeof(glob) - 2; length++) {
        const struct zt_text globs[] = {{glob, length}, {"b", 1}};

        memset(glob, 'a', length);
        memset(name, 'a', length + 2);
        assert_true(any_matches(globs, 2, (struct zt_text){name, length}));
        assert_false(any_matches(globs, 2, (struct zt_text){name, length - 1}));
        assert_false(any_matches(globs, 2, (struct zt_text){name, length + 1}));
        name[length] = 'b';
        assert_false(any_matches(globs, 2, (struct zt_text){name, length + 1}));
        assert_true(any_matches(globs, 2, text("b")));
    }
}

/* Made of few pieces, so that many texts match. */
static struct zt_text random_text(char *buffer, const char *const *pieces, size_t piece_count,
                                  size_t pieces_max)
{
    size_t length = 0;

    for (size_t left = (size_t)rand() % (pieces_max + 1); left > 0; left--) {
        const char *piece = pieces[(size_t)rand() % piece_count];

        memcpy(buffer + length, piece, strlen(piece));
        length += strlen(piece);
    }
    return (struct zt_text){buffer, length};
}

static void sets_of_any_size_agree_with_a_simple_matcher(void **state)
{
    static const char *const glob_pieces[] = {
        "*",
        "*",
        "?",
        "a",
        "b",
        "\xC3\xA9",
        "\xE2\x86\x92",
        "\xF0\x9F\x98\x80",
        "[ab]",
        "[!a]",
        "[-]",
        "[]]",
        "[\xC3\xA9]",
        "[z-a]",
        "-",
        "]",
        "[^\xC3\xA0-\xE2\x86\x92]",
        "[a-\xC3\xBC]",
        "[b\xC2\x80-\xF4\x8F\xBF\xBF]",
    };
    static const char *const name_pieces[] = {
        "a",    "b",    "c",       "-", "]", "\xC3\xA9", "\xE2\x86\x92", "\xF0\x9F\x98\x80",
        "\xFF", "\xC3", "\xC3\xBC"};
    static char buffers[40][256];
    struct zt_text globs[40];
    unsigned found = 0;

    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        size_t count = 1 + (size_t)rand() % (round % 4 == 0 ? 40 : 2);
        char buffer[256];
        struct zt_text name =
            random_text(buffer, name_pieces, sizeof(name_pieces) / sizeof(name_pieces[0]), 10);
        bool expected = false;

        for (size_t i = 0; i < count; i++) {
            globs[i] = random_text(buffers[i], glob_pieces,
                                   sizeof(glob_pieces) / sizeof(glob_pieces[0]), 12);
            assert_true(glob_is_valid(globs[i]));
            expected = expected || glob_oracle_matches(globs[i], name);
        }
        assert_int_equal(any_matches(globs, count, name), expected);
        found += expected;
    }
    assert_in_range(found, 2000, 18000);
}

static void a_set_beyond_its_bounds_is_not_made(void **state)
{
    static char letters[GLOB_MAX];
    struct zt_text globs[GLOB_SET_MAX + 1];
    struct glob_set *set;

    (void)state;
    memset(letters, 'a', sizeof(letters));
    for (size_t i = 0; i <= GLOB_SET_MAX; i++)
        globs[i] = (struct zt_text){letters, 1};
    assert_null(glob_set_new(globs, GLOB_SET_MAX + 1));
    for (size_t i = 0; i < GLOB_SET_BYTES_MAX / GLOB_MAX; i++)
        globs[i].length = GLOB_MAX;
    assert_null(glob_set_new(globs, GLOB_SET_BYTES_MAX / GLOB_MAX + 1));
    set = glob_set_new(globs, GLOB_SET_BYTES_MAX / GLOB_MAX);
    assert_non_null(set);
    glob_set_free(set);
}

/* A sanitizer's allocator does not count for mallinfo2. */
static bool allocations_are_counted(void)
{
#ifdef ZT_SANITIZED
    return false;
#else
    return true;
#endif
}

/* The most and the longest rows: half of the bytes are ASCII, the others distinct characters of
 * three bytes. */
static void the_memory_of_a_set_is_bounded(void **state)
{
    static char text_of_globs[GLOB_SET_BYTES_MAX];
    struct zt_text globs[GLOB_SET_BYTES_MAX / GLOB_MAX];
    struct mallinfo2 before;
    struct glob_set *set;
    struct mallinfo2 after;
    size_t taken;

    (void)state;
    if (!allocations_are_counted())
        skip();
    memset(text_of_globs, 'a', sizeof(text_of_globs));
    for (unsigned i = 0; i < GLOB_SET_BYTES_MAX / 6; i++) {
        char *at = text_of_globs + i / 170 * GLOB_MAX + i % 170 * 3;
        unsigned character = 0x800 + 2 * i;

        if (i / 170 == GLOB_SET_BYTES_MAX / GLOB_MAX)
            break;
        at[0] = (char)(0xE0 | character >> 12);
        at[1] = (char)(0x80 | (character >> 6 & 0x3F));
        at[2] = (char)(0x80 | (character & 0x3F));
    }
    for (size_t i = 0; i < GLOB_SET_BYTES_MAX / GLOB_MAX; i++) {
        globs[i] = (struct zt_text){text_of_globs + i * GLOB_MAX, GLOB_MAX};
        assert_true(glob_is_valid(globs[i]));
    }
    before = mallinfo2();
    set = glob_set_new(globs, GLOB_SET_BYTES_MAX / GLOB_MAX);
    after = mallinfo2();
    assert_non_null(set);
    taken = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    assert_in_range(taken, 1500000, 2500000);
    glob_set_free(set);
}

/* Matching one of these globs by backtracking takes its length times the name's; a set reads the
 * name once. */
static void hostile_globs_match_quickly(void **state)
{
    static char name[250000];
    static char run[GLOB_SET_BYTES_MAX / GLOB_SET_MAX];
    static char stars[GLOB_MAX];
    struct zt_text globs[GLOB_SET_MAX];
    clock_t begin;

    (void)state;
    memset(name, 'a', sizeof(name));
    memset(run, 'a', sizeof(run));
    run[0] = '*';
    run[sizeof(run) - 1] = 'b';
    for (size_t i = 0; i < GLOB_SET_MAX; i++)
        globs[i] = (struct zt_text){run, sizeof(run)};
    begin = clock();
    assert_false(any_matches(globs, GLOB_SET_MAX, (struct zt_text){name, sizeof(name)}));
    for (size_t i = 0; i < GLOB_MAX; i += 2)
        memcpy(stars + i, "*a", 2);
    stars[GLOB_MAX - 1] = 'b';
    for (size_t i = 0; i < GLOB_SET_BYTES_MAX / GLOB_MAX; i++)
        globs[i] = (struct zt_text){stars, GLOB_MAX};
    assert_false(
        any_matches(globs, GLOB_SET_BYTES_MAX / GLOB_MAX, (struct zt_text){name, sizeof(name)}));
    assert_true(clock() - begin < 4 * CLOCKS_PER_SEC);
}

static bool can_begin(const char *const *globs, size_t count, const char *beginning)
{
    struct zt_text texts[GLOB_SET_MAX];
    struct glob_set *set;
    bool can;

    for (size_t i = 0; i < count; i++)
        texts[i] = text(globs[i]);
    set = glob_set_new(texts, count);
    assert_non_null(set);
    can = glob_set_can_begin(set, text(beginning));
    glob_set_free(set);
    return can;
}

static void a_beginning_can_be_that_of_what_a_glob_matches(void **state)
{
    static const char *const globs[] = {"org/model", "team/*", "x-[ab]/?", "*"};
    char longer[80];
    const char *two[2] = {longer, "team/*"};

    (void)state;
    assert_true(can_begin(globs, 1, ""));
    assert_true(can_begin(globs, 1, "org/"));
    assert_true(can_begin(globs, 1, "org/model"));
    assert_false(can_begin(globs, 1, "org/model/"));
    assert_false(can_begin(globs, 1, "orc/"));
    assert_true(can_begin(globs + 1, 1, "te"));
    assert_true(can_begin(globs + 1, 1, "team/a/b/"));
    assert_false(can_begin(globs + 1, 1, "teams/"));
    assert_true(can_begin(globs + 2, 1, "x-b/"));
    assert_false(can_begin(globs + 2, 1, "x-c/"));
    assert_true(can_begin(globs + 3, 1, "anything/"));
    assert_false(can_begin(globs, 0, "a"));
    /* A set of more than one word. */
    memset(longer, 'q', sizeof(longer));
    longer[79] = '\0';
    assert_true(can_begin(two, 2, "team/x/"));
    assert_true(can_begin(two, 2, "qqq"));
    assert_false(can_begin(two, 2, "qqr"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_glob_matches_only_itself),
        cmocka_unit_test(a_star_matches_any_run_slashes_included),
        cmocka_unit_test(a_question_mark_matches_one_character_of_any_length),
        cmocka_unit_test(a_class_matches_its_characters),
        cmocka_unit_test(what_is_not_a_glob_is_rejected),
        cmocka_unit_test(a_byte_that_is_not_utf8_counts_as_a_character),
        cmocka_unit_test(a_set_matches_what_any_of_its_globs_matches),
        cmocka_unit_test(a_glob_matches_across_words),
        cmocka_unit_test(sets_of_any_size_agree_with_a_simple_matcher),
        cmocka_unit_test(a_set_beyond_its_bounds_is_not_made),
        cmocka_unit_test(the_memory_of_a_set_is_bounded),
        cmocka_unit_test(hostile_globs_match_quickly),
        cmocka_unit_test(a_beginning_can_be_that_of_what_a_glob_matches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
