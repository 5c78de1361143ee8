/* Starts and stops the parts of a server in order: a part starts after the parts that it uses, and
 * stops before them. */
#include "serve/instance.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access/access.h"
#include "access/lease.h"
#include "base/log.h"
#include "base/memo.h"
#include "base/process_figures.h"
#include "base/processors.h"
#include "base/server.h"
#include "base/timed_waits.h"
#include "base/workers.h"
#include "catalog/catalog.h"
#include "config/bucket.h"
#include "derived/decoded.h"
#include "derived/export_plan.h"
#include "derived/manifest_json.h"
#include "digests/file_hashes.h"
#include "disk/open_files.h"
#include "http/limits/admission.h"
#include "http/tls/tls.h"
#include "http/wire/listener.h"
#include "http/wire/loop.h"
#include "hub/repos.h"
#include "hub/write/lfs_key.h"
#include "hub/write/staged_objects.h"
#include "hub/xet/session.h"
#include "numbers/component_numbers.h"
#include "s3/s3api_key_list.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_view.h"
#include "s3/write/s3api_upload.h"
#include "serve/collection.h"
#include "serve/confinement.h"
#include "serve/idle_memory.h"
#include "serve/idle_timer.h"
#include "serve/root.h"
#include "serve/upstream_files.h"
#include "store/staging.h"
#include "store/store.h"
#include "upload/shared/kept_uploads.h"
#include "upload/shared/registry.h"
#include "upload/tus/resumable.h"
#include "upload/writer/writer_session.h"
#include "verify/verifier.h"

/* Number of threads for work that may wait for a remote store; they mostly sleep. */
#define WAITERS 64

/* The kinds of uploads that outlive their request. */
static const struct kept_kind *const upload_kinds[] = {
    &writer_kind, &resumable_kind, &staged_kind, &xet_session_kind, &s3api_upload_kind, NULL};

struct instance {
    struct config config;
    struct server server;
    struct listener listener;    /* sockets that a loop has taken over are -1 */
    struct listener s3_listener; /* the same for s3.listen; count 0: none */
    struct idle_timer *idle;
    struct collection *collection; /* NULL: no versions are kept */
    struct upstream_tokens tokens; /* until the mirror is open */
};

static unsigned worker_count(const struct config *config)
{
    return config->workers > 0 ? (unsigned)config->workers : processors_count();
}

/* Returns true also if there are none to open. */
static bool open_s3_sockets(struct instance *instance, char *error, size_t error_size)
{
    struct listener *listener = &instance->s3_listener;

    if (instance->config.s3.listen[0] == '\0')
        return true;
    listener->sockets = calloc(instance->listener.count, sizeof(int));
    if (listener->sockets == NULL) {
        snprintf(error, error_size, "cannot start: out of memory");
        return false;
    }
    listener->count = instance->listener.count;
    if (listener_open(listener, instance->config.s3.listen, error, error_size) == 0)
        return true;
    listener->count = 0;
    return false;
}

static bool open_sockets(struct instance *instance, const struct service_sockets *inherited,
                         char *error, size_t error_size)
{
    struct listener *listener = &instance->listener;
    unsigned count =
        instance->config.threads > 0 ? (unsigned)instance->config.threads : processors_count();
    int status;

    assert(listener->sockets == NULL && instance->server.loops == NULL);
    /* Each loop accepts from one socket. */
    if (count < inherited->count)
        count = inherited->count;
    instance->server.loops = calloc(count, sizeof(struct loop *));
    listener->sockets = calloc(count, sizeof(int));
    if (listener->sockets == NULL || instance->server.loops == NULL) {
        snprintf(error, error_size, "cannot start: out of memory");
        return false;
    }
    listener->count = count;
    status =
        inherited->count > 0
            ? listener_share(listener, inherited->descriptors, inherited->count, error, error_size)
            : listener_open(listener, instance->config.listen, error, error_size);
    if (status != 0)
        listener->count = 0;
    return status == 0 && open_s3_sockets(instance, error, error_size);
}

