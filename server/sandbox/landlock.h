/* Which files can be opened, and that no TCP socket can be bound, nor connected unless the server
 * needs other services (Landlock). */
#ifndef SANDBOX_LANDLOCK_H
#define SANDBOX_LANDLOCK_H

#include "sandbox/sandbox.h"

/* Restricts this thread to the places. Returns the version of the kernel's interface (1 …), or -1
 * with errno and nothing in force. Version 1 cannot move files between folders: with a place that
 * is written to, that is ENOTSUP. Privileges must have been given up before. */
int landlock_confine(const struct sandbox_place *places, size_t count, bool connects);

#endif
