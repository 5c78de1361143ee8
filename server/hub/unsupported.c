/* Refuses the Hub's other kinds of repositories, which do not exist here, and operations that
 * existing repositories do not support. Both are refused before the body is sent. */
#include <string.h>

#include "http/exchange/problem.h"
#include "http/exchange/router.h"
#include "hub/handlers.h"
#include "hub/hub_problem.h"

enum outcome hub_no_repo_get(struct request *request)
{
    return hub_reply_no_repo(request);
}

void hub_no_repo_begin(struct request *request)
{
    hub_reply_no_repo(request);
}

/* --- unsupported operations: 403, because all clients print its message, but not that of 501
 * --- */

static const struct {
    const char *part; /* of the route's pattern */
    const char *words;
} unsupported[] = {
    {"/repos/delete", "this server does not delete repositories: delete their files"},
    {"/branch/", "this server keeps no versions (versions.keep): it has only the branch main"},
    {"/tag/", "this server keeps no versions (versions.keep): it has no tags"},
    {"/super-squash/", "this server keeps no versions (versions.keep): there is nothing to squash"},
    {"/settings", "repositories have no settings on this server"},
};

void hub_unsupported_begin(struct request *request)
{
    const char *words = "this server does not support that";

    for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
        if (strstr(request->route->pattern, unsupported[i].part) != NULL)
            words = unsupported[i].words;
    problem_reply(request, PROBLEM_FORBIDDEN, "%s", words);
}
