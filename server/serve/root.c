/* Opens the root and the mirror, and logs what is known about them. */
#include "serve/root.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config/bucket.h"
#include "disk/disk_space.h"
#include "hub/write/lfs_key.h"
#include "store/mirror/mirror.h"
#include "store/s3_write/s3_open.h"
#include "store/state_place.h"
#include "versions/versions_open.h"

#define GIB ((double)((uint64_t)1 << 30))

uint64_t root_reserve_bytes(const struct config *config)
{
    char cache[STATE_FOLDER_PATH_SIZE];
    const char *place = config->root;
    if (config_number(&config->upload.reserve_bytes) != CONFIG_RESERVE_AUTOMATIC)
        return (uint64_t)config_number(&config->upload.reserve_bytes);
    if (config_root_is_bucket(config->root)) {
        cache_folder_path(config, cache);
        place = cache;
    }
    return disk_space_automatic_reserve(place);
}

static bool report_error(enum zt_status status, const struct zt_error *failure, char *error,
                         size_t error_size)
{
    if (status != ZT_OK)
        snprintf(error, error_size, "%s", failure->message);
    return status == ZT_OK;
}

static bool withhold(struct store *folder, const char *path)
{
    return path == NULL || path[0] == '\0' || store_local_withhold(folder, path);
}

bool root_withhold(const struct server *server, const struct config *config,
                   const char *config_file)
{
    char state[STATE_FOLDER_PATH_SIZE];
    char mirror[STATE_FOLDER_PATH_SIZE];
    char permit_key[STATE_FOLDER_PATH_SIZE + sizeof("/" LFS_KEY_NAME)];
    const char *const own[] = {
        config_file,      config->auth.tokens,   config->auth.jwks, config->tls.key,
        config->tls.cert, config->tls.client_ca, config->s3.keys,   state,
        permit_key};
    struct store *folder = store_innermost(server->store);

    if (config_root_is_bucket(config->root))
        return true;
    state_folder_path(config, state);
    mirror_folder_path(config, mirror);
    for (unsigned i = 0; i < config->upstream_count; i++)
        if (!withhold(folder, config->upstreams[i].token_file) || !withhold(folder, mirror))
            return false;
    snprintf(permit_key, sizeof(permit_key), "%s/%s", state, LFS_KEY_NAME);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (!withhold(folder, own[i]))
            return false;
    return true;
}

bool root_open_folder(struct server *server, const char *config_file, char *error,
                      size_t error_size)
{
    const struct config *config = server->config;
    struct zt_error failure;
    enum zt_status status;

    if (config_root_is_bucket(config->root))
        return true;
    status = store_local_open(config->root, root_reserve_bytes(config), &server->store, &failure);
    if (status == ZT_OK && config->writable)
        status = store_local_own(server->store, config->shared, &failure);
    if (status == ZT_OK && !root_withhold(server, config, config_file))
        status = zt_fail_memory(&failure, "the store");
    if (status == ZT_OK)
        status = versions_open(server, &failure);
    return report_error(status, &failure, error, error_size);
}

bool root_open_mirror(struct server *server, const struct upstream_tokens *tokens, char *error,
                      size_t error_size)
{
    const struct config *config = server->config;
    char folder[STATE_FOLDER_PATH_SIZE];
    const struct mirror_options options = {
        .config = config,
        .folder = folder,
        .workers = server->workers,
        .waiters = server->waiters,
        .tokens = (const char *const *)tokens->tokens,
    };
    struct zt_error failure;
    struct store *mirror;

    if (config->upstream_count == 0)
        return true;
    mirror_folder_path(config, folder);
    if (!mirror_folder_make(config))
        log_write(LOG_LEVEL_WARN, "mirrored files will not be kept: %s: %s", folder,
                  strerrordesc_np(errno));
    if (!report_error(mirror_open(server->store, &options, &mirror, &failure), &failure, error,
                      error_size))
        return false;
    server->store = mirror;
    for (unsigned i = 0; i < config->upstream_count; i++)
        log_write(LOG_LEVEL_INFO, "mirroring %s in %s%s", config->upstreams[i].url, folder,
                  config_flag(&config->upstreams[i].offline) ? ", offline" : "");
    return true;
}

bool root_reload_mirror(struct server *server, const struct upstream_tokens *tokens, char *error,
                        size_t error_size)
{
    struct zt_error failure;

    for (unsigned i = 0; i < server->config->upstream_count; i++)
        if (!report_error(mirror_set_token(server->store, i, tokens->tokens[i], &failure), &failure,
                          error, error_size))
            return false;
    return true;
}

static void log_bucket(const struct config *config, const char *cache, struct store *store)
{
    struct store_report report;

    store->search->report(store, &report);
    if (report.cache_limit_bytes > 0)
        log_write(LOG_LEVEL_INFO, "%s is read through the cache %s: %.1f GiB of at most %.1f GiB",
                  config->root, cache, (double)report.cache_used_bytes / GIB,
                  (double)report.cache_limit_bytes / GIB);
}

bool root_open_bucket(struct server *server, char *error, size_t error_size)
{
    const struct config *config = server->config;
    char cache[STATE_FOLDER_PATH_SIZE];
    struct zt_error failure;

    if (!config_root_is_bucket(config->root))
        return true;
    cache_folder_path(config, cache);
    /* If this fails, opening the cache reports it. */
    (void)cache_folder_make(config);
    if (!report_error(store_s3_open(config, cache, server->workers, root_reserve_bytes(config),
                                    &server->store, &failure),
                      &failure, error, error_size))
        return false;
    log_bucket(config, cache, server->store);
    return report_error(versions_open(server, &failure), &failure, error, error_size);
}
