/* Roots that are buckets, and the keys about them. */
#include "tests.h"

#include <string.h>

#include "config/bucket.h"

static void assert_parsed(const char *root, const char *name, const char *prefix)
{
    struct config_bucket bucket;
    struct config_message message;

    assert_true(config_root_is_bucket(root));
    assert_true(config_bucket_parse(root, &bucket, &message));
    assert_string_equal(bucket.name, name);
    assert_string_equal(bucket.prefix, prefix);
}

TEST(a_root_is_split_into_bucket_and_prefix)
{
    assert_parsed("s3://models", "models", "");
    assert_parsed("s3://models/", "models", "");
    assert_parsed("s3://models/team", "models", "team/");
    assert_parsed("s3://my.Old_bucket-1/team/a b/", "my.Old_bucket-1", "team/a b/");
    assert_parsed("s3://a23456789012345678901234567890123456789012345678901234567890123/..x",
                  "a23456789012345678901234567890123456789012345678901234567890123", "..x/");
}

static void assert_refused(const char *root, const char *fault)
{
    struct config_message message;
    struct config config;

    config_defaults(&config);
    snprintf(config.root, sizeof(config.root), "%s", root);
    assert_false(config_validate(&config, &message));
    if (strncmp(message.text, "root: ", 6) != 0 || strstr(message.text, fault) == NULL)
        fail_msg("%s: %s", root, message.text);
}

TEST(a_root_that_names_no_bucket_is_refused)
{
    assert_refused("s3://", "3 to 63 characters");
    assert_refused("s3://ab/x", "3 to 63 characters");
    assert_refused("s3://a234567890123456789012345678901234567890123456789012345678901234",
                   "3 to 63 characters");
    assert_refused("s3://models?region=x", "consists of letters");
    assert_refused("s3://-models", "begins and ends");
    assert_refused("s3://models./x", "begins and ends");
    assert_refused("s3://mo..dels", "two dots");
    assert_refused("s3://models//x", "empty part");
    assert_refused("s3://models/x//", "empty part");
    assert_refused("s3://models/x/../y", "\"..\"");
    assert_refused("s3://models/.", "\"..\"");
    assert_refused("s3://models/a\nb", "control character");
    assert_refused("gs://models", "s3://bucket/prefix");
    assert_refused("S3://models", "s3://bucket/prefix");
    assert_refused("https://store.example.org/models", "s3.endpoint");
}

TEST(a_prefix_has_a_bound)
{
    char root[800] = "s3://models/";
    struct config_bucket bucket;
    struct config_message message;

    memset(root + strlen("s3://models/"), 'x', 699);
    root[strlen("s3://models/") + 699] = '\0';
    assert_true(config_bucket_parse(root, &bucket, &message));
    assert_int_equal(strlen(bucket.prefix), 700);
    strcat(root, "x");
    assert_refused(root, "699 bytes");
}

TEST(a_folder_is_no_bucket)
{
    static const char *const roots[] = {"", "/srv/models", "models", "./gs://x", "s3:/x", "a:b"};
    struct config_message message;
    struct config config;

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        config_defaults(&config);
        snprintf(config.root, sizeof(config.root), "%s", roots[i]);
        assert_false(config_root_is_bucket(roots[i]));
        assert_true(config_validate(&config, &message));
    }
}

/* Sets one key of a configuration for "s3://models" and checks it. */
static bool accepts(char *text, struct config *config, const char *value,
                    struct config_message *message)
{
    snprintf(text, CONFIG_TEXT_SIZE, "%s", value);
    return config_validate(config, message);
}

static struct config for_bucket(void)
{
    struct config config;

    config_defaults(&config);
    snprintf(config.root, sizeof(config.root), "s3://models");
    return config;
}

TEST(addresses_have_scheme_and_host_alone)
{
    struct config config = for_bucket();
    struct config_message message;

    assert_true(accepts(config.s3.endpoint, &config, "http://127.0.0.1:9000", &message));
    assert_true(accepts(config.s3.endpoint, &config, "https://[::1]:9000", &message));
    assert_true(accepts(config.s3.endpoint, &config, "https://store.example.org", &message));
    assert_false(accepts(config.s3.endpoint, &config, "store:9000", &message));
    assert_string_equal(message.text,
                        "s3.endpoint: \"store:9000\" must begin with https:// or http://");
    assert_false(accepts(config.s3.endpoint, &config, "http://store:9000/", &message));
    assert_non_null(strstr(message.text, "without a slash"));
    assert_false(accepts(config.s3.endpoint, &config, "http://store:90x", &message));
    assert_false(accepts(config.s3.endpoint, &config, "http://", &message));
    assert_false(accepts(config.s3.endpoint, &config, "http://me:secret@store", &message));
    assert_string_equal(message.text, "s3.endpoint: must not contain a user or a password");
    assert_true(accepts(config.s3.endpoint, &config, "", &message));
    assert_true(accepts(config.s3.proxy, &config, "http://proxy:3128", &message));
    assert_false(accepts(config.s3.proxy, &config, "https://proxy:3128", &message));
    assert_string_equal(message.text, "s3.proxy: \"https://proxy:3128\" must begin with http://");
}

TEST(a_region_is_a_word)
{
    struct config config = for_bucket();
    struct config_message message;

    assert_true(accepts(config.s3.region, &config, "eu-central-1", &message));
    assert_false(accepts(config.s3.region, &config, "eu central", &message));
    assert_string_equal(message.text,
                        "s3.region: \"eu central\" is not a region, such as eu-central-1");
}

TEST(claims_have_a_bucket_only_among_several_writers)
{
    struct config config = for_bucket();
    struct config_message message;

    assert_false(accepts(config.s3.claims_bucket, &config, "x", &message));
    assert_true(accepts(config.s3.claims_bucket, &config, "claims", &message));
    config.s3.single_writer = true;
    assert_false(config_validate(&config, &message));
    assert_non_null(strstr(message.text, "s3.single_writer"));
}

TEST(a_bucket_in_a_hosts_name_needs_a_name)
{
    struct config config = for_bucket();
    struct config_message message;

    config.s3.path_style = false;
    assert_true(accepts(config.s3.endpoint, &config, "https://store.example.org", &message));
    assert_false(accepts(config.s3.endpoint, &config, "http://127.0.0.1:9000", &message));
    assert_false(accepts(config.s3.endpoint, &config, "http://[::1]:9000", &message));
    assert_true(accepts(config.s3.endpoint, &config, "", &message));
    assert_false(accepts(config.s3.claims_bucket, &config, "my_claims", &message));
    config.s3.claims_bucket[0] = '\0';
    assert_false(accepts(config.root, &config, "s3://Models", &message));
    assert_string_equal(message.text,
                        "s3.path_style is false, but \"Models\" cannot be part of a host name");
}

TEST(a_cache_holds_at_least_one_extent)
{
    struct config config = for_bucket();
    struct config_message message;

    assert_true(config_validate(&config, &message));
    config.cache.max_bytes = 64 << 20;
    assert_true(config_validate(&config, &message));
    config.cache.max_bytes--;
    assert_false(config_validate(&config, &message));
    assert_string_equal(message.text, "cache.max_bytes must be 0 or at least 67108864");
}
