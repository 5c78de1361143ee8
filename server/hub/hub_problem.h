/* Refusals by which the Hub's clients decide: they look at the field X-Error-Code, whatever the
 * status is. What they show is in every problem of their routes (http/exchange/problem.h). */
#ifndef HUB_HUB_PROBLEM_H
#define HUB_HUB_PROBLEM_H

#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* 404s; the client may not see it, or it is not there. */
enum outcome hub_reply_no_repo(struct request *request);
enum outcome hub_reply_no_revision(struct request *request);
/* commit: for which the absence holds, and is remembered by clients; NULL: none. */
enum outcome hub_reply_no_entry(struct request *request, const char *commit);

/* What a failure of the store means to a client: 503 with Retry-After, which clients wait for, or
 * 500. */
enum outcome hub_reply_error(struct request *request, const struct zt_error *error);

#endif
