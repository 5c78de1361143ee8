/* The repositories that clients have created and nothing was committed to so far, where the store
 * has no folders without files: remembered in memory, by the server that was asked. Bounded; the
 * oldest is forgotten first. From any thread. */
#ifndef HUB_CREATED_REPOS_H
#define HUB_CREATED_REPOS_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/status.h"

struct created_repos;

/* NULL when out of memory. */
struct created_repos *created_repos_new(void);
/* Takes NULL. */
void created_repos_free(struct created_repos *created);

/* Remembers one from now on; if it is known already, for longer. ZT_NO_MEMORY. */
enum zt_status created_repos_add(struct created_repos *created, const char *name,
                                 struct zt_error *error);

/* Whether one was created within that time. */
bool created_repos_has(struct created_repos *created, const char *name, int64_t within_ms);

#endif
