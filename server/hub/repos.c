/* The table of repositories. Each is listed by one thread at a time, whose result the others
 * take. */
#include "hub/repos.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/server.h"
#include "tree/stored_file.h"

/* How long a listing is what is there now, unless something is published meanwhile. */
#define FRESH_MS 1000
/* Of one repository, the youngest; and the most that any has. */
#define VERSIONS_MAX 32
/* Files in all remembered versions: some 200 bytes each. Repositories that were not asked for
 * longest are forgotten first. */
#define FILES_MAX 300000
#define REPOS_MAX 4096

/* The layout of the folder in which the Hub's clients keep what they have got. */
#define CACHE_FOLDER_SIZE (HUB_REPO_SIZE + 64)

struct repo {
    struct repo *next;
    unsigned references;                        /* under the table's lock */
    int64_t used_ms;                            /* the same */
    size_t file_count;                          /* the same: of all its versions */
    pthread_mutex_t lock;                       /* of what follows */
    struct hub_version *versions[VERSIONS_MAX]; /* the youngest first */
    unsigned version_count;
    unsigned seen_changes;
    int64_t listed_ms;
    char name[HUB_REPO_SIZE];
};

struct hub_repos {
    struct server *server;
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
    if (pthread_mutex_init(&repos->lock, NULL) != 0) {
        free(repos);
        return NULL;
    }
    return repos;
}

static void free_repo(struct repo *repo)
{
    for (unsigned i = 0; i < repo->version_count; i++)
        hub_version_release(repo->versions[i]);
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
    pthread_mutex_destroy(&repos->lock);
    free(repos);
}

