/* The table of repositories. Each is listed by one thread, without a lock. Meanwhile, known
 * versions can be read, and requests that need the new list wait without a thread. */
#include "hub/repos.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memo.h"
#include "base/server.h"
#include "base/thread.h"
#include "base/workers.h"
#include "hub/cached_repo.h"
#include "hub/created_repos.h"
#include "hub/repo_revision.h"
#include "hub/repo_versions.h"

/* How long a listing counts as current if no file is published. */
#define FRESH_MS 1000
/* For this time, requests do not wait for hashes of a repository after they could not be
 * computed. */
#define WAIT_AGAIN_MS 60000
/* Maximum number of files in all remembered versions, about 200 bytes each. The repositories
 * requested least recently are forgotten first. */
#define FILES_MAX 300000
#define REPOS_MAX 4096

/* The value of the memo. */
struct repo {
    pthread_mutex_t lock; /* guards the following; not held during reads */
    struct repo_versions versions;
    bool is_listed_now;     /* a request is listing it */
    uint64_t begun;         /* number of lists begun */
    uint64_t ended;         /* number of the last list that found the current version */
    unsigned seen_changes;  /* files_changed before that list */
    int64_t listed_ms;      /* end of that list; 0: none */
    int64_t seen_ms;        /* when the folder was last seen; 0: never */
    bool has_waited;        /* waited for hashes in vain */
    int64_t waited_ms;      /* when that ended */
    struct waiter *waiters; /* woken at the end of the list */
    char name[HUB_REPO_SIZE];
};

struct hub_repos {
    struct server *server;
    struct created_repos *created;
    struct memo *memo; /* name -> struct repo; charged by the number of files in all versions */
};

static void free_repo(void *value)
{
    struct repo *repo = value;

    repo_versions_free(&repo->versions);
    pthread_mutex_destroy(&repo->lock);
}

struct hub_repos *hub_repos_new(struct server *server)
{
    const struct memo_rules rules = {.value_bytes = sizeof(struct repo),
                                     .free_value = free_repo,
                                     .most = {FILES_MAX, REPOS_MAX}};
    struct hub_repos *repos = calloc(1, sizeof(*repos));

    if (repos == NULL)
        return NULL;
    repos->server = server;
    repos->created = created_repos_new();
    repos->memo = memo_new(&rules);
    if (repos->created != NULL && repos->memo != NULL)
        return repos;
    hub_repos_free(repos);
    return NULL;
}

void hub_repos_free(struct hub_repos *repos)
{
    if (repos == NULL)
        return;
    memo_free(repos->memo);
    created_repos_free(repos->created);
    free(repos);
}

void hub_repos_changed(struct hub_repos *repos)
{
    atomic_fetch_add(&repos->server->files_changed, 1);
}

enum zt_status hub_repos_create(struct hub_repos *repos, const char *name, struct zt_error *error)
{
    struct store *store = repos->server->store;
    const enum zt_status status = store->ops->make_folder != NULL
                                      ? store->ops->make_folder(store, name, error)
                                      : created_repos_add(repos->created, name, error);

    hub_repos_changed(repos);
    return status;
}

/* Returns the repository of that name, held until give_back; NULL if out of memory. */
static struct repo *take_repo(struct hub_repos *repos, struct zt_text name)
{
    struct repo *repo = memo_hold(repos->memo, name);

    if (repo != NULL && memo_get(repo, 1, NULL) == MEMO_MAKE) {
        assert(name.length < sizeof(repo->name));
        memcpy(repo->name, name.bytes, name.length);
        pthread_mutex_init(&repo->lock, NULL);
        memo_done(repo, (struct memo_charge){0, 1});
        memo_release(repo);
    }
    return repo;
}

/* Releases a repository. Names that do not exist are dropped. */
static void give_back(struct repo *repo, bool exists, size_t file_count)
{
    if (exists || file_count > 0)
        memo_recharge(repo, (struct memo_charge){file_count, 1});
    else
        memo_drop(repo);
    memo_release(repo);
}

/* --- listing --- */

static bool was_created(const struct hub_repos *repos, const struct repo *repo)
{
    const struct config *config = repos->server->config;

    return created_repos_has(repos->created, repo->name,
                             1000 * config_number(&config->upload.expire_s));
}

