/* Lists the segments of an exported file: stored bytes come from their file, headers and indices
 * from the plan, padding from this file. Components that must be gathered, decoded or converted
 * come from a source over the exported file, which workers read ahead of the sender. */
#include "api/export_segments.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

/* No target has a larger alignment. */
#define ZEROS_BYTES 65536
/* In files with more pieces, pieces below SMALL_BYTES are read and copied, which is cheaper than
 * that many segments. */
#define PIECES_MANY ((size_t)8192)
#define SMALL_BYTES ((uint64_t)64 << 10)

static const uint8_t zeros[ZEROS_BYTES];

static enum zt_status read_component(void *context, uint32_t component, uint64_t offset,
                                     void *buffer, size_t length, struct zt_error *error)
{
    struct export_segments *segments = context;
    struct zt_error own;

    return export_bytes_read(segments->bytes, &segments->plan->origins[component], offset,
                             (struct export_buffer){buffer, length}, error != NULL ? error : &own);
}

struct export_segments *export_segments_new(struct server *server, const struct export_plan *plan,
                                            struct generation *generation, const struct zt_cut *cut,
                                            bool to_f32)
{
    struct export_segments *segments = calloc(1, sizeof(*segments));
    const struct zt_component_bytes bytes = {read_component, segments};

    if (segments == NULL)
        return NULL;
    segments->plan = plan;
    segments->bytes = export_bytes_new(server, generation, cut, to_f32);
    if (segments->bytes == NULL ||
        zt_file_plan_source(plan->file, &bytes, &segments->file, NULL) != ZT_OK) {
        export_segments_free(segments);
        return NULL;
    }
    return segments;
}

void export_segments_free(void *thing)
{
    struct export_segments *segments = thing;

    if (segments == NULL)
        return;
    zt_source_close(segments->file);
    export_bytes_free(segments->bytes);
    free(segments->list);
    free(segments);
}

/* --- the list --- */

static bool continues(const struct export_segments *segments, const struct segment *next)
{
    const struct segment *last = segments->count > 0 ? &segments->list[segments->count - 1] : NULL;

    return last != NULL && last->kind == SEGMENT_SOURCE && next->kind == SEGMENT_SOURCE &&
           last->source == next->source && last->offset + last->length == next->offset;
}

static void add(struct export_segments *segments, struct segment segment)
{
    if (segments->failed || segment.length == 0)
        return;
    if (continues(segments, &segment)) {
        segments->list[segments->count - 1].length += segment.length;
        return;
    }
    if (segments->count == segments->capacity &&
        zt_array_reserve(&segments->list, &segments->capacity, segments->count + 1,
                         sizeof(*segments->list), SIZE_MAX) != ZT_OK) {
        segments->failed = true;
        return;
    }
    segments->list[segments->count++] = segment;
}

static void add_memory(struct export_segments *segments, const uint8_t *bytes, uint64_t length)
{
    add(segments, (struct segment){.kind = SEGMENT_MEMORY, .length = length, .bytes = bytes});
}

static void add_source(struct export_segments *segments, struct zt_source *source, uint64_t offset,
                       uint64_t length)
{
    add(segments,
        (struct segment){
            .kind = SEGMENT_SOURCE, .length = length, .source = source, .offset = offset});
}

/* Adds a piece, and zeros between the end of the previous piece and this one. */
static void add_piece(struct export_segments *segments, const struct zt_piece *piece, uint64_t end,
                      bool copied)
{
    struct zt_source *source = NULL;
    uint64_t offset = 0;
    bool stored = !copied && piece->is_component &&
                  export_bytes_stored(segments->bytes, &segments->plan->origins[piece->component],
                                      &source, &offset);

    assert(end <= piece->offset);
    if (copied || (piece->is_component && !stored)) {
        add_source(segments, segments->file, end, piece->offset + piece->length - end);
        return;
    }
    for (uint64_t gap = piece->offset - end; gap > 0;) {
        uint64_t length = gap < ZEROS_BYTES ? gap : ZEROS_BYTES;

        add_memory(segments, zeros, length);
        gap -= length;
    }
    if (stored)
        add_source(segments, source, offset, piece->length);
    else
        add_memory(segments, segments->plan->file->added + piece->added_at, piece->length);
}

void export_segments_fill(struct export_segments *segments)
{
    const struct zt_file_plan *file = segments->plan->file;
    bool many = file->piece_count > PIECES_MANY;
    uint64_t end = 0;

    for (size_t i = 0; i < file->piece_count; i++) {
        const struct zt_piece *piece = &file->pieces[i];

        assert(piece->offset >= end);
        add_piece(segments, piece, end, many && piece->length < SMALL_BYTES);
        end = piece->offset + piece->length;
    }
}
