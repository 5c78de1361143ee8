/* Connects the history with the settings and with the digests of files. */
#include "versions/versions_open.h"

#include "base/server.h"
#include "config/bucket.h"
#include "digests/file_hashes.h"
#include "store/s3_versions/s3_place.h"
#include "store/versions/history_folder.h"
#include "store/versions/versions_store.h"

static void find_limits(void *context, struct history_keep *out_keep)
{
    const struct config *config = ((const struct server *)context)->config;

    *out_keep = (struct history_keep){
        .commits = (uint64_t)config_number(&config->versions.keep),
        .age_s = (uint64_t)config_number(&config->versions.keep_s),
        .bytes = (uint64_t)config_number(&config->versions.keep_bytes),
    };
}

static enum zt_status hash_file(void *context, const char *path,
                                const struct file_identity *identity, uint8_t out_sha256[32],
                                struct zt_error *error)
{
    struct server *server = context;

    return file_hashes_find(server->hashes, path, identity, out_sha256)
               ? ZT_OK
               : file_hashes_compute(server->hashes, path, identity, out_sha256, error);
}

static bool find_hash(void *context, const char *path, const struct file_identity *identity,
                      uint8_t out_sha256[32])
{
    return file_hashes_find(((struct server *)context)->hashes, path, identity, out_sha256);
}

enum zt_status versions_open(struct server *server, struct zt_error *error)
{
    struct history_options options = {.keep = find_limits, .context = server};
    struct versions_options versions = {
        .sha256 = hash_file, .known_sha256 = find_hash, .context = server};
    enum zt_status status;

    if (server->config->versions.keep == 0)
        return ZT_OK;
    status = config_root_is_bucket(server->config->root)
                 ? s3_place_open(server->store, server->config->writable, &options.place, error)
                 : history_folder_open(store_local_root(server->store), server->config->writable,
                                       &options.place, error);
    if (status == ZT_OK)
        status = history_open(&options, &versions.history, error);
    if (status != ZT_OK)
        return status;
    status = versions_store_open(server->store, &versions, &server->store, error);
    if (status != ZT_OK)
        history_close(versions.history);
    return status;
}