/* Lists the current version. */
static enum zt_status list_main(const struct hub_repos *repos, const struct repo *repo,
                                const struct hub_listing *wanted, struct hub_version **out_version,
                                struct zt_error *error)
{
    struct server *server = repos->server;
    char commit[HUB_COMMIT_SIZE];
    enum zt_status status = hub_version_make(server, wanted, out_version, error);

    if (status == ZT_NOT_FOUND && cached_repo_main(server, repo->name, commit))
        status = cached_repo_list(server, repo->name, commit, out_version, error);
    if (status == ZT_NOT_FOUND && was_created(repos, repo))
        status = hub_version_make_empty(repo->name, out_version, error);
    return status;
}

/* --- known versions; with the repository's lock --- */

static bool is_pinned(const struct hub_lookup *lookup)
{
    return hub_revision_of(lookup->revision) == HUB_REVISION_COMMIT;
}

/* Returns true if the request has come again to wait for hashes, and this list still lacks them. */
static bool needs_hashes(const struct repo *repo, const struct hub_lookup *lookup)
{
    return lookup->may_take_long && repo->versions.now != NULL && repo->versions.now->can_be_final;
}

/* Returns true if the current version is known. A list that began after the request arrived counts
 * as current, even if files keep changing. */
static bool is_up_to_date(const struct hub_repos *repos, const struct repo *repo,
                          const struct hub_lookup *lookup)
{
    if (repo->versions.now == NULL || repo->listed_ms == 0 || needs_hashes(repo, lookup))
        return false;
    return repo->ended > lookup->begun ||
           (repo->seen_changes == atomic_load(&repos->server->files_changed) &&
            clock_ms() - repo->listed_ms < FRESH_MS);
}

/* Returns the version that a commit names. A snapshot in a client's cache may grow, because clients
 * fill it file by file. */
static struct hub_version *find_pinned(struct repo *repo, const struct hub_lookup *lookup)
{
    struct hub_version *version = repo_versions_find(&repo->versions, lookup->revision);
    const bool may_grow = version != NULL && version->is_stated && !version->is_kept;

    return may_grow && clock_ms() - version->listed_ms >= FRESH_MS ? NULL : version;
}

/* Returns true for a folder that only contains other folders: it is their owner, and not a
 * repository. */
static bool is_owner(const struct repo *repo)
{
    const struct hub_version *version = repo->versions.now;

    if (strchr(repo->name, '/') != NULL || version->is_mirrored)
        return false;
    for (size_t i = 0; i < version->count; i++)
        if (strchr(version->files[i].path, '/') == NULL)
            return false;
    return version->count > 0 || version->has_folders;
}

/* Answers the lookup from the current version. */
static enum hub_found conclude(struct repo *repo, struct hub_lookup *lookup)
{
    struct hub_version *version = repo->versions.now;
    enum hub_found found = HUB_FOUND;

    if (is_pinned(lookup)) {
        version = repo_versions_find(&repo->versions, lookup->revision);
        if (version == NULL || (lookup->is_again && version != repo->versions.now &&
                                !version->is_stated && !version->is_kept)) {
            version = repo->versions.now;
            found = HUB_NO_REVISION;
        }
    } else if (is_owner(repo)) {
        return HUB_NO_REPO;
    } else if (hub_revision_of(lookup->revision) != HUB_REVISION_NOW) {
        found = HUB_NO_REVISION;
    }
    assert(version != NULL && lock_is_held(&repo->lock));
    lookup->version = hub_version_hold(version);
    return found;
}

/* Returns true if there is no need to check that the folder exists. For a bucket each check would
 * be a request. */
static bool is_seen(const struct hub_repos *repos, const struct repo *repo)
{
    return repo->is_listed_now ||
           !store_has_locally(repos->server->store, zt_text_from(repo->name)) ||
           (repo->seen_ms != 0 && clock_ms() - repo->seen_ms < FRESH_MS);
}

/* Returns HUB_BUSY if the repository must be listed. */
static enum hub_found look(const struct hub_repos *repos, struct repo *repo,
                           struct hub_lookup *lookup)
{
    const bool is_remembered = is_pinned(lookup) && !lookup->is_again;
    /* Only an upstream or a history has other names, which may have moved. */
    const bool is_other = repos->server->store->revisions != NULL &&
                          hub_revision_of(lookup->revision) == HUB_REVISION_UNKNOWN;
    struct hub_version *version = is_remembered ? find_pinned(repo, lookup) : NULL;

