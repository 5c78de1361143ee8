/* Names in Git LFS: objects are named by their SHA-256. */
#ifndef HUB_WRITE_LFS_NAMES_H
#define HUB_WRITE_LFS_NAMES_H

#include <stdbool.h>

#include "zt/text.h"

/* 64 hex digits and NUL. */
#define LFS_OID_SIZE 65

/* Returns true if a text names the only algorithm: "sha256", or "sha_256" as npm's client writes
 * it. */
bool lfs_is_sha256(struct zt_text algorithm);

#endif
