/* What cors.origins and hosts may contain. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

struct bad {
    const char *list;
    const char *message;
};

static void set(char *value, const char *list)
{
    snprintf(value, CONFIG_TEXT_SIZE, "%s", list);
}

static void origins_as_browsers_send_them_are_accepted(void **state)
{
    static const char *const lists[] = {"",
                                        "*",
                                        "https://example.org",
                                        "http://localhost:3000,https://a-b.example:8443",
                                        "http://[::1]:8080",
                                        "http://127.0.0.1",
                                        "https://example.org:80,http://example.org:443"};
    struct config config;
    struct config_message message;

    (void)state;
    config_defaults(&config);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        set(config.cors.origins, lists[i]);
        assert_true(config_validate(&config, &message));
    }
}

static void other_origins_are_rejected_with_the_reason(void **state)
{
    static const struct bad bad[] = {
        {"example.org", "\"example.org\" must begin with https:// or http://"},
        {"null", "\"null\" must begin with https:// or http://"},
        {"https://", "\"https://\" has no host"},
        {"https://:80", "\"https://:80\" has no host"},
        {"https://a.example,https://b.example/",
         "\"https://b.example/\" must end behind the host and the port, without a slash"},
        {"https://*.example", "\"https://*.example\" has no host"},
        {"https://a.example:x", "\"https://a.example:x\" is not an origin as browsers send it, "
                                "such as https://example.org:8443"},
        {"https://a.example:", "\"https://a.example:\" is not an origin as browsers send it, such "
                               "as https://example.org:8443"},
        {"https://A.example", "\"https://A.example\" must be in small letters"},
        {"https://a.example:443",
         "\"https://a.example:443\" must leave out the port, since it is the scheme's own"},
        {"http://a.example:80",
         "\"http://a.example:80\" must leave out the port, since it is the scheme's own"},
    };
    struct config config;
    struct config_message message;
    char expected[CONFIG_MESSAGE_SIZE];

    (void)state;
    config_defaults(&config);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        set(config.cors.origins, bad[i].list);
        assert_false(config_validate(&config, &message));
        snprintf(expected, sizeof(expected), "cors.origins: %s", bad[i].message);
        assert_string_equal(message.text, expected);
    }
}

static void names_and_addresses_are_hosts(void **state)
{
    static const char *const lists[] = {"", "localhost", "models.example.org,10.0.0.7:8080",
                                        "[::1]", "[fe80::1]:80"};
    struct config config;
    struct config_message message;

    (void)state;
    config_defaults(&config);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        set(config.hosts, lists[i]);
        assert_true(config_validate(&config, &message));
    }
}

static void what_is_no_host_is_rejected_with_the_reason(void **state)
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
    struct config config;
    struct config_message message;
    char expected[CONFIG_MESSAGE_SIZE];

    (void)state;
    config_defaults(&config);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        set(config.hosts, bad[i].list);
        assert_false(config_validate(&config, &message));
        snprintf(expected, sizeof(expected), "hosts: %s", bad[i].message);
        assert_string_equal(message.text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(origins_as_browsers_send_them_are_accepted),
        cmocka_unit_test(other_origins_are_rejected_with_the_reason),
        cmocka_unit_test(names_and_addresses_are_hosts),
        cmocka_unit_test(what_is_no_host_is_rejected_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
