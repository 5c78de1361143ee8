/* Opening and closing a mirror, its state, and what changes with the configuration. */
#include "store/mirror/mirror.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cache/cache.h"
#include "remote/remote.h"
#include "store/mirror/mirror_prefetch.h"
#include "store/mirror/mirror_state.h"
#include "store/mirror/mirror_store.h"
#include "store/s3/s3_store.h"
#include "store/s3/s3_upstream.h"

#define PATH_SIZE   (CONFIG_TEXT_SIZE + CONFIG_UPSTREAM_NAME_SIZE + 32)
#define FOLDER_MODE 0700
/* Requests on their way to one upstream. */
#define CONNECTIONS 32
#define GLOBS_MAX   64

static struct mirror *cast(struct store *store)
{
    assert(mirror_is(store));
    return mirror_of(store);
}

/* --- an upstream --- */

static void on_verified(void *context, const struct mirror_place *place)
{
    struct mirror_upstream *upstream = context;

    assert(place->is_verified);
    mirror_index_mark(&upstream->mirror->index, place, place->proof);
    mirror_seek_again(upstream->mirror, &place->file);
}

static void after_verified(void *context, const struct mirror_place *place)
{
    struct mirror_upstream *upstream = context;

    /* An open that saw the old verdict may have taken the mark back meanwhile
     * (mirror_index_agree). */
    mirror_index_mark(&upstream->mirror->index, place, place->proof);
    mirror_index_save_soon(&upstream->mirror->index, place->file.repository);
}

/* Readers that have it open find that it changed. */
static void on_wrong(void *context, const struct mirror_place *place)
{
    struct mirror_upstream *upstream = context;
    char path[MODEL_PATH_SIZE];

    atomic_fetch_add(&upstream->wrong_files, 1);
    mirror_index_note_wrong(&upstream->mirror->index, place);
    mirror_index_doubt(&upstream->mirror->index, place->file.repository);
    if (mirror_name_join(place->file.repository, place->file.path, path))
        mirror_changes_add(&upstream->mirror->changes, path);
}

/* So the name of the model, and not only the repository, has a reason. */
static void on_failed(void *context, const struct mirror_place *place, const struct zt_error *error)
{
    struct mirror_upstream *upstream = context;
    char path[MODEL_PATH_SIZE];
    char model[MODEL_NAME_MAX + 1];

    if (mirror_name_join(place->file.repository, place->file.path, path) &&
        model_path_name(path, model))
        mirror_keep_failure(upstream->mirror, model, error);
}

static void on_stale(void *context, const char *repository)
{
    const struct mirror_upstream *upstream = context;

    mirror_index_doubt(&upstream->mirror->index, repository);
}

/* A bucket is reached as the S3 client does, unless the upstream's own settings say otherwise. */
static enum zt_status start_remote(struct mirror_upstream *upstream, const struct config *whole,
                                   struct zt_error *error)
{
    const struct config_upstream *config = upstream->config;
    const bool is_bucket = config->kind == CONFIG_UPSTREAM_S3;
    const char *ca = config->ca[0] == '\0' && is_bucket ? s3_ca_file(whole) : config->ca;
    const char *proxy = config->proxy[0] == '\0' && is_bucket ? whole->s3.proxy : config->proxy;
    const struct remote_options options = {.ca_file = ca != NULL && ca[0] != '\0' ? ca : NULL,
                                           .proxy = proxy[0] != '\0' ? proxy : NULL,
                                           .connections = CONNECTIONS};

    return remote_start(&options, &upstream->remote, error);
}

static const struct upstream_kind *const kinds[] = {[CONFIG_UPSTREAM_HUB] = &upstream_hub,
                                                    [CONFIG_UPSTREAM_ZTSERVE] = &upstream_ztserve,
                                                    [CONFIG_UPSTREAM_S3] = &s3_upstream};

