/* Which components may go out as they are stored, as the content coding zstd: those whose frames
 * every decoder takes (RFC 9659). Found by walking over the frames once for each version of a file.
 */
#ifndef DERIVED_PASSTHROUGH_H
#define DERIVED_PASSTHROUGH_H

#include "catalog/generation.h"

/* Whether decompressing its zstd frames is all that gives a component's bytes, so that there is
 * something to find out. */
bool passthrough_is_possible(const struct zt_component *component);

/* False: nobody has found out yet. Never waits. */
bool passthrough_is_known(struct generation *generation, uint32_t component, bool *out_fit);

/* Finds out and remembers; several may do so at once. Reads the headers of all blocks: on a worker.
 * Bytes that cannot be read are told as unfit, and not remembered. */
bool passthrough_find(struct generation *generation, uint32_t component);

#endif
