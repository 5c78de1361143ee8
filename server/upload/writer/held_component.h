/* Whether the server holds a component with given bytes, in whatever model. */
#ifndef UPLOAD_WRITER_HELD_COMPONENT_H
#define UPLOAD_WRITER_HELD_COMPONENT_H

#include "base/server.h"
#include "catalog/generation.h"

struct held_component {
    struct generation *generation; /* held */
    const struct zt_component *component;
    struct zt_source *source; /* the file it lies in */
};

/* By the SHA-256 of its decoded bytes, as a file states it, as it was found, or as an upload has
 * told it. Whoever reads them checks it. On a worker; false when there is none. */
bool held_component_find(struct server *server, const uint8_t sha256[32],
                         struct held_component *out_held);
void held_component_release(struct held_component *held);

#endif
