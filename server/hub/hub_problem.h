/* Refusals that the Hub's clients react to. They look at the field X-Error-Code and ignore the
 * status. The text that they show is in every problem of their routes (http/exchange/problem.h). */
#ifndef HUB_HUB_PROBLEM_H
#define HUB_HUB_PROBLEM_H

#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* Reply with 404: it does not exist, or the client may not see it. */
enum outcome hub_reply_no_repo(struct request *request);
enum outcome hub_reply_no_revision(struct request *request);
/* commit: the commit that lacks the file, which clients remember; NULL: none. */
enum outcome hub_reply_no_entry(struct request *request, const char *commit);

/* Replies with a failure of the store: 503 with Retry-After, after which clients retry, or 500. */
enum outcome hub_reply_error(struct request *request, const struct zt_error *error);

#endif
