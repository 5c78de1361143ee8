/* The keys of a split GGUF, which a joined model does not have. */
#ifndef ZT_JOIN_SPLIT_H
#define ZT_JOIN_SPLIT_H

#include "base/memory.h"
#include "zt/join.h"

/* Appends a model's attributes without the keys that make it a part. A failed buffer says that
 * there was no memory. */
void zt_split_attributes(const struct zt_model *model, struct zt_buffer *buffer);

#endif
