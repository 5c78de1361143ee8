/* Repositories in the layout of a Hub client's cache: "models--owner--name", with refs/main,
 * snapshots/COMMIT/… and blobs. */
#ifndef HUB_CACHED_REPO_H
#define HUB_CACHED_REPO_H

#include "hub/version.h"

/* Finds the commit that is "main": the one in refs/main if its snapshot exists, otherwise the
 * snapshot with the youngest file. Returns false if there is none. On a worker. */
bool cached_repo_main(struct server *server, const char *name, char out_commit[HUB_COMMIT_SIZE]);

/* Lists a snapshot, like hub_version_make. Without blobs, its files have no stated hashes. */
enum zt_status cached_repo_list(struct server *server, const char *name, const char *commit,
                                struct hub_version **out_version, struct zt_error *error);

#endif
