/* The table of repositories. Each is listed by one thread at a time, without a lock: what is known
 * can be read meanwhile, and who needs the list waits for it without a thread. */
#include "hub/repos.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/server.h"
#include "base/workers.h"
#include "hub/cached_repo.h"
#include "hub/created_repos.h"
#include "hub/repo_versions.h"

/* How long a listing is what is there now, unless something is published meanwhile. */
#define FRESH_MS 1000
/* How long nobody waits for hashes of a repository after they could not be found. */
#define WAIT_AGAIN_MS 60000
/* Files in all remembered versions: some 200 bytes each. Repositories that were not asked for
 * longest are forgotten first. */
#define FILES_MAX 300000
#define REPOS_MAX 4096

struct repo {
    struct repo *next;
    unsigned references;  /* under the table's lock */
    int64_t used_ms;      /* the same */
    size_t file_count;    /* the same: of all its versions */
    pthread_mutex_t lock; /* of what follows; never held while anything is read */
    struct repo_versions versions;
    bool is_listed_now;     /* somebody is listing it */
    uint64_t begun;         /* lists so far */
    uint64_t ended;         /* the last of them that found what is there now */
    unsigned seen_changes;  /* before that one */
    int64_t listed_ms;      /* its end; 0: there was none */
    int64_t seen_ms;        /* when the folder was seen last; 0: never */
    bool has_waited;        /* for hashes, in vain */
    int64_t waited_ms;      /* the end of that */
    struct waiter *waiters; /* for the end of the list */
    char name[HUB_REPO_SIZE];
};

struct hub_repos {
    struct server *server;
    struct created_repos *created;
    pthread_mutex_t lock; /* of what follows */
    struct repo *first;
    size_t count;
    size_t file_count;
};

struct hub_repos *hub_repos_new(struct server *server)
{
    struct hub_repos *repos = calloc(1, sizeof(*repos));

    if (repos == NULL)
        return NULL;
    repos->server = server;
    repos->created = created_repos_new();
    if (repos->created != NULL && pthread_mutex_init(&repos->lock, NULL) == 0)
        return repos;
    created_repos_free(repos->created);
    free(repos);
    return NULL;
}

static void free_repo(struct repo *repo)
{
    repo_versions_free(&repo->versions);
    pthread_mutex_destroy(&repo->lock);
    free(repo);
}

void hub_repos_free(struct hub_repos *repos)
{
    if (repos == NULL)
        return;
    while (repos->first != NULL) {
        struct repo *repo = repos->first;

        repos->first = repo->next;
        free_repo(repo);
    }
    created_repos_free(repos->created);
    pthread_mutex_destroy(&repos->lock);
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

/* --- the table --- */

static struct repo *new_repo(struct zt_text name)
{
    struct repo *repo = calloc(1, sizeof(*repo));

    if (repo == NULL)
        return NULL;
    assert(name.length < sizeof(repo->name));
    memcpy(repo->name, name.bytes, name.length);
    if (pthread_mutex_init(&repo->lock, NULL) == 0)
        return repo;
    free(repo);
    return NULL;
}

/* NULL: out of memory. */
static struct repo *take_repo(struct hub_repos *repos, struct zt_text name)
{
    struct repo *repo;

    pthread_mutex_lock(&repos->lock);
    for (repo = repos->first; repo != NULL && !zt_text_is(name, repo->name);)
        repo = repo->next;
    if (repo == NULL && (repo = new_repo(name)) != NULL) {
        repo->next = repos->first;
        repos->first = repo;
        repos->count++;
    }
    if (repo != NULL) {
        repo->references++;
        repo->used_ms = clock_ms();
    }
    pthread_mutex_unlock(&repos->lock);
    return repo;
}

/* Takes one out of the table that nobody uses: one without versions, or else the one that was asked
 * for least recently. With the table's lock. NULL: there is none. */
static struct repo *take_out(struct hub_repos *repos, bool any)
{
    struct repo **least = NULL;
    struct repo *repo;

    for (struct repo **at = &repos->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->references > 0 || ((*at)->file_count > 0 && !any))
            continue;
        if (least == NULL || (*at)->used_ms < (*least)->used_ms)
            least = at;
    }
    if (least == NULL)
        return NULL;
    repo = *least;
    *least = repo->next;
    repos->count--;
    repos->file_count -= repo->file_count;
    return repo;
}

