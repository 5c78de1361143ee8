/* Adds the views of a version's models to its files. */
#ifndef HUB_VERSION_VIEWS_H
#define HUB_VERSION_VIEWS_H

#include "hub/version.h"

/* Adds a file for each view, and sorts the files again. previous is a version that already has
 * views of some models, or NULL. The stored files must be filled in. A model that cannot be opened
 * now gets no view. Returns false if out of memory. On a worker; opens models. */
bool version_views_add(struct server *server, struct hub_version *version,
                       const struct hub_version *previous);
void version_views_free(struct hub_version *version);

/* If the only model is "X.zt", its view is listed as "model.safetensors"; this also finds it as
 * "X.safetensors". Returns NULL for any other path. */
const struct hub_file *version_views_second(const struct hub_version *version, struct zt_text path);

#endif
