/* Connects to a bucket, using the configuration and the environment. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/bucket.h"
#include "remote/service_address.h"
#include "store/s3/s3_listing.h"

/* Fails with a message for the user at the command line. */
#define REFUSE(error, ...) zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, __VA_ARGS__)

/* Returns the value of the first of two variables that is set and not empty, or NULL. */
static const char *variable(const char *first, const char *second)
{
    const char *value = getenv(first);

    if ((value == NULL || value[0] == '\0') && second != NULL)
        value = getenv(second);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Fills name and prefix from "s3://bucket/prefix". */
static enum zt_status read_root(const char *root, struct bucket *bucket, struct zt_error *error)
{
    struct config_bucket named;
    struct config_message why;

    assert(config_root_is_bucket(root));
    if (!config_bucket_parse(root, &named, &why))
        return REFUSE(error, "%s", why.text);
    memcpy(bucket->name, named.name, sizeof(named.name));
    memcpy(bucket->prefix, named.prefix, sizeof(named.prefix));
    return ZT_OK;
}

/* --- the address --- */

/* Writes "scheme://[bucket.]host[:port]". */
static enum zt_status make_origin(const char *endpoint, struct bucket *bucket,
                                  struct zt_error *error)
{
    const bool is_tls = strncmp(endpoint, "https://", 8) == 0;
    struct service_address address;
    const char *host = address.origin + (is_tls ? 8 : 7);
    int written;

    if (!is_tls && strncmp(endpoint, "http://", 7) != 0)
        return REFUSE(error, "s3.endpoint: \"%s\" does not begin with http:// or https://",
                      endpoint);
    if (!service_address_read(endpoint, &address) || strcmp(address.path, "/") != 0 ||
        address.query[0] != '\0')
        return REFUSE(error,
                      "s3.endpoint: \"%s\" is not an address such as "
                      "https://store.example.org:9000",
                      endpoint);
    written =
        snprintf(bucket->origin, sizeof(bucket->origin), "%s://%s%s%s", is_tls ? "https" : "http",
                 bucket->path_style ? "" : bucket->name, bucket->path_style ? "" : ".", host);
    if (written < 0 || (size_t)written >= sizeof(bucket->origin))
        return REFUSE(error, "s3.endpoint: \"%.80s…\" is too long", endpoint);
    return ZT_OK;
}

static const char *region_of(const struct config *config)
{
    const char *region = config->s3.region[0] != '\0'
                             ? config->s3.region
                             : variable("AWS_REGION", "AWS_DEFAULT_REGION");

    return region != NULL ? region : "us-east-1";
}

static bool is_region(const char *region)
{
    return strlen(region) <= 64 &&
           region[strspn(region, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "-_.")] == '\0';
}

static enum zt_status find_address(const struct config *config, const char *region,
                                   struct bucket *bucket, struct zt_error *error)
{
    char endpoint[160];
    const char *given = config->s3.endpoint[0] != '\0'
                            ? config->s3.endpoint
                            : variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");

    if (given != NULL)
        return make_origin(given, bucket, error);
    snprintf(endpoint, sizeof(endpoint), "https://s3.%s.amazonaws.com%s", region,
             strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
    return make_origin(endpoint, bucket, error);
}

/* --- connecting --- */

const char *s3_ca_file(const struct config *config)
{
    return config->s3.ca[0] != '\0' ? config->s3.ca : variable("AWS_CA_BUNDLE", NULL);
}

enum zt_status s3_bucket_open(const struct config *config, const char *root, struct remote *remote,
                              struct bucket *out_bucket, struct credentials **out_credentials,
                              struct zt_error *error)
{
    const char *region = region_of(config);
    enum zt_status status;

    out_bucket->path_style = config->s3.path_style;
    if (!is_region(region))
        return REFUSE(error, "s3.region: \"%s\" is not a region", region);
    status = read_root(root, out_bucket, error);
    if (status == ZT_OK)
        status = find_address(config, region, out_bucket, error);
    if (status == ZT_OK)
        status = credentials_find(remote, region, &credentials_usual_pace, out_credentials, error);
    /* The credentials are requested again in the background. */
    if (status == ZT_UNAVAILABLE)
        log_write(LOG_LEVEL_WARN, "no credentials for %s yet, only cached data is served: %s", root,
                  error->message);
    else if (status != ZT_OK)
        return status;
    out_bucket->remote = remote;
    out_bucket->signer = signer_new(*out_credentials, region, "s3");
    return out_bucket->signer != NULL ? ZT_OK : zt_fail_memory(error, "the object store");
}

static enum zt_status start(struct s3_store *store, struct zt_error *error)
{
    const struct config *config = store->config;
    const struct remote_options options = {
        .ca_file = s3_ca_file(config),
        .proxy = config->s3.proxy[0] != '\0' ? config->s3.proxy : NULL,
        .connections = (unsigned)config->s3.connections,
    };
    enum zt_status status = remote_start(&options, &store->remote, error);

    if (status == ZT_OK)
        status = s3_bucket_open(config, config->root, store->remote, &store->bucket,
                                &store->credentials, error);
    if (status != ZT_OK)
        return status;
    store->listing = s3_listing_new();
    return store->listing != NULL ? ZT_OK : zt_fail_memory(error, "the object store");
}

/* Explains what is wrong, where, and which setting it may come from. */
static enum zt_status explain(const struct s3_store *store, const struct zt_error *why,
                              struct zt_error *error)
{
    return REFUSE(error, "%s at %s: %s (credentials: %s; region: %s)", store->config->root,
                  store->bucket.origin, why->message, credentials_source(store->credentials),
                  region_of(store->config));
}

enum zt_status s3_connect(struct s3_store *store, struct zt_error *error)
{
    struct zt_error why;
    enum zt_status status = start(store, error);

    if (status != ZT_OK)
        return status;
    s3_saved_read(store);
    status = bucket_check(&store->bucket, &why);
    metric_set(METRIC_STORE_AWAY, status != ZT_OK);
    return status == ZT_ARGUMENT ? explain(store, &why, error) : ZT_OK;
}

void s3_disconnect(struct s3_store *store)
{
    remote_stop(store->remote);
    if (store->bucket.signer != NULL)
        signer_free(store->bucket.signer);
    if (store->credentials != NULL)
        credentials_free(store->credentials);
    s3_listing_free(store->listing);
    store->remote = NULL;
    store->bucket.signer = NULL;
    store->credentials = NULL;
    store->listing = NULL;
}

void s3_other_bucket(const struct s3_store *store, const char *name, struct bucket *out_bucket)
{
    const struct bucket *own = &store->bucket;
    const char *host = strstr(own->origin, "://") + 3;

    *out_bucket = (struct bucket){
        .remote = own->remote, .signer = own->signer, .path_style = own->path_style};
    snprintf(out_bucket->name, sizeof(out_bucket->name), "%s", name);
    if (own->path_style)
        snprintf(out_bucket->origin, sizeof(out_bucket->origin), "%s", own->origin);
    else
        snprintf(out_bucket->origin, sizeof(out_bucket->origin), "%.*s%s.%s",
                 (int)(host - own->origin), own->origin, name, host + strlen(own->name) + 1);
}
