/* The repositories that clients request, with the versions that they have seen.
 *
 * Clients ask once for "main", and use its commit for all later requests. So versions are
 * remembered in memory, and a file is served under any of them as long as it has not changed on
 * disk. */
#ifndef HUB_REPOS_H
#define HUB_REPOS_H

#include "base/workers.h"
#include "hub/version.h"

struct hub_repos;

/* Returns NULL if out of memory. */
struct hub_repos *hub_repos_new(struct server *server);
/* Accepts NULL. */
void hub_repos_free(struct hub_repos *repos);

/* Discards the recent listing because a file turned out to have changed. Changes by this server are
 * noticed without it. From any thread. */
void hub_repos_changed(struct hub_repos *repos);

/* Creates a repository without files, on a worker: makes its folder or, if folders cannot exist
 * without files, remembers the repository in this server for at most upload.expire_s. It may exist
 * already. Returns ZT_ARGUMENT if something else has the name; ZT_LIMIT, ZT_IO, ZT_NO_MEMORY. */
enum zt_status hub_repos_create(struct hub_repos *repos, const char *name, struct zt_error *error);

enum hub_found {
    HUB_FOUND,
    HUB_NO_REPO,
    HUB_NO_REVISION,
    HUB_FAILED,
    HUB_BUSY /* another request is listing it */
};

/* A lookup and its result. */
struct hub_lookup {
    /* Set by the caller, who keeps the texts; everything else starts as zero. */
    struct zt_text name;
    struct zt_text revision;
    /* Allows hashing that takes time but that a request can wait for (version->can_be_final). For a
     * worker that may take long. */
    bool may_take_long;
    /* The remembered version of the commit is not enough: one of its files has changed, but the
     * current files may have the same bytes. */
    bool is_again;

    enum hub_found found;
    /* A reference, or NULL. For NO_REVISION it is another version, which shows whether the client
     * may see the repository. */
    struct hub_version *version;
    struct zt_error error; /* for FAILED */

    /* Private. */
    bool has_begun;
    uint64_t begun;
};

/* Finds a repository at a revision. On a worker; may read small files to hash them. After BUSY,
 * call hub_repos_wait, then call this again with the same lookup. */
void hub_repos_find(struct hub_repos *repos, struct hub_lookup *lookup);

/* Call it after HUB_BUSY. Returns true if the waiter will be woken, false if there is no need to
 * wait. From any thread. */
bool hub_repos_wait(struct hub_repos *repos, const struct hub_lookup *lookup,
                    struct waiter *waiter);

#endif
