/* Repositories that clients have created and not committed to yet, for stores that have no folders
 * without files. This server remembers them in memory, up to a limit; the oldest is forgotten
 * first. From any thread. */
#ifndef HUB_CREATED_REPOS_H
#define HUB_CREATED_REPOS_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/status.h"

struct created_repos;

/* Returns NULL if out of memory. */
struct created_repos *created_repos_new(void);
/* Accepts NULL. */
void created_repos_free(struct created_repos *created);

/* Remembers a repository, or restarts its time. Returns ZT_NO_MEMORY. */
enum zt_status created_repos_add(struct created_repos *created, const char *name,
                                 struct zt_error *error);

/* Returns true if the repository was created within that time. */
bool created_repos_has(struct created_repos *created, const char *name, int64_t within_ms);

#endif
