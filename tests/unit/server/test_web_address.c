/* URLs that people type, and where redirects lead. */
#include "tests.h"

#include <string.h>

#include "client/web_address.h"

static struct web_address read_url(const char *text)
{
    struct web_address address;

    assert_true(web_address_read(text, &address));
    return address;
}

TEST(a_url_is_taken_apart_and_made_plain)
{
    const struct web_address address = read_url("HTTPS://Host.Example:443/a b/\xC3\xA9?q=1#top");

    assert_string_equal(address.origin, "https://host.example");
    assert_string_equal(address.target, "/a%20b/%C3%A9?q=1");
    assert_true(web_address_is_tls(&address));
    assert_string_equal(read_url("http://h").target, "/");
    assert_string_equal(read_url("http://h?x").target, "/?x");
    assert_string_equal(read_url("http://[::1]:8080/x").origin, "http://[::1]:8080");
    assert_string_equal(read_url("http://h:80/").origin, "http://h");
}

TEST(an_address_with_a_port_lacks_only_the_scheme)
{
    static const char *const without[] = {"h:8080", "h:8080/x", "127.0.0.1:80?a", "[::1]:8080/x"};
    static const char *const others[] = {
        "", "h", "h/x:1", ":80", "h:", "h:port", "h:99999", "a b:1", "http://h:1", "/h:1"};

    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        assert_true(web_address_lacks_scheme(without[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (web_address_lacks_scheme(others[i]))
            fail_msg("%s", others[i]);
}

TEST(what_is_no_url_is_refused)
{
    static const char *const texts[] = {"",
                                        "h",
                                        "ftp://h/",
                                        "http://",
                                        "http:///x",
                                        "http://a:b/",
                                        "http://a:1:2/",
                                        "http://u@h/",
                                        "http://u:p@h/",
                                        "http://h:99999/",
                                        "http://[::1/",
                                        "http://h/\x01",
                                        "http://h\\x/",
                                        "http:/h"};
    struct web_address address;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(web_address_read(texts[i], &address));
}

TEST(long_urls_are_refused)
{
    char text[2 * WEB_TARGET_SIZE] = "http://h/";
    struct web_address address;

    memset(text + 9, 'x', WEB_TARGET_SIZE);
    text[9 + WEB_TARGET_SIZE] = '\0';
    assert_false(web_address_read(text, &address));
    memcpy(text, "http://xx", 9);
    assert_false(web_address_read(text, &address));
}

TEST(redirects_lead_where_rfc_3986_says)
{
    static const struct {
        const char *location;
        const char *origin;
        const char *target;
    } cases[] = {
        {"http://g/x", "http://g", "/x"},
        {"//g/x", "http://g", "/x"},
        {"/g", "http://a", "/g"},
        {"g", "http://a", "/b/c/g"},
        {"./g", "http://a", "/b/c/g"},
        {"../g", "http://a", "/b/g"},
        {"../../../g", "http://a", "/g"},
        {"?y", "http://a", "/b/c/d?y"},
        {"g?y=../z", "http://a", "/b/c/g?y=../z"},
        {"..", "http://a", "/b/"},
        {".", "http://a", "/b/c/"},
        {"g#s", "http://a", "/b/c/g"},
    };
    const struct web_address base = read_url("http://a/b/c/d?q");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct web_address address;

        assert_true(web_address_follow(&base, cases[i].location, &address));
        assert_string_equal(address.origin, cases[i].origin);
        assert_string_equal(address.target, cases[i].target);
    }
}

TEST(redirects_to_no_url_are_refused)
{
    static const char *const locations[] = {"",   "javascript:x", "ftp://h/", "http://u@h/",
                                            "//", "/\x01"};
    const struct web_address base = read_url("http://a/b/c/d?q");
    struct web_address address;

    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++)
        assert_false(web_address_follow(&base, locations[i], &address));
}

TEST(only_a_plain_name_is_a_file_name)
{
    static const char *const bad[] = {"http://h/",    "http://h/a/",    "http://h/..",
                                      "http://h/.",   "http://h/a%2Fb", "http://h/%00",
                                      "http://h/%1B", "http://h/%"};
    struct web_address address = read_url("http://h/a/m%20x.zt?b/c");
    char name[64];

    assert_true(web_address_file_name(&address, name, sizeof(name)));
    assert_string_equal(name, "m x.zt");
    assert_false(web_address_file_name(&address, name, 7));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        address = read_url(bad[i]);
        assert_false(web_address_file_name(&address, name, sizeof(name)));
    }
}
