/* Memory that runs out on demand: a program that links this has its C library's allocator replaced
 * by one that counts, and fails the n-th call. Not under sanitizers, which replace it themselves:
 * ZT_SANITIZED is defined there. */
#ifndef ZT_TEST_ALLOCATION_H
#define ZT_TEST_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "sanitized.h"

/* The n-th allocation from now on fails, once; 0 is the next. */
void allocation_fail(long n);
/* Lets all succeed again. Whether the one that was to fail was asked for. */
bool allocation_end(void);
/* Blocks that are not freed yet. */
long allocation_outstanding(void);

/* Measures from now on; then, the most bytes that were held at once beyond those held before. */
void allocation_measure(void);
size_t allocation_taken(void);

#endif