    if (!lookup->has_begun)
        lookup->begun = repo->begun;
    lookup->has_begun = true;
    if (version != NULL && is_seen(repos, repo)) {
        lookup->version = hub_version_hold(version);
        return HUB_FOUND;
    }
    return is_remembered || is_other || !is_up_to_date(repos, repo, lookup)
               ? HUB_BUSY
               : conclude(repo, lookup);
}

/* --- looking --- */

static enum hub_found found_of(enum zt_status status)
{
    switch (status) {
    case ZT_OK:
        return HUB_FOUND;
    case ZT_NOT_FOUND:
        return HUB_NO_REPO;
    case ZT_STALE: /* of a mirrored repository */
        return HUB_NO_REVISION;
    default:
        return HUB_FAILED;
    }
}

/* Prevents requests from waiting again soon for hashes that could not be computed: a file may be
 * written to continuously. */
static void keep_from_waiting(struct repo *repo, const struct hub_lookup *lookup,
                              struct hub_version *version)
{
    if (lookup->may_take_long && version->is_provisional) {
        repo->waited_ms = clock_ms();
        repo->has_waited = true;
    }
    if (repo->has_waited && clock_ms() - repo->waited_ms < WAIT_AGAIN_MS)
        version->can_be_final = false;
}

/* Finds the current version. The lock must be held; it is released while the list is made. */
static enum zt_status learn_from_list(struct hub_repos *repos, struct repo *repo,
                                      struct hub_lookup *lookup)
{
    const unsigned changes = atomic_load(&repos->server->files_changed);
    const uint64_t begun = ++repo->begun;
    struct hub_version *before =
        repo->versions.now != NULL ? hub_version_hold(repo->versions.now) : NULL;
    const struct hub_listing wanted = {
        .folder = repo->name, .previous = before, .may_take_long = lookup->may_take_long};
    struct hub_version *version = NULL;
    enum zt_status status;

    assert(lock_is_held(&repo->lock) && repo->is_listed_now);
    pthread_mutex_unlock(&repo->lock);
    status = list_main(repos, repo, &wanted, &version, &lookup->error);
    hub_version_release(before);
    pthread_mutex_lock(&repo->lock);
    if (status != ZT_OK)
        return status;
    keep_from_waiting(repo, lookup, version);
    repo_versions_put(&repo->versions, version, true);
    repo->ended = begun;
    repo->seen_changes = changes;
    repo->listed_ms = repo->seen_ms = clock_ms();
    return ZT_OK;
}

/* Does the same for a commit that may exist as a snapshot. */
static void learn_snapshot(struct hub_repos *repos, struct repo *repo, struct hub_lookup *lookup)
{
    char commit[HUB_COMMIT_SIZE];
    struct hub_version *version = NULL;
    enum zt_status status;

    assert(lock_is_held(&repo->lock) && repo->is_listed_now);
    snprintf(commit, sizeof(commit), "%.*s", (int)lookup->revision.length, lookup->revision.bytes);
    pthread_mutex_unlock(&repo->lock);
    status = cached_repo_list(repos->server, repo->name, commit, &version, &lookup->error);
    pthread_mutex_lock(&repo->lock);
    if (status == ZT_OK)
        repo_versions_put(&repo->versions, version, false);
}

/* Answers without a current version. Remembered versions can be used unless the store says that the
 * repository does not exist; kept ones remain even then. */
static enum hub_found conclude_without_now(struct repo *repo, struct hub_lookup *lookup,
                                           enum zt_status status)
{
    struct hub_version *version =
        is_pinned(lookup) ? repo_versions_find(&repo->versions, lookup->revision) : NULL;

    if (version == NULL)
        return found_of(status);
    lookup->version = hub_version_hold(version);
    return status == ZT_NOT_FOUND && !version->is_kept ? HUB_NO_REVISION : HUB_FOUND;
}

/* Returns true if a version is remembered and its folder still exists, with any content. The lock
 * must be held; it is released during the check. */
static bool see_pinned(const struct hub_repos *repos, struct repo *repo,
                       const struct hub_lookup *lookup)
{
    struct hub_version *version = lookup->is_again ? NULL : find_pinned(repo, lookup);
    struct zt_error error;
    enum zt_status status;

    assert(lock_is_held(&repo->lock));
    if (version == NULL)
        return false;
    hub_version_hold(version);
    pthread_mutex_unlock(&repo->lock);
    status = hub_folder_check(repos->server, version->folder, &error);
    pthread_mutex_lock(&repo->lock);
    if (status == ZT_NOT_FOUND && version->is_kept)
        repo_versions_drop(&repo->versions, version);
    hub_version_release(version);
    if (status != ZT_OK)
        return false;
    repo->seen_ms = clock_ms();
    return true;
}

