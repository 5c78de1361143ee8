/* The segments of an exported file, listed from its plan. */
#ifndef API_EXPORT_SEGMENTS_H
#define API_EXPORT_SEGMENTS_H

#include "derived/export_plan.h"
#include "http/exchange/representation.h"

struct export_segments {
    const struct export_plan *plan;
    struct export_bytes *bytes;
    struct zt_source *file; /* the exported file, for components that must be decoded or
                             * converted */
    struct segment *list;
    size_t count;
    size_t capacity;
    bool failed; /* memory ran out */
};

/* Borrows plan, generation and cut (NULL: none). Returns NULL if out of memory. */
struct export_segments *export_segments_new(struct server *server, const struct export_plan *plan,
                                            struct generation *generation, const struct zt_cut *cut,
                                            bool to_f32);

/* Fills the list; takes about 0.1 µs per component. */
void export_segments_fill(struct export_segments *segments);

/* Accepts NULL. Takes a void pointer for request_hold. */
void export_segments_free(void *segments);

#endif
