/* Request targets: their forms, paths, percent-escapes and queries. */
#include "tests.h"

#include <string.h>

#include "http/fields/uri.h"

static void assert_path(const char *target, const char *expected)
{
    struct zt_text path;

    assert_int_equal(target_path(target, &path), TARGET_PATH);
    assert_true(zt_text_is(path, expected));
}

TEST(the_path_of_a_target_ends_at_the_query)
{
    assert_path("/a/b?c/d", "/a/b");
    assert_path("/?", "/");
    assert_path("/a%3Fb", "/a%3Fb");
}

TEST(an_absolute_target_has_the_path_after_its_authority)
{
    assert_path("http://host:80/a?b", "/a");
    assert_path("HTTPS://host/a/", "/a/");
    assert_path("http://host", "/");
    assert_path("http://h?x", "/");
}

TEST(an_absolute_target_states_the_host)
{
    static const char *const without[] = {"/a",        "*",        "http://",
                                          "http:///a", "//host/a", "ftp://host/"};
    static const struct {
        const char *target;
        const char *host;
    } with[] = {{"http://host/a", "host"},           {"HTTPS://host:80?b@c", "host:80"},
                {"http://[::1]:80/a@b", "[::1]:80"}, {"http://localhost@host/", "host"},
                {"http://a:b@c@host:1", "host:1"},   {"http://a@/", ""}};
    struct zt_text host;

    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
        assert_true(target_host(with[i].target, &host));
        assert_true(zt_text_is(host, with[i].host));
    }
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        assert_false(target_host(without[i], &host));
}

TEST(other_targets_are_not_paths)
{
    static const char *const targets[] = {"",  "a", "a/b", "http://", "http:///a", "ftp://host/a",
                                          "**"};
    struct zt_text path;

    assert_int_equal(target_path("*", &path), TARGET_ASTERISK);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        assert_int_equal(target_path(targets[i], &path), TARGET_INVALID);
}

TEST(empty_segments_are_found_inside_a_path)
{
    assert_false(path_has_empty_segment(zt_text_from("/")));
    assert_false(path_has_empty_segment(zt_text_from("/a/b/")));
    assert_true(path_has_empty_segment(zt_text_from("//")));
    assert_true(path_has_empty_segment(zt_text_from("/a//b")));
    assert_true(path_has_empty_segment(zt_text_from("/a//")));
    assert_false(path_has_empty_segment((struct zt_text){"/a//b", 3}));
}

TEST(a_base_path_is_removed_once)
{
    static const struct {
        const char *path;
        const char *below;
    } cases[] = {{"/m/a", "/a"},   {"/m", "/"},        {"/m/", "/"},        {"/m/m/a", "/m/a"},
                 {"/a/m", "/a/m"}, {"/mm/a", "/mm/a"}, {"/", "/"},          {"/%6D/a", "/%6D/a"},
                 {"/M/a", "/M/a"}, {"/m//a", "//a"},   {"/m%2Fa", "/m%2Fa"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(zt_text_is(path_below(zt_text_from(cases[i].path), "/m"), cases[i].below));
        assert_true(zt_text_is(path_below(zt_text_from(cases[i].path), ""), cases[i].path));
    }
}

TEST(encoded_slashes_are_found_in_any_case)
{
    assert_true(path_has_encoded_slash(zt_text_from("a%2Fb")));
    assert_true(path_has_encoded_slash(zt_text_from("%2f")));
    assert_false(path_has_encoded_slash(zt_text_from("a/b")));
    assert_false(path_has_encoded_slash(zt_text_from("%252F")));
    assert_false(path_has_encoded_slash((struct zt_text){"%2F", 2}));
}

TEST(escapes_are_decoded_once)
{
    char buffer[32];
    size_t length;

    assert_true(percent_decode(zt_text_from("a%2Fb%20%c3%A9%00+%2525"), buffer, &length));
    assert_int_equal(length, 11);
    assert_memory_equal(buffer, "a/b \xc3\xa9\0+%25", 11);
    assert_true(percent_decode(zt_text_from(""), buffer, &length));
    assert_int_equal(length, 0);
}

TEST(malformed_escapes_are_refused)
{
    static const char *const texts[] = {"%", "a%", "%2", "%zz", "%2g", "%g2", "%%41", "% 41"};
    char buffer[8];
    size_t length = 7;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(percent_decode(zt_text_from(texts[i]), buffer, &length));
    assert_int_equal(length, 7);
}

TEST(an_escape_is_not_read_past_the_end)
{
    char buffer[4];
    size_t length;

    assert_false(percent_decode((struct zt_text){"%41", 2}, buffer, &length));
    assert_true(percent_decode((struct zt_text){"%41", 3}, buffer, &length));
    assert_int_equal(length, 1);
    assert_int_equal(buffer[0], 'A');
}

static void assert_found(const char *target, const char *name, unsigned nth, const char *value)
{
    struct zt_text raw;

    assert_true(query_find(target, name, nth, &raw));
    assert_true(zt_text_is(raw, value));
}

TEST(parameters_are_found_by_name_and_number)
{
    static const char target[] = "/p?a=1&b=x%2F+y&a=2&c&=d&%61=3&e=&aa=4&f=g=h";
    struct zt_text raw;

    assert_found(target, "a", 0, "1");
    assert_found(target, "a", 1, "2");
    assert_found(target, "a", 2, "3");
    assert_false(query_find(target, "a", 3, &raw));
    assert_found(target, "aa", 0, "4");
    assert_found(target, "b", 0, "x%2F+y");
    assert_found(target, "c", 0, "");
    assert_found(target, "", 0, "d");
    assert_found(target, "e", 0, "");
    assert_found(target, "f", 0, "g=h");
    assert_false(query_find(target, "d", 0, &raw));
    assert_false(query_find(target, "g", 0, &raw));
}

TEST(names_with_malformed_escapes_are_no_name)
{
    struct zt_text raw;

    assert_false(query_find("/p?%6=1&%zz=2&a%=3", "a", 0, &raw));
    assert_false(query_find("/p?%6=1", "%6", 0, &raw));
    assert_false(query_find("/p?a%00=1", "a", 0, &raw));
}

TEST(a_target_without_query_has_no_parameters)
{
    struct zt_text raw;

    assert_false(query_find("/a=1", "a", 0, &raw));
    assert_false(query_find("/p", "", 0, &raw));
    assert_found("/p?", "", 0, "");
    assert_found("/p?&&", "", 2, "");
    assert_found("/p?a=1?b=2", "a", 0, "1?b=2");
}
