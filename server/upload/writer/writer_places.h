/* Places in the one file that a streaming writer's components go to: aligned, given out in any
 * order, none twice. */
#ifndef UPLOAD_WRITER_WRITER_PLACES_H
#define UPLOAD_WRITER_WRITER_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer_place {
    uint64_t offset;
    uint64_t length;
};

struct writer_places {
    uint64_t alignment;
    uint64_t end; /* aligned: nothing was given out from here on */
    /* Given back. They may hold bytes of what was there before, so that only what fills one exactly
     * gets it. */
    struct writer_place *holes;
    size_t hole_count;
    size_t hole_capacity;
};

void writer_places_init(struct writer_places *places, uint64_t alignment);
void writer_places_free(struct writer_places *places);

/* False when the file would become longer than most. No bytes take no place. */
bool writer_place_take(struct writer_places *places, uint64_t length, uint64_t most,
                       uint64_t *out_offset);

/* Takes a place back, whatever was written there. */
void writer_place_give(struct writer_places *places, uint64_t offset, uint64_t length);

/* Leaves everything before offset alone: what an earlier process gave out. */
void writer_places_skip(struct writer_places *places, uint64_t offset);

#endif
