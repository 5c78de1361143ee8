/* The three kinds of 404 that clients distinguish. */
#include "hub/hub_problem.h"

#include "store/store.h"

static enum outcome reply_absent(struct request *request, const char *code, const char *detail)
{
    problem_reply(request, PROBLEM_NOT_FOUND, "%s", detail);
    representation_field(&request->reply, "X-Error-Code", code);
    return OUTCOME_READY;
}

enum outcome hub_reply_no_repo(struct request *request)
{
    return reply_absent(request, "RepoNotFound",
                        store_mirrors(request->server->store)
                            ? "Repository not found, here or upstream; private repositories of an "
                              "upstream need its token_file"
                            : "Repository not found");
}

enum outcome hub_reply_no_revision(struct request *request)
{
    return reply_absent(request, "RevisionNotFound", "Revision not found");
}

enum outcome hub_reply_no_entry(struct request *request, const char *commit)
{
    const char *text = commit != NULL ? request_print(request, "%s", commit) : NULL;

    reply_absent(request, "EntryNotFound", "Entry not found");
    if (text != NULL)
        representation_field(&request->reply, "X-Repo-Commit", text);
    return OUTCOME_READY;
}

enum outcome hub_reply_error(struct request *request, const struct zt_error *error)
{
    return problem_reply_error(request, error);
}
