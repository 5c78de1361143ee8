/* Replies with failures of writes, and refuses repositories. */
#include "hub/write/hub_refusal.h"

#include "access/access.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "hub/hub_names.h"
#include "hub/hub_problem.h"
#include "store/versions/versions_store.h"
#include "upload/shared/write_checks.h"

/* A file whose name no file can have does not exist. */
static enum outcome finish(struct request *request, const struct failure *failure)
{
    if (failure->problem == PROBLEM_NOT_FOUND || failure->problem == PROBLEM_INVALID_NAME)
        representation_field(&request->reply, "X-Error-Code", "EntryNotFound");
    if (failure->is_passing)
        problem_retry_soon(request);
    return OUTCOME_READY;
}

enum outcome hub_refuse_failure(struct request *request, const struct failure *failure,
                                unsigned line)
{
    const char *detail = problem_explain(request, failure->problem, &failure->error);

    if (line == 0)
        problem_reply(request, failure->problem, "%s", detail);
    else
        problem_reply(request, failure->problem, "line %u: %s", line, detail);
    return finish(request, failure);
}

enum outcome hub_refuse_file(struct request *request, const struct failure *failure, unsigned line,
                             const char *path, size_t done)
{
    const char *detail = problem_explain(request, failure->problem, &failure->error);

    if (done == 0)
        problem_reply(request, failure->problem, "line %u: %s: %s", line, path, detail);
    else
        problem_reply(request, failure->problem,
                      "line %u: %s: %s; %zu other changes of this commit were made: try again",
                      line, path, detail, done);
    return finish(request, failure);
}

bool hub_refuse_name(struct request *request, struct zt_text repo)
{
    if (hub_repo_is_valid(repo))
        return false;
    problem_reply(request, PROBLEM_INVALID_NAME,
                  "a repository's name must be name or owner/name, each part of 1 to 96 characters "
                  "[A-Za-z0-9_.-] without \"--\" and \"..\", not beginning or ending with - or ., "
                  "and not ending in .git; not beginning with api/, files/, ui/, v1/, datasets/, "
                  "spaces/ or kernels/");
    return true;
}

bool hub_refuse_repo(struct request *request, struct zt_text repo)
{
    if (hub_refuse_name(request, repo)) {
        representation_field(&request->reply, "X-Error-Code", "RepoNotFound");
        return true;
    }
    if (authorize_sees_folder(request, repo))
        return write_refuse_mirrored(request, repo);
    access_count_failure(ACCESS_MODEL);
    problem_reply(request, PROBLEM_FORBIDDEN, "this client may not use this repository");
    return true;
}

static bool may_be_branch(const struct request *request, const struct hub_target *target)
{
    return store_history(request->server->store) != NULL &&
           hub_revision_of(target->revision) == HUB_REVISION_UNKNOWN &&
           hub_revision_is_valid(target->revision);
}

bool hub_refuse_target(struct request *request, const struct hub_target *target)
{
    if (hub_refuse_repo(request, target->repo))
        return true;
    if (hub_revision_of(target->revision) == HUB_REVISION_NOW || may_be_branch(request, target))
        return false;
    hub_reply_no_revision(request);
    return true;
}

void hub_branch_of(const struct hub_target *target, char out_branch[HISTORY_REF_SIZE])
{
    const struct zt_text prefix = zt_text_from("refs/heads/");
    struct zt_text name = target->revision;

    if (hub_revision_of(name) == HUB_REVISION_NOW)
        name.length = 0;
    if (zt_text_starts_with(name, prefix))
        name = (struct zt_text){name.bytes + prefix.length, name.length - prefix.length};
    hub_text_copy(name, out_branch, HISTORY_REF_SIZE);
}
