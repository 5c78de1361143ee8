/* What a repository is now, for work that has a worker to itself. */
#ifndef HUB_WRITE_REPO_NOW_H
#define HUB_WRITE_REPO_NOW_H

#include "hub/hub_request.h"
#include "hub/repos.h"

/* *out_version has a reference, or is NULL: there is no such repository. On a worker; waits for
 * others who list it. False: error says why. */
bool repo_now_find(struct server *server, struct zt_text name, struct hub_version **out_version,
                   struct zt_error *error);

/* Whether nothing can be sent for a repository, since there is none. Not if other servers may have
 * created it, in memory. */
bool repo_now_is_absent(const struct server *server, const struct hub_version *version);

/* A stored file; NULL if there is none, or only a view of another. */
const struct hub_file *repo_now_file(const struct hub_version *version, struct zt_text path);

/* Whether a file's SHA-256 is known of its bytes: not of those of a view, and not from the names in
 * a cache alone. */
bool repo_now_has_bytes(const struct hub_file *file);

/* The same, of a file that the client may see: of others it must not even learn that they are
 * there. repo: the name that was asked for. */
bool repo_now_sees_bytes(const struct request *request, const char *repo,
                         const struct hub_file *file);

#endif
