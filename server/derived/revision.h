/* Revisions of a model: what an export compares with if its client has an earlier version. Only the
 * current revision is known. */
#ifndef DERIVED_REVISION_H
#define DERIVED_REVISION_H

#include "catalog/generation.h"

/* Finds the revision of a model that a client names: "main", or the ETag of the manifest, with or
 * without quotes. *out_revision, its ETag, is borrowed from the generation. Returns false if it is
 * unknown. */
bool revision_find(const struct generation *generation, struct zt_text name,
                   struct zt_text *out_revision);

/* Returns true if the generation is this revision: all of its objects are the same, and their
 * digests are not needed. */
bool revision_is_current(const struct generation *generation, struct zt_text revision);

/* Returns true if the revision has an object of this name with the same digests. */
bool revision_has_object(const struct generation *generation, struct zt_text revision,
                         struct zt_text object);

#endif
