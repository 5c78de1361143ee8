#include "hub/write/kept_commit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/repo_current.h"
#include "store/versions/versions_store.h"
#include "versions/recording.h"

#define EMPTY_TITLE "Without files"

bool kept_commit_has_no_repo(struct request *request, const struct history_repo *repo)
{
    struct history *history = store_history(request->server->store);
    struct hub_version *version;
    struct history_ref *refs = NULL;
    struct zt_error ignored;
    size_t count = 0;
    bool exists;

    if (!repo_current_find(request->server, zt_text_from(repo->name), &version, &ignored))
        return false;
    exists = version != NULL;
    hub_version_release(version);
    if (!exists && history_refs(history, repo, &refs, &count, &ignored) == ZT_OK)
        exists = count > 0;
    free(refs);
    return !exists;
}

static enum zt_status find(struct request *request, const struct history_repo *repo,
                           struct zt_text revision, char out_commit[HISTORY_COMMIT_SIZE],
                           struct zt_error *error)
{
    struct history_found found;
    const enum zt_status status =
        history_find(store_history(request->server->store), repo, revision, &found, error);

    if (status == ZT_OK)
        memcpy(out_commit, found.commit, HISTORY_COMMIT_SIZE);
    return status;
}

/* Records what other programs have put into the folder. */
static enum zt_status record_folder(struct request *request, const struct history_repo *repo,
                                    struct zt_error *error)
{
    struct recording recording;
    struct history_commit ignored;
    enum zt_status status;

    recording_prepare(request->server, repo);
    status = recording_begin(&recording, request->server, repo, error);
    return status == ZT_OK ? recording_end(&recording, NULL, &ignored, error) : status;
}

enum zt_status kept_commit_make_empty(struct request *request, const struct history_repo *repo,
                                      const char *branch, struct zt_error *error)
{
    struct history *history = store_history(request->server->store);
    const struct history_note note = {.client = request->client, .title = EMPTY_TITLE};
    struct history_commit ignored;
    struct history_found found;
    enum zt_status status = history_lock(history, repo, error);

    if (status != ZT_OK)
        return status;
    status = ZT_NOT_FOUND;
    /* main has the folder's files, and another client may just have put the first ones there. */
    if (strcmp(branch, HISTORY_MAIN) == 0)
        status = history_find(history, repo, zt_text_from(branch), &found, error);
    if (status == ZT_NOT_FOUND)
        status = history_record(history, repo, &(struct history_head){branch, NULL, 0}, &note,
                                &ignored, error);
    history_unlock(history, repo);
    return status;
}

static enum zt_status find_main(struct request *request, const struct history_repo *repo,
                                char out_commit[HISTORY_COMMIT_SIZE], struct zt_error *error)
{
    const struct zt_text main = zt_text_from(HISTORY_MAIN);
    enum zt_status status = record_folder(request, repo, error);

    if (status == ZT_OK)
        status = find(request, repo, main, out_commit, error);
    if (status != ZT_NOT_FOUND)
        return status;
    status = kept_commit_make_empty(request, repo, HISTORY_MAIN, error);
    return status == ZT_OK ? find(request, repo, main, out_commit, error) : status;
}

/* A commit may cover views, or name a folder's state that is not recorded yet. */
static enum zt_status find_stored(struct request *request, const struct history_repo *repo,
                                  struct zt_text revision, char out_commit[HISTORY_COMMIT_SIZE],
                                  struct zt_error *error)
{
    struct hub_version *version;
    char stored[HUB_COMMIT_SIZE] = "";
    enum zt_status status;

    switch (
        repo_current_look(request->server, zt_text_from(repo->name), revision, &version, error)) {
    case HUB_FOUND:
        memcpy(stored, version->stored, sizeof(stored));
        break;
    case HUB_NO_REPO:
    case HUB_NO_REVISION:
        break;
    case HUB_FAILED:
    case HUB_BUSY:
        return error->status;
    }
    hub_version_release(version);
    status = find(request, repo, zt_text_from(stored), out_commit, error);
    if (stored[0] == '\0' || status != ZT_NOT_FOUND)
        return status;
    status = record_folder(request, repo, error);
    return status == ZT_OK ? find(request, repo, zt_text_from(stored), out_commit, error) : status;
}

enum zt_status kept_commit_find(struct request *request, const struct history_repo *repo,
                                struct zt_text revision, char out_commit[HISTORY_COMMIT_SIZE],
                                struct zt_error *error)
{
    enum zt_status status;

    if (hub_revision_of(revision) == HUB_REVISION_NOW)
        return find_main(request, repo, out_commit, error);
    if (!hub_revision_is_valid(revision))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no revision has this name");
    status = find(request, repo, revision, out_commit, error);
    return status == ZT_NOT_FOUND && hub_revision_of(revision) == HUB_REVISION_COMMIT
               ? find_stored(request, repo, revision, out_commit, error)
               : status;
}
