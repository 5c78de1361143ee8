/* Models have many tensors of the same shape, so a hole of exactly the right length is found often
 * enough. */
#include "upload/writer/writer_places.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

/* More holes than this are forgotten; a commit still finds them. */
#define HOLES_MAX 4096

static uint64_t aligned(const struct writer_places *places, uint64_t offset)
{
    assert(places->alignment > 0);
    return (offset + places->alignment - 1) / places->alignment * places->alignment;
}

void writer_places_init(struct writer_places *places, uint64_t alignment)
{
    assert(alignment > 0 && (alignment & (alignment - 1)) == 0);
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
        assert(*out_offset % places->alignment == 0 && *out_offset + length <= places->end);
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
    assert(places->end % places->alignment == 0);
    *out_offset = places->end;
    places->end = aligned(places, places->end + length);
    return true;
}

/* Without memory, or with too many holes, the position is not reused. */
void writer_place_give(struct writer_places *places, uint64_t offset, uint64_t length)
{
    if (length == 0 ||
        zt_array_reserve(&places->holes, &places->hole_capacity, places->hole_count + 1,
                         sizeof(*places->holes), HOLES_MAX) != ZT_OK)
        return;
    assert(offset % places->alignment == 0 && offset + length <= places->end);
    places->holes[places->hole_count++] = (struct writer_place){offset, length};
}

void writer_places_skip(struct writer_places *places, uint64_t offset)
{
    uint64_t end = aligned(places, offset);

    places->end = end > places->end ? end : places->end;
}
