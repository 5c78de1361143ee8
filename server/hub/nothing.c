/* The Hub's other kinds of repositories, of which there are none, and what cannot be done with
 * those that there are. Both are said before a body is sent. */
#include <string.h>

#include "http/exchange/problem.h"
#include "http/exchange/router.h"
#include "hub/handlers.h"
#include "hub/hub_problem.h"

enum outcome hub_nothing_get(struct request *request)
{
    return hub_reply_no_repo(request);
}

void hub_nothing_begin(struct request *request)
{
    hub_reply_no_repo(request);
}

/* --- what is not done here: 403, whose words all clients print, as they do not of 501 --- */

static const struct {
    const char *part; /* of the route's pattern */
    const char *words;
} unsupported[] = {
    {"/repos/delete", "this server does not remove repositories: remove their files"},
    {"/branch/", "this server has no branches but main"},
    {"/tag/", "this server has no tags"},
    {"/settings", "repositories have no settings on this server"},
};

void hub_unsupported_begin(struct request *request)
{
    const char *words = "this server does not do that";

    for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
        if (strstr(request->route->pattern, unsupported[i].part) != NULL)
            words = unsupported[i].words;
    problem_reply(request, PROBLEM_FORBIDDEN, "%s", words);
}
