/* The rounds of the catalog's thread: each compares the catalog with the store, or checks only the
 * changes that the store reports. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog_content.h"
#include "catalog/catalog_open.h"

/* How often the startup progress is logged. */
#define PROGRESS_NS (10 * CLOCK_NS_PER_S)

static void update_files(struct catalog_content *content, const struct catalog_files *files)
{
    int64_t logged_ns = clock_ns();
    size_t at = 0;

    while (at < files->count && !atomic_load(&content->stopping)) {
        at += catalog_content_update(content, files->items + at, files->count - at);
        assert(at <= files->count);
        if (atomic_load(&content->loaded) || clock_ns() - logged_ns < PROGRESS_NS)
            continue;
        logged_ns = clock_ns();
        log_write(LOG_LEVEL_INFO, "%zu of %zu files are read", at, files->count);
    }
}

/* --- scans --- */

static void rejudge_shards(struct catalog_content *content)
{
    struct catalog_files models = {NULL, 0, 0};

    if (!catalog_content_rejudge(content, &models))
        log_write(LOG_LEVEL_ERROR, "no memory to look for the shards of models again");
    update_files(content, &models);
    catalog_files_free(&models);
}

static void follow_data(struct catalog_content *content)
{
    struct catalog_files models = {NULL, 0, 0};

    if (!catalog_content_find_new_data(content, &models))
        log_write(LOG_LEVEL_ERROR, "no memory to look for the external data of models again");
    update_files(content, &models);
    catalog_files_free(&models);
}

/* Logs a failure when it changes. An unreachable store logs that itself, once. */
static void log_failure(struct catalog_content *content, const struct zt_error *error)
{
    assert(error->status != ZT_OK);
    if (error->status == ZT_UNAVAILABLE || strcmp(content->unlisted_why, error->message) == 0)
        return;
    log_write(LOG_LEVEL_WARN, "the catalog is unchanged: %s", error->message);
    if (store_may_wait(content->server->store))
        memcpy(content->unlisted_why, error->message, sizeof(content->unlisted_why));
}

/* Returns false if the store could not be listed. */
static bool compare_with_store(struct catalog_content *content)
{
    struct catalog_files files = {NULL, 0, 0};
    struct catalog_files changed = {NULL, 0, 0};
    struct zt_error error;

    if (catalog_files_list(content->server->store, &files, &error) != ZT_OK) {
        log_failure(content, &error);
        return false;
    }
    content->unlisted_why[0] = '\0';
    unopened_clear(content);
    if (!catalog_content_compare(content, &files, &changed))
        log_write(LOG_LEVEL_ERROR, "no memory to compare the catalog with the store");
    update_files(content, &changed);
    catalog_files_free(&changed);
    catalog_files_free(&files);
    return true;
}

void catalog_content_scan(struct catalog_content *content)
{
    const bool is_listed = compare_with_store(content);

    atomic_store(&content->unlisted, !is_listed);
    rejudge_shards(content);
    follow_data(content);
    /* If a remote store cannot be listed, it is not known to be empty, so the catalog is not loaded
     * yet. */
    if ((is_listed || !store_may_wait(content->server->store)) && !atomic_load(&content->loaded) &&
        !atomic_load(&content->stopping))
        catalog_content_loaded(content);
}

static bool take_found(void *context, const char *path, const struct file_identity *identity)
{
    return catalog_files_add(context, path, identity);
}

bool catalog_content_search(struct catalog_content *content, struct zt_text name)
{
    struct store *store = content->server->store;
    struct catalog_files files = {NULL, 0, 0};
    struct zt_error error;
    const bool has_answered =
        store->search->look_up(store, name, take_found, &files, &error) == ZT_OK;

    if (has_answered) {
        catalog_content_drop_known(content, &files);
        update_files(content, &files);
    }
    catalog_files_free(&files);
    return has_answered;
}

bool catalog_content_stat(struct catalog_content *content)
{
    struct catalog_files files = {NULL, 0, 0};
    struct zt_error error;
    bool whole = false;

    if (catalog_files_stat(content->server->store, &files, &whole, &error) == ZT_OK) {
        catalog_content_drop_known(content, &files);
        update_files(content, &files);
    } else {
        whole = true;
    }
    catalog_files_free(&files);
    return !whole;
}
