/* What the list of repositories tells of each as the repository's own address does. */
#ifndef HUB_REPO_INFO_H
#define HUB_REPO_INFO_H

#include "base/json_write.h"
#include "http/exchange/request.h"
#include "hub/version.h"

/* "siblings": […], the files that the client sees. with_blobs: with their sizes and hashes. */
void repo_info_siblings(struct json *json, const struct request *request, struct zt_text repo,
                        const struct hub_version *version, bool with_blobs);

#endif
