/* Decides which components may be sent as stored, with the content coding zstd: those whose frames
 * all decoders accept (RFC 9659). The frames are read once per version of a file. */
#ifndef DERIVED_PASSTHROUGH_H
#define DERIVED_PASSTHROUGH_H

#include "catalog/generation.h"

/* Returns true if a component's bytes are exactly what its zstd frames decompress to. If so, only
 * the frames decide whether it can be passed through. */
static inline bool passthrough_is_possible(const struct zt_component *component)
{
    /* These components are converted after decompression, which a client would not do. */
    if (component->big_endian || component->arrangement != NULL)
        return false;
    return component->encoding == ZT_ENCODING_ZSTD ||
           component->encoding == ZT_ENCODING_ZSTD_SEEKABLE;
}

/* Returns false if the result is not known yet. Never waits. */
bool passthrough_is_known(struct generation *generation, uint32_t component, bool *out_fit);

/* Examines a component for which passthrough_is_possible, and remembers the result. It reads the
 * headers of all blocks, so call it on a worker. Returns false if the bytes cannot be read, without
 * remembering that. May be called on any thread. */
bool passthrough_find(struct generation *generation, uint32_t component);

#endif
