/* The handlers of /v1/models/{model}/revisions in the table of routes. */
#ifndef API_REVISIONS_HANDLERS_H
#define API_REVISIONS_HANDLERS_H

#include "http/exchange/request.h"

/* revisions_list.c: the commits of the model's repository; may wait for the next one. */
enum outcome revisions_get(struct request *request);

/* revision_get.c: one branch, tag or commit. */
enum outcome revision_get(struct request *request);

/* revision_change.c: makes, moves and removes branches and tags. */
void revision_put_begin(struct request *request);
enum outcome revision_put_handle(struct request *request);
void revision_delete_begin(struct request *request);
enum outcome revision_delete_handle(struct request *request);

#endif
