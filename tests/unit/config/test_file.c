/* The configuration file: what loads, what is rejected, and the exact messages. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"

/* Every message begins with the path; tests compare what follows. */
static char path[64];

static int make_file(void **state)
{
    int descriptor;

    (void)state;
    snprintf(path, sizeof(path), "/tmp/ztserve-config-XXXXXX");
    descriptor = mkstemp(path);
    return descriptor < 0 ? -1 : close(descriptor);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static bool load_bytes(const void *bytes, size_t length, struct config *config,
                       struct config_message *message)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    config_defaults(config);
    return config_load_file(config, path, message);
}

static bool load(const char *text, struct config *config, struct config_message *message)
{
    return load_bytes(text, strlen(text), config, message);
}

static void assert_rejected(const char *text, const char *expected)
{
    struct config config, defaults;
    struct config_message message;

    config_defaults(&defaults);
    assert_false(load(text, &config, &message));
    assert_int_equal(strncmp(message.text, path, strlen(path)), 0);
    assert_string_equal(message.text + strlen(path) + 2, expected);
    assert_null(strchr(message.text, '\n'));
    assert_memory_equal(&config, &defaults, sizeof(config));
}

/* For documents of one line. */
static void assert_key_rejected(const char *text, const char *expected)
{
    char line[CONFIG_MESSAGE_SIZE];

    snprintf(line, sizeof(line), "line 1: %s", expected);
    assert_rejected(text, line);
}

TEST(the_line_of_a_key_is_named)
{
    assert_rejected("{\n\"upload\": {\"expire_s\": 5,\n\n\"max_bytes\": 0}}",
                    "line 4: upload.max_bytes: must be a whole number from 1 to "
                    "1152921504606846976");
    /* Neither the value, nor a key of the same name in another group, nor one in a value. */
    assert_rejected("{\"root\": \"drain_s\", \"state\": {\"dir\": \"a\\\"drain_s\\\":\"},\n"
                    " \"hosts\": [\"drain_s\"],\n \"drain_s\" \n: -1}",
                    "line 3: drain_s: must be a whole number from 0 to 86400");
    assert_rejected("{\"limits\": {\n\"max_bytes\": 1},\n\"upload\": {\"max_bytes\": 0}}",
                    "line 2: unknown key \"limits.max_bytes\"; did you mean "
                    "\"upload.max_bytes\"?");
    assert_rejected("{\n\"upload\":\n5}", "line 2: \"upload\" must be an object of keys");
    assert_rejected("{\n\"\\u0064rain_s\": -1}", "drain_s: must be a whole number from 0 to 86400");
}

TEST(nested_keys_are_set)
{
    struct config config;
    struct config_message message;

    assert_true(load(
        "{\"root\": \"/srv/m\", \"listen\": \"[::1]:0\", \"writable\": true, \"verify\": \"eager\","
        " \"upload\": {\"max_bytes\": 5, \"reserve_bytes\": 0}, \"log\": {\"level\": \"debug\"},"
        " \"limits\": {\"connections\": 12}, \"state\": {\"dir\": \"/var/s\"}}",
        &config, &message));
    assert_string_equal(config.root, "/srv/m");
    assert_string_equal(config.listen, "[::1]:0");
    assert_true(config.writable);
    assert_int_equal(config.verify, CONFIG_VERIFY_EAGER);
    assert_int_equal(config.upload.max_bytes, 5);
    assert_int_equal(config.upload.reserve_bytes, 0);
    assert_int_equal(config.log.level, CONFIG_LOG_DEBUG);
    assert_int_equal(config.limits.connections, 12);
    assert_string_equal(config.state.dir, "/var/s");
    assert_int_equal(config.drain_s, 30);
}

TEST(keys_not_in_the_file_keep_their_values)
{
    struct config config;
    struct config_message message;

    assert_true(load("{\"threads\": 5}", &config, &message));
    config.drain_s = 7;
    assert_true(config_load_file(&config, path, &message));
    assert_int_equal(config.threads, 5);
    assert_int_equal(config.drain_s, 7);
}

TEST(null_sets_the_default_of_nullable_keys)
{
    struct config config;
    struct config_message message;

    assert_true(load("{\"upload\": {\"reserve_bytes\": null}, \"root\": null}", &config, &message));
    assert_int_equal(config.upload.reserve_bytes, CONFIG_RESERVE_AUTOMATIC);
    assert_key_rejected("{\"threads\": null}", "threads: must be a whole number from 0 to 1024");
}

TEST(an_unknown_key_is_named_and_a_near_one_suggested)
{
    assert_key_rejected("{\"upload\": {\"max_byte\": 1}}",
                        "unknown key \"upload.max_byte\"; did you mean \"upload.max_bytes\"?");
    assert_key_rejected("{\"zebra\": 1}", "unknown key \"zebra\"");
    assert_key_rejected("{\"meta\": {\"cert\": \"x\"}}", "unknown key \"meta\"");
    assert_key_rejected(
        "{\"upload.max_bytes\": 1}",
        "unknown key \"upload.max_bytes\" at the top level; groups are nested objects");
    assert_rejected("{\"li\\nsten\": \"x\"}", "unknown key \"li?sten\"; did you mean \"listen\"?");
}

