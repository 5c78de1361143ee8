/* Lists the revisions that the store knows besides the current state of a folder: revisions of
 * mirrored repositories, and revisions that the history keeps. */
#ifndef HUB_REPO_REVISION_H
#define HUB_REPO_REVISION_H

#include "hub/version.h"

struct repo_mirrored {
    struct hub_version *version;
    bool is_now; /* the current commit */
};

/* Lists a revision of a mirrored repository. found: the result of the first search in the store.
 * On a worker, as the following functions. */
enum zt_status repo_revision_list_mirrored(struct server *server, const char *name,
                                           struct zt_text revision,
                                           const struct store_revision *found,
                                           struct repo_mirrored *out_mirrored,
                                           struct zt_error *error);

/* Lists a kept revision, with views of its models, unless the revision is the commit of the stored
 * files alone. Returns ZT_NOT_FOUND if it is no longer kept. */
enum zt_status repo_revision_list_kept(struct server *server, struct zt_text revision,
                                       const struct store_revision *found,
                                       struct hub_version **out_version, struct zt_error *error);

/* Finds and lists the kept files that have this commit together with the views of their models
 * (version.h). Returns ZT_NOT_FOUND if there are none. */
enum zt_status repo_revision_list_viewed(struct server *server, const char *name,
                                         struct zt_text commit, struct hub_version **out_version,
                                         struct zt_error *error);

#endif
