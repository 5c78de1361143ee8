/* Upstreams: from a file, arguments and variables, and after a reload. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/upstreams.h"

static struct config config;
static struct config_message message;
static char path[64];

static int make_file(void **state)
{
    int descriptor;

    (void)state;
    snprintf(path, sizeof(path), "/tmp/ztserve-upstreams-XXXXXX");
    descriptor = mkstemp(path);
    return descriptor < 0 ? -1 : close(descriptor);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static bool load(const char *upstreams)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_true(fprintf(file, "{\"upstreams\": %s}", upstreams) > 0);
    assert_int_equal(fclose(file), 0);
    config_defaults(&config);
    return config_load_file(&config, path, &message) && config_validate(&config, &message);
}

TEST(an_upstream_needs_only_a_url)
{
    assert_true(load("[{\"url\": \"https://Hub.Example:8443/api//\"}]"));
    assert_int_equal(config.upstream_count, 1);
    assert_string_equal(config.upstreams[0].name, "hub.example");
    assert_string_equal(config.upstreams[0].url, "https://Hub.Example:8443/api");
    assert_int_equal(config.upstreams[0].kind, CONFIG_UPSTREAM_HUB);
    assert_string_equal(config.upstreams[0].match, "");
    assert_int_equal(config.upstreams[0].revalidate_s, 300);
    assert_false(config.upstreams[0].offline);
}

TEST(a_bucket_is_known_by_its_url)
{
    assert_true(load("[{\"url\": \"s3://Models_1/a/b/\"}]"));
    assert_int_equal(config.upstreams[0].kind, CONFIG_UPSTREAM_S3);
    assert_string_equal(config.upstreams[0].url, "s3://Models_1/a/b");
    assert_string_equal(config.upstreams[0].name, "models_1");
    assert_false(load("[{\"url\": \"s3://A_B\"}], \"s3\": {\"path_style\": false}"));
    assert_non_null(strstr(message.text, "\"A_B\" cannot be part of a host name"));
}

TEST(every_key_of_an_upstream_is_read)
{
    assert_true(load("[{\"url\": \"http://10.0.0.1\"}, {\"name\": \"a\", \"kind\": \"ztserve\", "
                     "\"url\": \"http://[::1]:80\", \"match\": [\"acme/*\", \"b/c\"], "
                     "\"token_file\": \"/t\", \"keep\": 100000000, \"revalidate_s\": 5, "
                     "\"offline\": true, \"strict\": true, \"ca\": \"/c\", \"proxy\": "
                     "\"http://p:1\"}]"));
    assert_int_equal(config.upstream_count, 2);
    assert_string_equal(config.upstreams[1].name, "a");
    assert_int_equal(config.upstreams[1].kind, CONFIG_UPSTREAM_ZTSERVE);
    assert_string_equal(config.upstreams[1].match, "acme/*,b/c");
    assert_string_equal(config.upstreams[1].token_file, "/t");
    assert_int_equal(config.upstreams[1].keep, 100000000);
    assert_int_equal(config.upstreams[1].revalidate_s, 5);
    assert_true(config.upstreams[1].offline && config.upstreams[1].strict);
    assert_string_equal(config.upstreams[1].ca, "/c");
    assert_string_equal(config.upstreams[1].proxy, "http://p:1");
}

static const struct {
    const char *upstreams;
    const char *reason;
} faults[] = {
    {"{}", "upstreams: must be a list of objects"},
    {"[\"https://a\"]", "upstreams[0]: must be an object such as"},
    {"[{\"url\": \"https://a\", \"name\": \"repositories\"}]",
     "upstreams[0].name: \"repositories\" is taken"},
    {"[{}]", "upstreams[0]: url is missing"},
    {"[{\"url\": \"https://\"}]", "upstreams[0].url: \"https://\" is not an address such as"},
    {"[{\"url\": \"s3://\"}]", "upstreams[0].url: \"s3://\": a bucket's name has 3 to 63"},
    {"[{\"url\": \"https://a\", \"tokenfile\": \"x\"}]",
     "upstreams[0].tokenfile: unknown key; did you mean \"token_file\"?"},
    {"[{\"url\": \"https://a\", \"qqqqqq\": 1}]", "upstreams[0].qqqqqq: unknown key"},
    {"[{\"url\": \"https://a\", \"kind\": \"git\"}]",
     "upstreams[0].kind: must be hub, ztserve or s3"},
    {"[{\"url\": \"https://a\", \"keep\": \"1G\"}]", "upstreams[0].keep: must be a whole number"},
    {"[{\"url\": \"https://a\", \"keep\": 1}]", "upstreams[0].keep: must be 0 or at least"},
    {"[{\"url\": \"https://a\", \"offline\": 1}]", "upstreams[0].offline: must be true or false"},
    {"[{\"url\": \"huggingface.co\"}]", "must begin with https:// or http://"},
    {"[{\"url\": \"https://me:hidden@a\"}]", "must not contain a user or a password"},
    {"[{\"url\": \"https://a?token=hidden\"}]", "must not contain a query"},
    {"[{\"url\": \"https://a/../b\"}]", "has an empty part"},
    {"[{\"url\": \"https://a b\"}]", "contains a character"},
    {"[{\"url\": \"https://:80\"}]", "is not an address such as"},
    {"[{\"url\": \"https://a\"}, {\"url\": \"http://A:81\"}]",
     "upstreams[1]: another upstream is named \"a\"; give one of them a name"},
    {"[{\"url\": \"https://a\", \"kind\": \"s3\"}]",
     "upstreams[0].url: \"https://a\": the kind is s3"},
    {"[{\"url\": \"s3://ab\"}]", "upstreams[0].url: \"s3://ab\": a bucket's name has 3 to 63"},
    {"[{\"url\": \"s3://abc/../d\"}]", "the prefix has a part"},
    {"[{\"url\": \"s3://abc\", \"kind\": \"ztserve\"}]", "must begin with https:// or http://"},
    {"[{\"url\": \"s3://abc\", \"token_file\": \"/t\"}]",
     "upstreams[0].token_file: a bucket is read with the credentials of the S3 client"},
    {"[{\"url\": \"https://a\", \"name\": \"x/y\"}]", "must consist of letters"},
    {"[{\"url\": \"https://a\", \"name\": \"..\"}]", "must not begin with a dot"},
    {"[{\"url\": \"https://a\", \"proxy\": \"ftp://b\"}]", "upstreams[0].proxy: "},
    {"[{\"url\": \"https://1\"}, {\"url\": \"https://2\"}, {\"url\": \"https://3\"}, {\"url\": "
     "\"https://4\"}, {\"url\": \"https://5\"}, {\"url\": \"https://6\"}, {\"url\": "
     "\"https://7\"}, "
     "{\"url\": \"https://8\"}, {\"url\": \"https://9\"}]",
     "upstreams[8]: there can be at most 8 upstreams"},
};

TEST(a_faulty_upstream_is_refused_with_its_place)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        assert_false(load(faults[i].upstreams));
        if (strstr(message.text, faults[i].reason) == NULL)
            fail_msg("%s: %s", faults[i].upstreams, message.text);
        assert_non_null(strstr(message.text, "line 1: upstreams"));
        assert_null(strstr(message.text, "hidden"));
    }
}

TEST(arguments_and_variables_add_upstreams_once)
{
    static char variable[] = "ZTSERVE_UPSTREAMS=http://b:1, http://c";
    char *environment[] = {variable, NULL};

    assert_true(load("[{\"url\": \"https://a\", \"strict\": true}]"));
    assert_true(config_load_environment(&config, environment, NULL, &message));
    assert_true(config_set_argument(&config, "--upstream", "https://a/", &message));
    assert_true(config_set_argument(&config, "--upstream", "https://d", &message));
    assert_int_equal(config.upstream_count, 4);
    assert_true(config.upstreams[0].strict);
    assert_string_equal(config.upstreams[1].url, "http://b:1");
    assert_string_equal(config.upstreams[3].name, "d");
    assert_false(config_set_argument(&config, "--upstream", "d", &message));
    assert_non_null(strstr(message.text, "--upstream: \"d\" must begin"));
}

TEST(a_printed_upstream_reads_as_the_same)
{
    static struct config again;
    FILE *file;

    assert_true(load("[{\"url\": \"https://a\", \"match\": [\"x*\"], \"token_file\": \"/t\"}, "
                     "{\"url\": \"https://b\", \"keep\": 100000000}]"));
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(config_print(&config, file));
    assert_int_equal(fclose(file), 0);
    config_defaults(&again);
    assert_true(config_load_file(&again, path, &message));
    assert_memory_equal(&again, &config, sizeof(config));
}

TEST(a_reload_changes_what_reloads_of_upstreams_with_the_same_name)
{
    static struct config in_force;
    static struct config effective;

    assert_true(load("[{\"url\": \"https://a\"}, {\"url\": \"https://b\"}]"));
    in_force = config;
    assert_true(
        load("[{\"url\": \"https://b\", \"offline\": true, \"token_file\": \"/t\", \"match\": "
             "[\"x\"]}, {\"url\": \"https://c\"}]"));
    effective = config;
    config_keep_fixed(&effective, &in_force);
    assert_int_equal(effective.upstream_count, 2);
    assert_string_equal(effective.upstreams[0].url, "https://a");
    assert_true(effective.upstreams[1].offline);
    assert_string_equal(effective.upstreams[1].token_file, "/t");
    assert_string_equal(effective.upstreams[1].match, "");
    assert_true(config_upstreams_differ(&in_force, &config));
    assert_false(config_upstreams_differ(&in_force, &effective));
    config_put_in_force(&in_force, &effective);
    assert_true(config_flag(&in_force.upstreams[1].offline));
    assert_false(config_flag(&in_force.upstreams[0].offline));
}

TEST(a_reload_does_not_give_a_token_for_a_new_url_to_the_old_one)
{
    static struct config in_force;
    static struct config effective;

    assert_true(load("[{\"name\": \"n\", \"url\": \"https://a\", \"token_file\": \"/a\"}]"));
    in_force = config;
    assert_true(load("[{\"name\": \"n\", \"url\": \"https://b\", \"token_file\": \"/b\"}]"));
    effective = config;
    config_keep_fixed(&effective, &in_force);
    assert_string_equal(effective.upstreams[0].url, "https://a");
    assert_string_equal(effective.upstreams[0].token_file, "/a");
}

TEST(a_token_over_http_is_exposed_unless_the_upstream_is_on_this_machine)
{
    static const struct {
        const char *url;
        bool exposed;
    } rows[] = {{"https://a", false},          {"http://a", true},
                {"http://127.0.0.1:9", false}, {"http://[::1]:9", false},
                {"http://localhost", false},   {"http://10.0.0.1/x", true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_upstream upstream = {.token_file = "/t"};

        snprintf(upstream.url, sizeof(upstream.url), "%s", rows[i].url);
        assert_int_equal(config_upstream_exposes_token(&upstream), rows[i].exposed);
        upstream.token_file[0] = '\0';
        assert_false(config_upstream_exposes_token(&upstream));
    }
}

AROUND_ALL_TESTS(make_file, remove_file)
