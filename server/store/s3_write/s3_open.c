/* Opens a bucket as a store: connects, opens the cache and the staging folder, probes. */
#include "store/s3_write/s3_open.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "store/s3/s3_listing.h"
#include "store/s3_write/s3_write.h"
#include "store/store_local.h"

/* Within the staging folder. */
#define JOURNAL_FOLDER "multipart"
#define FOLDER_MODE    0700
#define PATH_SIZE      (CONFIG_TEXT_SIZE + 64)

static const char *s3_refusal(const struct store *base)
{
    const struct s3_writing *writing = ((const struct s3_store *)base)->writing;

    return atomic_load(&writing->mode) == S3_MODE_REFUSED ? writing->writes : NULL;
}

static void s3_report_all(struct store *base, struct store_report *out_report)
{
    const struct s3_writing *writing = ((const struct s3_store *)base)->writing;

    s3_report(base, out_report);
    snprintf(out_report->writes, sizeof(out_report->writes), "%s", s3_mode_words(writing));
}

static void s3_reconfigure(struct store *base)
{
    struct s3_store *store = (struct s3_store *)base;

    cache_set_limit(store->cache, (uint64_t)config_number(&store->config->cache.max_bytes));
    s3_poll_adjust(store);
}

/* --- closing --- */

static void s3_interrupt(struct store *base)
{
    struct s3_store *store = (struct s3_store *)base;

    remote_interrupt(store->remote);
    cache_interrupt(store->cache);
}

static void free_writing(struct s3_writing *writing)
{
    if (writing == NULL)
        return;
    if (writing->staging_folder >= 0) {
        staging_end(&writing->staging);
        close(writing->staging_folder);
    }
    if (writing->journal >= 0)
        close(writing->journal);
    pthread_cond_destroy(&writing->changed);
    pthread_mutex_destroy(&writing->lock);
    free(writing->cache_folder);
    free(writing);
}

static void s3_close(struct store *base)
{
    struct s3_store *store = (struct s3_store *)base;

    if (store->writing != NULL)
        s3_keeper_stop(store);
    s3_disconnect(store);
    cache_close(store->cache);
    free_writing(store->writing);
    free(store);
}

static const struct store_ops s3_ops = {
    .list = s3_list,
    .walk = s3_walk,
    .open = s3_open_file,
    .publish = s3_publish,
    .remove = s3_remove,
    .identity_of = s3_identity_of,
    .misnamed_files = s3_misnamed_files,
    .watch = s3_watch,
    .changed = s3_changed,
    .is_changing = s3_is_changing,
    .reports = s3_reports,
    .list_changes = s3_list_changes,
    .close = s3_close,
};

static const struct store_claim_ops s3_claim_ops = {
    .prepare = s3_prepare,
    .claim = s3_claim,
    .release = s3_release,
    .refusal = s3_refusal,
    .read_fact = s3_read_fact,
    .write_fact = s3_write_fact,
    .find_sha256 = s3_find_sha256,
};

static const struct store_search_ops s3_search_ops = {
    .may_look_up = s3_may_look_up,
    .look_up = s3_look_up,
    .report = s3_report_all,
    .reconfigure = s3_reconfigure,
    .interrupt = s3_interrupt,
};

/* --- staging --- */

static enum zt_status make_folder(const char *path, struct zt_error *error)
{
    if (mkdir(path, FOLDER_MODE) == 0 || errno == EEXIST)
        return ZT_OK;
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "uploads cannot be staged in %.150s: %s", path,
                   strerrordesc_np(errno));
}

static enum zt_status open_staging(struct s3_store *store, uint64_t reserve_bytes,
                                   struct zt_error *error)
{
    struct s3_writing *writing = store->writing;
    char path[PATH_SIZE];
    char journal[PATH_SIZE + sizeof(JOURNAL_FOLDER)];
    enum zt_status status;

