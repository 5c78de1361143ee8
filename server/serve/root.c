/* Opening the root, and what the log says about a bucket. */
#include "serve/root.h"

#include <stdio.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "config/bucket.h"
#include "store/s3_write/s3_open.h"
#include "store/state_place.h"

/* The automatic reserve: a twentieth of the disk, but at most 1 GiB. */
#define RESERVE_MAX_BYTES ((uint64_t)1 << 30)
#define RESERVE_SHARE     20
#define GIB               ((double)((uint64_t)1 << 30))

uint64_t root_reserve_bytes(const struct config *config)
{
    char cache[STATE_FOLDER_PATH_SIZE];
    const char *place = config->root;
    struct statvfs disk;
    uint64_t share;

    if (config_number(&config->upload.reserve_bytes) != CONFIG_RESERVE_AUTOMATIC)
        return (uint64_t)config_number(&config->upload.reserve_bytes);
    if (config_root_is_bucket(config->root)) {
        cache_folder_path(config, cache);
        place = cache;
    }
    if (statvfs(place, &disk) != 0)
        return RESERVE_MAX_BYTES;
    share = (uint64_t)disk.f_blocks * disk.f_frsize / RESERVE_SHARE;
    return share < RESERVE_MAX_BYTES ? share : RESERVE_MAX_BYTES;
}

static bool tell(enum zt_status status, const struct zt_error *failure, char *error,
                 size_t error_size)
{
    if (status != ZT_OK)
        snprintf(error, error_size, "%s", failure->message);
    return status == ZT_OK;
}

/* The server's own files are nobody's to read, wherever they lie. */
static bool withhold(struct server *server, const char *config_file)
{
    const struct config *config = server->config;
    const char *const own[] = {config_file,      config->auth.tokens, config->auth.jwks,
                               config->tls.key,  config->tls.cert,    config->tls.client_ca,
                               config->state.dir};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (own[i] != NULL && own[i][0] != '\0' && !store_local_withhold(server->store, own[i]))
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
    if (status == ZT_OK && !withhold(server, config_file))
        status = zt_fail_memory(&failure, "the store");
    return tell(status, &failure, error, error_size);
}

static void log_bucket(const struct config *config, const char *cache, struct store *store)
{
    struct store_report report;

    store->ops->report(store, &report);
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
    /* The cache says so if that fails. */
    (void)cache_folder_make(config);
    if (!tell(store_s3_open(config, cache, server->workers, root_reserve_bytes(config),
                            &server->store, &failure),
              &failure, error, error_size))
        return false;
    log_bucket(config, cache, server->store);
    return true;
}
