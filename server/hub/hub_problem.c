/* The three kinds of 404 that clients tell apart, and all other problems with a text for them. */
#include "hub/hub_problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DETAIL_SIZE 1024

/* UTF-8: a letter of several bytes becomes one question mark. */
void hub_show_message(struct request *request, const char *text)
{
    char *shown = request_copy(request, text, strlen(text));
    char *to = shown;

    for (const char *from = shown; from != NULL && *from != '\0'; from++)
        if ((*from & 0xC0) != 0x80)
            *to++ = *from;
    if (shown == NULL)
        return;
    *to = '\0';
    for (to = shown; *to != '\0'; to++)
        if (*to < ' ' || *to > '~')
            *to = '?';
    representation_field(&request->reply, "X-Error-Message", shown);
}

static enum outcome reply_absent(struct request *request, const char *code, const char *detail)
{
    problem_reply_named(request, PROBLEM_NOT_FOUND, "error", "%s", detail);
    representation_field(&request->reply, "X-Error-Code", code);
    hub_show_message(request, detail);
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
    problem_reply_named(request, problem, "error", "%s", detail);
    hub_show_message(request, detail);
    return OUTCOME_READY;
}

enum outcome hub_reply_error(struct request *request, const struct zt_error *error)
{
    return problem_reply_error(request, error);
}
