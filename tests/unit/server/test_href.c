/* Hrefs: percent-encoding of names and paths. */

#include "http/fields/uri.h"
#include "tests.h"

static struct zt_text text(const char *string)
{
    return (struct zt_text){string, strlen(string)};
}

TEST(a_segment_escapes_all_but_unreserved_characters)
{
    struct href href;

    href_init(&href);
    href_segment(&href, text("aZ09-._~"));
    assert_string_equal(href.text, "aZ09-._~");
    href_cut(&href, 0);
    href_segment(&href, text("a/b %?#\xC3\xBC\x7F"));
    assert_string_equal(href.text, "a%2Fb%20%25%3F%23%C3%BC%7F");
    href_cut(&href, 0);
    href_segment(&href, (struct zt_text){"a\0b", 3});
    assert_string_equal(href.text, "a%00b");
    href_free(&href);
}

TEST(a_name_of_dots_is_not_a_dot_segment)
{
    struct href href;

    href_init(&href);
    href_segment(&href, text(".."));
    href_plain(&href, "/");
    href_segment(&href, text("."));
    href_plain(&href, "/");
    href_segment(&href, text("..."));
    assert_string_equal(href.text, "%2E%2E/%2E/...");
    href_free(&href);
}

TEST(a_path_keeps_its_slashes)
{
    struct href href;

    href_init(&href);
    href_path(&href, text("a b/c+d.zt"));
    assert_string_equal(href.text, "a%20b/c%2Bd.zt");
    href_free(&href);
}

TEST(a_cut_href_continues_after_what_is_kept)
{
    struct href href;
    char name[3000];
    size_t length;

    href_init(&href);
    href_model(&href, text("org/model"));
    assert_string_equal(href.text, "/v1/models/org%2Fmodel");
    length = href.length;
    memset(name, '/', sizeof(name));
    href_segment(&href, (struct zt_text){name, sizeof(name)});
    assert_int_equal(href.length, length + 3 * sizeof(name));
    assert_int_equal(strlen(href.text), href.length);
    href_cut(&href, length);
    href_plain(&href, "/x");
    assert_string_equal(href.text, "/v1/models/org%2Fmodel/x");
    href_free(&href);
}
