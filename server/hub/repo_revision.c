#include "hub/repo_revision.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
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
                                           struct repo_mirrored *out_mirrored,
                                           struct zt_error *error)
{
    struct store *store = server->store;
    struct store_revision before = *found;
    struct store_revision after;

    for (int i = 0; i < MOVES_MAX; i++, before = after) {
        enum zt_status status = list_once(server, &before, &out_mirrored->version, error);

        if (status == ZT_OK)
            status = store->revisions->find(store, name, revision, &after, error);
        if (status == ZT_OK && strcmp(before.commit, after.commit) == 0 &&
            strcmp(before.folder, after.folder) == 0) {
            out_mirrored->is_now = before.is_current;
            return ZT_OK;
        }
        hub_version_release(out_mirrored->version);
        out_mirrored->version = NULL;
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

/* Other states of a repository whose commits begin alike hardly exist. */
#define CANDIDATES_MAX 8
#define DIGIT_BYTES    (HUB_STORED_DIGITS / 2)

/* The kept commits that begin like a wanted one. */
struct search {
    uint8_t beginning[DIGIT_BYTES];
    size_t count;
    char candidates[CANDIDATES_MAX][HISTORY_COMMIT_SIZE];
};

/* The same state may occur more than once in a log. */
static bool is_candidate(const struct search *search, const char *commit)
{
    for (size_t i = 0; i < search->count; i++)
        if (strcmp(search->candidates[i], commit) == 0)
            return true;
    return false;
}

static bool collect(void *context, const uint8_t id[20])
{
    struct search *search = context;
    char commit[HISTORY_COMMIT_SIZE];

    assert(search->count < CANDIDATES_MAX);
    if (memcmp(id, search->beginning, sizeof(search->beginning)) != 0)
        return true;
    zt_hex_write(commit, id, 20);
    if (!is_candidate(search, commit))
        strcpy(search->candidates[search->count++], commit);
    return search->count < CANDIDATES_MAX;
}

/* Lists a candidate. Returns ZT_NOT_FOUND if it does not have the wanted commit with its views. */
static enum zt_status try_candidate(struct server *server, const char *folder,
                                    struct zt_text commit, struct hub_version **out_version,
                                    struct zt_error *error)
{
    enum zt_status status = list_folder(server, folder, NULL, out_version, error);

    if (status != ZT_OK || hub_version_is(*out_version, commit))
        return status;
    hub_version_release(*out_version);
    *out_version = NULL;
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the views are other ones");
}

enum zt_status repo_revision_list_viewed(struct server *server, const char *name,
                                         struct zt_text commit, struct hub_version **out_version,
                                         struct zt_error *error)
{
    struct history *history = store_history(server->store);
    struct history_repo repo = {.is_root_model = false};
    struct search search = {.count = 0};
    enum zt_status status = ZT_NOT_FOUND;

    assert(commit.length == HUB_COMMIT_SIZE - 1);
    *out_version = NULL;
    if (history == NULL || !server->config->hub.views ||
        !zt_hex_read_lower((struct zt_text){commit.bytes, HUB_STORED_DIGITS}, search.beginning,
                           sizeof(search.beginning)))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there are no kept views");
    snprintf(repo.name, sizeof(repo.name), "%s", name);
    if (history_visit(history, &repo, collect, &search, error) != ZT_OK)
        return error->status;
    for (size_t i = 0; i < search.count && status == ZT_NOT_FOUND; i++) {
        char folder[MODEL_PATH_SIZE + HUB_COMMIT_SIZE];

        snprintf(folder, sizeof(folder), "%s@%s", name, search.candidates[i]);
        status = try_candidate(server, folder, commit, out_version, error);
    }
    return status;
}