static bool start_workers(struct instance *instance, char *error, size_t error_size)
{
    struct server *server = &instance->server;
    const bool may_wait =
        config_root_is_bucket(instance->config.root) || instance->config.upstream_count > 0;

    server->workers = workers_start((unsigned)instance->config.workers);
    if (may_wait)
        server->waiters = workers_start(WAITERS);
    if (server->workers != NULL && (!may_wait || server->waiters != NULL))
        return true;
    snprintf(error, error_size, "cannot start: out of memory or threads");
    return false;
}

/* Otherwise one client's model could use a file as its shard that only another client may see. */
static void choose_shards(struct server *server)
{
    const struct grants *grants = server->access->grants;

    const bool by_name = grants != NULL && grants_limit_models(grants);

    if (atomic_exchange(&server->shards_by_name, by_name) != by_name && server->catalog != NULL)
        catalog_refresh(server->catalog);
}

static bool start_parts(struct instance *instance, char *error, size_t error_size)
{
    struct server *server = &instance->server;
    struct catalog_observer observer;

    server->decoded = decoded_cache_new(server);
    server->exports = export_memo_new();
    server->numbers_memo = numbers_memo_new();
    server->manifests = manifest_memo_new();
    server->hub = hub_repos_new(server);
    server->s3_lists = s3api_key_lists_new();
    server->s3_views = s3api_views_new();
    server->hash_queue = hash_queue_new(server, worker_count(&instance->config) / 2);
    server->hashes = file_hashes_new(server);
    server->s3_meta = s3api_meta_new(&instance->config);
    server->verifier = server->hash_queue != NULL ? verifier_new(server) : NULL;
    open_files_reckon(open_files_for_connections(&instance->config));
    server->waits = timed_waits_new();
    server->registry = registry_new(instance->config.upload.expire_s);
    server->kept = kept_uploads_new(server, upload_kinds);
    observer = verifier_observer(server->verifier);
    server->catalog = catalog_new(server, &observer);
    server->is_loaded = catalog_is_loaded;
    server->poll_changes = catalog_poll_changes;
    if (server->decoded == NULL || server->exports == NULL || server->numbers_memo == NULL ||
        server->manifests == NULL || server->hub == NULL || server->s3_lists == NULL ||
        server->s3_views == NULL || server->verifier == NULL || server->hashes == NULL ||
        server->s3_meta == NULL || server->hash_queue == NULL || server->registry == NULL ||
        server->kept == NULL || server->waits == NULL || server->catalog == NULL) {
        snprintf(error, error_size, "cannot start: out of memory or threads");
        return false;
    }
    lfs_key_load(&instance->config, server->lfs_key);
    kept_uploads_restore(server->kept);
    return true;
}

/* Returns true also if there is none to start. */
static bool start_tls(struct instance *instance, char *error, size_t error_size)
{
    struct tls_version *version;

    if (instance->config.tls.cert[0] == '\0')
        return true;
    version = tls_load(&instance->config, error, error_size);
    if (version == NULL)
        return false;
    instance->server.tls = tls_new(version);
    if (instance->server.tls == NULL)
        snprintf(error, error_size, "cannot start: out of memory");
    return instance->server.tls != NULL;
}

static bool start_loops(struct instance *instance, char *error, size_t error_size)
{
    struct server *server = &instance->server;
    struct listener *listener = &instance->listener;
    struct listener *s3_listener = &instance->s3_listener;
    int none = -1;

    assert(server->loop_count == 0);
    while (server->loop_count < listener->count) {
        int *socket = &listener->sockets[server->loop_count];
        int *s3_socket = s3_listener->count > 0 ? &s3_listener->sockets[server->loop_count] : &none;
        struct loop *loop = loop_start(server, *socket, *s3_socket, error, error_size);

        if (loop == NULL)
            return false;
        *socket = -1;
        *s3_socket = -1;
        server->loops[server->loop_count++] = loop;
    }
    return true;
}

/* Loads the files that the configuration names. */
static bool load_files(struct instance *instance, char *error, size_t error_size)
{
    instance->server.access = access_load(&instance->config, error, error_size);
    return instance->server.access != NULL && start_tls(instance, error, error_size) &&
           upstream_tokens_load(&instance->config, &instance->tokens, error, error_size);
}

