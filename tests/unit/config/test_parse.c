/* The environment, arguments, addresses, and the rules between keys. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

struct warnings {
    int lines;
    char last[512];
};

static struct warnings *warnings;

static void warn(const char *line)
{
    warnings->lines++;
    snprintf(warnings->last, sizeof(warnings->last), "%s", line);
}

static bool load(char **environment, struct config *config, struct warnings *seen,
                 struct config_message *message)
{
    warnings = seen;
    memset(seen, 0, sizeof(*seen));
    config_defaults(config);
    return config_load_environment(config, environment, warn, message);
}

TEST(variables_set_keys_of_every_type)
{
    char listen[] = "ZTSERVE_LISTEN=localhost:9000";
    char upload[] = "ZTSERVE_UPLOAD_MAX_BYTES=4096";
    char dir[] = "ZTSERVE_STATE_DIR=/var/lib/zt=1";
    char writable[] = "ZTSERVE_WRITABLE=true";
    char level[] = "ZTSERVE_LOG_LEVEL=warn";
    char reserve[] = "ZTSERVE_UPLOAD_RESERVE_BYTES=-1";
    char other[] = "PATH=/bin";
    char *environment[] = {listen, other, upload, dir, writable, level, reserve, NULL};
    struct config config;
    struct config_message message;
    struct warnings seen;

    assert_true(load(environment, &config, &seen, &message));
    assert_string_equal(config.listen, "localhost:9000");
    assert_int_equal(config.upload.max_bytes, 4096);
    assert_string_equal(config.state.dir, "/var/lib/zt=1");
    assert_true(config.writable);
    assert_int_equal(config.log.level, CONFIG_LOG_WARN);
    assert_int_equal(config.upload.reserve_bytes, CONFIG_RESERVE_AUTOMATIC);
    assert_int_equal(seen.lines, 0);
}

TEST(an_unknown_variable_is_warned_about_and_ignored)
{
    char unknown[] = "ZTSERVE_LISTN=x";
    char nothing[] = "ZTSERVE_=x";
    char bare[] = "ZTSERVE_LISTEN";
    char *environment[] = {nothing, bare, unknown, NULL};
    struct config config, defaults;
    struct config_message message;
    struct warnings seen;

    config_defaults(&defaults);
    assert_true(load(environment, &config, &seen, &message));
    assert_int_equal(seen.lines, 3);
    assert_string_equal(seen.last,
                        "ZTSERVE_LISTN: unknown variable, ignored; did you mean ZTSERVE_LISTEN?");
    assert_memory_equal(&config, &defaults, sizeof(config));
    assert_true(config_load_environment(&config, environment, NULL, &message));
}

TEST(a_known_variable_without_a_value_is_not_suggested_for_itself)
{
    char bare[] = "ZTSERVE_UPLOAD_MAX_BYTES";
    char nearly[] = "ZTSERVE_UPLOAD_MAXBYTES=1";
    char *environment[] = {bare, NULL};
    char *misspelled[] = {nearly, NULL};
    struct config config;
    struct config_message message;
    struct warnings seen;

    config_defaults(&config);
    assert_true(load(environment, &config, &seen, &message));
    assert_string_equal(seen.last, "ZTSERVE_UPLOAD_MAX_BYTES: unknown variable, ignored");
    assert_true(load(misspelled, &config, &seen, &message));
    assert_string_equal(seen.last, "ZTSERVE_UPLOAD_MAXBYTES: unknown variable, ignored; did you "
                                   "mean ZTSERVE_UPLOAD_MAX_BYTES?");
}

TEST(the_token_of_the_clients_is_no_unknown_variable)
{
    char token[] = "ZTSERVE_TOKEN=secret";
    char longer[] = "ZTSERVE_TOKENS=secret";
    char *environment[] = {token, NULL};
    char *both[] = {token, longer, NULL};
    struct config config;
    struct config_message message;
    struct warnings seen;

    config_defaults(&config);
    assert_true(load(environment, &config, &seen, &message));
    assert_int_equal(seen.lines, 0);
    assert_true(load(both, &config, &seen, &message));
    assert_string_equal(seen.last, "ZTSERVE_TOKENS: unknown variable, ignored");
}

static void assert_variable_rejected(const char *entry, const char *expected)
{
    char threads[] = "ZTSERVE_DRAIN_S=1";
    char text[256];
    char *environment[] = {threads, text, NULL};
    struct config config, defaults;
    struct config_message message;
    struct warnings seen;

    snprintf(text, sizeof(text), "%s", entry);
    config_defaults(&defaults);
    assert_false(load(environment, &config, &seen, &message));
    assert_string_equal(message.text, expected);
    assert_memory_equal(&config, &defaults, sizeof(config));
}

TEST(a_variable_with_a_wrong_value_is_rejected)
{
    static const char number[] = "ZTSERVE_THREADS: must be a whole number from 0 to 1024";

    assert_variable_rejected("ZTSERVE_THREADS=", number);
    assert_variable_rejected("ZTSERVE_THREADS=four", number);
    assert_variable_rejected("ZTSERVE_THREADS= 4", number);
    assert_variable_rejected("ZTSERVE_THREADS=+4", number);
    assert_variable_rejected("ZTSERVE_THREADS=4k", number);
    assert_variable_rejected("ZTSERVE_THREADS=-1", number);
    assert_variable_rejected("ZTSERVE_THREADS=-", number);
    assert_variable_rejected("ZTSERVE_THREADS=99999999999999999999", number);
    assert_variable_rejected("ZTSERVE_WRITABLE=yes", "ZTSERVE_WRITABLE: must be true or false");
    assert_variable_rejected("ZTSERVE_LOG_FORMAT=xml", "ZTSERVE_LOG_FORMAT: must be text or json");
    assert_variable_rejected("ZTSERVE_ROOT=", "ZTSERVE_ROOT: must not be empty");
}

TEST(a_text_that_does_not_fit_is_rejected)
{
    char text[CONFIG_TEXT_SIZE + 1];
    struct config config;
    struct config_message message;

    memset(text, 'x', CONFIG_TEXT_SIZE);
    text[CONFIG_TEXT_SIZE] = '\0';
    config_defaults(&config);
    assert_false(config_set_argument(&config, "--root", text, &message));
    assert_string_equal(message.text, "--root: is longer than 4095 bytes");
    text[CONFIG_TEXT_SIZE - 1] = '\0';
    assert_true(config_set_argument(&config, "--root", text, &message));
}

TEST(arguments_set_their_keys)
{
    struct config config;
    struct config_message message;

    config_defaults(&config);
    assert_int_equal(config_argument_kind("--writable"), CONFIG_ARGUMENT_FLAG);
    assert_int_equal(config_argument_kind("--log-format"), CONFIG_ARGUMENT_VALUE);
    assert_int_equal(config_argument_kind("--log.format"), CONFIG_ARGUMENT_UNKNOWN);
    assert_true(config_set_argument(&config, "--writable", NULL, &message));
    assert_true(config_set_argument(&config, "--log-format", "json", &message));
    assert_true(config_set_argument(&config, "--threads", "2", &message));
    assert_true(config.writable);
    assert_int_equal(config.log.format, CONFIG_LOG_JSON);
    assert_int_equal(config.threads, 2);
}

TEST(a_later_source_overrides_only_what_it_names)
{
    char listen[] = "ZTSERVE_LISTEN=localhost:1";
    char threads[] = "ZTSERVE_THREADS=3";
    char *environment[] = {listen, threads, NULL};
    struct config config;
    struct config_message message;

    config_defaults(&config);
    config.drain_s = 5;
    config.threads = 9;
    assert_true(config_load_environment(&config, environment, NULL, &message));
    assert_true(config_set_argument(&config, "--listen", "localhost:2", &message));
    assert_string_equal(config.listen, "localhost:2");
    assert_int_equal(config.threads, 3);
    assert_int_equal(config.drain_s, 5);
}

TEST(a_wrong_argument_is_rejected_in_one_line)
{
    struct config config;
    struct config_message message;

    config_defaults(&config);
    assert_false(config_set_argument(&config, "--bogus", "1", &message));
    assert_string_equal(message.text, "--bogus: unknown argument");
    assert_false(config_set_argument(&config, "--writable", "true", &message));
    assert_string_equal(message.text, "--writable: takes no value");
    assert_false(config_set_argument(&config, "--listen", NULL, &message));
    assert_string_equal(message.text, "--listen: needs a value");
    assert_false(config_set_argument(&config, "--listen", "127.0.0.1:70000", &message));
    assert_string_equal(message.text,
                        "--listen: \"127.0.0.1:70000\" must end in a port from 0 to 65535");
}

TEST(addresses_are_split_into_host_and_port)
{
    static const struct {
        const char *text;
        const char *host;
        unsigned port;
        bool loopback;
    } good[] = {
        {"127.0.0.1:8080", "127.0.0.1", 8080, true},
        {"127.9.9.9:0", "127.9.9.9", 0, true},
        {"[::1]:65535", "::1", 65535, true},
        {"localhost:1", "localhost", 1, true},
        {"0.0.0.0:80", "0.0.0.0", 80, false},
        {"[::]:80", "::", 80, false},
        {"128.0.0.1:80", "128.0.0.1", 80, false},
        {"[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", 80, true},
        {"host.local:80", "host.local", 80, false},
        {"[fe80::1%eth0]:80", "fe80::1%eth0", 80, false},
        {"LocalHost:80", "LocalHost", 80, true},
        {"localhost.example:80", "localhost.example", 80, false},
    };
    struct config_listen listen;
    struct config_message message;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(config_listen_parse(good[i].text, &listen, &message));
        assert_string_equal(listen.host, good[i].host);
        assert_int_equal(listen.port, good[i].port);
        assert_int_equal(config_listen_is_loopback(&listen), good[i].loopback);
    }
}

TEST(what_is_not_an_address_is_rejected)
{
    static const char *bad[] = {
        "",
        "8080",
        "host",
        "host:",
        "host:-1",
        "host:65536",
        "host:8 0",
        ":8080",
        "host:0x50",
        "::1:8080",
        "[::1]",
        "[::1]8080",
        "[::1:8080",
        "[]:80",
        "[host]:1",
        "[1.2.3.4]:80",
        "127.0.0.300:1",
        "127.1:80",
        "ho st:80",
        "a:b:80",
        "-x:80",
        "ho/st:1",
        "http://x:80",
        "[fe80::1%]:80",
        "host:00000000080",
    };
    struct config_listen listen;
    struct config_message message;
    char longest[400];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&listen, 'x', sizeof(listen));
        if (config_listen_parse(bad[i], &listen, &message))
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(listen.port, 'x' * 257);
    }
    assert_false(config_listen_parse("::1:8080", &listen, &message));
    assert_string_equal(message.text, "\"::1:8080\" needs brackets around its IPv6 address");
    memset(longest, 'a', sizeof(longest));
    snprintf(longest + 300, 100, ":80");
    assert_false(config_listen_parse(longest, &listen, &message));
}

TEST(writable_is_rejected_off_loopback)
{
    struct config config;
    struct config_message message;

    config_defaults(&config);
    config.writable = true;
    assert_true(config_validate(&config, &message));
    snprintf(config.listen, sizeof(config.listen), "0.0.0.0:8080");
    assert_false(config_validate(&config, &message));
    assert_string_equal(message.text,
                        "writable is refused on 0.0.0.0:8080 without tokens: it is not a loopback "
                        "address, so any client could write; give --tokens FILE, or listen on "
                        "127.0.0.1 behind a proxy that authenticates");
    snprintf(config.auth.tokens, sizeof(config.auth.tokens), "tokens");
    assert_true(config_validate(&config, &message));
    config.auth.tokens[0] = '\0';
    config.writable = false;
    assert_true(config_validate(&config, &message));
}

TEST(the_port_may_come_from_a_variable)
{
    char listen[] = "ZTSERVE_LISTEN=[::]:$PORT";
    char port[] = "PORT=9000";
    char bad[] = "PORT=http";
    char *environment[] = {listen, port, NULL};
    struct config config;
    struct config_message message;

    config_defaults(&config);
    assert_true(config_load_environment(&config, environment, NULL, &message));
    assert_string_equal(config.listen, "[::]:9000");
    environment[1] = bad;
    assert_false(config_load_environment(&config, environment, NULL, &message));
    assert_string_equal(message.text, "listen, with the variable PORT: \"[::]:http\" must end in a "
                                      "port from 0 to 65535");
    environment[1] = NULL;
    assert_false(config_load_environment(&config, environment, NULL, &message));
    assert_string_equal(message.text, "listen: [::]:$PORT: the variable PORT is not set");
    assert_string_equal(config.listen, "[::]:9000");
    environment[0] = port;
    assert_true(config_load_environment(&config, environment, NULL, &message));
    assert_string_equal(config.listen, "[::]:9000");
}

static void assert_every_origin_rejected(struct config *config, const char *together)
{
    struct config_message message;
    char expected[256];

    snprintf(expected, sizeof(expected),
             "cors.origins: * is refused together with %s; list the origins of the pages that may "
             "use the API",
             together);
    snprintf(config->cors.origins, sizeof(config->cors.origins), "https://a.example,*");
    assert_false(config_validate(config, &message));
    assert_string_equal(message.text, expected);
    snprintf(config->cors.origins, sizeof(config->cors.origins), "https://a.example");
    assert_true(config_validate(config, &message));
}

TEST(every_origin_is_rejected_unless_everybody_may_only_read)
{
    struct config config;
    struct config_message message;

    config_defaults(&config);
    snprintf(config.cors.origins, sizeof(config.cors.origins), "https://a.example,*");
    assert_true(config_validate(&config, &message));
    config.writable = true;
    assert_every_origin_rejected(&config, "writable");
    snprintf(config.tls.cert, sizeof(config.tls.cert), "cert.pem");
    snprintf(config.tls.key, sizeof(config.tls.key), "key.pem");
    snprintf(config.tls.client_ca, sizeof(config.tls.client_ca), "ca.pem");
    assert_every_origin_rejected(&config, "tls.client_ca");
    snprintf(config.auth.tokens, sizeof(config.auth.tokens), "tokens");
    assert_every_origin_rejected(&config, "auth.tokens");
}

TEST(a_key_without_those_that_it_needs_is_rejected)
{
    struct config config;
    struct config_message message;

    config_defaults(&config);
    snprintf(config.tls.cert, sizeof(config.tls.cert), "cert.pem");
    assert_false(config_validate(&config, &message));
    assert_string_equal(message.text, "tls.cert is set without tls.key");
    snprintf(config.tls.key, sizeof(config.tls.key), "key.pem");
    assert_true(config_validate(&config, &message));
    snprintf(config.auth.jwks, sizeof(config.auth.jwks), "jwks.json");
    snprintf(config.auth.tokens, sizeof(config.auth.tokens), "tokens");
    snprintf(config.auth.issuer, sizeof(config.auth.issuer), "https://issuer.example");
    assert_false(config_validate(&config, &message));
    assert_string_equal(message.text, "auth.jwks needs auth.tokens, auth.issuer and auth.audience");
    snprintf(config.auth.audience, sizeof(config.auth.audience), "ztserve");
    assert_true(config_validate(&config, &message));
}

TEST(a_list_is_read_from_words_and_commas)
{
    char two[] = "ZTSERVE_HOSTS= a.example , b.example:80,";
    char none[] = "ZTSERVE_HOSTS=";
    char doubled[] = "ZTSERVE_HOSTS=a,,b";
    char *environment[] = {two, NULL};
    struct config config;
    struct config_message message;
    const char *position = config.hosts;
    size_t length;

    config_defaults(&config);
    assert_true(config_load_environment(&config, environment, NULL, &message));
    assert_string_equal(config.hosts, "a.example,b.example:80");
    assert_memory_equal(config_list_next(&position, &length), "a.example", 9);
    assert_int_equal(length, 9);
    assert_memory_equal(config_list_next(&position, &length), "b.example:80", 12);
    assert_int_equal(length, 12);
    assert_null(config_list_next(&position, &length));
    environment[0] = doubled;
    assert_false(config_load_environment(&config, environment, NULL, &message));
    assert_string_equal(message.text,
                        "ZTSERVE_HOSTS: must be a list of words without spaces and commas");
    assert_string_equal(config.hosts, "a.example,b.example:80");
    environment[0] = none;
    assert_true(config_load_environment(&config, environment, NULL, &message));
    assert_string_equal(config.hosts, "");
}

TEST(small_digest_pieces_are_rejected)
{
    struct config config;
    struct config_message message;

    config_defaults(&config);
    config.limits.digest_piece_bytes = 0;
    assert_true(config_validate(&config, &message));
    config.limits.digest_piece_bytes = CONFIG_DIGEST_PIECE_MIN;
    assert_true(config_validate(&config, &message));
    config.limits.digest_piece_bytes = CONFIG_DIGEST_PIECE_MIN - 1;
    assert_false(config_validate(&config, &message));
    assert_string_equal(message.text, "limits.digest_piece_bytes must be 0 or at least 65536");
}

TEST(versions_of_a_folder_need_one_server)
{
    struct config config;
    struct config_message message;

    config_defaults(&config);
    config.versions.keep = 10;
    assert_true(config_validate(&config, &message));
    config.shared = true;
    assert_false(config_validate(&config, &message));
    assert_non_null(strstr(message.text, "versions.keep cannot be used with shared"));
    config.shared = false;
    strcpy(config.root, "s3://bucket");
    assert_true(config_validate(&config, &message));
}
