/* Where in its file something of a model comes from: for errors. */
#ifndef ZT_MODEL_LOCATE_H
#define ZT_MODEL_LOCATE_H

#include "zt/model.h"

/* Absolute position of a text in the manifest's bytes; ZT_NO_OFFSET for any other text. Rules that
 * are checked after the manifest was read report this as their offset. */
uint64_t zt_manifest_position(const struct zt_model *model, const void *text);

/* The object that a component belongs to, found by trying all: not for loops. */
const struct zt_object *zt_component_owner(const struct zt_model *model,
                                           const struct zt_component *component);

#endif
