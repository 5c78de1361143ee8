/* Refuses writes. */
#ifndef HUB_WRITE_HUB_REFUSAL_H
#define HUB_WRITE_HUB_REFUSAL_H

#include "http/exchange/problem.h"
#include "hub/hub_request.h"
#include "store/versions/history.h"
#include "upload/shared/failure.h"

/* Replies with the failure of a write. line: the line of the body, which the message names first;
 * 0: none. */
enum outcome hub_refuse_failure(struct request *request, const struct failure *failure,
                                unsigned line);
/* Does the same for a failure about the line's file. done: the number of changes made before. */
enum outcome hub_refuse_file(struct request *request, const struct failure *failure, unsigned line,
                             const char *path, size_t done);

/* Returns true, having replied, if clients cannot use this name for a repository. */
bool hub_refuse_name(struct request *request, struct zt_text repo);

/* Does the same, and also refuses a repository to which this client may not write, as if it did not
 * exist. */
bool hub_refuse_repo(struct request *request, struct zt_text repo);

/* Does the same, and also refuses a revision that cannot be a branch. Whether a branch exists is
 * found out on a worker. */
bool hub_refuse_target(struct request *request, const struct hub_target *target);

/* Writes the name of the branch; empty for main. */
void hub_branch_of(const struct hub_target *target, char out_branch[HISTORY_REF_SIZE]);

#endif
