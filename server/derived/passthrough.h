/* Which components may be sent as they are stored, as the content coding zstd: those whose frames
 * every decoder accepts (RFC 9659). The frames are read once for each version of a file. */
#ifndef DERIVED_PASSTHROUGH_H
#define DERIVED_PASSTHROUGH_H

#include "catalog/generation.h"

/* Whether a component's bytes are exactly what its zstd frames decompress to. If so, only the
 * frames decide whether it may be passed through. */
static inline bool passthrough_is_possible(const struct zt_component *component)
{
    /* Such components are converted after decompression, which a client would not do. */
    if (component->big_endian || component->arrangement != NULL)
        return false;
    return component->encoding == ZT_ENCODING_ZSTD ||
           component->encoding == ZT_ENCODING_ZSTD_SEEKABLE;
}

/* False: not known yet. Never waits. */
bool passthrough_is_known(struct generation *generation, uint32_t component, bool *out_fit);

/* Examines a component for which passthrough_is_possible, and remembers the result. From any
 * thread; it reads the headers of all blocks, so call it on a worker. Returns false if the bytes
 * cannot be read, but does not remember that. */
bool passthrough_find(struct generation *generation, uint32_t component);

#endif
