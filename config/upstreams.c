/* The table of an upstream's keys, the rules between them, and names. */
#include "config/upstreams.h"

#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "config/browsers.h"
#include "config/bucket.h"
#include "config/schema.h"
#include "config/value.h"

#define PLACE(member)     offsetof(struct config_upstream, member)
#define TEXT_SIZE         CONFIG_UPSTREAM_TEXT_SIZE
#define BYTES_MAX         ((int64_t)1 << 60)
#define REVALIDATE_S_MOST ((int64_t)365 * 86400)
/* An extent of the cache (cache/cache.h). */
#define KEEP_MIN ((int64_t)64 << 20)
/* The mirror keeps its lists of files in a folder of this name. */
#define TAKEN_NAME "repositories"
/* Of a text in a message. */
#define SHOWN 200

static const char *kind_words[] = {"hub", "ztserve", "s3", NULL};

const struct config_key config_upstream_keys[] = {
    {.name = "name",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(name),
     .text_size = CONFIG_UPSTREAM_NAME_SIZE,
     .nullable = true,
     .meaning = "Name in paths, metrics and messages: letters, digits, dots, hyphens and "
                "underscores; null means the host of the URL."},
    {.name = "kind",
     .type = CONFIG_TYPE_CHOICE,
     .offset = PLACE(kind),
     .number = CONFIG_UPSTREAM_HUB,
     .choices = kind_words,
     .meaning = "hub for a server with the reading API of the Hub, ztserve for another ztserve, s3 "
                "for a bucket (also if the URL begins with s3://)."},
    {.name = "url",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(url),
     .text_size = TEXT_SIZE,
     .nullable = true,
     .meaning = "Its address, such as https://huggingface.co or s3://bucket/prefix."},
    {.name = "match",
     .type = CONFIG_TYPE_LIST,
     .offset = PLACE(match),
     .text_size = TEXT_SIZE,
     .meaning = "Globs of the repositories to look for there, such as acme/*; an empty list means "
                "all."},
    {.name = "token_file",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(token_file),
     .text_size = TEXT_SIZE,
     .nullable = true,
     .reloads = true,
     .meaning = "File with the token for it, for private and gated repositories."},
    {.name = "keep",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(keep),
     .reloads = true,
     .maximum = BYTES_MAX,
     .meaning = "Maximum bytes of it on disk, the least recently used being removed first; 0 "
                "leaves a twentieth of the disk, but at least 2 GiB, free."},
    {.name = "revalidate_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(revalidate_s),
     .reloads = true,
     .maximum = REVALIDATE_S_MOST,
     .number = 300,
     .meaning = "How long the commit of a branch is believed before it is looked up again."},
    {.name = "offline",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(offline),
     .reloads = true,
     .meaning = "Whether it is never asked, so that only repositories and bytes on this machine "
                "are served."},
    {.name = "strict",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(strict),
     .reloads = true,
     .meaning = "Whether requests for a part of a file wait until the whole file is here and "
                "verified."},
    {.name = "ca",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(ca),
     .text_size = TEXT_SIZE,
     .nullable = true,
     .meaning = "File of the authorities (PEM) that may certify it; null uses the system's."},
    {.name = "proxy",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(proxy),
     .text_size = TEXT_SIZE,
     .nullable = true,
     .meaning = "Proxy to it, as http://host:port; null uses none and ignores the environment."},
};

const size_t config_upstream_keys_count =
    sizeof(config_upstream_keys) / sizeof(config_upstream_keys[0]);

/* --- rules --- */

static const char *host_of(const char *url)
{
    const char *end = strstr(url, "://");

    return end != NULL ? end + strlen("://") : url;
}

static size_t host_length(const char *host)
{
    return host[0] == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL) : strcspn(host, ":/");
}

/* Returns the fault of the URL of a bucket, or NULL. */
static const char *fault_of_bucket(const struct config_upstream *upstream)
{
    struct config_bucket bucket;

    if (!config_root_is_bucket(upstream->url))
        return "the kind is s3, so it must be s3://bucket/prefix";
    return config_bucket_read(upstream->url, &bucket);
}

/* A fault that may have to do with a password is told without repeating the URL. */
static const char *fault_of_url(const char *url, bool *out_is_secret)
{
    const bool is_https = strncmp(url, "https://", strlen("https://")) == 0;
    const char *host = host_of(url);
    const size_t length = strcspn(host, "/");

    *out_is_secret = strpbrk(url, "@?") != NULL;
    if (!is_https && strncmp(url, "http://", strlen("http://")) != 0)
        return "must begin with https:// or http://";
    if (strchr(url, '@') != NULL)
        return "must not contain a user or a password; put a token into token_file";
    if (strpbrk(url, "?#") != NULL)
        return "must not contain a query or a fragment";
    for (const char *c = url; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '%' || *c == '\\')
            return "contains a character that an address cannot have";
    if (strstr(host, "//") != NULL || strstr(host, "/../") != NULL || strstr(host, "/./") != NULL)
        return "has an empty part, or a part \".\" or \"..\"";
    return config_is_host_and_port(host, length)
               ? NULL
               : "is not an address such as https://huggingface.co or http://models.lan:8080";
}

