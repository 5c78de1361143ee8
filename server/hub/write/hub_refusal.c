/* Problems with the fields and members that the Hub's clients show. */
#include "hub/write/hub_refusal.h"

#include <stdarg.h>
#include <stdio.h>

#include "access/access.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "hub/hub_names.h"
#include "hub/hub_problem.h"
#include "upload/shared/write_checks.h"

#define DETAIL_SIZE 1024

static enum outcome refuse(struct request *request, enum problem problem, const char *code,
                           const char *detail)
{
    problem_reply_named(request, problem, "error", "%s", detail);
    if (code != NULL)
        representation_field(&request->reply, "X-Error-Code", code);
    hub_show_message(request, detail);
    return OUTCOME_READY;
}

enum outcome hub_refuse(struct request *request, enum problem problem, const char *code,
                        const char *detail_format, ...)
{
    char detail[DETAIL_SIZE];
    va_list arguments;

    va_start(arguments, detail_format);
    vsnprintf(detail, sizeof(detail), detail_format, arguments);
    va_end(arguments);
    return refuse(request, problem, code, detail);
}

enum outcome hub_refuse_failure(struct request *request, const struct failure *failure,
                                unsigned line)
{
    char detail[DETAIL_SIZE];
    const char *code = failure->problem == PROBLEM_NOT_FOUND ? "EntryNotFound" : NULL;

    if (line == 0)
        return refuse(request, failure->problem, code, failure->error.message);
    snprintf(detail, sizeof(detail), "line %u: %s", line, failure->error.message);
    return refuse(request, failure->problem, code, detail);
}

bool hub_refuse_read_only(struct request *request)
{
    if (request->server->config->writable)
        return write_refuse_read_only(request);
    hub_refuse(request, PROBLEM_READ_ONLY, NULL, "writing is turned off on this server");
    return true;
}

bool hub_refuse_repo(struct request *request, struct zt_text repo)
{
    if (!hub_repo_is_valid(repo)) {
        hub_refuse(request, PROBLEM_INVALID_NAME, NULL,
                   "a repository is called name or owner/name, each part of 1 to 96 characters "
                   "[A-Za-z0-9_.-] without \"--\" and \"..\", not beginning or ending with - or ., "
                   "and not ending in .git; not beginning with api/, files/, ui/, datasets/, "
                   "spaces/ or kernels/");
        return true;
    }
    if (authorize_sees_folder(request, repo))
        return false;
    access_count_failure(ACCESS_MODEL);
    hub_refuse(request, PROBLEM_FORBIDDEN, NULL, "this client may not use this repository");
    return true;
}

bool hub_refuse_target(struct request *request, const struct hub_target *target)
{
    if (hub_refuse_repo(request, target->repo))
        return true;
    if (hub_revision_of(target->revision) == HUB_REVISION_NOW)
        return false;
    hub_reply_no_revision(request);
    return true;
}