static enum zt_status open_upstream(struct mirror_upstream *upstream, const struct config *whole,
                                    const char *token, struct zt_error *error)
{
    const struct config_upstream *config = upstream->config;
    struct zt_text globs[GLOBS_MAX];
    struct upstream_options options = {.name = config->name,
                                       .kind = kinds[config->kind],
                                       .url = config->url,
                                       .token = token,
                                       .globs = globs,
                                       .is_offline = config_flag(&config->offline),
                                       .remote = upstream->remote,
                                       .config = whole,
                                       .on_stale = on_stale,
                                       .context = upstream};
    const char *position = config->match;
    const char *word;
    size_t length;

    while ((word = config_list_next(&position, &length)) != NULL) {
        if (options.glob_count == GLOBS_MAX)
            return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                           "upstream %s: match has more than %d globs", config->name, GLOBS_MAX);
        globs[options.glob_count++] = (struct zt_text){word, length};
    }
    return upstream_new(&options, &upstream->upstream, error);
}

static uint64_t room_of(struct cache *cache)
{
    uint64_t used;
    uint64_t limit;

    assert(cache != NULL);
    cache_room(cache, &used, &limit);
    return limit;
}

static enum zt_status open_cache(struct mirror_upstream *upstream,
                                 const struct mirror_options *options, struct zt_error *error)
{
    char folder[PATH_SIZE];
    const struct cache_options cache = {.folder = folder,
                                        .max_bytes =
                                            (uint64_t)config_number(&upstream->config->keep),
                                        .workers = options->workers};
    enum zt_status status;

    snprintf(folder, sizeof(folder), "%s/%s", options->folder, upstream->config->name);
    if (mkdir(folder, FOLDER_MODE) != 0 && errno != EEXIST)
        log_write(LOG_LEVEL_WARN, "%s cannot be made: %m", folder);
    status = cache_open(&cache, &upstream->cache, error);
    if (status == ZT_OK && access(folder, W_OK) == 0 && room_of(upstream->cache) == 0)
        log_write(LOG_LEVEL_WARN,
                  "%s: the disk has no room beyond its reserve, so mirrored files are not kept",
                  folder);
    return status;
}

/* --- prefetching --- */

static enum zt_status list_repository(void *context, struct mirror_prefetch_list *list,
                                      struct zt_error *error)
{
    struct mirror_upstream *upstream = context;
    struct mirror *mirror = upstream->mirror;
    struct store_revision found;
    struct mirror_target target;
    char path[MODEL_PATH_SIZE];
    enum zt_status status;

    mirror_doubt(mirror, list->repository, zt_text_from(list->revision));
    status = mirror->base.revisions->find(&mirror->base, list->repository,
                                          zt_text_from(list->revision), &found, error);
    if (status != ZT_OK)
        return status;
    memcpy(list->commit, found.commit, sizeof(list->commit));
    if (!mirror_find_known(mirror, found.folder, &target))
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "%s has changed", list->repository);
    for (size_t i = 0; i < target.version->count; i++) {
        const struct mirror_entry *entry = &target.version->entries[i];

        if (mirror_name_join(found.folder, entry->path, path) &&
            !list->visit(list->context, path, entry->size_bytes))
            break;
    }
    mirror_version_release(target.version);
    return ZT_OK;
}

static enum zt_status open_file(void *context, const char *path, struct zt_source **out_source,
                                struct zt_error *error)
{
    struct mirror_upstream *upstream = context;
    struct store *store = &upstream->mirror->base;
    struct file_identity identity;

    return store->ops->open(store, path, out_source, &identity, error);
}

static uint64_t find_room(void *context)
{
    const struct mirror_upstream *upstream = context;

    return room_of(upstream->cache);
}

/* --- opening --- */

static enum zt_status open_files(struct mirror_upstream *upstream,
                                 const struct mirror_options *options, struct zt_error *error)
{
    const struct mirror_files_options files = {.fetch = upstream_fetch,
                                               .upstream = upstream->upstream,
                                               .cache = upstream->cache,
                                               .workers = options->workers,
                                               .waiters = options->waiters,
                                               .shared = upstream->mirror->base.inner,
                                               .is_strict = config_flag(&upstream->config->strict),
                                               .on_verified = on_verified,
                                               .after_verified = after_verified,
                                               .on_wrong = on_wrong,
                                               .on_failed = on_failed,
                                               .context = upstream};
    const struct mirror_prefetch_ops prefetch = {
        .list = list_repository, .open = open_file, .room = find_room, .context = upstream};
    enum zt_status status = mirror_files_new(&files, &upstream->files, error);

    if (status != ZT_OK)
        return status;
    return mirror_prefetches_new(&prefetch, options->waiters, &upstream->prefetches, error);
}

