/* A position in an answer, and its segment. */
#ifndef HTTP_BODY_PLACE_H
#define HTTP_BODY_PLACE_H

#include <assert.h>

#include "http/exchange/exchange.h"
#include "zt/slice.h"

/* All members are 0 at the beginning of an answer. */
struct place {
    uint64_t at; /* in the answer; at its end, segment is the number of segments */
    size_t segment;
    uint64_t within; /* offset in the segment */
};

/* Moves forward, but not beyond the answer's end. */
static inline void place_advance(struct place *place, const struct answer *answer, uint64_t length)
{
    place->at += length;
    place->within += length;
    while (place->segment < answer->segment_count &&
           place->within >= answer->segments[place->segment].length) {
        place->within -= answer->segments[place->segment].length;
        place->segment++;
    }
    assert(place->segment < answer->segment_count || place->within == 0);
}

static inline const struct segment *place_segment(const struct place *place,
                                                  const struct answer *answer)
{
    assert(place->segment < answer->segment_count);
    return &answer->segments[place->segment];
}

/* Returns the source that contains a segment's bytes, or NULL for a segment of memory. *out_slice:
 * the slice of it that the segment reads, or NULL. */
static inline struct zt_source *segment_origin(const struct segment *segment,
                                               const struct zt_slice **out_slice)
{
    struct zt_source *origin;

    *out_slice = NULL;
    if (segment->kind == SEGMENT_MEMORY)
        return NULL;
    origin = segment->source;
    *out_slice = zt_slice_of_source(segment->source, &origin);
    return origin;
}

/* Returns the same if it is a file; else NULL. */
static inline struct zt_source *segment_file(const struct segment *segment,
                                             const struct zt_slice **out_slice)
{
    struct zt_source *origin = segment_origin(segment, out_slice);

    return origin != NULL && zt_source_descriptor(origin) >= 0 ? origin : NULL;
}

#endif
