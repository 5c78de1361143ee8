/* Addresses that an upstream states: what is followed, and what is refused. */
#include "tests.h"

#include "upstream/address.h"

TEST(urls_are_read_strictly)
{
    static const struct {
        const char *url;
        const char *origin; /* NULL: refused */
        const char *target;
    } rows[] = {
        {"https://Hub.Example", "https://hub.example", "/"},
        {"HTTPS://hub.example:443/a?b=c#d", "https://hub.example", "/a?b=c"},
        {"https://hub.example?b", "https://hub.example", "/?b"},
        {"http://hub.example:80/%2e", "http://hub.example", "/%2e"},
        {"http://hub.example:8080/", "http://hub.example:8080", "/"},
        {"http://[::1]:7/x", "http://[::1]:7", "/x"},
        {"ftp://hub.example/", NULL, NULL},
        {"https://user@hub.example/", NULL, NULL},
        {"https://hub.example\\@other/", NULL, NULL},
        {"https:///a", NULL, NULL},
        {"https://hub.example/a b", NULL, NULL},
        {"https://hub.example/\xC3\xBC", NULL, NULL},
        {"https://hub.example:99999999/", NULL, NULL},
        {"", NULL, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct upstream_address address;
        const bool read = address_read(zt_text_from(rows[i].url), &address);

        if (read != (rows[i].origin != NULL))
            fail_msg("%s", rows[i].url);
        if (!read)
            continue;
        assert_string_equal(address.origin, rows[i].origin);
        assert_string_equal(address.target, rows[i].target);
    }
}

TEST(locations_are_absolute_or_paths)
{
    static const struct {
        const char *location;
        const char *origin; /* NULL: refused */
        const char *target;
    } rows[] = {
        {"/a/b?c", "https://hub.example", "/a/b?c"},
        {"https://cdn.example/a?X-Amz-Signature=1", "https://cdn.example", "/a?X-Amz-Signature=1"},
        {"http://169.254.169.254/x", "http://169.254.169.254", "/x"},
        {"//cdn.example/a", NULL, NULL},
        {"b", NULL, NULL},
        {"?c", NULL, NULL},
        {"file:///etc/passwd", NULL, NULL},
        {"", NULL, NULL},
        {"/a\x7F", NULL, NULL},
    };
    struct upstream_address from;

    assert_true(address_read(zt_text_from("https://hub.example/here"), &from));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct upstream_address address = from;
        const bool read = address_follow(&from, zt_text_from(rows[i].location), &address);

        if (read != (rows[i].origin != NULL))
            fail_msg("%s", rows[i].location);
        assert_string_equal(address.origin, read ? rows[i].origin : from.origin);
        assert_string_equal(address.target, read ? rows[i].target : from.target);
    }
}

TEST(address_without_room_is_refused)
{
    char url[REMOTE_LOCATION_SIZE + 20] = "https://h.example/";
    struct upstream_address address;

    memset(url + 18, 'a', REMOTE_LOCATION_SIZE - 1);
    assert_true(address_read((struct zt_text){url, 17 + REMOTE_LOCATION_SIZE - 1}, &address));
    assert_int_equal(strlen(address.target), REMOTE_LOCATION_SIZE - 1);
    assert_false(address_read((struct zt_text){url, 17 + REMOTE_LOCATION_SIZE}, &address));
}

TEST(hosts_are_judged_without_their_port)
{
    struct upstream_address address;

    assert_true(address_read(zt_text_from("http://[::1]:7/x"), &address));
    assert_int_equal(address_reach(&address), REACH_LOOPBACK);
    assert_true(address_read(zt_text_from("http://10.0.0.1:7/x"), &address));
    assert_int_equal(address_reach(&address), REACH_PRIVATE);
    assert_true(address_read(zt_text_from("https://hub.example:7/x"), &address));
    assert_int_equal(address_reach(&address), REACH_ANY);
}

TEST(next_page_is_found_among_links)
{
    static const struct {
        const char *link;
        enum address_link outcome;
        const char *url;
    } rows[] = {
        {"", ADDRESS_LINK_NONE, NULL},
        {"<http://h/a?b=1,2>; rel=\"next\"", ADDRESS_LINK_FOUND, "http://h/a?b=1,2"},
        {"</a>;rel=next", ADDRESS_LINK_FOUND, "/a"},
        {"</x>; rel=\"xet-auth\", </a>; title=\"a, b; rel=next\"; REL=\"prev NEXT\"",
         ADDRESS_LINK_FOUND, "/a"},
        {"</a>; rel=prev; rel=next", ADDRESS_LINK_NONE, NULL},
        {"</a>; title=\"\\\"; rel=next\"", ADDRESS_LINK_NONE, NULL},
        {"</a>; relx=next, </b>; rel=nextx", ADDRESS_LINK_NONE, NULL},
        {"</a>; rel=next, </b>; rel=next", ADDRESS_LINK_MALFORMED, NULL},
        {"/a; rel=next", ADDRESS_LINK_MALFORMED, NULL},
        {"</a; rel=next", ADDRESS_LINK_MALFORMED, NULL},
        {"</a>; rel=\"next", ADDRESS_LINK_MALFORMED, NULL},
        {"</a> rel=next", ADDRESS_LINK_MALFORMED, NULL},
        {"</a>; rel=", ADDRESS_LINK_MALFORMED, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct zt_text url;
        const enum address_link outcome = address_next(zt_text_from(rows[i].link), &url);

        if (outcome != rows[i].outcome)
            fail_msg("%s", rows[i].link);
        if (outcome == ADDRESS_LINK_FOUND)
            assert_true(zt_text_is(url, rows[i].url));
    }
}