struct instance *instance_start(const struct config *config, const char *config_file,
                                const struct service_sockets *inherited, char *error,
                                size_t error_size, bool *out_misconfigured)
{
    struct instance *instance = calloc(1, sizeof(*instance));
    int changes;

    *out_misconfigured = false;
    if (instance == NULL) {
        snprintf(error, error_size, "cannot start: out of memory");
        return NULL;
    }
    instance->config = *config;
    instance->server.config = &instance->config;
    process_figures_open();
    *out_misconfigured = !load_files(instance, error, error_size);
    if (*out_misconfigured || !open_sockets(instance, inherited, error, error_size) ||
        !root_open_folder(&instance->server, config_file, error, error_size)) {
        instance_stop(instance);
        return NULL;
    }
    choose_shards(&instance->server);
    access_warn(instance->server.access, NULL, config);
    upstream_tokens_warn(config);
    /* No thread exists yet, and everything outside the allowed places is already open. */
    confinement_begin(&instance->config, config_file);
    zt_source_allow_mapped();
    zt_model_set_memory_limit((uint64_t)config->limits.manifest_bytes);
    if (!start_workers(instance, error, error_size) ||
        !root_open_bucket(&instance->server, error, error_size) ||
        !root_open_mirror(&instance->server, &instance->tokens, error, error_size) ||
        !start_parts(instance, error, error_size) || !start_loops(instance, error, error_size)) {
        instance_stop(instance);
        return NULL;
    }
    upstream_tokens_free(&instance->tokens);
    changes = catalog_watch(instance->server.catalog);
    if (changes < 0 || loop_watch(instance->server.loops[0], changes, catalog_read_changes,
                                  instance->server.catalog) != 0)
        log_write(LOG_LEVEL_WARN, "changed files will be noticed only on SIGHUP");
    kept_uploads_watch(instance->server.kept);
    instance->idle = idle_memory_watch(&instance->server);
    instance->collection = collection_watch(&instance->server);
    catalog_refresh(instance->server.catalog);
    if (instance->s3_listener.count > 0)
        log_write(LOG_LEVEL_INFO, "clients of S3 find the bucket %s also at %s://%s",
                  instance->config.s3.bucket, instance->server.tls != NULL ? "https" : "http",
                  instance->s3_listener.address);
    return instance;
}

const char *instance_address(const struct instance *instance)
{
    return instance->listener.address;
}

const struct config *instance_config(const struct instance *instance)
{
    return &instance->config;
}

bool instance_is_stranded(const struct instance *instance)
{
    struct store *store = instance->server.store;
    struct store_report report;

    if (!store_may_wait(store))
        return false;
    store->search->report(store, &report);
    return report.is_unreachable && !report.has_list;
}

bool instance_is_loaded(const struct instance *instance)
{
    return catalog_is_loaded(instance->server.catalog);
}

bool instance_has_models(const struct instance *instance)
{
    static const struct catalog_page page = {.prefix = {"", 0}, .after = {"", 0}, .limit = 1};
    struct generation *first = NULL;
    struct catalog_page_end end;
    size_t count = catalog_list(instance->server.catalog, &page, &first, &end);

    generation_release(first);
    return count > 0;
}

size_t instance_misnamed_files(const struct instance *instance)
{
    const struct store *store = instance->server.store;

    return store->ops->misnamed_files(store);
}

void instance_refresh(struct instance *instance)
{
    catalog_refresh(instance->server.catalog);
}

/* The results of a reload before they are applied. */
struct reloaded {
    struct access *access;
    struct lease **leases;   /* one for each loop */
    struct tls_version *tls; /* NULL without TLS */
    struct upstream_tokens tokens;
};

static void discard(struct reloaded *reloaded, unsigned loop_count)
{
    for (unsigned i = 0; reloaded->leases != NULL && i < loop_count; i++)
        if (reloaded->leases[i] != NULL)
            lease_end(reloaded->leases[i]);
    free(reloaded->leases);
    access_release(reloaded->access);
    tls_release(reloaded->tls);
    upstream_tokens_free(&reloaded->tokens);
}

