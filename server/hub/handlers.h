/* The handlers of the Hub's paths in the table of routes (routes.c), each in the file named here.
 * The names of these routes are passed undecoded (hub_request.h). */
#ifndef HUB_HANDLERS_H
#define HUB_HANDLERS_H

#include "http/exchange/request.h"

/* resolve.c: a file of a repository. */
enum outcome hub_resolve_get(struct request *request);

/* repo_info.c: a repository, whether a client may read it. */
enum outcome hub_repo_get(struct request *request);
enum outcome hub_auth_get(struct request *request);

/* repo_history.c: its branches and tags, its commits. */
enum outcome hub_refs_get(struct request *request);
enum outcome hub_commits_get(struct request *request);

/* repo_tree.c: its files and folders. */
enum outcome hub_tree_get(struct request *request);

/* paths_info.c: the files that a request names. */
void hub_paths_begin(struct request *request);
enum outcome hub_paths_handle(struct request *request);

/* repo_list.c: the repositories. */
enum outcome hub_list_get(struct request *request);

/* whoami.c: the client. */
enum outcome hub_whoami_get(struct request *request);

/* unsupported.c: features of the Hub that this server does not have. */
enum outcome hub_no_repo_get(struct request *request);
void hub_no_repo_begin(struct request *request);
void hub_unsupported_begin(struct request *request);

#endif
