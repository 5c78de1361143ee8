/* Copying models into one: objects, components, dimensions, and every text that they point to. */
#ifndef ZT_JOIN_COPY_H
#define ZT_JOIN_COPY_H

#include "zt/join.h"

/* Makes a model that has the objects of all parts, part by part and not sorted: the components of
 * parts[i] are in shard shards[i]. It has no shards and no attributes yet; format, names of format
 * and version are those of the first part. ZT_LIMIT if 32 bits cannot count what it has;
 * ZT_NO_MEMORY. Freed with zt_model_free. */
enum zt_status zt_models_copy(const struct zt_part *parts, size_t part_count,
                              const uint32_t *shards, struct zt_model **out_model,
                              struct zt_error *error);

/* Copies bytes into the model's arena. *out_copy is never NULL. ZT_NO_MEMORY. */
enum zt_status zt_text_keep(struct zt_model *model, struct zt_text text, const char **out_copy,
                            struct zt_error *error);

#endif
