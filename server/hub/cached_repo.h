/* Repositories in the layout in which the Hub's clients keep what they have got:
 * "models--owner--name", with refs/main, snapshots/COMMIT/… and blobs. */
#ifndef HUB_CACHED_REPO_H
#define HUB_CACHED_REPO_H

#include "hub/version.h"

/* The commit that is "main": the one of refs/main if its snapshot is there, else the snapshot with
 * the youngest file. False: there is none. On a worker. */
bool cached_repo_main(struct server *server, const char *name, char out_commit[HUB_COMMIT_SIZE]);

/* A snapshot; without blobs its files have no stated hashes. As hub_version_make. */
enum zt_status cached_repo_list(struct server *server, const char *name, const char *commit,
                                struct hub_version **out_version, struct zt_error *error);

#endif
