/* Allocates positions for components in a streaming writer's "data": aligned, and never allocated
 * twice. */
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
    uint64_t end; /* aligned: the end of the last allocated position */
    /* Freed positions. They may still contain old bytes, so only components of exactly their length
     * reuse them. */
    struct writer_place *holes;
    size_t hole_count;
    size_t hole_capacity;
};

void writer_places_init(struct writer_places *places, uint64_t alignment);
void writer_places_free(struct writer_places *places);

/* Returns false if the file would become longer than most. A length of 0 takes no space. */
bool writer_place_take(struct writer_places *places, uint64_t length, uint64_t most,
                       uint64_t *out_offset);

/* Frees a position, whose bytes may have been written. */
void writer_place_give(struct writer_places *places, uint64_t offset, uint64_t length);

/* Excludes everything before offset, which an earlier process allocated. */
void writer_places_skip(struct writer_places *places, uint64_t offset);

#endif
