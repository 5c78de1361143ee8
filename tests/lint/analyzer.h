/* Included before each file that clang-tidy looks at: zt_fail is compiled elsewhere, so the
 * analyzer has to be told that it returns the status it is given. Otherwise it follows paths on
 * which a failure is ZT_OK. */
#ifndef LINT_ANALYZER_H
#define LINT_ANALYZER_H

#include "zt/status.h"

#define zt_fail(error, status, ...) (zt_fail((error), (status), __VA_ARGS__), (status))

#endif