static void give_back(struct hub_repos *repos, struct repo *repo, bool exists, size_t file_count)
{
    struct repo *gone = NULL;

    pthread_mutex_lock(&repos->lock);
    repos->file_count += file_count - repo->file_count;
    repo->file_count = file_count;
    repo->references--;
    while (repos->file_count > FILES_MAX || repos->count > REPOS_MAX || !exists) {
        struct repo *next = take_out(repos, exists);

        if (next == NULL)
            break;
        next->next = gone;
        gone = next;
        exists = true;
    }
    pthread_mutex_unlock(&repos->lock);
    while (gone != NULL) {
        struct repo *next = gone->next;

        free_repo(gone);
        gone = next;
    }
}

/* --- listing --- */

static bool was_created(const struct hub_repos *repos, const struct repo *repo)
{
    const struct config *config = repos->server->config;

    return created_repos_has(repos->created, repo->name,
                             1000 * config_number(&config->upload.expire_s));
}

/* What is there now. */
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

/* --- what is known; with the repository's lock --- */

static bool is_pinned(const struct hub_lookup *lookup)
{
    return hub_revision_of(lookup->revision) == HUB_REVISION_COMMIT;
}

/* Whether this list is not what the request has come again for. */
static bool needs_hashes(const struct repo *repo, const struct hub_lookup *lookup)
{
    return lookup->may_take_long && repo->versions.now != NULL && repo->versions.now->can_be_final;
}

/* Also a list that began after the request came is one of what is there now, however often it
 * changes. */
static bool knows_now(const struct hub_repos *repos, const struct repo *repo,
                      const struct hub_lookup *lookup)
{
    if (repo->versions.now == NULL || repo->listed_ms == 0 || needs_hashes(repo, lookup))
        return false;
    return repo->ended > lookup->begun ||
           (repo->seen_changes == atomic_load(&repos->server->files_changed) &&
            clock_ms() - repo->listed_ms < FRESH_MS);
}

/* The version that a commit names. What a folder states of a commit may grow: clients fill it file
 * by file. */
static struct hub_version *find_pinned(struct repo *repo, const struct hub_lookup *lookup)
{
    struct hub_version *version = repo_versions_find(&repo->versions, lookup->revision);

    return version != NULL && version->is_stated && clock_ms() - version->listed_ms >= FRESH_MS
               ? NULL
               : version;
}

/* A folder that only holds other folders is their owner, and no repository. */
static bool is_owner(const struct repo *repo)
{
    const struct hub_version *version = repo->versions.now;

    if (strchr(repo->name, '/') != NULL)
        return false;
    for (size_t i = 0; i < version->count; i++)
        if (strchr(version->files[i].path, '/') == NULL)
            return false;
    return version->count > 0 || version->has_folders;
}

/* With what is there now. */
static enum hub_found conclude(struct repo *repo, struct hub_lookup *lookup)
{
    struct hub_version *version = repo->versions.now;
    enum hub_found found = HUB_FOUND;

    if (is_pinned(lookup)) {
        version = repo_versions_find(&repo->versions, lookup->revision);
        if (version == NULL ||
            (lookup->is_again && version != repo->versions.now && !version->is_stated)) {
            version = repo->versions.now;
            found = HUB_NO_REVISION;
        }
    } else if (is_owner(repo)) {
        return HUB_NO_REPO;
    } else if (hub_revision_of(lookup->revision) != HUB_REVISION_NOW) {
        found = HUB_NO_REVISION;
    }
    lookup->version = hub_version_hold(version);
    return found;
}

/* Whether the folder need not be looked for. In a bucket that would be a request to the store, each
 * time. */
static bool is_seen(const struct hub_repos *repos, const struct repo *repo)
{
    return store_is_elsewhere(repos->server->store) || repo->is_listed_now ||
           (repo->seen_ms != 0 && clock_ms() - repo->seen_ms < FRESH_MS);
}

