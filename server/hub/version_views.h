/* The views of a version's models, as files of it. */
#ifndef HUB_VERSION_VIEWS_H
#define HUB_VERSION_VIEWS_H

#include "hub/version.h"

/* Adds a file for each view, and sorts all of them again. previous: a version that knows of some
 * models already, or NULL. Takes the files of the store as filled in. A model that cannot be looked
 * at now has no view. False: out of memory. On a worker; opens models. */
bool version_views_add(struct server *server, struct hub_version *version,
                       const struct hub_version *previous);
void version_views_free(struct hub_version *version);

/* "X.safetensors", if the only model is "X.zt", whose view is listed as "model.safetensors": that
 * one. NULL: the path is no such name. */
const struct hub_file *version_views_second(const struct hub_version *version, struct zt_text path);

/* What stands for a view's bytes in a commit: the version of its model, and what is made of it.
 * source: what stands for the model's. */
#define VIEW_TEXT_SIZE 160
void version_view_text(const struct hub_file *file, const char *source,
                       char out_text[VIEW_TEXT_SIZE]);

#endif
