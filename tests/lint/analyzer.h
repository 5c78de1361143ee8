/* Included before each file that clang-tidy checks. zt_fail and zt_fail_memory are compiled
 * elsewhere; here the analyzer learns which status they return. Otherwise it follows paths on which
 * a failure is ZT_OK. */
#ifndef LINT_ANALYZER_H
#define LINT_ANALYZER_H

#include "zt/status.h"

#define zt_fail(error, status, ...)    (zt_fail((error), (status), __VA_ARGS__), (status))
#define zt_fail_memory(error, purpose) (zt_fail_memory((error), (purpose)), ZT_NO_MEMORY)

#endif
