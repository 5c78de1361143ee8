/* The page cache, as mincore reports it. */
#include "http/wire/page_cache.h"

#include "http/wire/mhd_state.h"

/* Positions of a large answer at which the page cache is queried. */
#define SAMPLES 16

const uint8_t *segment_bytes(const struct segment *segment)
{
    const uint8_t *mapping;

    if (segment->kind == SEGMENT_MEMORY)
        return segment->bytes;
    mapping = zt_source_map(segment->source);
    return mapping != NULL ? mapping + segment->offset : NULL;
}

static bool all_resident(struct mhd *mhd, const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        if (segment->kind != SEGMENT_MEMORY &&
            !page_memory_holds(&mhd->pages, mhd->now_ms, zt_source_map(segment->source),
                               zt_source_size(segment->source), segment->offset, segment->length))
            return false;
    }
    return true;
}

/* Walks the segments once; places is in ascending order. */
static bool samples_resident(const struct answer *answer, const uint64_t *places, unsigned count)
{
    uint64_t start = 0;
    unsigned place = 0;

    for (size_t i = 0; i < answer->segment_count && place < count; i++) {
        const struct segment *segment = &answer->segments[i];

        for (; place < count && places[place] - start < segment->length; place++)
            if (segment->kind != SEGMENT_MEMORY &&
                !zt_is_resident(segment_bytes(segment) + (places[place] - start), 1))
                return false;
        start += segment->length;
    }
    return true;
}

bool page_cache_holds(struct mhd *mhd, const struct answer *answer)
{
    uint64_t places[SAMPLES + 1];

    if (answer->content_length <=
        (answer->segment_count == 1 ? PAGE_CACHE_PIECE_BYTES : PAGE_CACHE_SMALL_BYTES))
        return all_resident(mhd, answer);
    for (unsigned i = 0; i < SAMPLES; i++)
        places[i] = answer->content_length / SAMPLES * i;
    places[SAMPLES] = answer->content_length - 1;
    return samples_resident(answer, places, SAMPLES + 1);
}

bool answer_is_memory(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++)
        if (answer->segments[i].kind != SEGMENT_MEMORY)
            return false;
    return true;
}

bool answer_is_mappable(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++)
        if (segment_bytes(&answer->segments[i]) == NULL)
            return false;
    return true;
}