static bool make_leases(struct reloaded *reloaded, unsigned loop_count, char *error,
                        size_t error_size)
{
    bool made;

    assert(loop_count > 0);
    reloaded->leases = calloc(loop_count, sizeof(struct lease *));
    made = reloaded->leases != NULL;
    for (unsigned i = 0; made && i < loop_count; i++) {
        reloaded->leases[i] = lease_new(reloaded->access);
        made = reloaded->leases[i] != NULL;
    }
    if (!made)
        snprintf(error, error_size, "out of memory");
    return made;
}

/* Determines the new configuration, without the changes that need a restart. Its keys must be
 * consistent: without tokens, a server that listens on all addresses must not stay writable because
 * the file now says that it listens on loopback. */
static bool choose_effective(const struct instance *instance, const struct config *wanted,
                             struct config *out_effective, char *error, size_t error_size)
{
    const bool has_tls = instance->server.tls != NULL;
    struct config_message message;

    *out_effective = *wanted;
    config_keep_fixed(out_effective, &instance->config);
    if (has_tls != (wanted->tls.cert[0] != '\0')) {
        log_write(LOG_LEVEL_WARN, "tls.cert was set or removed; the change takes effect when the "
                                  "server is restarted");
        out_effective->tls = instance->config.tls;
    }
    if ((instance->config.versions.keep == 0) != (wanted->versions.keep == 0)) {
        log_write(LOG_LEVEL_WARN, "versions.keep was changed to or from 0; the change takes effect "
                                  "when the server is restarted");
        out_effective->versions = instance->config.versions;
    }
    if (config_validate(out_effective, &message))
        return true;
    snprintf(error, error_size, "%s", message.text);
    return false;
}

/* Does everything that can fail. If it returns false, all results have been freed. */
static bool prepare_reload(struct instance *instance, const struct config *wanted,
                           struct reloaded *out_reloaded, char *error, size_t error_size)
{
    const unsigned loop_count = instance->server.loop_count;
    const bool has_tls = instance->server.tls != NULL;
    struct reloaded reloaded = {.access = access_load(wanted, error, error_size)};
    bool made = reloaded.access != NULL && make_leases(&reloaded, loop_count, error, error_size);

    if (made && has_tls) {
        reloaded.tls = tls_load(wanted, error, error_size);
        made = reloaded.tls != NULL;
    }
    made = made && upstream_tokens_load(wanted, &reloaded.tokens, error, error_size);
    /* Withheld before any of these files is used. */
    if (made && !root_withhold(&instance->server, wanted, NULL)) {
        snprintf(error, error_size, "the settings have named too many files since the start");
        made = false;
    }
    /* The last step that can fail, so a refused token leaves everything else unchanged. */
    made = made && root_reload_mirror(&instance->server, &reloaded.tokens, error, error_size);
    if (made) {
        *out_reloaded = reloaded;
        return true;
    }
    discard(&reloaded, loop_count);
    return false;
}

/* Most parts read numbers from the configuration each time; these have copies. */
static void put_numbers_in_force(struct instance *instance, const struct config *wanted)
{
    struct server *server = &instance->server;

    config_put_in_force(&instance->config, wanted);
    zt_model_set_memory_limit((uint64_t)config_number(&instance->config.limits.manifest_bytes));
    registry_set_expiry(server->registry, instance->config.upload.expire_s);
    staging_set_reserve(server->store->staging, root_reserve_bytes(&instance->config));
    if (store_may_wait(server->store))
        server->store->search->reconfigure(server->store);
    for (unsigned i = 0; i < server->loop_count; i++)
        loop_reload(server->loops[i]);
}

/* Applies the results. This cannot fail. */
static void put_in_force(struct instance *instance, const struct config *wanted,
                         struct reloaded *reloaded)
{
    struct server *server = &instance->server;

    put_numbers_in_force(instance, wanted);
    upstream_tokens_free(&reloaded->tokens);
    for (unsigned i = 0; i < server->loop_count; i++)
        loop_set_lease(server->loops[i], reloaded->leases[i]);
    free(reloaded->leases);
    access_release(server->access);
    server->access = reloaded->access;
    choose_shards(server);
    if (reloaded->tls != NULL)
        tls_replace(server->tls, reloaded->tls);
}