/* --- revisions of the store --- */

/* Remembers a version of a mirrored repository, and answers the lookup with it. */
static enum hub_found take_mirrored(struct repo *repo, struct hub_lookup *lookup,
                                    struct hub_version *version, bool is_now)
{
    assert(version->is_mirrored && lock_is_held(&repo->lock));
    repo_versions_put(&repo->versions, version, is_now);
    lookup->version = hub_version_hold(version);
    return HUB_FOUND;
}

/* Answers a lookup of a mirrored repository. The lock must be held; it is released meanwhile. */
static enum hub_found list_mirrored(struct hub_repos *repos, struct repo *repo,
                                    struct hub_lookup *lookup, const struct store_revision *found)
{
    /* Names that cannot exist are not asked for. */
    const bool is_name = hub_revision_is_valid(lookup->revision);
    const bool wants_now = !is_name || hub_revision_of(lookup->revision) == HUB_REVISION_NOW;
    const unsigned changes = atomic_load(&repos->server->files_changed);
    const uint64_t begun = ++repo->begun;
    struct repo_mirrored mirrored = {.version = NULL};
    enum hub_found result;
    enum zt_status status;

    assert(lock_is_held(&repo->lock) && repo->is_listed_now);
    pthread_mutex_unlock(&repo->lock);
    status = repo_revision_list_mirrored(repos->server, repo->name,
                                         wants_now ? zt_text_from("main") : lookup->revision, found,
                                         &mirrored, &lookup->error);
    pthread_mutex_lock(&repo->lock);
    if (status != ZT_OK)
        return conclude_without_now(repo, lookup, status);
    result = take_mirrored(repo, lookup, mirrored.version, mirrored.is_now);
    if (wants_now) {
        repo->ended = begun;
        repo->seen_changes = changes;
        repo->listed_ms = repo->seen_ms = clock_ms();
    }
    return is_name ? result : HUB_NO_REVISION;
}

/* Answers a lookup of a kept revision. Kept files never change, so a known version is not listed
 * again, unless a file could not be opened. Returns false if it is no longer kept. The lock must be
 * held; it is released meanwhile. */
static bool list_kept(struct hub_repos *repos, struct repo *repo, struct hub_lookup *lookup,
                      const struct store_revision *kept, enum hub_found *out_found)
{
    const struct zt_text any = {"", 0};
    struct hub_version *version = NULL;
    enum zt_status status;

    assert(lock_is_held(&repo->lock) && repo->is_listed_now);
    if (!lookup->is_again)
        version = repo_versions_find_kept(&repo->versions, kept->folder,
                                          is_pinned(lookup) ? lookup->revision : any);
    *out_found = HUB_FOUND;
    if (version == NULL) {
        pthread_mutex_unlock(&repo->lock);
        status = repo_revision_list_kept(repos->server, lookup->revision, kept, &version,
                                         &lookup->error);
        pthread_mutex_lock(&repo->lock);
        if (status == ZT_NOT_FOUND)
            return false;
        if (status != ZT_OK) {
            *out_found = conclude_without_now(repo, lookup, status);
            return true;
        }
        repo_versions_put(&repo->versions, version, false);
    }
    lookup->version = hub_version_hold(version);
    return true;
}

/* Answers a lookup of a revision that the store knows. Returns false if the folder must be listed
 * for it. The lock must be held; it is released meanwhile. */
static bool find_in_store(struct hub_repos *repos, struct repo *repo, struct hub_lookup *lookup,
                          enum hub_found *out_found)
{
    struct store *store = repos->server->store;
    const bool is_name = hub_revision_is_valid(lookup->revision);
    const bool wants_now = !is_name || hub_revision_of(lookup->revision) == HUB_REVISION_NOW;
    struct store_revision found;
    enum zt_status status;

