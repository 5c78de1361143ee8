/* The parts of a joined model, which go when the model is removed or replaced. */
#ifndef UPLOAD_SHARED_MODEL_PARTS_H
#define UPLOAD_SHARED_MODEL_PARTS_H

#include "catalog/catalog.h"

/* The joined model that a name stands for now, with a reference; NULL if the name stands for
 * another model or none. On a worker. */
struct generation *model_parts_of(struct server *server, const char *name);

/* Whether a joined model lies behind the one that a name stands for. Whoever replaces or removes
 * that one leaves it as it is. *out_path is its index, or the first part of its split. On a
 * worker. */
bool model_parts_lie_behind(struct server *server, const char *name,
                            char out_path[MODEL_PATH_SIZE]);

/* How a refusal says so. */
#define MODEL_BEHIND "another model of this name, %s, lies behind the one that would be replaced"

/* Whether the catalog's index has one behind, in one file or several, as publication will find.
 * Never waits. */
bool model_is_known_behind(struct server *server, struct zt_text name,
                           char out_path[MODEL_PATH_SIZE]);

/* Removes the files of a joined model that no model needs any more, each only if it is what it was
 * as a part of that model. Of an index whose model could not be read nothing is removed, since it
 * may name anything. Failures are only logged. Takes each file's name, so the caller holds none. On
 * a worker. */
void model_parts_remove(struct server *server, const struct generation *model);

#endif