bool instance_reload(struct instance *instance, const struct config *wanted, char *error,
                     size_t error_size)
{
    struct config effective;
    struct reloaded reloaded;

    if (!choose_effective(instance, wanted, &effective, error, error_size) ||
        !prepare_reload(instance, &effective, &reloaded, error, error_size))
        return false;
    access_warn(reloaded.access, instance->server.access, &effective);
    upstream_tokens_warn(&effective);
    put_in_force(instance, &effective, &reloaded);
    confinement_renew(&effective);
    return true;
}

bool instance_is_turning(const struct instance *instance)
{
    bool all = true;

    for (unsigned i = 0; i < instance->server.loop_count; i++)
        all = loop_has_turned(instance->server.loops[i]) && all;
    return all;
}

void instance_leave(struct instance *instance)
{
    atomic_store(&instance->server.draining, true);
    timed_waits_end(instance->server.waits);
}

void instance_drain(struct instance *instance)
{
    instance_leave(instance);
    for (unsigned i = 0; i < instance->server.loop_count; i++)
        loop_drain(instance->server.loops[i]);
}

bool instance_is_drained(const struct instance *instance)
{
    for (unsigned i = 0; i < instance->server.loop_count; i++)
        if (!loop_is_drained(instance->server.loops[i]))
            return false;
    return true;
}

unsigned instance_connections(void)
{
    unsigned surplus;
    const unsigned admitted = admission_count(&surplus);

    return admitted + surplus;
}

unsigned instance_active(const struct instance *instance)
{
    unsigned active = 0;

    for (unsigned i = 0; i < instance->server.loop_count; i++)
        active += loop_active(instance->server.loops[i]);
    return active;
}

/* Aborts work that requests wait for, so that stopping the loops does not take as long as hashing a
 * large file. */
static void stop_work(struct server *server)
{
    verifier_stop(server->verifier);
    memo_stop(server->numbers_memo);
    memo_stop(server->exports);
    decoded_cache_stop(server->decoded);
    hash_queue_stop(server->hash_queue);
    timed_waits_end(server->waits);
}

/* Frees the parts. Parts that were never started are NULL, which their free functions accept. */
static void free_parts(struct server *server)
{
    assert(server->loop_count == 0);
    /* Its tasks hold models. */
    hash_queue_free(server->hash_queue);
    catalog_free(server->catalog);
    timed_waits_free(server->waits);
    /* The saver may hold the last reference to a model, and freeing a model drops texts from the
     * memos. */
    verifier_finish(server->verifier);
    memo_free(server->numbers_memo);
    memo_free(server->manifests);
    hub_repos_free(server->hub);
    memo_free(server->s3_lists);
    memo_free(server->s3_views);
    memo_free(server->exports);
    decoded_cache_free(server->decoded);
    verifier_free(server->verifier);
    kept_uploads_free(server->kept);
    registry_free(server->registry);
    /* Must come after the verifier, which saves the digests of files with its verdicts. */
    file_hashes_free(server->hashes);
    s3api_meta_free(server->s3_meta);
    if (server->store != NULL)
        server->store->ops->close(server->store);
}

static void close_sockets(struct listener *listener)
{
    for (unsigned i = 0; i < listener->count; i++)
        if (listener->sockets[i] >= 0)
            close(listener->sockets[i]);
    free(listener->sockets);
}

void instance_stop(struct instance *instance)
{
    struct server *server;

    if (instance == NULL)
        return;
    server = &instance->server;
    atomic_store(&server->draining, true);
    if (server->store != NULL && store_may_wait(server->store))
        server->store->search->interrupt(server->store);
    /* Loops start last. Without a loop there are no requests, and other parts may be missing. */
    if (server->loop_count > 0)
        stop_work(server);
    while (server->loop_count > 0)
        loop_stop(server->loops[--server->loop_count]);
    workers_stop(server->waiters);
    workers_stop(server->workers);
    idle_timer_free(instance->idle);
    collection_free(instance->collection);
    free_parts(server);
    access_release(server->access);
    tls_free(server->tls);
    upstream_tokens_free(&instance->tokens);
    free(server->loops);
    close_sockets(&instance->listener);
    close_sockets(&instance->s3_listener);
    free(instance);
}
