/* By which address a client reached the server: its own fields, or those of a trusted proxy. */
#include "tests.h"

#include "access/access.h"
#include "http/exchange/base_url.h"
#include "http/exchange/client.h"
#include "http/exchange/request_state.h"

#define FIELDS 4

static struct config config;
static struct server server = {.config = &config};
static struct access with_proxies;

struct fields {
    const char *host; /* NULL: absent, as the others */
    const char *forwarded;
    const char *proto;
    const char *x_host;
};

static int load_proxies(void **state)
{
    (void)state;
    return proxies_load("10.0.0.0/8", &with_proxies.proxies) ? 0 : -1;
}

static int free_proxies(void **state)
{
    (void)state;
    proxies_free(&with_proxies.proxies);
    return 0;
}

static void clear(void)
{
    config_defaults(&config);
}

static void add(struct request *request, const char *name, const char *value)
{
    if (value != NULL)
        assert_true(
            request_add_header(request, (struct header_field){name, value, (uint32_t)strlen(name),
                                                              (uint32_t)strlen(value)}));
}

/* expected NULL: there is none. */
static void assert_url_of(const char *target, const char *peer, struct fields fields,
                          const char *expected)
{
    struct request *request = request_new(&server, NULL, target);
    struct address address;
    struct peer known;
    const char *url;

    assert_non_null(request);
    assert_true(address_parse(peer, strlen(peer), &address));
    peer_set(&known, &address);
    request_state(request)->peer = &known;
    request->access = &with_proxies;
    add(request, "Host", fields.host);
    add(request, "Forwarded", fields.forwarded);
    add(request, "X-Forwarded-Proto", fields.proto);
    add(request, "X-Forwarded-Host", fields.x_host);
    url = request_base_url(request);
    if (expected == NULL)
        assert_null(url);
    else
        assert_string_equal(url, expected);
    request_free(request);
}

static void assert_url(const char *peer, struct fields fields, const char *expected)
{
    assert_url_of("/v1/models", peer, fields, expected);
}

AROUND_ALL_TESTS(load_proxies, free_proxies)

TEST(the_host_of_a_request_is_taken_as_it_is)
{
    static const struct {
        const char *host;
        const char *url;
    } cases[] = {
        {"example.org", "http://example.org"},
        {"a.example:8080", "http://a.example:8080"},
        {"[::1]:80", "http://[::1]:80"},
        {"127.0.0.1 \t", "http://127.0.0.1"},
        {"a_b", "http://a_b"},
        {"", NULL},
        {"a b", NULL},
        {"a/b", NULL},
        {"a\"", NULL},
        {"a:b", NULL},
        {"u@a", NULL},
        {"\xc3\xa9", NULL},
        {NULL, NULL},
    };

    clear();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_url("192.0.2.1", (struct fields){.host = cases[i].host}, cases[i].url);
}

TEST(a_target_in_absolute_form_decides)
{
    const struct fields fields = {.host = "other"};

    clear();
    assert_url_of("http://example.org:81/v1/models", "192.0.2.1", fields, "http://example.org:81");
    /* What a client says there of the scheme says nothing about the connection. */
    assert_url_of("https://example.org/", "192.0.2.1", fields, "http://example.org");
}

TEST(the_servers_own_scheme_follows_its_certificate)
{
    clear();
    strcpy(config.tls.cert, "c.pem");
    assert_url("192.0.2.1", (struct fields){.host = "a"}, "https://a");
}

TEST(the_base_path_is_at_the_end)
{
    clear();
    strcpy(config.base_path, "/models");
    assert_url("192.0.2.1", (struct fields){.host = "a"}, "http://a/models");
}

TEST(a_trusted_proxy_states_scheme_and_host)
{
    static const struct {
        struct fields fields;
        const char *url;
    } cases[] = {
        {{"in", NULL, "https", NULL}, "https://in"},
        {{"in", NULL, NULL, "out.example"}, "http://out.example"},
        {{"in", NULL, "HTTPS", "out.example:8443"}, "https://out.example:8443"},
        {{"in", NULL, "http", "[2001:db8::1]"}, "http://[2001:db8::1]"},
        {{"in", NULL, "https", "evil.example, out.example "}, "https://out.example"},
        {{"in", NULL, "http, https", "evil.example,out.example"}, "https://out.example"},
        {{"in", NULL, "ftp", "a/b"}, "http://in"},
        {{"in", NULL, "https,", "out.example,"}, "http://in"},
        {{"in", NULL, "", ""}, "http://in"},
        {{NULL, NULL, NULL, "out.example"}, "http://out.example"},
        {{"in", "for=192.0.2.1;proto=https;host=\"out.example:8443\"", NULL, NULL},
         "https://out.example:8443"},
        {{"in", "host=evil.example, Proto=https;Host=out.example", NULL, NULL},
         "https://out.example"},
        {{"in", "host=evil.example;proto=https, for=192.0.2.1", NULL, NULL}, "http://in"},
        {{"in", "host=out.example;proto=https", "https", "out.example"}, "https://out.example"},
        {{"in", "host=out.example", "https", NULL}, "https://out.example"},
        {{"in", "proto=http;host=evil.example", "https", "out.example"}, "http://in"},
        {{"in", "host=\"out.example", "https", "out.example"}, "http://in"},
    };

    clear();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_url("10.1.2.3", cases[i].fields, cases[i].url);
}

TEST(others_may_say_what_they_like)
{
    clear();
    assert_url("192.0.2.1",
               (struct fields){"in", "proto=https;host=evil.example", "https", "evil.example"},
               "http://in");
}
