/* The remembered versions of one repository: the current one, and versions that clients may still
 * read from. Bounded; the version that was requested least recently is forgotten first. The caller
 * locks. */
#ifndef HUB_REPO_VERSIONS_H
#define HUB_REPO_VERSIONS_H

#include "hub/version.h"

/* Per repository, even if each version has few files. */
#define REPO_VERSIONS_MAX 128
/* Maximum number of files in all versions of a repository, about 200 bytes each. A single version
 * may have more. */
#define REPO_FILES_MAX ((size_t)150000)

/* Zeroed memory is empty. */
struct repo_versions {
    struct hub_version *now; /* one of the kept versions; NULL: not listed yet */
    struct {
        struct hub_version *version;
        uint64_t used;         /* higher is later */
    } kept[REPO_VERSIONS_MAX]; /* the youngest first */
    unsigned count;
    uint64_t uses;
};

/* Takes over a version as the youngest. It replaces a version with the same files, which may now
 * have more hashes, or with the same stated commit or kept folder. */
void repo_versions_put(struct repo_versions *versions, struct hub_version *version, bool is_now);

/* Returns the youngest version with that commit and marks it as used; NULL if there is none. */
struct hub_version *repo_versions_find(struct repo_versions *versions, struct zt_text commit);

/* Does the same for versions that the history keeps in this folder. commit is empty for the version
 * with views. */
struct hub_version *repo_versions_find_kept(struct repo_versions *versions, const char *folder,
                                            struct zt_text commit);

/* Forgets a version, unless it is the current one. */
void repo_versions_drop(struct repo_versions *versions, const struct hub_version *version);

/* Returns the memory of the versions, as a number of files; 0 if there are none. */
size_t repo_versions_size(const struct repo_versions *versions);

void repo_versions_free(struct repo_versions *versions);

#endif
