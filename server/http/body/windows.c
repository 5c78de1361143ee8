/* A window is walked by extents: pieces of one file without gaps, or with such gaps as are cheaper
 * to read than to skip. */
#include "http/body/windows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of files, asked about or read in at a time: of more, the kernel would only take the disk's
 * largest request, and a first byte would come late. */
#define WINDOW_BYTES ((uint64_t)1 << 20)
/* The same of slices, which may lie scattered over many times as much of their files. */
#define SLICE_BYTES ((uint64_t)512 << 10)
/* No window has more runs: each may be a page, and a system call, of its own. */
#define RUNS_MOST ((uint64_t)2048)
/* Nor more segments. */
#define SEGMENTS_MOST 256
#define EXTENTS       64
#define PAGE_BYTES    4096u
/* Read at a time: what is copied stays in the processor's cache, and is thrown away. */
#define READ_BYTES ((size_t)128 << 10)

struct extent {
    struct zt_source *file;
    struct zt_slice_run run;
};

/* --- walking --- */

/* How much of the segment at place belongs to a window that has room for `room` bytes of files. */
static uint64_t share(const struct answer *answer, const struct place *place, uint64_t room)
{
    const struct segment *segment = place_segment(place, answer);
    const uint64_t left = segment->length - place->within;
    const struct zt_slice *slice;

    if (segment_file(segment, &slice) == NULL)
        return left;
    if (slice != NULL) {
        room = room / (WINDOW_BYTES / SLICE_BYTES);
        if (room / RUNS_MOST > slice->run_bytes)
            room = slice->run_bytes * RUNS_MOST;
        room = room > 0 ? room : 1;
    }
    return left < room ? left : room;
}

struct place window_end(const struct answer *answer, struct place from)
{
    uint64_t room = WINDOW_BYTES;

    for (unsigned i = 0; i < SEGMENTS_MOST && room > 0 && from.segment < answer->segment_count;
         i++) {
        const struct segment *segment = place_segment(&from, answer);
        const uint64_t length = share(answer, &from, room);
        const struct zt_slice *slice;
        const bool is_file = segment_file(segment, &slice) != NULL;

        /* A slice takes all the room, unless it ends. */
        if (is_file && from.within + length < segment->length)
            room = 0;
        else if (is_file)
            room -= slice == NULL ? length : length * (WINDOW_BYTES / SLICE_BYTES);
        place_advance(&from, answer, length);
    }
    return from;
}

/* Lists extents of the segment at place, as far as end, and moves place behind them. */
static unsigned list_extents(const struct answer *answer, struct place *place, uint64_t end,
                             struct extent *out_extents)
{
    const struct segment *segment = place_segment(place, answer);
    const uint64_t offset = segment->offset + place->within;
    uint64_t length = segment->length - place->within;
    const struct zt_slice *slice;
    struct zt_source *file = segment_file(segment, &slice);
    struct zt_slice_run runs[EXTENTS] = {{offset, 0}};
    size_t count = 0;

    if (length > end - place->at)
        length = end - place->at;
    runs[0].length = length;
    if (slice != NULL)
        count = zt_slice_source_extents(segment->source, offset, length, runs, EXTENTS, &length);
    else if (file != NULL)
        count = 1;
    for (size_t i = 0; i < count; i++)
        out_extents[i] = (struct extent){file, runs[i]};
    place_advance(place, answer, length);
    return (unsigned)count;
}

/* --- asking --- */

/* What mincore said of some pages of a mapping. */
struct pages {
    const uint8_t *from;
    size_t count;
    unsigned char states[512];
};

/* Asks about the pages from `at` on, a page of the first extent, as far as the further extents go
 * or the answer fits. */
static bool ask(struct pages *pages, const uint8_t *at, const struct extent *extents,
                unsigned count)
{
    const uint8_t *mapping = zt_source_map(extents[0].file);
    size_t wanted = 0;

    for (unsigned i = 0; i < count && extents[i].file == extents[0].file; i++) {
        const uint8_t *first = mapping + extents[i].run.offset;

        if (first >= at + sizeof(pages->states) * PAGE_BYTES)
            break;
        wanted = (size_t)(first + extents[i].run.length - at);
    }
    wanted = (wanted + PAGE_BYTES - 1) / PAGE_BYTES;
    pages->from = at;
    pages->count = wanted < sizeof(pages->states) ? wanted : sizeof(pages->states);
    return mincore((void *)(uintptr_t)at, pages->count * PAGE_BYTES, pages->states) == 0;
}

/* Whether the first extent is in memory. */
static bool is_resident(struct pages *pages, const struct extent *extents, unsigned count)
{
    const struct extent *extent = &extents[0];
    const uint8_t *mapping = zt_source_map(extent->file);
    const uint64_t size = zt_source_size(extent->file);
    const uint8_t *at = mapping + (extent->run.offset & ~(uint64_t)(PAGE_BYTES - 1));
    const uint8_t *end = mapping + extent->run.offset + extent->run.length;

    if (mapping == NULL || extent->run.offset + extent->run.length > size)
        return false;
    for (; at < end; at += PAGE_BYTES) {
        if ((pages->count == 0 || at < pages->from ||
             at >= pages->from + pages->count * PAGE_BYTES) &&
            !ask(pages, at, extents, count))
            return false;
        if ((pages->states[(size_t)(at - pages->from) / PAGE_BYTES] & 1) == 0)
            return false;
    }
    return true;
}

bool window_is_warm(const struct answer *answer, struct place from)
{
    const uint64_t end = window_end(answer, from).at;
    struct pages pages = {.count = 0};
    struct extent extents[EXTENTS];

    while (from.at < end) {
        const unsigned count = list_extents(answer, &from, end, extents);

        for (unsigned i = 0; i < count; i++)
            if (!is_resident(&pages, &extents[i], count - i))
                return false;
    }
    return true;
}

/* --- reading in --- */

static void read_ahead(const struct extent *extent)
{
    readahead(zt_source_descriptor(extent->file), (off_t)extent->run.offset,
              (size_t)extent->run.length);
}

/* A file that has become too short ends it. */
static void read_whole(const struct extent *extent)
{
    const uint64_t end = extent->run.offset + extent->run.length;
    char bytes[READ_BYTES];

    for (uint64_t at = extent->run.offset; at < end;) {
        const size_t wanted = end - at < sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
        const ssize_t length = pread(zt_source_descriptor(extent->file), bytes, wanted, (off_t)at);

        if (length <= 0)
            return;
        at += (uint64_t)length;
    }
}

static void for_each(const struct answer *answer, struct place from, uint64_t end,
                     void (*visit)(const struct extent *extent))
{
    struct extent extents[EXTENTS];

    while (from.at < end) {
        const unsigned count = list_extents(answer, &from, end, extents);

        for (unsigned i = 0; i < count; i++)
            visit(&extents[i]);
    }
}

struct place window_ask(const struct answer *answer, struct place from)
{
    const struct place end = window_end(answer, from);

    for_each(answer, from, end.at, read_ahead);
    return end;
}

void window_wait(const struct answer *answer, struct place from)
{
    if (!window_is_warm(answer, from))
        for_each(answer, from, window_end(answer, from).at, read_whole);
}
