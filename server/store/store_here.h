/* Lets a thread look for files only in the store itself, not at an upstream. Writers do: an
 * upstream must not learn the names of uploads, and uploads must not fail because it is away. */
#ifndef STORE_STORE_HERE_H
#define STORE_STORE_HERE_H

#include <stdbool.h>

/* From begin to end, repositories that are not known yet are not looked up for this thread. Calls
 * nest. */
void store_here_begin(void);
void store_here_end(void);

bool store_here_only(void);

#endif