/* HUB_BUSY: it must be listed. */
static enum hub_found look(const struct hub_repos *repos, struct repo *repo,
                           struct hub_lookup *lookup)
{
    const bool is_remembered = is_pinned(lookup) && !lookup->is_again;
    struct hub_version *version = is_remembered ? find_pinned(repo, lookup) : NULL;

    if (!lookup->has_begun)
        lookup->begun = repo->begun;
    lookup->has_begun = true;
    if (version != NULL && is_seen(repos, repo)) {
        lookup->version = hub_version_hold(version);
        return HUB_FOUND;
    }
    return is_remembered || !knows_now(repos, repo, lookup) ? HUB_BUSY : conclude(repo, lookup);
}

/* --- looking --- */

static enum hub_found found_of(enum zt_status status)
{
    return status == ZT_OK ? HUB_FOUND : status == ZT_NOT_FOUND ? HUB_NO_REPO : HUB_FAILED;
}

/* Requests do not wait again soon for what could not be hashed: a file may be written to all the
 * time. */
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

/* Makes what is there now known. With the lock, which is not held while the list is made. */
static enum zt_status learn_now(struct hub_repos *repos, struct repo *repo,
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

/* The same for a commit that only a folder may know. */
static void learn_snapshot(struct hub_repos *repos, struct repo *repo, struct hub_lookup *lookup)
{
    char commit[HUB_COMMIT_SIZE];
    struct hub_version *version = NULL;
    enum zt_status status;

    snprintf(commit, sizeof(commit), "%.*s", (int)lookup->revision.length, lookup->revision.bytes);
    pthread_mutex_unlock(&repo->lock);
    status = cached_repo_list(repos->server, repo->name, commit, &version, &lookup->error);
    pthread_mutex_lock(&repo->lock);
    if (status == ZT_OK)
        repo_versions_put(&repo->versions, version, false);
}

/* What is remembered can be asked for as long as the store does not say that nothing is there. */
static enum hub_found conclude_without_now(struct repo *repo, struct hub_lookup *lookup,
                                           enum zt_status status)
{
    struct hub_version *version =
        is_pinned(lookup) ? repo_versions_find(&repo->versions, lookup->revision) : NULL;

    if (version == NULL)
        return found_of(status);
    lookup->version = hub_version_hold(version);
    return status == ZT_NOT_FOUND ? HUB_NO_REVISION : HUB_FOUND;
}

/* Whether a version is remembered and its folder still there, whatever is in it now. With the lock,
 * which is not held meanwhile. */
static bool see_pinned(const struct hub_repos *repos, struct repo *repo,
                       const struct hub_lookup *lookup)
{
    struct hub_version *version = lookup->is_again ? NULL : find_pinned(repo, lookup);
    struct zt_error error;
    enum zt_status status;

    if (version == NULL)
        return false;
    hub_version_hold(version);
    pthread_mutex_unlock(&repo->lock);
    status = hub_folder_look(repos->server, version->folder, &error);
    hub_version_release(version);
    pthread_mutex_lock(&repo->lock);
    if (status != ZT_OK)
        return false;
    repo->seen_ms = clock_ms();
    return true;
}

static enum hub_found list(struct hub_repos *repos, struct repo *repo, struct hub_lookup *lookup)
{
    enum zt_status status = ZT_OK;

    if (is_pinned(lookup) && see_pinned(repos, repo, lookup))
        return conclude(repo, lookup);
    if (!knows_now(repos, repo, lookup))
        status = learn_now(repos, repo, lookup);
    if (status != ZT_OK)
        return conclude_without_now(repo, lookup, status);
    if (is_pinned(lookup) && find_pinned(repo, lookup) == NULL)
        learn_snapshot(repos, repo, lookup);
    return conclude(repo, lookup);
}

/* Lists it, and has all who wait for that look again. */
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
    give_back(repos, repo, lookup->found != HUB_NO_REPO, file_count);
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
    give_back(repos, repo, true, file_count);
    return must_wait;
}
