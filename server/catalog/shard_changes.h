/* Which models over several files must be opened again because of other files. */
#ifndef CATALOG_SHARD_CHANGES_H
#define CATALOG_SHARD_CHANGES_H

#include "catalog/catalog_index.h"

/* Whether the model may have gained or lost a shard by the changes, which are sorted by path. */
bool shard_changes_concern(const struct generation *generation,
                           const struct catalog_change *changes, size_t count);

#endif
