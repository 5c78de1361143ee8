/* What a glob matches, told the slow way: one glob, one character after the other, going back to
 * its last star. */
#ifndef GLOB_ORACLE_H
#define GLOB_ORACLE_H

#include <stdbool.h>

#include "zt/status.h"

/* glob must be valid. */
bool glob_oracle_matches(struct zt_text glob, struct zt_text name);

#endif
