/* Refusals of what writes. */
#ifndef HUB_WRITE_HUB_REFUSAL_H
#define HUB_WRITE_HUB_REFUSAL_H

#include "http/exchange/problem.h"
#include "hub/hub_request.h"
#include "upload/shared/failure.h"

/* The failure of a write. line: of the body, named first; 0: none. */
enum outcome hub_refuse_failure(struct request *request, const struct failure *failure,
                                unsigned line);
/* The same, of the file that the line is about. */
enum outcome hub_refuse_file(struct request *request, const struct failure *failure, unsigned line,
                             const char *path);

/* True, and replied, if clients cannot name a repository so. */
bool hub_refuse_name(struct request *request, struct zt_text repo);

/* The same, as of a repository that is not there, or if this client may not write to it. */
bool hub_refuse_repo(struct request *request, struct zt_text repo);

/* The same, or if the revision is not the one branch that can be written to. */
bool hub_refuse_target(struct request *request, const struct hub_target *target);

#endif
