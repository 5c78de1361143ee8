/* Globs. */
#include <malloc.h>

#include "base/glob.h"
#include "glob_oracle.h"
#include "sanitized.h"
#include "tests.h"

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

TEST(globs_match_by_plain_characters_stars_question_marks_and_classes)
{
    static const struct {
        const char *glob;
        const char *name;
        bool matches;
    } cases[] = {
        {"layer.0", "layer.0", true},
        {"layer.0", "layer.00", false},
        {"layer.0", "layerx0", false},
        {"", "", true},
        {"", "a", false},
        /* A star stands for any run, slashes included. */
        {"*", "", true},
        {"*", "a/b/c", true},
        {"a*c", "a/b/c", true},
        {"*.weight", "layer.weight.weight", true},
        {"a*b*c", "a--b-b--c", true},
        {"a**", "a", true},
        {"a*b*c", "a--c-b", false},
        {"*.weight", "layer.bias", false},
        /* A question mark stands for one character, however long. */
        {"a?c", "abc", true},
        {"a?c",
         "a\xC3\xBC"
         "c",
         true},
        {"?", "\xF0\x9F\x98\x80", true},
        {"a?c", "ac", false},
        {"??", "\xC3\xBC", false},
        {"[abc]", "b", true},
        {"layer.[0-3].*", "layer.2.w", true},
        {"layer.[0-3].*", "layer.4.w", false},
        {"[!0-9]", "a", true},
        {"[^0-9]", "5", false},
        {"[]]", "]", true},
        {"[a-]", "-", true},
        {"[-a]", "-", true},
        {"[[]x[]]", "[x]", true},
        {"[\xC3\xA0-\xC3\xBF]", "\xC3\xBC", true},
        {"[abc]", "", false},
        /* A byte that is not UTF-8 counts as a character. */
        {"?", "\xFF", true},
        {"??", "\xC3\xC3", true},
        {"?", "\xE2\x86", false},
        {"[!a-z]*", "\xFF.", true},
        {"\xC3\xBF", "\xFF", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct zt_text only = text(cases[i].glob);

        assert_true(glob_is_valid(only));
        if (any_matches(&only, 1, text(cases[i].name)) != cases[i].matches)
            fail_msg("%s and %s", cases[i].glob, cases[i].name);
    }
}

TEST(what_is_not_a_glob_is_rejected)
{
    char long_glob[GLOB_MAX + 2];

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

TEST(a_set_matches_what_any_of_its_globs_matches)
{
    const struct zt_text globs[] = {text("ab"), text("c*"), text("*d"), text("e"), text("")};

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
TEST(a_glob_matches_across_words)
{
    char glob[300];
    char name[300];

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

TEST(sets_of_any_size_agree_with_a_simple_matcher)
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

TEST(a_set_beyond_its_bounds_is_not_made)
{
    static char letters[GLOB_MAX];
    struct zt_text globs[GLOB_SET_MAX + 1];
    struct glob_set *set;

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
TEST(the_memory_of_a_set_is_bounded)
{
    static char text_of_globs[GLOB_SET_BYTES_MAX];
    struct zt_text globs[GLOB_SET_BYTES_MAX / GLOB_MAX];
    struct mallinfo2 before;
    struct glob_set *set;
    struct mallinfo2 after;
    size_t taken;

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

/* Matching one of these globs by backtracking takes its length times the name's, and all of them
 * longer than a test may take; a set reads the name once. */
TEST(hostile_globs_end)
{
    static char name[250000];
    static char run[GLOB_SET_BYTES_MAX / GLOB_SET_MAX];
    static char stars[GLOB_MAX];
    struct zt_text globs[GLOB_SET_MAX];

    memset(name, 'a', sizeof(name));
    memset(run, 'a', sizeof(run));
    run[0] = '*';
    run[sizeof(run) - 1] = 'b';
    for (size_t i = 0; i < GLOB_SET_MAX; i++)
        globs[i] = (struct zt_text){run, sizeof(run)};
    assert_false(any_matches(globs, GLOB_SET_MAX, (struct zt_text){name, sizeof(name)}));
    for (size_t i = 0; i < GLOB_MAX; i += 2)
        memcpy(stars + i, "*a", 2);
    stars[GLOB_MAX - 1] = 'b';
    for (size_t i = 0; i < GLOB_SET_BYTES_MAX / GLOB_MAX; i++)
        globs[i] = (struct zt_text){stars, GLOB_MAX};
    assert_false(
        any_matches(globs, GLOB_SET_BYTES_MAX / GLOB_MAX, (struct zt_text){name, sizeof(name)}));
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

TEST(a_beginning_can_be_that_of_what_a_glob_matches)
{
    static const char *const globs[] = {"org/model", "team/*", "x-[ab]/?", "*"};
    char longer[80];
    const char *two[2] = {longer, "team/*"};

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

static bool matches_all_below(const char *const *globs, size_t count, const char *beginning)
{
    struct zt_text texts[GLOB_SET_MAX];
    struct glob_set *set;
    bool all;

    for (size_t i = 0; i < count; i++)
        texts[i] = text(globs[i]);
    set = glob_set_new(texts, count);
    assert_non_null(set);
    all = glob_set_matches_all_below(set, text(beginning));
    glob_set_free(set);
    return all;
}

TEST(only_a_final_star_matches_all_below_a_folder)
{
    static const struct {
        const char *glob;
        bool matches;
    } cases[] = {
        {"org/model/*", true},
        {"org/*", true},
        {"*", true},
        {"org/m*", true},
        {"*/model/*", true},
        {"o?g/[lm]odel/**", true},
        {"org/*/*", true},
        {"org/model/a*", false},
        {"org/model", false},
        {"org/model/", false},
        {"org/model/*a", false},
        {"org/model/*/*", false},
        {"org/model/?", false},
        {"org/model/[!a]*", false},
        {"org/models/*", false},
        {"org/model/[a-z]*", false},
        {"*.safetensors", false},
        {"", false},
        {"[!o]*", false},
        {"org/model/*[!s]", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (matches_all_below(&cases[i].glob, 1, "org/model/") != cases[i].matches)
            fail_msg("%s", cases[i].glob);
}

TEST(one_of_several_globs_must_match_all_below_a_folder)
{
    static const char *const globs[] = {"org/model/[a-m]*", "org/model/[!a-m]*", "team/*"};
    char longer[80];
    const char *two[2] = {longer, "team/*"};

    assert_false(matches_all_below(globs, 3, "org/model/"));
    assert_true(matches_all_below(globs, 3, "team/model/"));
    assert_false(matches_all_below(globs, 0, "team/model/"));
    /* A set of more than one word. */
    memset(longer, 'q', sizeof(longer));
    longer[79] = '\0';
    assert_true(matches_all_below(two, 2, "team/x/"));
    assert_false(matches_all_below(two, 2, longer));
    longer[78] = '*';
    assert_true(matches_all_below(two, 2, longer));
}
