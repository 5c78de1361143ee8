/* Finding the position of a model's texts and components in the manifest, for errors. */
#ifndef ZT_MODEL_LOCATE_H
#define ZT_MODEL_LOCATE_H

#include "zt/model.h"

/* Absolute file position of a text that points into the manifest's bytes; ZT_NO_OFFSET for any
 * other text. Rules that are checked after the manifest has been read report it as their offset. */
uint64_t zt_manifest_position(const struct zt_model *model, const void *text);

/* The object that a component belongs to. Searches linearly, so do not call it in loops. */
const struct zt_object *zt_component_owner(const struct zt_model *model,
                                           const struct zt_component *component);

#endif
