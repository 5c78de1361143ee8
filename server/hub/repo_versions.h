/* The versions of one repository that are remembered: the one of now, and those that somebody may
 * still read from. Bounded; what was not asked for longest is forgotten. Without a lock of its
 * own. */
#ifndef HUB_REPO_VERSIONS_H
#define HUB_REPO_VERSIONS_H

#include "hub/version.h"

/* Of one repository, also if each has few files. */
#define REPO_VERSIONS_MAX 128
/* Files in all versions of a repository: some 200 bytes each. One version may have more. */
#define REPO_FILES_MAX ((size_t)150000)

struct kept_version {
    struct hub_version *version;
    uint64_t used; /* the larger, the later */
};

/* Zeroed memory is empty. */
struct repo_versions {
    struct hub_version *now; /* one of those that are kept; NULL: not listed so far */
    struct kept_version kept[REPO_VERSIONS_MAX]; /* the youngest first */
    unsigned count;
    uint64_t uses;
};

/* Takes over a version as the youngest. It replaces what has the same files, listed again with more
 * hashes, or the same stated commit. */
void repo_versions_put(struct repo_versions *versions, struct hub_version *version, bool is_now);

/* The youngest version that a commit names, which counts as used; NULL: none. */
struct hub_version *repo_versions_find(struct repo_versions *versions, struct zt_text commit);

/* How much memory they take, in files; 0: there are none. */
size_t repo_versions_size(const struct repo_versions *versions);

void repo_versions_free(struct repo_versions *versions);

#endif
