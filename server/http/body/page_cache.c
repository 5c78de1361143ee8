/* A window is processed in extents: pieces of one file without gaps, or with gaps that are cheaper
 * to read than to skip. Workers request many windows from the disk and wait for one of them. The
 * kernel reads ahead as well, but only from one of its windows to the next. */
#include "http/body/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

/* The maximum bytes of files to check or read per window. For a larger window the kernel would only
 * send the disk requests of the maximum size, and the first byte would come late. */
#define WINDOW_BYTES ((uint64_t)1 << 20)
/* The same for slices, which may be scattered over a much larger part of their files. */
#define SLICE_BYTES ((uint64_t)512 << 10)
/* The maximum number of runs per window: each may need its own page and its own system call. */
#define RUNS_MOST ((uint64_t)2048)
/* The maximum number of segments per window. */
#define SEGMENTS_MOST 256
#define EXTENTS       64
#define PAGE_BYTES    4096u
/* The read size; small, so that the copied bytes, which are discarded, stay in the processor's
 * cache. */
#define READ_BYTES ((size_t)128 << 10)

/* How many bytes should be in transit from the disk ahead of the bytes being sent. */
#define DEPTH_BYTES ((uint64_t)16 << 20)
/* A job starts once the depth has fallen this far below DEPTH_BYTES. */
#define STEP_BYTES ((uint64_t)4 << 20)
/* Windows that a job requests; requesting them takes about 1 ms. */
#define WINDOWS_A_JOB 4

struct extent {
    struct zt_source *file;
    struct zt_slice_run run;
};

/* --- windows --- */

/* Returns how many bytes of the segment at place belong to a window that has room for `room` bytes
 * of files. */
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

        /* A slice uses all the room, unless it ends first. */
        if (is_file && from.within + length < segment->length)
            room = 0;
        else if (is_file)
            room -= slice == NULL ? length : length * (WINDOW_BYTES / SLICE_BYTES);
        place_advance(&from, answer, length);
    }
    return from;
}

/* Lists extents of the segment at place, up to end, and moves place after them. */
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

/* The result of mincore for some pages of a mapping. */
struct pages {
    const uint8_t *from;
    size_t count;
    unsigned char states[512];
};

/* Asks about the pages from `at`, a page of the first extent, up to the end of the extents or of
 * the buffer. */
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

/* Returns true if the first extent is in memory. */
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

/* Reads an extent. Stops early if the file has become too short. */
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

/* --- reading ahead --- */

static bool wants_more(const struct page_reader *reader, uint64_t at, uint64_t depth)
{
    return reader->asked.at < reader->answer->content_length && reader->asked.at - at < depth;
}

/* Asking about a window takes about 0.2 ms. Read errors show when the bytes are sent. */
static void read_windows(struct job *job)
{
    struct page_reader *reader = (struct page_reader *)job;
    const struct answer *answer = reader->answer;

    for (unsigned i = 0; i < WINDOWS_A_JOB && wants_more(reader, reader->from.at, DEPTH_BYTES);
         i++) {
        const struct place end = window_end(answer, reader->asked);

        for_each(answer, reader->asked, end.at, read_ahead);
        reader->asked = end;
    }
    if (!window_is_warm(answer, reader->from))
        for_each(answer, reader->from, window_end(answer, reader->from).at, read_whole);
}

bool page_reader_is_due(const struct page_reader *reader, uint64_t at)
{
    return !reader->runs &&
           (reader->asked.at < at || wants_more(reader, at, DEPTH_BYTES - STEP_BYTES));
}

void page_reader_begin(struct page_reader *reader, struct server *server, struct place from)
{
    if (reader->runs)
        return;
    assert(from.at < reader->answer->content_length);
    if (reader->asked.at < from.at)
        reader->asked = from;
    reader->from = from;
    reader->job.run = read_windows;
    reader->runs = true;
    atomic_store_explicit(&server->disk_awaited_ms, clock_coarse_ms(), memory_order_relaxed);
    workers_submit(server->workers, &reader->job);
}

struct place page_reader_done(struct page_reader *reader)
{
    assert(reader->runs);
    reader->runs = false;
    return window_end(reader->answer, reader->from);
}
