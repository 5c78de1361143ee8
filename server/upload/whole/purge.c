#include "upload/whole/purge.h"

#include <string.h>

#include "base/changes.h"
#include "http/exchange/authorize.h"
#include "store/versions/versions_store.h"

bool purge_refuse(struct request *request)
{
    if (request->grant != NULL && request->grant->scope < SCOPE_ADMIN) {
        problem_reply(request, PROBLEM_FORBIDDEN, "purge needs the scope admin");
        return true;
    }
    if (store_history(request->server->store) != NULL)
        return false;
    problem_reply(request, PROBLEM_CONFLICT,
                  "purge needs versions.keep: set it, or delete without purge");
    return true;
}

bool purge_may_begin(const struct request *request, const char *name, struct failure *failure)
{
    struct history *history = store_history(request->server->store);
    struct history_repo repo;
    struct zt_error error;
    bool may;

    history_repo_of_model(history, zt_text_from(name), &repo);
    may = repo.is_root_model ? authorize_sees(request, zt_text_from(repo.name))
                             : authorize_sees_whole_folder(request, zt_text_from(repo.name));
    if (!may)
        return failure_refuse(failure, PROBLEM_FORBIDDEN,
                              "this client may not use all files of the repository %s", repo.name);
    return history_remove_unreadable(history, &repo, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

static bool is_kept(struct history *history, const struct history_repo *repo)
{
    struct history_found found;
    struct zt_error ignored;

    return history_find(history, repo, zt_text_from(HISTORY_MAIN), &found, &ignored) == ZT_OK;
}

bool purge_run(struct server *server, const struct history_repo *repo, struct failure *failure)
{
    struct history *history = store_history(server->store);
    struct zt_error error;

    if (failure->is_set && (failure->problem != PROBLEM_MODEL_NOT_FOUND || !is_kept(history, repo)))
        return false;
    memset(failure, 0, sizeof(*failure));
    if (history_purge(history, repo, &error) != ZT_OK)
        return failure_of_store(failure, &error);
    /* The next collection removes the files. */
    atomic_fetch_add(&server->commits_recorded, 1);
    changes_note();
    return true;
}
