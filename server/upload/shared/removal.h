/* Removes stored files: the file at a path, and the files of a model that was removed or
 * replaced. */
#ifndef UPLOAD_SHARED_REMOVAL_H
#define UPLOAD_SHARED_REMOVAL_H

#include "catalog/generation.h"
#include "http/fields/conditional.h"
#include "upload/shared/published.h"

/* Removes a model's file if it is the version with this identity, and updates the catalog. A
 * removal that may not be durable is noted. Returns ZT_ARGUMENT if the file has changed, and
 * otherwise as store_ops.remove. The name must be locked. On a worker. */
enum zt_status removal_of_version(struct server *server, const char *path,
                                  const struct file_identity *identity, struct remains *remains,
                                  struct zt_error *error);

/* Removes the file at a path, even if models need it, and no other file. remains: unfinished work
 * of a successful removal. Returns false with failure set (PROBLEM_NOT_FOUND,
 * PROBLEM_PRECONDITION_FAILED, …). On a worker. */
bool removal_of_file(struct server *server, const char *path,
                     const struct preconditions *preconditions, struct remains *remains,
                     struct failure *failure);

/* --- the other files of a removed model --- */

/* One of these files. */
struct removal_member {
    const char *path;
    /* Returns true if it is unchanged and no other model needs it. file is NULL if it is gone. */
    bool (*may_go)(struct server *server, const struct generation *file, const void *context);
    const void *context;
};

/* Removes the file if it may go. Failures are logged and noted. Locks the file's name, so a caller
 * may only hold a lock that no remover of this file waits for. On a worker. */
void removal_of_member(struct server *server, const struct removal_member *member,
                       struct remains *remains);

/* Removes those files of a joined model that no other model needs and that have not changed since
 * they became its parts. If the model could not be read, its index may name any file, so no part is
 * removed. The caller must hold no lock. On a worker. */
void removal_of_parts(struct server *server, const struct generation *model,
                      struct remains *remains);

#endif
