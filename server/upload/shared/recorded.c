/* Calls the recording of a repository's commits around a change. */
#include "upload/shared/recorded.h"

#include <stdio.h>
#include <string.h>

#include "base/server.h"
#include "store/versions/versions_store.h"

bool recorded_begin_kept(struct recorded *recorded, struct server *server, const char *name,
                         bool is_file, struct failure *failure)
{
    struct history *history = store_history(server->store);
    struct history_repo repo;
    struct zt_error error;

    if (is_file)
        history_repo_of_path(history, name, &repo);
    else
        history_repo_of_model(history, zt_text_from(name), &repo);
    recording_prepare(server, &repo);
    return recording_begin(&recorded->recording, server, &repo, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

bool recorded_covers(const struct recorded *recorded, struct server *server, const char *path)
{
    struct history *history = store_history(server->store);
    const struct history_repo *own = &recorded->recording.repo;
    struct history_repo repo;

    if (history == NULL)
        return true;
    if (!recorded->recording.is_locked)
        return false;
    history_repo_of_path(history, path, &repo);
    return repo.is_root_model == own->is_root_model && strcmp(repo.name, own->name) == 0;
}

/* Writes the title, with the path in the repository. */
static void write_title(const struct history_repo *repo, const char *action, const char *path,
                        char out_title[sizeof(((struct history_commit *)NULL)->title)])
{
    const size_t length = repo->is_root_model ? 0 : strlen(repo->name);

    if (length > 0 && strncmp(path, repo->name, length) == 0 && path[length] == '/')
        path += length + 1;
    snprintf(out_title, sizeof(((struct history_commit *)NULL)->title), "%s %.200s", action, path);
}

void recorded_end_kept(struct recorded *recorded, bool is_changed, const char *client,
                       const char *action, const char *path, char out_commit[HISTORY_COMMIT_SIZE])
{
    char title[sizeof(((struct history_commit *)NULL)->title)];
    const struct history_note note = {.client = client, .title = title};
    struct history_commit commit;
    struct zt_error ignored;

    write_title(&recorded->recording.repo, action, path, title);
    if (recording_end(&recorded->recording, is_changed ? &note : NULL, &commit, &ignored) == ZT_OK)
        memcpy(out_commit, commit.id, sizeof(commit.id));
}
