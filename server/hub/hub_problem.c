/* The three kinds of 404 that clients tell apart, and all other problems with a text for them. */
#include "hub/hub_problem.h"

#include <stdarg.h>
#include <stdio.h>

#define DETAIL_SIZE 1024

/* A field that holds what anybody may have called a file would have to be checked: the texts of
 * fields are constant. */
static enum outcome reply_absent(struct request *request, const char *code, const char *detail)
{
    problem_reply_named(request, PROBLEM_NOT_FOUND, "error", "%s", detail);
    representation_field(&request->reply, "X-Error-Code", code);
    representation_field(&request->reply, "X-Error-Message", detail);
    return OUTCOME_READY;
}

enum outcome hub_reply_no_repo(struct request *request)
{
    return reply_absent(request, "RepoNotFound", "Repository not found");
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

enum outcome hub_reply_problem(struct request *request, enum problem problem,
                               const char *detail_format, ...)
{
    char detail[DETAIL_SIZE];
    va_list arguments;

    va_start(arguments, detail_format);
    vsnprintf(detail, sizeof(detail), detail_format, arguments);
    va_end(arguments);
    return problem_reply_named(request, problem, "error", "%s", detail);
}

enum outcome hub_reply_error(struct request *request, const struct zt_error *error)
{
    return problem_reply_error(request, error);
}