    assert(writing->staging_folder < 0 && writing->journal < 0);
    snprintf(path, sizeof(path), "%s/%s", store->folder, S3_STAGING_FOLDER);
    snprintf(journal, sizeof(journal), "%s/%s", path, JOURNAL_FOLDER);
    status = make_folder(path, error);
    if (status == ZT_OK)
        status = make_folder(journal, error);
    if (status != ZT_OK)
        return status;
    writing->journal = open(journal, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    status = store_root_open(path, &writing->staging_folder, error);
    if (status != ZT_OK)
        return status;
    staging_init(&writing->staging, writing->staging_folder);
    writing->staging.is_beside_cache = true;
    store->base.staging = &writing->staging;
    staging_set_reserve(&writing->staging, reserve_bytes);
    staging_sweep(&writing->staging);
    return ZT_OK;
}

static void prepare_writing(struct s3_store *store, uint64_t reserve_bytes)
{
    struct zt_error error;

    assert(atomic_load(&store->writing->mode) == S3_MODE_UNKNOWN);
    if (!store->config->writable) {
        s3_mode_settle(store->writing, S3_MODE_REFUSED, LOG_LEVEL_INFO,
                       "this server does not accept uploads");
        return;
    }
    if (open_staging(store, reserve_bytes, &error) != ZT_OK) {
        s3_mode_settle(store->writing, S3_MODE_REFUSED, LOG_LEVEL_ERROR, error.message);
        return;
    }
    s3_keeper_take_over(store);
    if (atomic_load(&store->bucket.was_reached))
        (void)s3_probe(store, &error);
    if (atomic_load(&store->writing->mode) == S3_MODE_UNKNOWN)
        log_write(LOG_LEVEL_WARN, "uploads: %s", s3_mode_words(store->writing));
    if (!s3_keeper_start(store))
        log_write(LOG_LEVEL_WARN,
                  "no thread for cleaning up: files of dead writers are not removed");
}

/* --- opening --- */

static struct s3_writing *new_writing(const char *cache_folder)
{
    struct s3_writing *writing = calloc(1, sizeof(*writing));

    if (writing == NULL)
        return NULL;
    writing->cache_folder = strdup(cache_folder);
    writing->staging_folder = -1;
    writing->journal = -1;
    atomic_init(&writing->mode, S3_MODE_UNKNOWN);
    pthread_mutex_init(&writing->lock, NULL);
    pthread_cond_init(&writing->changed, NULL);
    return writing;
}

/* Checks the bucket of claims, if one is configured. */
static enum zt_status check_claims(struct s3_store *store, struct zt_error *error)
{
    const struct config *config = store->config;
    struct zt_error why;

    if (!config->writable || config->s3.single_writer || !atomic_load(&store->bucket.was_reached) ||
        bucket_check(&store->claims, &why) != ZT_ARGUMENT)
        return ZT_OK;
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "s3.claims_bucket: %s at %s: %.150s",
                   store->claims.name, store->claims.origin, why.message);
}

static enum zt_status connect_all(struct s3_store *store, struct zt_error *error)
{
    const struct cache_options options = {.folder = store->folder,
                                          .max_bytes = (uint64_t)store->config->cache.max_bytes,
                                          .workers = store->workers};
    enum zt_status status = cache_open(&options, &store->cache, error);

    assert(status != ZT_OK || store->cache != NULL);
    if (status == ZT_OK)
        status = s3_connect(store, error);
    if (status != ZT_OK)
        return status;
    store->claims = store->bucket;
    if (store->config->s3.claims_bucket[0] == '\0')
        return ZT_OK;
    s3_other_bucket(store, store->config->s3.claims_bucket, &store->claims);
    return check_claims(store, error);
}

enum zt_status store_s3_open(const struct config *config, const char *cache_folder,
                             struct workers *workers, uint64_t reserve_bytes,
                             struct store **out_store, struct zt_error *error)
{
    struct s3_store *store = calloc(1, sizeof(*store));
    enum zt_status status = ZT_OK;

    if (store == NULL)
        return zt_fail_memory(error, "the store");
    store->base.ops = &s3_ops;
    store->base.search = &s3_search_ops;
    store->base.claims = &s3_claim_ops;
    store->base.shared = &s3_shared_ops;
    store->config = config;
    store->workers = workers;
    store->writing = new_writing(cache_folder);
    if (store->writing == NULL || store->writing->cache_folder == NULL) {
        status = zt_fail_memory(error, "the store");
    } else {
        store->folder = store->writing->cache_folder;
        status = connect_all(store, error);
    }
    if (status != ZT_OK) {
        s3_close(&store->base);
        return status;
    }
    prepare_writing(store, reserve_bytes);
    *out_store = &store->base;
    return ZT_OK;
}
