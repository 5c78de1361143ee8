/* Finds a version of a repository, mostly the current one, for work that may block its worker. */
#ifndef HUB_WRITE_REPO_CURRENT_H
#define HUB_WRITE_REPO_CURRENT_H

#include "hub/hub_request.h"
#include "hub/repos.h"

/* *out_version gets a reference, or NULL if there is no such repository. On a worker; waits for
 * other requests that list it. Returns false with error set. */
bool repo_current_find(struct server *server, struct zt_text name, struct hub_version **out_version,
                       struct zt_error *error);

/* Does the same for any revision, with the results of hub_repos_find; error is set for FAILED and
 * BUSY. */
enum hub_found repo_current_look(struct server *server, struct zt_text name,
                                 struct zt_text revision, struct hub_version **out_version,
                                 struct zt_error *error);

/* Returns true if files cannot be sent to a repository because it does not exist. Returns false if
 * another server may have created it in memory. */
bool repo_current_is_absent(const struct server *server, const struct hub_version *version);

/* Returns a stored file; NULL if there is none, or only a view. */
const struct hub_file *repo_current_file(const struct hub_version *version, struct zt_text path);

/* Returns true if a file's SHA-256 is known from its bytes: not for views, and not if it only comes
 * from a name in a cache. */
bool repo_current_has_bytes(const struct hub_file *file);

/* Does the same for a file that the client may see; the existence of other files must not be
 * revealed. repo: the requested name. */
bool repo_current_may_read_bytes(const struct request *request, const char *repo,
                                 const struct hub_file *file);

#endif
