/* The page cache, as mincore reports it. */
#include "http/wire/page_cache.h"

#include <assert.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u
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

static bool pages_resident(const uint8_t *bytes, uint64_t length)
{
    unsigned char pages[PAGE_CACHE_SMALL_BYTES / PAGE_BYTES + 1];
    const uintptr_t first = (uintptr_t)bytes & ~(uintptr_t)(PAGE_BYTES - 1);
    const size_t span = (size_t)((uintptr_t)bytes + length - first);
    const size_t count = (span + PAGE_BYTES - 1) / PAGE_BYTES;

    assert(count <= sizeof(pages));
    /* If the pages of the system are larger, the call fails and the pages count as absent. */
    if (mincore((void *)first, span, pages) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if ((pages[i] & 1) == 0)
            return false;
    return true;
}

static bool all_resident(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        if (segment->kind != SEGMENT_MEMORY &&
            !pages_resident(segment_bytes(segment), segment->length))
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
                !pages_resident(segment_bytes(segment) + (places[place] - start), 1))
                return false;
        start += segment->length;
    }
    return true;
}

bool page_cache_holds(const struct answer *answer)
{
    uint64_t places[SAMPLES + 1];

    if (answer->content_length <= PAGE_CACHE_SMALL_BYTES)
        return all_resident(answer);
    for (unsigned i = 0; i < SAMPLES; i++)
        places[i] = answer->content_length / SAMPLES * i;
    places[SAMPLES] = answer->content_length - 1;
    return samples_resident(answer, places, SAMPLES + 1);
}

bool answer_is_mappable(const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++)
        if (segment_bytes(&answer->segments[i]) == NULL)
            return false;
    return true;
}