static enum zt_status add_upstream(struct mirror *mirror, const struct mirror_options *options,
                                   unsigned at, struct zt_error *error)
{
    struct mirror_upstream *upstream = &mirror->upstreams[at];
    enum zt_status status;

    upstream->mirror = mirror;
    upstream->config = &options->config->upstreams[at];
    mirror->urls[at] = upstream->config->url;
    mirror->upstream_count = at + 1;
    status = start_remote(upstream, options->config, error);
    if (status == ZT_OK)
        status = open_upstream(upstream, options->config, options->tokens[at], error);
    if (status == ZT_OK)
        status = open_cache(upstream, options, error);
    if (status == ZT_OK)
        status = open_files(upstream, options, error);
    return status;
}

static void close_upstream(struct mirror_upstream *upstream)
{
    mirror_prefetches_free(upstream->prefetches);
    mirror_shared_end(upstream->files);
    remote_stop(upstream->remote);
    mirror_files_free(upstream->files);
    cache_close(upstream->cache);
    upstream_free(upstream->upstream);
}

/* Leaves the inner store alone. */
static void free_mirror(struct mirror *mirror)
{
    for (unsigned i = 0; i < mirror->upstream_count; i++)
        close_upstream(&mirror->upstreams[i]);
    mirror_index_close(&mirror->index);
    mirror_changes_end(&mirror->changes);
    mirror_turns_end(&mirror->turns);
    pthread_mutex_destroy(&mirror->sought_lock);
    free(mirror);
}

static void mirror_close(struct store *store)
{
    struct store *inner = store->inner;

    free_mirror(cast(store));
    inner->ops->close(inner);
}

static void reconfigure(struct store *store)
{
    struct mirror *mirror = cast(store);

    for (unsigned i = 0; i < mirror->upstream_count; i++) {
        struct mirror_upstream *upstream = &mirror->upstreams[i];

        cache_set_limit(upstream->cache, (uint64_t)config_number(&upstream->config->keep));
        upstream_set_offline(upstream->upstream, config_flag(&upstream->config->offline));
        mirror_files_set_strict(upstream->files, config_flag(&upstream->config->strict));
    }
    if (store_searches(store->inner))
        store->inner->search->reconfigure(store->inner);
}

static void interrupt(struct store *store)
{
    struct mirror *mirror = cast(store);

    mirror_turns_interrupt(&mirror->turns);
    for (unsigned i = 0; i < mirror->upstream_count; i++) {
        struct mirror_upstream *upstream = &mirror->upstreams[i];

        upstream_interrupt(upstream->upstream);
        mirror_prefetches_interrupt(upstream->prefetches);
        mirror_files_interrupt(upstream->files);
        remote_interrupt(upstream->remote);
    }
    if (store_searches(store->inner))
        store->inner->search->interrupt(store->inner);
}

/* An upstream that is away does not make the store unreachable. */
static void report(struct store *store, struct store_report *out_report)
{
    struct mirror *mirror = cast(store);

    *out_report = (struct store_report){.was_reached = true, .has_list = true};
    if (store_searches(store->inner))
        store->inner->search->report(store->inner, out_report);
    for (unsigned i = 0; i < mirror->upstream_count; i++) {
        uint64_t used;
        uint64_t limit;

        cache_room(mirror->upstreams[i].cache, &used, &limit);
        out_report->cache_used_bytes += used;
        out_report->cache_limit_bytes += limit;
    }
}

enum zt_status mirror_open(struct store *inner, const struct mirror_options *options,
                           struct store **out_store, struct zt_error *error)
{
    struct mirror *mirror = calloc(1, sizeof(*mirror));
    char folder[PATH_SIZE];
    enum zt_status status = ZT_OK;

