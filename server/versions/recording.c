/* Records the state of a repository's folder before and after a change. */
#include "versions/recording.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "store/versions/versions_store.h"
#include "versions/folder_state.h"
#include "zt/digest.h"

/* The title of commits for changes by other programs. */
#define FOUND "Found in the folder"

static struct history *history_of(const struct server *server)
{
    return store_history(server->store);
}

static atomic_uint *recordings_of(struct server *server, const struct history_repo *repo)
{
    const size_t count = sizeof(server->recordings) / sizeof(server->recordings[0]);

    return &server->recordings[zt_xxh3(repo->name, strlen(repo->name)) % count];
}

bool recording_is_in_progress(struct server *server, const struct history_repo *repo)
{
    return atomic_load(recordings_of(server, repo)) > 0;
}

static enum zt_status lock(struct server *server, const struct history_repo *repo,
                           struct zt_error *error)
{
    const enum zt_status status = history_lock(history_of(server), repo, error);

    if (status == ZT_OK)
        atomic_fetch_add(recordings_of(server, repo), 1);
    return status;
}

static void unlock(struct server *server, const struct history_repo *repo)
{
    atomic_fetch_sub(recordings_of(server, repo), 1);
    history_unlock(history_of(server), repo);
}

void recording_prepare(struct server *server, const struct history_repo *repo)
{
    struct folder_state state;
    struct zt_error ignored;

    if (history_of(server) != NULL && folder_state_read(server, repo, &state, &ignored) == ZT_OK)
        folder_state_free(&state);
}

/* A repository without files and commits has no log. */
static bool is_unknown(struct history *history, const struct history_repo *repo)
{
    struct history_found found;
    struct zt_error ignored;

    return history_find(history, repo, zt_text_from(HISTORY_MAIN), &found, &ignored) ==
           ZT_NOT_FOUND;
}

static enum zt_status record(struct server *server, const struct history_repo *repo,
                             const struct history_note *note, struct history_commit *out_commit,
                             struct zt_error *error)
{
    struct history *history = history_of(server);
    struct folder_state state;
    enum zt_status status = folder_state_read(server, repo, &state, error);

    assert(history != NULL && note->title != NULL);
    memset(out_commit, 0, sizeof(*out_commit));
    if (status != ZT_OK)
        return status;
    if (state.count > 0 || !is_unknown(history, repo))
        status = history_record(history, repo,
                                &(struct history_head){HISTORY_MAIN, state.files, state.count},
                                note, out_commit, error);
    folder_state_free(&state);
    atomic_fetch_add(&server->commits_recorded, 1);
    return status;
}

enum zt_status recording_begin(struct recording *recording, struct server *server,
                               const struct history_repo *repo, struct zt_error *error)
{
    static const struct history_note found = {.title = FOUND};
    struct history_commit ignored;
    enum zt_status status;

    *recording = (struct recording){.is_locked = false};
    if (history_of(server) == NULL)
        return ZT_OK;
    status = lock(server, repo, error);
    if (status != ZT_OK)
        return status;
    status = record(server, repo, &found, &ignored, error);
    if (status != ZT_OK) {
        unlock(server, repo);
        return status;
    }
    *recording = (struct recording){.server = server, .repo = *repo, .is_locked = true};
    return ZT_OK;
}

enum zt_status recording_end(struct recording *recording, const struct history_note *note,
                             struct history_commit *out_commit, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    memset(out_commit, 0, sizeof(*out_commit));
    if (!recording->is_locked)
        return ZT_OK;
    assert(recording->server != NULL);
    if (note != NULL)
        status = record(recording->server, &recording->repo, note, out_commit, error);
    if (status != ZT_OK)
        log_write(LOG_LEVEL_WARN,
                  "%s was changed, but its commit could not be recorded; the next change records "
                  "it: %s",
                  recording->repo.name, error->message);
    unlock(recording->server, &recording->repo);
    recording->is_locked = false;
    return status;
}
