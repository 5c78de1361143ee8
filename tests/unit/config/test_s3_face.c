/* The keys of the S3 API: what they may be, and how the API is turned off. */
#include "tests.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"

static const struct {
    const char *variable;
    const char *message; /* NULL: valid */
} rows[] = {
    {"ZTSERVE_S3_PATH=/a/b", NULL},
    {"ZTSERVE_S3_PATH=s3", "s3.path: \"s3\" must begin with a slash"},
    {"ZTSERVE_S3_PATH=/s3/", "s3.path: \"/s3/\" must not end in a slash or have an empty part"},
    {"ZTSERVE_S3_PATH=/files", "s3.path: \"/files\" begins like one of the server's paths"},
    {"ZTSERVE_S3_PATH=/metrics", "s3.path: \"/metrics\" begins like one of the server's paths"},
    {"ZTSERVE_S3_BUCKET=my-models", NULL},
    {"ZTSERVE_S3_BUCKET=a/b",
     "s3.bucket: \"a/b\": a bucket's name consists of letters, digits, dots, "
     "hyphens and underscores"},
    {"ZTSERVE_S3_BUCKET=ab", "s3.bucket: \"ab\": a bucket's name has 3 to 63 characters"},
    {"ZTSERVE_S3_LISTEN=0.0.0.0:9000", NULL},
};

TEST(path_and_bucket_must_be_usable)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *environment[] = {(char *)(uintptr_t)rows[i].variable, NULL};
        struct config_message message;
        struct config config;

        config_defaults(&config);
        assert_true(config_load_environment(&config, environment, NULL, &message));
        assert_int_equal(config_validate(&config, &message), rows[i].message == NULL);
        if (rows[i].message != NULL)
            assert_string_equal(message.text, rows[i].message);
    }
}

TEST(path_must_not_be_base_path_or_below_it)
{
    static const struct {
        const char *path;
        const char *base_path;
        bool is_valid;
    } pairs[] = {
        {"/s3", "/s3", false},       {"/a/s3", "/a", false}, {"/a/b/c", "/a/b", false},
        {"/s3", "/s3/models", true}, {"/s3", "/s", true},    {"/s3x", "/s3", true},
        {"/s3", "", true},           {"", "/s3", true},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct config_message message;
        struct config config;

        config_defaults(&config);
        strcpy(config.s3.path, pairs[i].path);
        strcpy(config.base_path, pairs[i].base_path);
        assert_int_equal(config_validate(&config, &message), pairs[i].is_valid);
        if (!pairs[i].is_valid)
            assert_non_null(strstr(message.text, "must not be equal to base_path or below it"));
    }
}

TEST(an_address_of_other_machines_needs_tokens_or_keys_for_writing)
{
    struct config_message message;
    struct config config;

    config_defaults(&config);
    config.writable = true;
    strcpy(config.s3.listen, "127.0.0.1:9000");
    assert_true(config_validate(&config, &message));
    strcpy(config.s3.listen, "0.0.0.0:9000");
    assert_false(config_validate(&config, &message));
    strcpy(config.s3.keys, "keys");
    assert_true(config_validate(&config, &message));
    config.s3.keys[0] = '\0';
    strcpy(config.auth.tokens, "tokens");
    assert_true(config_validate(&config, &message));
}

static bool load(const char *text, struct config *config, struct config_message *message)
{
    char path[] = "/tmp/ztserve-s3-XXXXXX";
    const int descriptor = mkstemp(path);
    bool loaded;

    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    config_defaults(config);
    assert_string_equal(config->s3.path, "/s3");
    loaded = config_load_file(config, path, message);
    unlink(path);
    return loaded;
}

TEST(false_or_an_empty_text_turns_the_api_off)
{
    static const char *const off[] = {"{\"s3\": false}", "{\"s3\": {\"path\": false}}",
                                      "{\"s3\": {\"path\": \"\"}}"};
    static const char *const wrong[] = {"{\"s3\": true}", "{\"hub\": false}",
                                        "{\"s3\": {\"bucket\": false}}",
                                        "{\"s3\": {\"path\": true}}"};
    struct config_message message;
    struct config config;

    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        assert_true(load(off[i], &config, &message));
        assert_string_equal(config.s3.path, "");
        assert_true(config_validate(&config, &message));
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(load(wrong[i], &config, &message));
    assert_true(load("{\"s3\": {\"path\": null}}", &config, &message));
    assert_string_equal(config.s3.path, "/s3");
}

TEST(what_is_off_is_printed_as_it_is_read)
{
    char text[16384] = "";
    struct config_message message;
    struct config config;
    struct config again;
    FILE *stream = fmemopen(text, sizeof(text) - 1, "w");

    assert_non_null(stream);
    assert_true(load("{\"s3\": false}", &config, &message));
    assert_true(config_print(&config, stream));
    fclose(stream);
    assert_true(load(text, &again, &message));
    assert_memory_equal(&again, &config, sizeof(config));
}
