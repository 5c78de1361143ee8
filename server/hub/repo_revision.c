#include "hub/repo_revision.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "store/versions/versions_store.h"

/* How often to list a commit that stops being the current one meanwhile. */
#define MOVES_MAX 4

static enum zt_status list_once(struct server *server, const struct store_revision *found,
                                struct hub_version **out_version, struct zt_error *error)
{
    if (strlen(found->commit) != HUB_COMMIT_SIZE - 1)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the commit of a mirrored repository is not a SHA-1");
    return hub_version_make(server,
                            &(struct hub_listing){.folder = found->folder,
                                                  .commit = found->commit,
                                                  .is_mirrored = true},
                            out_version, error);
}

/* The folder of the current commit has other files as soon as the repository moves, so the commit
 * must be the same before and after. */
enum zt_status repo_revision_list_mirrored(struct server *server, const char *name,
                                           struct zt_text revision,
                                           const struct store_revision *found,
                                           struct hub_version **out_version, bool *out_is_now,
                                           struct zt_error *error)
{
    struct store *store = server->store;
    struct store_revision before = *found;
    struct store_revision after;

    for (int i = 0; i < MOVES_MAX; i++, before = after) {
        enum zt_status status = list_once(server, &before, out_version, error);

        if (status == ZT_OK)
            status = store->revisions->find(store, name, revision, &after, error);
        if (status == ZT_OK && strcmp(before.commit, after.commit) == 0 &&
            strcmp(before.folder, after.folder) == 0) {
            *out_is_now = before.is_current;
            return ZT_OK;
        }
        hub_version_release(*out_version);
        *out_version = NULL;
        if (status != ZT_OK)
            return status;
    }
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "the mirrored repository keeps changing");
}

/* --- kept --- */

static enum zt_status list_folder(struct server *server, const char *folder, const char *commit,
                                  struct hub_version **out_version, struct zt_error *error)
{
    return hub_version_make(
        server, &(struct hub_listing){.folder = folder, .commit = commit, .is_kept = true},
        out_version, error);
}

enum zt_status repo_revision_list_kept(struct server *server, struct zt_text revision,
                                       const struct store_revision *found,
                                       struct hub_version **out_version, struct zt_error *error)
{
    enum zt_status status;

    assert(found->is_kept);
    status = list_folder(server, found->folder, NULL, out_version, error);
    if (status != ZT_OK || hub_revision_of(revision) != HUB_REVISION_COMMIT ||
        hub_version_is(*out_version, revision))
        return status;
    hub_version_release(*out_version);
    *out_version = NULL;
    return list_folder(server, found->folder, found->commit, out_version, error);
}

/* --- with views --- */

/* How many commits of the log to read at once, about 3 KB each. */
#define PAGE_COMMITS 64

/* A search for kept files. */
struct search {
    struct server *server;
    struct history_repo repo;
    struct zt_text commit;
    char last[HISTORY_COMMIT_SIZE]; /* the files that were listed last */
    struct hub_version *found;
};

/* Lists the files of a commit if its name begins like the wanted one. */
static enum zt_status try_commit(struct search *search, const char *id, struct zt_error *error)
{
    char folder[MODEL_PATH_SIZE + HUB_COMMIT_SIZE];
    struct hub_version *version;
    enum zt_status status;

    assert(search->found == NULL && strlen(id) == HUB_COMMIT_SIZE - 1);
    if (memcmp(id, search->commit.bytes, HUB_STORED_DIGITS) != 0 || strcmp(id, search->last) == 0)
        return ZT_NOT_FOUND;
    strcpy(search->last, id);
    snprintf(folder, sizeof(folder), "%s@%s", search->repo.name, id);
    status = list_folder(search->server, folder, NULL, &version, error);
    if (status != ZT_OK)
        return status;
    if (hub_version_is(version, search->commit)) {
        search->found = version;
        return ZT_OK;
    }
    hub_version_release(version);
    return ZT_NOT_FOUND;
}

/* Searches the commits of a branch or tag. Returns ZT_NOT_FOUND if it is not among them. */
static enum zt_status search_ref(struct search *search, const char *ref, struct zt_error *error)
{
    struct history *history = store_history(search->server->store);
    enum zt_status status = ZT_NOT_FOUND;
    uint64_t below = UINT64_MAX;
    size_t count = PAGE_COMMITS;

    while (status == ZT_NOT_FOUND && count == PAGE_COMMITS) {
        struct history_commit *commits;

        status = history_list(history, &search->repo, zt_text_from(ref), below, PAGE_COMMITS,
                              &commits, &count, error);
        if (status != ZT_OK)
            break;
        status = ZT_NOT_FOUND;
        assert(count <= PAGE_COMMITS);
        for (size_t i = 0; i < count && status == ZT_NOT_FOUND; i++) {
            status = try_commit(search, commits[i].id, error);
            below = commits[i].number;
        }
        free(commits);
    }
    return status;
}

enum zt_status repo_revision_list_viewed(struct server *server, const char *name,
                                         struct zt_text commit, struct hub_version **out_version,
                                         struct zt_error *error)
{
    struct history *history = store_history(server->store);
    struct search search = {.server = server, .commit = commit};
    struct history_ref *refs;
    enum zt_status status;
    size_t count;

    assert(commit.length == HUB_COMMIT_SIZE - 1);
    *out_version = NULL;
    if (history == NULL || !server->config->hub.views)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there are no kept views");
    snprintf(search.repo.name, sizeof(search.repo.name), "%s", name);
    status = history_refs(history, &search.repo, &refs, &count, error);
    if (status != ZT_OK)
        return status;
    status = ZT_NOT_FOUND;
    for (size_t i = 0; i < count && status == ZT_NOT_FOUND; i++)
        status = search_ref(&search, refs[i].name, error);
    free(refs);
    assert((status == ZT_OK) == (search.found != NULL));
    *out_version = search.found;
    return status;
}
