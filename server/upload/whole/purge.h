/* DELETE /v1/models/{model}?purge: also forgets the kept versions of the model's repository. */
#ifndef UPLOAD_WHOLE_PURGE_H
#define UPLOAD_WHOLE_PURGE_H

#include "http/exchange/request.h"
#include "upload/shared/failure.h"

/* Refuses a client without the scope admin, and a server that keeps no versions. Returns true if it
 * has replied. */
bool purge_refuse(struct request *request);

/* Call it before the model is removed: a purge needs the right to the whole repository. On a
 * worker. */
bool purge_may_begin(const struct request *request, const char *name, struct failure *failure);

/* Call it after the removal. A model that was removed before can still be purged: its failure is
 * then cleared. On a worker. */
void purge_run(struct server *server, const char *name, struct failure *failure);

#endif