    assert(lock_is_held(&repo->lock) && repo->is_listed_now);
    if (store->revisions == NULL)
        return false;
    pthread_mutex_unlock(&repo->lock);
    status = store->revisions->find(store, repo->name,
                                    wants_now ? zt_text_from("main") : lookup->revision, &found,
                                    &lookup->error);
    pthread_mutex_lock(&repo->lock);
    if (status == ZT_NOT_FOUND || (status == ZT_OK && found.is_kept && wants_now))
        return false;
    if (status != ZT_OK)
        *out_found = conclude_without_now(repo, lookup, status);
    else if (found.is_kept)
        return list_kept(repos, repo, lookup, &found, out_found);
    else
        *out_found = list_mirrored(repos, repo, lookup, &found);
    return true;
}

/* Returns true if no version answers a pinned lookup yet. */
static bool lacks_pinned(struct repo *repo, const struct hub_lookup *lookup)
{
    const struct hub_version *version;

    if (!is_pinned(lookup))
        return false;
    version = find_pinned(repo, lookup);
    return version == NULL || (lookup->is_again && version != repo->versions.now);
}

/* Finds the kept version that a commit names together with its views. */
static void learn_viewed(struct hub_repos *repos, struct repo *repo, struct hub_lookup *lookup)
{
    struct hub_version *version = NULL;
    struct zt_error error;
    enum zt_status status;

    assert(lock_is_held(&repo->lock) && repo->is_listed_now);
    pthread_mutex_unlock(&repo->lock);
    status =
        repo_revision_list_viewed(repos->server, repo->name, lookup->revision, &version, &error);
    pthread_mutex_lock(&repo->lock);
    if (status == ZT_OK)
        repo_versions_put(&repo->versions, version, false);
}

static enum hub_found list(struct hub_repos *repos, struct repo *repo, struct hub_lookup *lookup)
{
    enum zt_status status = ZT_OK;
    enum hub_found found;

    if (is_pinned(lookup) && see_pinned(repos, repo, lookup))
        return conclude(repo, lookup);
    if (find_in_store(repos, repo, lookup, &found))
        return found;
    if (!is_up_to_date(repos, repo, lookup))
        status = learn_from_list(repos, repo, lookup);
    if (lacks_pinned(repo, lookup))
        learn_viewed(repos, repo, lookup);
    if (status != ZT_OK)
        return conclude_without_now(repo, lookup, status);
    if (is_pinned(lookup) && find_pinned(repo, lookup) == NULL)
        learn_snapshot(repos, repo, lookup);
    return conclude(repo, lookup);
}

/* Lists the repository, and then wakes the waiting requests. */
static enum hub_found list_alone(struct hub_repos *repos, struct repo *repo,
                                 struct hub_lookup *lookup)
{
    struct waiter *waiters;
    enum hub_found found;

    assert(!repo->is_listed_now);
    repo->is_listed_now = true;
    found = list(repos, repo, lookup);
    repo->is_listed_now = false;
    waiters = repo->waiters;
    repo->waiters = NULL;
    waiters_wake(waiters);
    return found;
}

void hub_repos_find(struct hub_repos *repos, struct hub_lookup *lookup)
{
    struct repo *repo;
    size_t file_count;

    lookup->version = NULL;
    lookup->found = HUB_NO_REPO;
    if (!hub_repo_is_valid(lookup->name))
        return;
    repo = take_repo(repos, lookup->name);
    if (repo == NULL) {
        lookup->found = HUB_FAILED;
        zt_fail(&lookup->error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a repository");
        return;
    }
    pthread_mutex_lock(&repo->lock);
    lookup->found = look(repos, repo, lookup);
    if (lookup->found == HUB_BUSY && !repo->is_listed_now)
        lookup->found = list_alone(repos, repo, lookup);
    file_count = repo_versions_size(&repo->versions);
    pthread_mutex_unlock(&repo->lock);
    give_back(repo, lookup->found != HUB_NO_REPO, file_count);
}

bool hub_repos_wait(struct hub_repos *repos, const struct hub_lookup *lookup, struct waiter *waiter)
{
    struct repo *repo = take_repo(repos, lookup->name);
    size_t file_count;
    bool must_wait;

    if (repo == NULL)
        return false;
    pthread_mutex_lock(&repo->lock);
    must_wait = repo->is_listed_now &&
                (is_pinned(lookup) || repo->ended <= lookup->begun || needs_hashes(repo, lookup));
    if (must_wait) {
        waiter->next = repo->waiters;
        repo->waiters = waiter;
    }
    file_count = repo_versions_size(&repo->versions);
    pthread_mutex_unlock(&repo->lock);
    give_back(repo, true, file_count);
    return must_wait;
}
