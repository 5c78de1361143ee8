/* What cors.origins and hosts may contain. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

struct bad {
    const char *list;
    const char *message;
};

/* Whether a configuration with that list in hosts, or in cors.origins, is valid. */
static bool accepts(bool is_hosts, const char *list, struct config_message *message)
{
    struct config config;

    config_defaults(&config);
    snprintf(is_hosts ? config.hosts : config.cors.origins, CONFIG_TEXT_SIZE, "%s", list);
    return config_validate(&config, message);
}

static void assert_rejected(bool is_hosts, const struct bad *bad)
{
    struct config_message message;
    char expected[CONFIG_MESSAGE_SIZE];

    snprintf(expected, sizeof(expected), "%s: %s", is_hosts ? "hosts" : "cors.origins",
             bad->message);
    if (accepts(is_hosts, bad->list, &message))
        fail_msg("%s is accepted", bad->list);
    assert_string_equal(message.text, expected);
}

TEST(origins_as_browsers_send_them_are_accepted)
{
    static const char *const lists[] = {"",
                                        "*",
                                        "https://example.org",
                                        "http://localhost:3000,https://a-b.example:8443",
                                        "http://[::1]:8080",
                                        "http://127.0.0.1",
                                        "https://example.org:80,http://example.org:443"};
    struct config_message message;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (!accepts(false, lists[i], &message))
            fail_msg("%s: %s", lists[i], message.text);
}

TEST(other_origins_are_rejected_with_the_reason)
{
    static const struct bad bad[] = {
        {"example.org", "\"example.org\" must begin with https:// or http://"},
        {"null", "\"null\" must begin with https:// or http://"},
        {"https://", "\"https://\" has no host"},
        {"https://:80", "\"https://:80\" has no host"},
        {"https://a.example,https://b.example/",
         "\"https://b.example/\" must end after the host and port, without a slash"},
        {"https://*.example", "\"https://*.example\" has no host"},
        {"https://a.example:x", "\"https://a.example:x\" is not an origin as browsers send it, "
                                "such as https://example.org:8443"},
        {"https://a.example:", "\"https://a.example:\" is not an origin as browsers send it, such "
                               "as https://example.org:8443"},
        {"https://a.example:65536",
         "\"https://a.example:65536\" is not an origin as browsers send it, "
         "such as https://example.org:8443"},
        {"https://A.example", "\"https://A.example\" must be lower-case"},
        {"https://a.example:443", "\"https://a.example:443\" must omit the scheme's default port"},
        {"http://a.example:80", "\"http://a.example:80\" must omit the scheme's default port"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_rejected(false, &bad[i]);
}

TEST(names_and_addresses_are_hosts)
{
    static const char *const lists[] = {"", "localhost", "models.example.org,10.0.0.7:8080",
                                        "[::1]", "[fe80::1]:80"};
    struct config_message message;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (!accepts(true, lists[i], &message))
            fail_msg("%s: %s", lists[i], message.text);
}

TEST(what_is_no_host_is_rejected_with_the_reason)
{
    static const struct bad bad[] = {
        {"http://example.org", "\"http://example.org\" must be a name without a scheme"},
        {"example.org/x",
         "\"example.org/x\" is not a name or address, such as models.example.org or [::1]"},
        {"*", "\"*\" is not a name or address, such as models.example.org or [::1]"},
        {"a:b", "\"a:b\" is not a name or address, such as models.example.org or [::1]"},
        {"::1", "\"::1\" is not a name or address, such as models.example.org or [::1]"},
        {"[::1", "\"[::1\" is not a name or address, such as models.example.org or [::1]"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_rejected(true, &bad[i]);
}
