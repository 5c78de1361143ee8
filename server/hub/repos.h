/* The repositories that clients ask for, each with the versions that they were told of.
 *
 * Clients ask once for "main", and pin the commit for all that follows: so versions are remembered,
 * in memory, and a file is served by any of them as long as it is still the one on disk. */
#ifndef HUB_REPOS_H
#define HUB_REPOS_H

#include "base/workers.h"
#include "hub/version.h"

struct hub_repos;

/* NULL when out of memory. */
struct hub_repos *hub_repos_new(struct server *server);
/* Takes NULL. */
void hub_repos_free(struct hub_repos *repos);

/* What was listed a moment ago is not what is there now: a file turned out to be another. What the
 * server itself publishes or removes is known without it. From any thread. */
void hub_repos_changed(struct hub_repos *repos);

/* Makes a repository without files, on a worker: its folder, or where folders cannot be without
 * files what this server remembers of it, for upload.expire_s at most. There may be one already.
 * ZT_ARGUMENT: something else has the name; ZT_LIMIT, ZT_IO, ZT_NO_MEMORY. */
enum zt_status hub_repos_create(struct hub_repos *repos, const char *name, struct zt_error *error);

enum hub_found {
    HUB_FOUND,
    HUB_NO_REPO,
    HUB_NO_REVISION,
    HUB_FAILED,
    HUB_BUSY /* somebody else is listing it */
};

/* A question, and its answer. */
struct hub_lookup {
    /* Set by the caller, who keeps the texts; the rest is zero at first. */
    struct zt_text name;
    struct zt_text revision;
    /* Whether to hash what a request can wait for (version->can_be_final). On a worker for what
     * takes long. */
    bool may_take_long;
    /* Whether what is remembered of a commit will not do: a file is not that one any more, but what
     * is there now may be the same bytes. */
    bool is_again;

    enum hub_found found;
    /* With a reference, or NULL. NO_REVISION: another version, so that it can be known who may see
     * the repository. */
    struct hub_version *version;
    struct zt_error error; /* of FAILED */

    /* Private. */
    bool has_begun;
    uint64_t begun;
};

/* Finds a repository at a revision. On a worker; may read small files to hash them. BUSY: to be
 * called again, with the same lookup, after hub_repos_wait. */
void hub_repos_find(struct hub_repos *repos, struct hub_lookup *lookup);

/* After HUB_BUSY. True: the waiter will be woken. False: it need not wait. From any thread. */
bool hub_repos_wait(struct hub_repos *repos, const struct hub_lookup *lookup,
                    struct waiter *waiter);

#endif
