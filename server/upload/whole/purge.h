/* DELETE /v1/models/{model}?purge: also forgets the kept versions of the model's repository. */
#ifndef UPLOAD_WHOLE_PURGE_H
#define UPLOAD_WHOLE_PURGE_H

#include "http/exchange/request.h"
#include "store/versions/history.h"
#include "upload/shared/failure.h"

/* Refuses a client without the scope admin, and a server that keeps no versions. Returns true if it
 * has replied. */
bool purge_refuse(struct request *request);

/* Call it before the model is removed: a purge needs the right to the whole repository. On a
 * worker. */
bool purge_may_begin(const struct request *request, const char *name, struct failure *failure);

/* Call it after the removal, with the repository still locked, so that no other change is forgotten
 * with those before the removal. A model that was removed before can still be purged: its failure
 * is then cleared. Returns true if the history was forgotten. On a worker. */
bool purge_run(struct server *server, const struct history_repo *repo, struct failure *failure);

#endif
