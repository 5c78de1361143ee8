/* Filling a representation: fields, segments, steps. Handlers promise to stay within the bounds; no
 * input decides them. */
#include "http/exchange/representation.h"

#include <assert.h>
#include <string.h>

void representation_init(struct representation *representation)
{
    memset(representation, 0, sizeof(*representation));
    representation->status = 200;
    representation->segments = representation->own_segments;
}

void representation_field(struct representation *representation, const char *name,
                          const char *value)
{
    assert(representation->field_count < REPRESENTATION_FIELDS);
    /* Memory was out when the value was made: the field is left out. */
    if (value == NULL)
        return;
    representation->fields[representation->field_count++] = (struct field){name, value};
}

static void add_segment(struct representation *representation, struct segment segment)
{
    /* No segment is empty. */
    if (segment.length == 0)
        return;
    assert(representation->segments == representation->own_segments);
    assert(representation->segment_count < REPRESENTATION_SEGMENTS);
    segment.start = representation->length;
    representation->segments[representation->segment_count++] = segment;
    representation->length += segment.length;
}

void representation_memory(struct representation *representation, const void *bytes,
                           uint64_t length)
{
    add_segment(representation,
                (struct segment){.kind = SEGMENT_MEMORY, .length = length, .bytes = bytes});
}

void representation_source(struct representation *representation, struct zt_source *source,
                           uint64_t offset, uint64_t length)
{
    add_segment(representation,
                (struct segment){
                    .kind = SEGMENT_SOURCE, .length = length, .source = source, .offset = offset});
}

void representation_clear(struct representation *representation)
{
    representation->segments = representation->own_segments;
    representation->segment_count = 0;
    representation->length = 0;
}

void representation_segments(struct representation *representation, struct segment *segments,
                             size_t count)
{
    representation_clear(representation);
    representation->segments = segments;
    representation->segment_count = count;
    for (size_t i = 0; i < count; i++) {
        assert(segments[i].length > 0);
        segments[i].start = representation->length;
        representation->length += segments[i].length;
    }
}

/* The index of the segment that holds the byte at position. */
static size_t find_segment(const struct representation *representation, uint64_t position)
{
    size_t low = 0;
    size_t high = representation->segment_count;

    assert(position < representation->length);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (representation->segments[middle].start <= position)
            low = middle;
        else
            high = middle;
    }
    assert(position - representation->segments[low].start < representation->segments[low].length);
    return low;
}

size_t representation_count(const struct representation *representation, uint64_t first,
                            uint64_t length)
{
    return find_segment(representation, first + length - 1) - find_segment(representation, first) +
           1;
}

static void skip_bytes(struct segment *segment, uint64_t length)
{
    assert(length < segment->length);
    segment->length -= length;
    if (segment->kind == SEGMENT_MEMORY)
        segment->bytes += length;
    else
        segment->offset += length;
}

size_t representation_cut(const struct representation *representation, uint64_t first,
                          uint64_t length, uint64_t start, struct segment *out_segments)
{
    const size_t index = find_segment(representation, first);
    size_t count = 0;

    assert(length > 0 && length <= representation->length - first);
    for (uint64_t left = length; left > 0; count++) {
        struct segment *segment = &out_segments[count];

        assert(index + count < representation->segment_count);
        *segment = representation->segments[index + count];
        if (count == 0)
            skip_bytes(segment, first - segment->start);
        if (segment->length > left)
            segment->length = left;
        segment->start = start;
        start += segment->length;
        left -= segment->length;
    }
    return count;
}

void representation_step(struct representation *representation, preparation step)
{
    assert(representation->step_count < REPRESENTATION_STEPS);
    representation->steps[representation->step_count++] = step;
}
