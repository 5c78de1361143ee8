/* Places for components in a streaming writer's "data": aligned, and never given out twice. */
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
    uint64_t end; /* aligned: the end of the last place given out */
    /* Places given back. They may still hold old bytes, so only components of exactly their length
     * reuse them. */
    struct writer_place *holes;
    size_t hole_count;
    size_t hole_capacity;
};

void writer_places_init(struct writer_places *places, uint64_t alignment);
void writer_places_free(struct writer_places *places);

/* False when the file would become longer than most. A length of 0 takes no place. */
bool writer_place_take(struct writer_places *places, uint64_t length, uint64_t most,
                       uint64_t *out_offset);

/* Takes a place back, with whatever was written there. */
void writer_place_give(struct writer_places *places, uint64_t offset, uint64_t length);

/* Excludes everything before offset, which an earlier process gave out. */
void writer_places_skip(struct writer_places *places, uint64_t offset);

#endif
