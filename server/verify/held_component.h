/* Finds components that the server has, by the SHA-256 of their decoded bytes: for bytes that a
 * client names instead of sending or receiving them. */
#ifndef VERIFY_HELD_COMPONENT_H
#define VERIFY_HELD_COMPONENT_H

#include "base/name_filter.h"
#include "verify/component_digests.h"

struct held_component {
    struct generation *generation; /* held, with its files open */
    uint32_t index;
    const struct zt_component *component;
    struct zt_source *source; /* the file that has its stored bytes */
};

/* Finds a component in the models that pass the filter: knowing a digest must not give access to
 * the bytes. Components known to be corrupt are skipped, and, with only_verified, mirrored files
 * that are not verified yet. The digest may be one that the file states, so the caller verifies the
 * component, or compares the bytes that it reads. Call it on a worker. Returns false if there is
 * none. */
bool held_component_find(struct server *server, const uint8_t sha256[SHA256_BYTES],
                         struct name_filter filter, bool only_verified,
                         struct held_component *out_held);

#endif