/* key: of the URL below origin; empty if origin names the URL itself. */
static bool check_url(struct config_upstream *upstream, const char *origin, const char *key,
                      struct config_message *message)
{
    size_t length = strlen(upstream->url);
    const char *fault;
    bool is_secret;

    if (length == 0)
        return config_fail(message, "%s: url is missing", origin);
    while (upstream->url + length > host_of(upstream->url) && upstream->url[length - 1] == '/')
        upstream->url[--length] = '\0';
    if (upstream->kind == CONFIG_UPSTREAM_HUB && config_root_is_bucket(upstream->url))
        upstream->kind = CONFIG_UPSTREAM_S3;
    if (upstream->kind == CONFIG_UPSTREAM_S3) {
        fault = fault_of_bucket(upstream);
        return fault == NULL ||
               config_fail(message, "%s%s: \"%.*s\": %s", origin, key, SHOWN, upstream->url, fault);
    }
    fault = fault_of_url(upstream->url, &is_secret);
    if (fault != NULL && is_secret)
        return config_fail(message, "%s%s: %s", origin, key, fault);
    return fault == NULL ||
           config_fail(message, "%s%s: \"%.*s\" %s", origin, key, SHOWN, upstream->url, fault);
}

static bool is_of_name(char c)
{
    return isascii((unsigned char)c) && (isalnum((unsigned char)c) || strchr("-_.", c) != NULL);
}

/* The name of an address in brackets has its digits and hyphens: "[::1]" is "--1". */
static void name_after_host(struct config_upstream *upstream)
{
    const char *host = host_of(upstream->url);
    size_t length = host_length(host);
    size_t count = 0;

    if (host[0] == '[') {
        host++;
        length -= 2;
    }
    for (size_t i = 0; i < length && count < CONFIG_UPSTREAM_NAME_SIZE - 1; i++)
        upstream->name[count++] = is_of_name(host[i]) ? (char)tolower((unsigned char)host[i]) : '-';
    upstream->name[count] = '\0';
    if (upstream->name[0] == '.' || upstream->name[0] == '-')
        upstream->name[0] = 'x';
}

static bool check_name(const struct config *config, struct config_upstream *upstream,
                       const char *origin, struct config_message *message)
{
    const bool is_given = upstream->name[0] != '\0';

    if (!is_given)
        name_after_host(upstream);
    for (const char *c = upstream->name; *c != '\0'; c++)
        if (!is_of_name(*c))
            return config_fail(message,
                               "%s.name: \"%s\" must consist of letters, digits, dots, hyphens "
                               "and underscores",
                               origin, upstream->name);
    if (upstream->name[0] == '.')
        return config_fail(message, "%s.name: must not begin with a dot", origin);
    if (strcasecmp(upstream->name, TAKEN_NAME) == 0)
        return config_fail(message, "%s.name: \"%s\" is taken; choose another name", origin,
                           upstream->name);
    for (unsigned i = 0; i < config->upstream_count; i++)
        if (strcasecmp(config->upstreams[i].name, upstream->name) == 0)
            return config_fail(message, "%s: another upstream is named \"%s\"%s", origin,
                               upstream->name, is_given ? "" : "; give one of them a name");
    return true;
}

static bool check_proxy(const struct config_upstream *upstream, const char *origin,
                        struct config_message *message)
{
    const char *fault =
        upstream->proxy[0] != '\0' ? config_fault_of_address(upstream->proxy, true) : NULL;

    if (fault != NULL && strchr(upstream->proxy, '@') != NULL)
        return config_fail(message, "%s.proxy: %s", origin, fault);
    return fault == NULL ||
           config_fail(message, "%s.proxy: \"%.*s\" %s", origin, SHOWN, upstream->proxy, fault);
}

/* --- the list --- */

void config_upstreams_reset(struct config *config)
{
    memset(config->upstreams, 0, sizeof(config->upstreams));
    config->upstream_count = 0;
}

struct config_upstream *config_upstreams_begin(struct config *config, const char *origin,
                                               struct config_message *message)
{
    struct config_upstream *upstream = &config->upstreams[config->upstream_count];

    if (config->upstream_count == CONFIG_UPSTREAMS_MAX) {
        config_say(message, "%s: there can be at most %d upstreams", origin, CONFIG_UPSTREAMS_MAX);
        return NULL;
    }
    memset(upstream, 0, sizeof(*upstream));
    for (size_t i = 0; i < config_upstream_keys_count; i++)
        config_value_reset(upstream, &config_upstream_keys[i]);
    return upstream;
}

