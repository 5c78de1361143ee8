/* Finds the commit that a branch or tag is to have, and records the folder's state if it is new. On
 * a worker; may take long, because the folder's files may have to be hashed. */
#ifndef HUB_WRITE_KEPT_COMMIT_H
#define HUB_WRITE_KEPT_COMMIT_H

#include "hub/hub_request.h"
#include "store/versions/history.h"

/* Returns true if the repository has neither a folder nor a history. */
bool kept_commit_has_no_repo(struct request *request, const struct history_repo *repo);

/* Finds the commit of the stored files of a revision. Returns ZT_NOT_FOUND. */
enum zt_status kept_commit_find(struct request *request, const struct history_repo *repo,
                                struct zt_text revision, char out_commit[HISTORY_COMMIT_SIZE],
                                struct zt_error *error);

/* Records a commit without files on a branch, which it makes if necessary. */
enum zt_status kept_commit_make_empty(struct request *request, const struct history_repo *repo,
                                      const char *branch, struct zt_error *error);

#endif
