/* Names of buckets are those of AWS (3 to 63 letters, digits, dots and hyphens), and those that
 * other engines allow besides: with capitals and underscores, which no host's name can have. */
#include "config/bucket.h"

#include <string.h>

#include "config/browsers.h"
#include "config/value.h"

#define SCHEME   "s3://"
#define SMALL    "abcdefghijklmnopqrstuvwxyz"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS   "0123456789"
/* AWS's bounds. */
#define NAME_MIN        3
#define NAME_MAX_LENGTH (CONFIG_BUCKET_NAME_SIZE - 1)
/* Longer than any region. */
#define REGION_MAX 63
/* An extent of the cache (cache/cache.h). */
#define CACHE_MIN_BYTES ((int64_t)64 << 20)
/* Of a text in a message. */
#define SHOWN 200

/* --- the root --- */

bool config_root_is_bucket(const char *root)
{
    return strncmp(root, SCHEME, strlen(SCHEME)) == 0;
}

static bool is_letter_or_digit(char c)
{
    return c != '\0' && strchr(SMALL CAPITALS DIGITS, c) != NULL;
}

const char *config_fault_of_bucket(const char *name, size_t length)
{
    if (length < NAME_MIN || length > NAME_MAX_LENGTH)
        return "a bucket's name has 3 to 63 characters";
    if (strspn(name, SMALL CAPITALS DIGITS ".-_") < length)
        return "a bucket's name consists of letters, digits, dots, hyphens and underscores";
    if (!is_letter_or_digit(name[0]) || !is_letter_or_digit(name[length - 1]))
        return "a bucket's name begins and ends with a letter or a digit";
    for (size_t i = 1; i < length; i++)
        if (name[i] == '.' && name[i - 1] == '.')
            return "a bucket's name has no two dots in a row";
    return NULL;
}

static bool is_dots(const char *part, size_t length)
{
    return (length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0);
}

