/* What the catalog's thread does in a round: compares the catalog with the store, or looks only at
 * what the store says has changed. */
#include "base/log.h"
#include "catalog/catalog_content.h"

static void update_files(struct catalog_content *content, const struct catalog_files *files)
{
    size_t at = 0;

    while (at < files->count && !atomic_load(&content->stopping))
        at += catalog_content_update(content, files->items + at, files->count - at);
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

void catalog_content_scan(struct catalog_content *content)
{
    struct catalog_files files = {NULL, 0, 0};
    struct catalog_files changed = {NULL, 0, 0};
    struct zt_error error;

    if (catalog_files_list(content->server->store, &files, &error) == ZT_OK) {
        if (!catalog_content_compare(content, &files, &changed))
            log_write(LOG_LEVEL_ERROR, "no memory to compare the catalog with the store");
        update_files(content, &changed);
    } else {
        log_write(LOG_LEVEL_WARN, "the catalog stays as it is: %s", error.message);
    }
    catalog_files_free(&changed);
    catalog_files_free(&files);
    rejudge_shards(content);
    if (!atomic_load(&content->loaded) && !atomic_load(&content->stopping))
        catalog_content_loaded(content);
}

bool catalog_content_look(struct catalog_content *content)
{
    struct catalog_files files = {NULL, 0, 0};
    struct zt_error error;
    bool whole = false;

    if (catalog_files_look(content->server->store, &files, &whole, &error) == ZT_OK) {
        catalog_content_drop_known(content, &files);
        update_files(content, &files);
    } else {
        whole = true;
    }
    catalog_files_free(&files);
    return !whole;
}