static bool end(struct config *config, const char *origin, const char *url_key,
                struct config_message *message)
{
    struct config_upstream *upstream = &config->upstreams[config->upstream_count];

    assert(config->upstream_count < CONFIG_UPSTREAMS_MAX);
    if (!check_url(upstream, origin, url_key, message) ||
        !check_name(config, upstream, origin, message) || !check_proxy(upstream, origin, message))
        return false;
    if (upstream->kind == CONFIG_UPSTREAM_S3 && upstream->token_file[0] != '\0')
        return config_fail(message,
                           "%s.token_file: a bucket is read with the credentials of the S3 client "
                           "(environment, profile, role), not with a token",
                           origin);
    if (upstream->keep != 0 && upstream->keep < KEEP_MIN)
        return config_fail(message, "%s.keep: must be 0 or at least %lld", origin,
                           (long long)KEEP_MIN);
    config->upstream_count++;
    return true;
}

bool config_upstreams_end(struct config *config, const char *origin, struct config_message *message)
{
    return end(config, origin, ".url", message);
}

static bool has_url(const struct config *config, const char *url, size_t length)
{
    while (length > 0 && url[length - 1] == '/')
        length--;
    for (unsigned i = 0; i < config->upstream_count; i++)
        if (strlen(config->upstreams[i].url) == length &&
            memcmp(config->upstreams[i].url, url, length) == 0)
            return true;
    return false;
}

bool config_upstreams_add_urls(struct config *config, const char *urls, const char *origin,
                               struct config_message *message)
{
    const char *url;
    size_t length;

    while ((url = config_list_next(&urls, &length)) != NULL) {
        struct config_upstream *upstream;

        if (has_url(config, url, length))
            continue;
        upstream = config_upstreams_begin(config, origin, message);
        if (upstream == NULL)
            return false;
        if (length >= sizeof(upstream->url))
            return config_fail(message, "%s: is longer than %zu bytes", origin,
                               sizeof(upstream->url) - 1);
        snprintf(upstream->url, sizeof(upstream->url), "%.*s", (int)length, url);
        if (!end(config, origin, "", message))
            return false;
    }
    return true;
}

/* --- reloading --- */

static const struct config_upstream *find(const struct config *config, const char *name)
{
    for (unsigned i = 0; i < config->upstream_count; i++)
        if (strcmp(config->upstreams[i].name, name) == 0)
            return &config->upstreams[i];
    return NULL;
}

/* upstream gets the reloading values of another one. */
static void take_reloading(struct config_upstream *upstream, const struct config_upstream *from)
{
    for (size_t i = 0; i < config_upstream_keys_count; i++)
        if (config_upstream_keys[i].reloads)
            config_value_copy(upstream, from, &config_upstream_keys[i]);
}

void config_upstreams_keep_fixed(struct config *wanted, const struct config *in_force)
{
    struct config_upstream kept[CONFIG_UPSTREAMS_MAX];

    memcpy(kept, in_force->upstreams, sizeof(kept));
    for (unsigned i = 0; i < in_force->upstream_count; i++) {
        const struct config_upstream *found = find(wanted, kept[i].name);

        /* A token for the new URL must not be sent to the old one. */
        if (found != NULL && strcmp(found->url, kept[i].url) == 0)
            take_reloading(&kept[i], found);
    }
    memcpy(wanted->upstreams, kept, sizeof(kept));
    wanted->upstream_count = in_force->upstream_count;
}

static bool is_same(const struct config_upstream *a, const struct config_upstream *b)
{
    return a->kind == b->kind && strcmp(a->name, b->name) == 0 && strcmp(a->url, b->url) == 0 &&
           strcmp(a->match, b->match) == 0 && strcmp(a->token_file, b->token_file) == 0 &&
           strcmp(a->ca, b->ca) == 0 && strcmp(a->proxy, b->proxy) == 0;
}

bool config_upstreams_differ(const struct config *a, const struct config *b)
{
    if (a->upstream_count != b->upstream_count)
        return true;
    for (unsigned i = 0; i < a->upstream_count; i++) {
        struct config_upstream same = a->upstreams[i];

        take_reloading(&same, &b->upstreams[i]);
        if (!is_same(&same, &b->upstreams[i]))
            return true;
    }
    return false;
}

bool config_upstream_exposes_token(const struct config_upstream *upstream)
{
    const char *host = host_of(upstream->url);
    size_t length = host_length(host);
    struct config_listen listen = {.port = 0};

    if (upstream->token_file[0] == '\0' || strncmp(upstream->url, "https:", 6) == 0)
        return false;
    if (host[0] == '[') {
        host++;
        length -= 2;
    }
    snprintf(listen.host, sizeof(listen.host), "%.*s", (int)length, host);
    return !config_listen_is_loopback(&listen);
}
