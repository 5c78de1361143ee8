/* Members that a repository's description has both in the list and at its own address. */
#ifndef HUB_REPO_INFO_H
#define HUB_REPO_INFO_H

#include "base/json_write.h"
#include "http/exchange/request.h"
#include "hub/version.h"

/* Writes "siblings": […], the files that the client may see; with_blobs adds their sizes and
 * hashes. */
void repo_info_siblings(struct json *json, const struct request *request, struct zt_text repo,
                        const struct hub_version *version, bool with_blobs);

#endif