    assert(options->config->upstream_count <= CONFIG_UPSTREAMS_MAX);
    if (mirror == NULL)
        return zt_fail_memory(error, "a mirror");
    mirror->base = (struct store){.ops = &mirror->ops,
                                  .search = &mirror->search,
                                  .inner = inner,
                                  .staging = inner->staging,
                                  .history = inner->history};
    pthread_mutex_init(&mirror->sought_lock, NULL);
    mirror_changes_init(&mirror->changes);
    mirror_turns_init(&mirror->turns);
    mirror->waiters = options->waiters;
    mirror->opened_ms = clock_ms();
    mirror->search = (struct store_search_ops){
        .report = report, .reconfigure = reconfigure, .interrupt = interrupt};
    mirror->ops.close = mirror_close;
    mirror_set_inner_ops(mirror);
    mirror_set_ops(mirror);
    for (unsigned i = 0; i < options->config->upstream_count && status == ZT_OK; i++)
        status = add_upstream(mirror, options, i, error);
    snprintf(folder, sizeof(folder), "%s/repositories", options->folder);
    mirror_index_open(&mirror->index, folder, mirror->urls, mirror->upstream_count);
    if (status != ZT_OK) {
        free_mirror(mirror);
        return status;
    }
    *out_store = &mirror->base;
    return ZT_OK;
}

/* --- its state --- */

bool mirror_is(const struct store *store)
{
    return store->ops->close == mirror_close;
}

enum zt_status mirror_set_token(struct store *store, unsigned index, const char *token,
                                struct zt_error *error)
{
    assert(index < cast(store)->upstream_count);
    return upstream_set_token(cast(store)->upstreams[index].upstream, token, error);
}

unsigned mirror_upstream_of(struct store *store, struct zt_text repository)
{
    struct mirror *mirror = cast(store);
    const unsigned known = mirror_known_upstream(mirror, repository);

    assert(known == UINT_MAX || known < mirror->upstream_count);
    return known != UINT_MAX ? known : mirror_matching_upstream(mirror, repository);
}

static uint64_t count_repositories(struct mirror *mirror, unsigned upstream)
{
    uint64_t count = 0;

    pthread_mutex_lock(&mirror->index.lock);
    for (const struct recency_link *link = mirror->index.recency.newest; link != NULL;
         link = link->older)
        count += ((const struct mirror_repository *)link)->upstream == upstream;
    pthread_mutex_unlock(&mirror->index.lock);
    return count;
}

/* Bytes that clients read minus bytes that were fetched; it never falls, although fetching may be
 * ahead of clients. */
static uint64_t saved_bytes(struct mirror_upstream *upstream, uint64_t fetched)
{
    const uint64_t read = mirror_files_read_bytes(upstream->files);
    const uint64_t saved = read > fetched ? read - fetched : 0;
    uint_least64_t most = atomic_load(&upstream->saved_bytes);

    while (most < saved && !atomic_compare_exchange_weak(&upstream->saved_bytes, &most, saved))
        continue;
    return most < saved ? saved : most;
}

void mirror_report(struct store *store, unsigned index, struct mirror_report *out_report)
{
    struct mirror *mirror = cast(store);
    struct mirror_upstream *upstream = &mirror->upstreams[index];

    assert(index < mirror->upstream_count);
    *out_report = (struct mirror_report){.repositories = count_repositories(mirror, index),
                                         .hits = atomic_load(&upstream->hits),
                                         .misses = atomic_load(&upstream->misses),
                                         .wrong_files = atomic_load(&upstream->wrong_files)};
    upstream_report(upstream->upstream, &out_report->upstream);
    out_report->saved_bytes = saved_bytes(upstream, out_report->upstream.fetched_bytes);
    cache_room(upstream->cache, &out_report->cache_used_bytes, &out_report->cache_limit_bytes);
}

struct mirror_prefetches *mirror_prefetches_of(struct store *store, unsigned index)
{
    assert(index < cast(store)->upstream_count);
    return cast(store)->upstreams[index].prefetches;
}
