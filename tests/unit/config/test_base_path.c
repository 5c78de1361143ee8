/* What base_path may be. */
#include "tests.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

struct bad {
    const char *path;
    const char *message;
};

static bool validate(const char *path, struct config_message *message)
{
    struct config config;

    config_defaults(&config);
    assert_string_equal(config.base_path, "");
    snprintf(config.base_path, sizeof(config.base_path), "%s", path);
    return config_validate(&config, message);
}

TEST(paths_that_need_no_escapes_are_accepted)
{
    static const char *const paths[] = {"",      "/models",  "/a/b/c", "/v1x",   "/my-api",
                                        "/x/v1", "/A.b_c~-", "/...",   "/.a/b.", "/filesystem"};
    struct config_message message;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_true(validate(paths[i], &message));
}

TEST(others_are_rejected_with_the_reason)
{
    static const struct bad bad[] = {
        {"models", "base_path: \"models\" must begin with a slash"},
        {"https://a.example/m", "base_path: \"https://a.example/m\" must begin with a slash"},
        {"/", "base_path: \"/\" must not end in a slash or have an empty part"},
        {"/a/", "base_path: \"/a/\" must not end in a slash or have an empty part"},
        {"/a//b", "base_path: \"/a//b\" must not end in a slash or have an empty part"},
        {"/a/..", "base_path: \"/a/..\" must not have a part . or .."},
        {"/./a", "base_path: \"/./a\" must not have a part . or .."},
        {"/v1", "base_path: \"/v1\" begins like one of the server's paths"},
        {"/files/a", "base_path: \"/files/a\" begins like one of the server's paths"},
        {"/ui", "base_path: \"/ui\" begins like one of the server's paths"},
        {"/api/a", "base_path: \"/api/a\" begins like one of the server's paths"},
        {"/a b", "base_path: \"/a b\" may have letters, digits, - . _ ~ and slashes only"},
        {"/a%20", "base_path: \"/a%20\" may have letters, digits, - . _ ~ and slashes only"},
        {"/a?b", "base_path: \"/a?b\" may have letters, digits, - . _ ~ and slashes only"},
        {"/\"", "base_path: \"/\"\" may have letters, digits, - . _ ~ and slashes only"},
    };
    struct config_message message;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(validate(bad[i].path, &message));
        assert_string_equal(message.text, bad[i].message);
    }
}

TEST(a_path_of_up_to_255_bytes_is_accepted)
{
    struct config_message message;
    char path[258];

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[255] = '\0';
    assert_true(validate(path, &message));
    path[255] = 'a';
    path[256] = '\0';
    assert_false(validate(path, &message));
    assert_non_null(strstr(message.text, "is longer than 255 bytes"));
}
