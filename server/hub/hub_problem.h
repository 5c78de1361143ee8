/* Refusals in the form that the Hub's clients understand: they decide by the field X-Error-Code,
 * whatever the status is, and show X-Error-Message and the member "error" of the body. */
#ifndef HUB_HUB_PROBLEM_H
#define HUB_HUB_PROBLEM_H

#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* 404s; the client may not see it, or it is not there. */
enum outcome hub_reply_no_repo(struct request *request);
enum outcome hub_reply_no_revision(struct request *request);
/* commit: for which the absence holds, and is remembered by clients; NULL: none. */
enum outcome hub_reply_no_entry(struct request *request, const char *commit);

/* Adds X-Error-Message to a reply. What a field may not hold is shown as a question mark. */
void hub_show_message(struct request *request, const char *text);

/* Any other problem, with the members and fields that show its text. */
enum outcome hub_reply_problem(struct request *request, enum problem problem,
                               const char *detail_format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a failure of the store means to a client: 503 with Retry-After, which clients wait for, or
 * 500. */
enum outcome hub_reply_error(struct request *request, const struct zt_error *error);

#endif
