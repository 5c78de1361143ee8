/* What the Hub's clients call things: repositories "owner/name" or "name", and revisions. */
#ifndef HUB_HUB_NAMES_H
#define HUB_HUB_NAMES_H

#include <stdbool.h>

#include "zt/text.h"

/* A commit: 40 lower-case hex digits and NUL. */
#define HUB_COMMIT_SIZE 41
/* Two parts of 96 characters, '/', NUL. */
#define HUB_REPO_SIZE 194

/* Whether clients can name a repository so: one or two parts of [A-Za-z0-9_.-]{1,96} that neither
 * begin nor end with '-' or '.', have no "--" and no "..", and do not end in ".git"; but not as
 * other addresses of the server begin ("files/a"). */
bool hub_repo_is_valid(struct zt_text name);

/* Whether the first of two parts can be called so. */
bool hub_owner_is_valid(struct zt_text name);

/* What a revision means: "main", "HEAD" and "refs/heads/main" are what is there now. */
enum hub_revision { HUB_REVISION_NOW, HUB_REVISION_COMMIT, HUB_REVISION_UNKNOWN };

enum hub_revision hub_revision_of(struct zt_text text);

/* Splits "<revision>/<path>" as it came in a URL, still encoded: a revision is one segment, or
 * "refs/" and the two that follow. *out_path is empty where there is none. */
void hub_revision_split(struct zt_text raw, struct zt_text *out_revision, struct zt_text *out_path);

#endif
