/* From a plan of a file to the segments that are sent. */
#ifndef API_EXPORT_SEGMENTS_H
#define API_EXPORT_SEGMENTS_H

#include "derived/export_plan.h"
#include "http/exchange/representation.h"

struct export_segments {
    const struct export_plan *plan;
    struct export_bytes *bytes;
    struct zt_source *file; /* the whole file, for what does not lie ready in a stored one */
    struct segment *list;
    size_t count;
    size_t capacity;
    bool failed; /* memory is out */
};

/* Borrows plan, generation and cut (NULL: none). NULL when memory is out. */
struct export_segments *export_segments_new(struct server *server, const struct export_plan *plan,
                                            struct generation *generation,
                                            const struct zt_cut *cut);

/* Fills the list. Takes about 0.1 µs a component. */
void export_segments_fill(struct export_segments *segments);

/* Takes NULL; void * so that it fits request_hold. */
void export_segments_free(void *segments);

#endif
