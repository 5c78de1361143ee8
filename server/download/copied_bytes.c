#include "download/copied_bytes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

/* File systems can share blocks of this size, which begin at multiples of it in both files. */
#define BLOCK_BYTES ((uint64_t)4096)
/* The watcher is called at least this often. */
#define STEP_BYTES  ((uint64_t)64 << 20)
#define PLAIN_BYTES ((size_t)256 << 10)

struct copied_range {
    uint64_t at;
    uint64_t length;
    int descriptor; /* -1: the bytes are in the part file already */
    uint64_t from;
};

static enum zt_status add(struct copied_bytes *copied, const struct copied_range *range,
                          struct zt_error *error)
{
    if (zt_array_reserve(&copied->ranges, &copied->capacity, copied->count + 1,
                         sizeof(*copied->ranges), SIZE_MAX) != ZT_OK)
        return zt_fail_memory(error, "ranges to copy");
    copied->ranges[copied->count++] = *range;
    return ZT_OK;
}

enum zt_status copied_bytes_add(struct copied_bytes *copied, uint64_t at, uint64_t length,
                                int descriptor, uint64_t from, struct zt_error *error)
{
    assert(length > 0 && descriptor >= 0);
    return add(copied, &(struct copied_range){at, length, descriptor, from}, error);
}

void copied_bytes_free(struct copied_bytes *copied)
{
    differences_free(&copied->differences);
    free(copied->ranges);
    *copied = (struct copied_bytes){.ranges = NULL};
}

/* --- order --- */

static uint64_t end_of(const struct copied_range *range)
{
    return range->at + range->length;
}

static int compare(const void *a, const void *b)
{
    const struct copied_range *one = a;
    const struct copied_range *other = b;

    return one->at < other->at ? -1 : one->at > other->at;
}

/* Sorts, and cuts off what an earlier range has. */
static void sort(struct copied_bytes *copied)
{
    uint64_t reached = 0;
    size_t kept = 0;

    if (copied->count > 0)
        qsort(copied->ranges, copied->count, sizeof(*copied->ranges), compare);
    for (size_t i = 0; i < copied->count; i++) {
        struct copied_range range = copied->ranges[i];
        const uint64_t known = range.at < reached ? reached - range.at : 0;

        if (known >= range.length)
            continue;
        range.at += known;
        range.from += known;
        range.length -= known;
        reached = end_of(&range);
        copied->ranges[kept++] = range;
    }
    copied->count = kept;
}

/* --- copying --- */

static bool copy_plainly(const struct copied_range *range, const struct part_file *file)
{
    const size_t room = range->length < PLAIN_BYTES ? (size_t)range->length : PLAIN_BYTES;
    uint8_t *bytes = malloc(room);
    bool is_done = bytes != NULL;

    for (uint64_t at = 0; is_done && at < range->length;) {
        const uint64_t left = range->length - at;
        const ssize_t got = pread(range->descriptor, bytes, left < room ? (size_t)left : room,
                                  (off_t)(range->from + at));
        struct zt_error error;

        if (got < 0 && errno == EINTR)
            continue;
        is_done =
            got > 0 && part_file_write(file, range->at + at, bytes, (size_t)got, &error) == ZT_OK;
        at += is_done ? (uint64_t)got : 0;
    }
    free(bytes);
    return is_done;
}

