/* Models have many tensors of one shape: a hole of exactly the right length is found often enough.
 */
#include "upload/writer/writer_places.h"

#include <stdlib.h>

/* Holes beyond that are forgotten; what commits sees them all the same. */
#define HOLES_MAX 4096

static uint64_t aligned(const struct writer_places *places, uint64_t offset)
{
    return (offset + places->alignment - 1) / places->alignment * places->alignment;
}

void writer_places_init(struct writer_places *places, uint64_t alignment)
{
    /* The head of the file is shorter than that. */
    *places = (struct writer_places){.alignment = alignment, .end = alignment};
}

void writer_places_free(struct writer_places *places)
{
    free(places->holes);
    places->holes = NULL;
}

static bool take_hole(struct writer_places *places, uint64_t length, uint64_t *out_offset)
{
    for (size_t i = 0; i < places->hole_count; i++) {
        if (places->holes[i].length != length)
            continue;
        *out_offset = places->holes[i].offset;
        places->holes[i] = places->holes[--places->hole_count];
        return true;
    }
    return false;
}

bool writer_place_take(struct writer_places *places, uint64_t length, uint64_t most,
                       uint64_t *out_offset)
{
    if (length == 0) {
        *out_offset = places->alignment;
        return true;
    }
    if (take_hole(places, length, out_offset))
        return true;
    if (places->end > most || length > most - places->end)
        return false;
    *out_offset = places->end;
    places->end = aligned(places, places->end + length);
    return true;
}

static bool make_room(struct writer_places *places)
{
    size_t capacity;
    struct writer_place *holes;

    if (places->hole_count < places->hole_capacity)
        return true;
    capacity = places->hole_capacity * 2 + 8;
    holes = NULL;
    if (capacity <= HOLES_MAX)
        holes = reallocarray(places->holes, capacity, sizeof(*holes));
    if (holes == NULL)
        return false;
    places->holes = holes;
    places->hole_capacity = capacity;
    return true;
}

void writer_place_give(struct writer_places *places, uint64_t offset, uint64_t length)
{
    if (length > 0 && make_room(places))
        places->holes[places->hole_count++] = (struct writer_place){offset, length};
}

void writer_places_skip(struct writer_places *places, uint64_t offset)
{
    uint64_t end = aligned(places, offset);

    places->end = end > places->end ? end : places->end;
}