/* prefix: what follows the '/' behind the bucket; one '/' at its end is no part. */
static const char *fault_of_prefix(const char *prefix)
{
    /* With the '/' at its end. */
    if (strlen(prefix) + 2 > CONFIG_BUCKET_PREFIX_SIZE)
        return "the prefix is longer than 699 bytes";
    for (const char *c = prefix; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return "the prefix contains a control character";
    while (*prefix != '\0') {
        const size_t length = strcspn(prefix, "/");

        if (length == 0)
            return "the prefix has an empty part";
        if (is_dots(prefix, length))
            return "the prefix has a part \".\" or \"..\"";
        prefix += length + (prefix[length] == '/');
    }
    return NULL;
}

const char *config_bucket_read(const char *text, struct config_bucket *out_bucket)
{
    const char *name = text + strlen(SCHEME);
    const size_t name_length = strcspn(name, "/");
    const char *prefix = name + name_length + (name[name_length] == '/');
    const size_t prefix_length = strlen(prefix);
    const char *fault = config_fault_of_bucket(name, name_length);

    if (fault == NULL)
        fault = fault_of_prefix(prefix);
    if (fault != NULL)
        return fault;
    snprintf(out_bucket->name, sizeof(out_bucket->name), "%.*s", (int)name_length, name);
    snprintf(out_bucket->prefix, sizeof(out_bucket->prefix), "%s%s", prefix,
             prefix_length > 0 && prefix[prefix_length - 1] != '/' ? "/" : "");
    return NULL;
}

bool config_bucket_parse(const char *root, struct config_bucket *out_bucket,
                         struct config_message *message)
{
    const char *fault = config_bucket_read(root, out_bucket);

    return fault == NULL || config_fail(message, "root: %.*s: %s", SHOWN, root, fault);
}

/* A folder whose name looks like this is spelled "./gs://…". */
static bool validate_scheme(const char *root, struct config_message *message)
{
    const size_t length = strspn(root, SMALL CAPITALS DIGITS "+.-");

    if (length == 0 || strncmp(root + length, "://", 3) != 0)
        return true;
    return config_fail(message,
                       "root: %.*s: neither a folder nor a bucket, which is written "
                       "s3://bucket/prefix; the address of the object store is s3.endpoint",
                       SHOWN, root);
}

/* --- the keys about it --- */

const char *config_fault_of_address(const char *address, bool plain)
{
    const bool is_secure = strncmp(address, "https://", strlen("https://")) == 0;
    const char *host = address + strlen(is_secure ? "https://" : "http://");

    if (plain ? strncmp(address, "http://", strlen("http://")) != 0
              : !is_secure && strncmp(address, "http://", strlen("http://")) != 0)
        return plain ? "must begin with http://" : "must begin with https:// or http://";
    if (strchr(host, '@') != NULL)
        return "must not contain a user or a password";
    if (strchr(host, '/') != NULL)
        return "must end after the host and port, without a slash";
    return config_is_host_and_port(host, strlen(host))
               ? NULL
               : "is not an address such as https://store.example.org:9000";
}

static bool validate_address(const char *key, const char *address, bool plain,
                             struct config_message *message)
{
    const char *fault = address[0] != '\0' ? config_fault_of_address(address, plain) : NULL;

    /* A password is not repeated. */
    if (fault != NULL && strchr(address, '@') != NULL)
        return config_fail(message, "%s: %s", key, fault);
    return fault == NULL || config_fail(message, "%s: \"%.*s\" %s", key, SHOWN, address, fault);
}

static bool validate_region(const char *region, struct config_message *message)
{
    const size_t length = strlen(region);

    if (length <= REGION_MAX && strspn(region, SMALL CAPITALS DIGITS "-_.") == length)
        return true;
    return config_fail(message, "s3.region: \"%.*s\" is not a region, such as eu-central-1", SHOWN,
                       region);
}

static bool validate_claims(const struct config *config, struct config_message *message)
{
    const char *name = config->s3.claims_bucket;
    const char *fault = name[0] != '\0' ? config_fault_of_bucket(name, strlen(name)) : NULL;

    if (fault != NULL)
        return config_fail(message, "s3.claims_bucket: \"%.*s\": %s", SHOWN, name, fault);
    if (name[0] != '\0' && config->s3.single_writer)
        return config_fail(message, "s3.claims_bucket is set together with s3.single_writer: a "
                                    "single writer needs no claims");
    return true;
}

/* The name becomes a part of the host's. */
static bool validate_style(const struct config *config, const char *bucket,
                           struct config_message *message)
{
    const char *host = strstr(config->s3.endpoint, "://");

    if (strspn(bucket, SMALL DIGITS ".-") < strlen(bucket))
        return config_fail(
            message, "s3.path_style is false, but \"%s\" cannot be part of a host name", bucket);
    if (host != NULL && strspn(host, "://" DIGITS ".[]:") == strlen(host))
        return config_fail(message,
                           "s3.path_style is false, but s3.endpoint is an address without "
                           "a name: %.*s",
                           SHOWN, config->s3.endpoint);
    return true;
}

static bool validate_upstreams(const struct config *config, struct config_message *message)
{
    struct config_bucket bucket;

    for (unsigned i = 0; i < config->upstream_count && !config->s3.path_style; i++)
        if (config->upstreams[i].kind == CONFIG_UPSTREAM_S3 &&
            config_bucket_read(config->upstreams[i].url, &bucket) == NULL &&
            !validate_style(config, bucket.name, message))
            return false;
    return true;
}

bool config_validate_bucket(const struct config *config, struct config_message *message)
{
    struct config_bucket bucket;

    if (!validate_address("s3.endpoint", config->s3.endpoint, false, message) ||
        !validate_address("s3.proxy", config->s3.proxy, true, message) ||
        !validate_region(config->s3.region, message) || !validate_claims(config, message) ||
        !validate_upstreams(config, message))
        return false;
    if (config->cache.max_bytes != 0 && config->cache.max_bytes < CACHE_MIN_BYTES)
        return config_fail(message, "cache.max_bytes must be 0 or at least %lld",
                           (long long)CACHE_MIN_BYTES);
    if (!config_root_is_bucket(config->root))
        return validate_scheme(config->root, message);
    return config_bucket_parse(config->root, &bucket, message) &&
           (config->s3.path_style || (validate_style(config, bucket.name, message) &&
                                      validate_style(config, config->s3.claims_bucket, message)));
}
