/* The revision that the client of an export already has: objects that are unchanged since then are
 * left out. Only the revision that is exported is known as such a base. */
#ifndef DERIVED_EXPORT_BASE_H
#define DERIVED_EXPORT_BASE_H

#include "catalog/generation.h"

/* Finds the revision of a model that a client names: the ETag of the manifest, with or without
 * quotes; "main", if the generation is the current state of its repository; or the commit of a
 * generation that is read at one. *out_base, its ETag, is borrowed from the generation. Returns
 * false if it is unknown. */
bool export_base_find(const struct generation *generation, struct zt_text name,
                      struct zt_text *out_base);

/* Returns true if the generation is the base: all of its objects are the same, and their digests
 * are not needed. */
bool export_base_is_current(const struct generation *generation, struct zt_text base);

/* Returns true if the base has an object of this name with the same digests. */
bool export_base_has_object(const struct generation *generation, struct zt_text base,
                            struct zt_text object);

#endif
