/* The revision that the client of an export already has: objects that are the same in it are left
 * out. It is a generation of the same model, at any revision that the server keeps. */
#ifndef DERIVED_EXPORT_BASE_H
#define DERIVED_EXPORT_BASE_H

#include "catalog/generation.h"

struct export_runner;
struct export_work;

/* Returns true if a name means the revision that is exported: the ETag of its manifest, with or
 * without quotes; "main", if the generation is the current state of its repository; or the commit
 * of a generation that is read at one. */
bool export_base_is_named(const struct generation *generation, struct zt_text name);

/* Returns the text that identifies a base in the keys of plans: its name with the commit, whose
 * bytes never change; its ETag if it is the current state. Borrowed. */
struct zt_text export_base_identity(const struct generation *base);

/* Returns true if both are the same version: all objects are the same, and their digests are not
 * needed. */
bool export_base_is_current(const struct generation *generation, const struct generation *base);

/* Returns true if the base has an object of the same name, layout, shape, attributes and types of
 * components. object is an index in the generation's model. */
bool export_base_has_object(const struct generation *generation, const struct generation *base,
                            uint32_t object);

/* Compares a runner's component with the base's by their SHA-256, and records in work->unchanged
 * whether they are the same. Digests that are not known are computed, and kept. Returns false if
 * the verifier will queue the runner again; the caller must not touch it then. */
bool export_base_compare(struct export_runner *runner);

#endif
