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

bool root_open_folder(struct server *server, char *error, size_t error_size)
{
    const struct config *config = server->config;
    struct zt_error failure;

    return config_root_is_bucket(config->root) ||
           tell(
               store_local_open(config->root, root_reserve_bytes(config), &server->store, &failure),
               &failure, error, error_size);
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