void hub_repos_changed(struct hub_repos *repos)
{
    atomic_fetch_add(&repos->server->files_changed, 1);
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

/* --- versions; with the repository's lock --- */

static size_t count_files(const struct repo *repo)
{
    size_t count = 0;

    for (unsigned i = 0; i < repo->version_count; i++)
        count += repo->versions[i]->count + 1;
    return count;
}

static void drop_version(struct repo *repo, unsigned at)
{
    hub_version_release(repo->versions[at]);
    repo->version_count--;
    memmove(&repo->versions[at], &repo->versions[at + 1],
            (repo->version_count - at) * sizeof(struct hub_version *));
}

/* Takes the version over as the youngest. Listed again, perhaps with more hashes, it replaces what
 * has the same files. */
static void put_first(struct repo *repo, struct hub_version *version)
{
    for (unsigned i = repo->version_count; i-- > 0;)
        if (strcmp(repo->versions[i]->provisional, version->provisional) == 0)
            drop_version(repo, i);
    while (repo->version_count == VERSIONS_MAX ||
           (repo->version_count > 1 && count_files(repo) + version->count > FILES_MAX / 2))
        drop_version(repo, repo->version_count - 1);
    memmove(&repo->versions[1], &repo->versions[0],
            repo->version_count * sizeof(struct hub_version *));
    repo->versions[0] = version;
    repo->version_count++;
}

static struct hub_version *find_version(const struct repo *repo, struct zt_text commit)
{
    for (unsigned i = 0; i < repo->version_count; i++)
        if (hub_version_is(repo->versions[i], commit))
            return repo->versions[i];
    return NULL;
}

/* --- listing --- */

/* "models--owner--name", with what follows. */
static void cache_path(const struct repo *repo, const char *rest, char out_path[CACHE_FOLDER_SIZE])
{
    const char *slash = strchr(repo->name, '/');
    const int owner = slash != NULL ? (int)(slash - repo->name) : 0;

    snprintf(out_path, CACHE_FOLDER_SIZE, "models--%.*s%s%s/%s", owner, repo->name,
             slash != NULL ? "--" : "", slash != NULL ? slash + 1 : repo->name, rest);
}

/* The commit that a Hub's cache calls "main". False: there is none. */
static bool read_main(struct server *server, const struct repo *repo,
                      char out_commit[HUB_COMMIT_SIZE])
{
    char path[CACHE_FOLDER_SIZE];
    struct stored_file *file;
    struct zt_error error;
    bool is_read;

    cache_path(repo, "refs/main", path);
    if (stored_file_open(server, zt_text_from(path), &file, &error) != ZT_OK)
        return false;
    is_read = zt_source_size(file->source) >= HUB_COMMIT_SIZE - 1 &&
              zt_source_read_at(file->source, 0, out_commit, HUB_COMMIT_SIZE - 1, &error) == ZT_OK;
    stored_file_close(file);
    out_commit[HUB_COMMIT_SIZE - 1] = '\0';
    return is_read && hub_revision_of(zt_text_from(out_commit)) == HUB_REVISION_COMMIT;
}

/* A snapshot of a Hub's cache. */
static enum zt_status list_snapshot(struct server *server, struct repo *repo, const char *commit,
                                    struct zt_error *error)
{
    struct hub_version *version;
    char rest[16 + HUB_COMMIT_SIZE];
    char folder[CACHE_FOLDER_SIZE];
    char blobs[CACHE_FOLDER_SIZE];
    enum zt_status status;

    snprintf(rest, sizeof(rest), "snapshots/%s", commit);
    cache_path(repo, rest, folder);
    cache_path(repo, "blobs", blobs);
    status = hub_version_make(server, folder, commit, blobs, &version, error);
    if (status == ZT_OK)
        put_first(repo, version);
    return status;
}

/* Lists what is there now. */
static enum zt_status list_now(struct hub_repos *repos, struct repo *repo, struct zt_error *error)
{
    const unsigned changes = atomic_load(&repos->server->files_changed);
    const int64_t now_ms = clock_ms();
    struct hub_version *version;
    char commit[HUB_COMMIT_SIZE];
    enum zt_status status;

    if (repo->version_count > 0 && repo->listed_ms != 0 && repo->seen_changes == changes &&
        now_ms - repo->listed_ms < FRESH_MS)
        return ZT_OK;
    status = hub_version_make(repos->server, repo->name, NULL, NULL, &version, error);
    if (status == ZT_OK)
        put_first(repo, version);
    else if (status == ZT_NOT_FOUND && read_main(repos->server, repo, commit))
        status = list_snapshot(repos->server, repo, commit, error);
    if (status == ZT_OK) {
        repo->seen_changes = changes;
        repo->listed_ms = now_ms;
    }
    return status;
}

/* A folder that only holds other folders is their owner, and no repository. */
static bool is_owner(const struct repo *repo)
{
    const struct hub_version *version = repo->versions[0];

    if (strchr(repo->name, '/') != NULL || version->count == 0)
        return false;
    for (size_t i = 0; i < version->count; i++)
        if (strchr(version->files[i].path, '/') == NULL)
            return false;
    return true;
}

static enum hub_found found_of(enum zt_status status)
{
    return status == ZT_OK ? HUB_FOUND : status == ZT_NOT_FOUND ? HUB_NO_REPO : HUB_FAILED;
}

static enum hub_found find_pinned(struct hub_repos *repos, struct repo *repo, struct zt_text commit,
                                  struct hub_version **out_version, struct zt_error *error)
{
    enum hub_found found = HUB_FOUND;
    char text[HUB_COMMIT_SIZE];

    *out_version = find_version(repo, commit);
    if (*out_version == NULL) {
        found = found_of(list_now(repos, repo, error));
        *out_version = find_version(repo, commit);
    }
    if (*out_version != NULL || found != HUB_FOUND)
        return found;
    *out_version = repo->versions[0];
    snprintf(text, sizeof(text), "%.*s", (int)commit.length, commit.bytes);
    if (list_snapshot(repos->server, repo, text, error) != ZT_OK)
        return HUB_NO_REVISION;
    *out_version = repo->versions[0];
    /* The youngest that is listed need not be "main". */
    repo->listed_ms = 0;
    return HUB_FOUND;
}

static enum hub_found find_in(struct hub_repos *repos, struct repo *repo, struct zt_text revision,
                              struct hub_version **out_version, struct zt_error *error)
{
    enum hub_found found;

    if (hub_revision_of(revision) == HUB_REVISION_COMMIT)
        return find_pinned(repos, repo, revision, out_version, error);
    found = found_of(list_now(repos, repo, error));
    if (found != HUB_FOUND)
        return found;
    if (is_owner(repo))
        return HUB_NO_REPO;
    *out_version = repo->versions[0];
    return hub_revision_of(revision) == HUB_REVISION_NOW ? HUB_FOUND : HUB_NO_REVISION;
}

enum hub_found hub_repos_find(struct hub_repos *repos, struct zt_text name, struct zt_text revision,
                              struct hub_version **out_version, struct zt_error *error)
{
    struct hub_version *version = NULL;
    enum hub_found found;
    struct repo *repo;
    size_t file_count;

    *out_version = NULL;
    if (!hub_repo_is_valid(name))
        return HUB_NO_REPO;
    repo = take_repo(repos, name);
    if (repo == NULL) {
        zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a repository");
        return HUB_FAILED;
    }
    pthread_mutex_lock(&repo->lock);
    found = find_in(repos, repo, revision, &version, error);
    if (version != NULL)
        *out_version = hub_version_hold(version);
    file_count = count_files(repo);
    pthread_mutex_unlock(&repo->lock);
    give_back(repos, repo, found != HUB_NO_REPO, file_count);
    return found;
}
