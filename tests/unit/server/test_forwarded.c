/* Forwarded and X-Forwarded-For: the rightmost address that is not a trusted proxy's. */
#include "tests.h"

#include "http/fields/forwarded.h"

/* Proxies of the tests are in 10.0.0.0/8. */
static bool is_trusted(const void *context, const struct address *address)
{
    struct network network;

    (void)context;
    assert_true(network_parse("10.0.0.0/8", 10, &network));
    return network_contains(&network, address);
}

static const struct trust trust = {is_trusted, NULL};

struct expected {
    const char *field;
    const char *client; /* NULL: nothing can be believed */
};

static void assert_client(const char *forwarded, const char *x_forwarded_for, const char *client)
{
    struct address address;
    char text[ADDRESS_TEXT_SIZE];
    bool found = forwarded_client(forwarded, x_forwarded_for, &trust, &address);

    assert_int_equal(found, client != NULL);
    if (client != NULL) {
        address_print(&address, text);
        assert_string_equal(text, client);
    }
}

TEST(the_rightmost_untrusted_address_is_the_client)
{
    static const struct expected cases[] = {
        {"192.0.2.1", "192.0.2.1"},
        {" 192.0.2.1 ", "192.0.2.1"},
        {"198.51.100.7, 192.0.2.1", "192.0.2.1"},
        {"192.0.2.1, 10.0.0.2,10.0.0.1", "192.0.2.1"},
        {"192.0.2.1\t,10.0.0.2", "192.0.2.1"},
        {"10.0.0.3, 10.0.0.2, 10.0.0.1", "10.0.0.3"},
        {"192.0.2.1:4711, 10.0.0.1:80", "192.0.2.1"},
        {"[2001:db8::1]:4711", "2001:db8::1"},
        {"2001:db8::1", "2001:db8::1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"nonsense, 192.0.2.1", "192.0.2.1"},
        {"192.0.2.1, unknown", NULL},
        {"192.0.2.1, unknown, 10.0.0.1", NULL},
        {"192.0.2.1,", NULL},
        {",192.0.2.1", "192.0.2.1"},
        {"unknown", NULL},
        {"unknown, 10.0.0.1", NULL},
        {"", NULL},
        {"[2001:db8::1", NULL},
        {"192.0.2.1:80:80", NULL},
        {"<script>", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_client(NULL, cases[i].field, cases[i].client);
    assert_client(NULL, NULL, NULL);
}

TEST(the_standard_field_says_the_same)
{
    static const struct expected cases[] = {
        {"for=192.0.2.1", "192.0.2.1"},
        {"For=192.0.2.1;proto=https;by=10.0.0.1", "192.0.2.1"},
        {"proto=https; for=\"[2001:db8::1]:4711\"", "2001:db8::1"},
        {"for=198.51.100.7, for=192.0.2.1, for=10.0.0.1", "192.0.2.1"},
        {"for=\"192.0.2.1:80\" , for=10.0.0.1 ;proto=http", "192.0.2.1"},
        {"for=10.0.0.2, for=10.0.0.1", "10.0.0.2"},
        {"host=\"a,for=198.51.100.7\";for=192.0.2.1", "192.0.2.1"},
        {"for=192.0.2.1, for=unknown", NULL},
        {"for=192.0.2.1, for=_hidden, for=10.0.0.1", NULL},
        {"for=192.0.2.1, proto=https", NULL},
        {"for=192.0.2.1, proto=https, for=10.0.0.1", NULL},
        {"for=192.0.2.1,", NULL},
        {"for=", NULL},
        {"for", NULL},
        {"for =192.0.2.1", NULL},
        {"for=\"192.0.2.1", NULL},
        {"for=\"192.0.2.1\\\"", NULL},
        {"for=192.0.2.1 x", NULL},
        {"for=192.0.2.1;", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_client(cases[i].field, NULL, cases[i].client);
}

TEST(both_fields_must_agree)
{
    assert_client("for=192.0.2.1", "192.0.2.1", "192.0.2.1");
    assert_client("for=192.0.2.1, for=10.0.0.1", "198.51.100.7, 192.0.2.1", "192.0.2.1");
    assert_client("for=198.51.100.7", "192.0.2.1", NULL);
    assert_client("nonsense", "192.0.2.1", NULL);
    assert_client("for=192.0.2.1", "nonsense", NULL);
}
