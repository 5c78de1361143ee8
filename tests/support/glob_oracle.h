/* Whether a glob matches, the slow way: one glob, character by character, retrying its last
 * star. */
#ifndef GLOB_ORACLE_H
#define GLOB_ORACLE_H

#include <stdbool.h>

#include "zt/status.h"

/* glob must be valid. */
bool glob_oracle_matches(struct zt_text glob, struct zt_text name);

#endif
