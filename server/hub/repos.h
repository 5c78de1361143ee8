/* The repositories that clients ask for, each with the versions that they were told of.
 *
 * Clients ask once for "main", and pin the commit for all that follows: so the last versions are
 * remembered, in memory, and a file is served by any of them as long as it is still the one on
 * disk. */
#ifndef HUB_REPOS_H
#define HUB_REPOS_H

#include "hub/version.h"

struct hub_repos;

/* NULL when out of memory. */
struct hub_repos *hub_repos_new(struct server *server);
/* Takes NULL. */
void hub_repos_free(struct hub_repos *repos);

/* What was listed a moment ago is not what is there now: a file turned out to be another. What the
 * server itself publishes or removes is known without it. From any thread. */
void hub_repos_changed(struct hub_repos *repos);

enum hub_found { HUB_FOUND, HUB_NO_REPO, HUB_NO_REVISION, HUB_FAILED };

/* Finds a repository at a revision, with a reference; NO_REVISION: at another, so that it can be
 * known who may see the repository. FAILED: error says why. On a worker; may read small files to
 * hash them. */
enum hub_found hub_repos_find(struct hub_repos *repos, struct zt_text name, struct zt_text revision,
                              struct hub_version **out_version, struct zt_error *error);

#endif
