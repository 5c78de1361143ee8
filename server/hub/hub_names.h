/* Names that the Hub's clients use: repositories "owner/name" or "name", revisions, and objects of
 * Git LFS. */
#ifndef HUB_HUB_NAMES_H
#define HUB_HUB_NAMES_H

#include <stdbool.h>

#include "zt/text.h"

/* A commit: 40 lower-case hex digits and NUL. */
#define HUB_COMMIT_SIZE 41
/* Two parts of 96 characters, '/', NUL. */
#define HUB_REPO_SIZE 194

/* Returns true if clients can use this name for a repository: one or two parts of
 * [A-Za-z0-9_.-]{1,96} that neither begin nor end with '-' or '.', contain no "--" or "..", and do
 * not end in ".git". Names that begin like other paths of the server ("files/a") are not valid. */
bool hub_repo_is_valid(struct zt_text name);

/* Returns true if an owner, the first of two parts, can have this name. */
bool hub_owner_is_valid(struct zt_text name);

/* The meaning of a revision. "main", "HEAD" and "refs/heads/main" mean the current version. */
enum hub_revision { HUB_REVISION_NOW, HUB_REVISION_COMMIT, HUB_REVISION_UNKNOWN };

enum hub_revision hub_revision_of(struct zt_text text);

/* Returns true if git permits a branch or a tag of this name (git-check-ref-format), of at most 255
 * bytes: other names exist nowhere. */
bool hub_revision_is_valid(struct zt_text text);

/* Splits "<revision>/<path>" from a URL, still encoded. A revision is one segment, or "refs/" and
 * the next two. *out_path is empty if there is none. */
void hub_revision_split(struct zt_text raw, struct zt_text *out_revision, struct zt_text *out_path);

/* The name of an object of Git LFS, its SHA-256: 64 hex digits and NUL. */
#define LFS_OID_SIZE 65

/* Returns true if a text names the only algorithm: "sha256", or "sha_256" as npm's client writes
 * it. */
bool lfs_is_sha256(struct zt_text algorithm);

#endif