TEST(a_repeated_key_is_reported_by_name_line_and_column)
{
    assert_rejected("{\"listen\": \"a:1\", \"threads\": 1,\n \"listen\": \"b:1\"}",
                    "line 2, column 9: key \"listen\" is repeated");
    assert_rejected("{\"upload\": {\n\"max_bytes\": 1,\n\"max_bytes\": 2}}",
                    "line 3, column 11: key \"max_bytes\" is repeated");
    assert_rejected("{\"upload\": {}, \"log\": {}, \"upload\": {}}",
                    "line 1, column 34: key \"upload\" is repeated");
    assert_rejected(
        "{\"limits\": {\"connections_per_address\": 1, \"connections_per_address\": 2}}",
        "line 1, column 67: key \"connections_per_address\" is repeated");
    assert_rejected("{\"h\u00f6he\": 1, \"h\u00f6he\": 1}",
                    "line 1, column 18: key \"h\u00f6he\" is repeated");
    assert_rejected("{\"\": 1, \"\": 1}", "line 1, column 10: key \"\" is repeated");
}

TEST(a_value_of_another_type_is_rejected)
{
    assert_key_rejected("{\"threads\": \"4\"}", "threads: must be a whole number from 0 to 1024");
    assert_key_rejected("{\"threads\": 4.0}", "threads: must be a whole number from 0 to 1024");
    assert_key_rejected("{\"writable\": 1}", "writable: must be true or false");
    assert_key_rejected("{\"listen\": 8080}", "listen: must be a string");
    assert_key_rejected("{\"verify\": \"never\"}", "verify: must be lazy, eager or off");
    assert_key_rejected("{\"verify\": true}", "verify: must be lazy, eager or off");
    assert_key_rejected("{\"hosts\": \"a\"}",
                        "hosts: must be a list of words without spaces and commas");
    assert_key_rejected("{\"hosts\": [\"a\", 5]}",
                        "hosts: must be a list of words without spaces and commas");
    assert_key_rejected("{\"hosts\": [\"a,b\"]}",
                        "hosts: must be a list of words without spaces and commas");
    assert_key_rejected("{\"upload\": 5}", "\"upload\" must be an object of keys");
    assert_rejected("[]", "must be a JSON object of keys");
}

TEST(a_number_out_of_bounds_is_rejected)
{
    assert_key_rejected("{\"threads\": -1}", "threads: must be a whole number from 0 to 1024");
    assert_key_rejected("{\"threads\": 1025}", "threads: must be a whole number from 0 to 1024");
    assert_key_rejected("{\"upload\": {\"max_bytes\": 0}}",
                        "upload.max_bytes: must be a whole number from 1 to 1152921504606846976");
    assert_key_rejected("{\"limits\": {\"idle_timeout_s\": 0}}",
                        "limits.idle_timeout_s: must be a whole number from 1 to 86400");
}

TEST(a_bad_address_or_text_is_rejected)
{
    assert_key_rejected("{\"listen\": \"8080\"}", "listen: \"8080\" is not host:port");
    assert_key_rejected("{\"root\": \"\"}", "root: must not be empty");
}

TEST(invalid_json_is_reported_by_line_and_column)
{
    struct config config;
    struct config_message message;

    assert_rejected("{\n\"listen\": }",
                    "line 2, column 11: not valid JSON: unexpected token near '}'");
    assert_rejected("", "line 1, column 0: not valid JSON: '[' or '{' expected near end of file");
    assert_false(load("{} x", &config, &message));
    assert_false(load_bytes("{\"ro\0ot\": 1}", 12, &config, &message));
    assert_false(load("{\"threads\": 99999999999999999999}", &config, &message));
}

TEST(every_prefix_of_a_file_is_rejected_cleanly)
{
    static const char text[] =
        "{\"upload\": {\"max_bytes\": 5, \"max_bytes\": 6}, \"root\": \"\\u00e9\"}";
    struct config config;
    struct config_message message;

    for (size_t length = 0; length < sizeof(text); length++) {
        message.text[0] = '\0';
        assert_false(load_bytes(text, length, &config, &message));
        assert_true(message.text[0] != '\0');
    }
}

TEST(a_file_that_cannot_be_read_is_one_line)
{
    struct config config;
    struct config_message message;
    char *large = malloc((1 << 20) + 1);

    assert_non_null(large);
    config_defaults(&config);
    assert_false(config_load_file(&config, "/nonexistent/ztserve.json", &message));
    assert_string_equal(message.text, "/nonexistent/ztserve.json: No such file or directory");
    assert_false(config_load_file(&config, "/", &message));
    assert_string_equal(message.text, "/: is not a regular file");
    memset(large, ' ', (1 << 20) + 1);
    assert_false(load_bytes(large, (1 << 20) + 1, &config, &message));
    assert_non_null(strstr(message.text, ": is larger than 1 MiB"));
    free(large);
}

TEST(a_fifo_is_refused_without_waiting_for_a_writer)
{
    struct config config;
    struct config_message message;
    char fifo[sizeof(path) + 8];
    bool loaded;

    snprintf(fifo, sizeof(fifo), "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    config_defaults(&config);
    loaded = config_load_file(&config, fifo, &message);
    unlink(fifo);
    assert_false(loaded);
    assert_non_null(strstr(message.text, ".fifo: is not a regular file"));
}

TEST(what_is_printed_loads_as_the_same)
{
    struct config config, again;
    struct config_message message;
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    assert_non_null(stream);
    config_defaults(&config);
    config.threads = 3;
    config.log.level = CONFIG_LOG_ERROR;
    config.writable = true;
    config.upload.reserve_bytes = 77;
    snprintf(config.state.dir, sizeof(config.state.dir), "/var/lib/\"zt\"");
    snprintf(config.hosts, sizeof(config.hosts), "a.example,b.example");
    assert_true(config_print(&config, stream));
    fclose(stream);
    assert_true(load(text, &again, &message));
    assert_memory_equal(&again, &config, sizeof(config));
    free(text);
}

AROUND_ALL_TESTS(make_file, remove_file)