/* By the kernel where both files allow it. */
static bool copy_run(struct copied_range range, const struct part_file *file)
{
    while (range.length > 0) {
        off_t from = (off_t)range.from;
        off_t at = (off_t)range.at;
        const ssize_t got =
            copy_file_range(range.descriptor, &from, file->descriptor, &at, range.length, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return copy_plainly(&range, file);
        assert((uint64_t)got <= range.length);
        range.at += (uint64_t)got;
        range.from += (uint64_t)got;
        range.length -= (uint64_t)got;
    }
    return true;
}

static struct copied_range part_of(const struct copied_range *range, uint64_t at, uint64_t end)
{
    assert(range->at <= at && at <= end && end <= end_of(range));
    return (struct copied_range){at, end - at, range->descriptor, range->from + (at - range->at)};
}

/* Copies whole blocks separately, so that they can be shared. */
static bool copy(const struct copied_range *range, const struct part_file *file)
{
    const uint64_t end = end_of(range);
    const uint64_t first = (range->at + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    const uint64_t last = end / BLOCK_BYTES * BLOCK_BYTES;

    if (range->at % BLOCK_BYTES != range->from % BLOCK_BYTES || first >= last)
        return copy_run(*range, file);
    return copy_run(part_of(range, range->at, first), file) &&
           copy_run(part_of(range, first, last), file) && copy_run(part_of(range, last, end), file);
}

/* A range on its way. */
struct copying {
    const struct part_file *file;
    const struct piece_map *map;
    copied_bytes_watcher watch;
    void *context;
    uint64_t bytes; /* of all ranges so far */
};

/* Skips pieces that are here: they have been fetched. */
static bool copy_missing(struct copying *copying, const struct copied_range *range)
{
    const struct piece_map *map = copying->map;
    const uint64_t end = end_of(range);

    if (range->descriptor < 0)
        return true;
    for (uint64_t at = range->at; at < end;) {
        uint32_t piece = piece_map_at(map, at);
        const bool is_here = map->states[piece] != PIECE_MISSING;
        const uint64_t from = at;

        do {
            at = piece_map_end(map, piece++);
        } while (at < end && at - from < STEP_BYTES &&
                 (map->states[piece] != PIECE_MISSING) == is_here);
        at = at < end ? at : end;
        if (!is_here) {
            const struct copied_range missing = part_of(range, from, at);

            if (!copy(&missing, copying->file))
                return false;
            copying->bytes += missing.length;
        }
        copying->watch(copying->context, copying->bytes);
    }
    return true;
}

static void mark(struct piece_map *map, const struct copied_range *range)
{
    for (uint32_t i = piece_map_at(map, range->at);
         i < map->count && piece_map_end(map, i) <= end_of(range); i++)
        if (piece_map_begin(map, i) >= range->at && map->states[i] == PIECE_MISSING)
            piece_map_set(map, i, PIECE_COPIED);
}

/* Without memory they are fetched. */
static void add_made(struct copied_bytes *copied)
{
    for (size_t i = 0; i < copied->differences.count; i++) {
        const struct difference *difference = &copied->differences.list[i];
        struct zt_error error;

        if (difference->is_made)
            (void)add(copied,
                      &(struct copied_range){
                          .at = difference->at, .length = difference->length, .descriptor = -1},
                      &error);
    }
}

void copied_bytes_make(struct copied_bytes *copied, const struct part_file *file,
                       struct piece_map *map, copied_bytes_watcher watch, void *context)
{
    struct copying copying = {file, map, watch, context, 0};
    size_t kept = 0;

    differences_make(&copied->differences, file, map, watch, context);
    copying.bytes = copied->differences.made_bytes;
    add_made(copied);
    sort(copied);
    for (size_t i = 0; i < copied->count; i++) {
        const struct copied_range range = copied->ranges[i];

        assert(end_of(&range) <= map->size);
        if (!copy_missing(&copying, &range))
            continue;
        if (kept > 0 && end_of(&copied->ranges[kept - 1]) == range.at)
            copied->ranges[kept - 1].length += range.length;
        else
            copied->ranges[kept++] = range;
    }
    copied->count = kept;
    for (size_t i = 0; i < kept; i++)
        mark(map, &copied->ranges[i]);
}

/* --- what is left --- */

/* The range that has a byte; NULL: none has. */
static const struct copied_range *find(const struct copied_bytes *copied, uint64_t at)
{
    size_t low = 0;
    size_t high = copied->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (copied->ranges[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && at < end_of(&copied->ranges[low - 1]) ? &copied->ranges[low - 1] : NULL;
}

/* Finds the bytes of a missing piece that were not copied, from the first to the last of them.
 * Returns true if others were. */
static bool find_rest(const struct copied_bytes *copied, const struct piece_map *map,
                      uint32_t piece, uint64_t *out_at, uint64_t *out_end)
{
    const uint64_t begin = piece_map_begin(map, piece);
    const uint64_t end = piece_map_end(map, piece);
    const struct copied_range *first = find(copied, begin);
    const struct copied_range *last = find(copied, end - 1);

    *out_at = first != NULL ? end_of(first) : begin;
    *out_end = last != NULL ? last->at : end;
    assert(*out_at < *out_end && *out_at >= begin && *out_end <= end);
    return first != NULL || last != NULL;
}

enum piece_state copied_bytes_state(const struct copied_bytes *copied, const struct piece_map *map,
                                    uint32_t piece)
{
    uint64_t at;
    uint64_t end;

    return find_rest(copied, map, piece, &at, &end) ? PIECE_COPIED : PIECE_HERE;
}

uint32_t copied_bytes_shorten(const struct copied_bytes *copied, const struct piece_map *map,
                              uint32_t first, uint32_t end, uint64_t *out_at, uint64_t *out_end)
{
    uint32_t next = first + 1;

    assert(first < end);
    find_rest(copied, map, first, out_at, out_end);
    while (next < end && *out_end == piece_map_begin(map, next)) {
        uint64_t at;
        uint64_t until;

        find_rest(copied, map, next, &at, &until);
        if (at != *out_end)
            break;
        *out_end = until;
        next++;
    }
    return next;
}
