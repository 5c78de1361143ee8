/* The limits come from measurements on one core with 512 KiB per call and every eighth run sent.
 * Speeds are relative to a loop that copies runs into a 256 KiB buffer and sends it (1.00). Runs of
 * 256 B: 1.0 if gathered, 0.8 from the mapping. 1 KiB: 1.1 to 1.2, and 1.2 to 1.3. 4 KiB: 1.1, and
 * 1.2 to 1.4. 64 KiB: 1.0 to 1.3, and 1.4. sendfile for each run: 0.3 for 4 KiB, 0.5 for 64 KiB. */
#include "http/body/piece.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

/* Shorter runs are gathered. */
#define RUN_LEAST 1024
/* The shortest run that is sent here: shorter ones take a loop too long. */
#define RUN_SHORTEST 64
/* The maximum number of runs gathered for one piece: about 200 us of work if each is in a different
 * page. */
#define RUNS_MOST 2048
/* The minimum range for sendfile; shorter ranges are sent from the mapping. */
#define FILE_LEAST ((uint64_t)128 << 10)
/* The end of an answer is read and not mapped: reading fails if a file has become shorter. */
#define END_BYTES ((uint64_t)4096)
/* Answers with more segments are not examined. */
#define SEGMENTS_MOST 16384
/* Runs listed per call. */
#define RUNS 64

/* --- which answers --- */

static bool can_send(const struct segment *segment)
{
    const struct zt_slice *slice;
    struct zt_source *file = segment_origin(segment, &slice);

    if (file == NULL)
        return true;
    if (slice != NULL && slice->run_bytes < RUN_SHORTEST)
        return false;
    /* Its bytes are pinned before they are sent, and then come from a local file. */
    if (zt_source_is_remote(file))
        return true;
    if (zt_source_descriptor(file) < 0)
        return false;
    return (slice == NULL && segment->length >= FILE_LEAST) || zt_source_map(file) != NULL;
}

bool pieces_can_send(const struct answer *answer)
{
    if (answer->segment_count > SEGMENTS_MOST)
        return false;
    for (size_t i = 0; i < answer->segment_count; i++)
        if (!can_send(&answer->segments[i]))
            return false;
    return true;
}

/* --- making --- */

static void add_part(struct piece *piece, const uint8_t *bytes, uint64_t length)
{
    assert(piece->count < PIECE_PARTS && length > 0);
    /* The cast is safe: sendmsg only reads the bytes. */
    piece->parts[piece->count++] = (struct iovec){(void *)(uintptr_t)bytes, (size_t)length};
    piece->length += length;
}

/* Adds a part of the file's mapping. */
static void add_mapped(struct piece *piece, struct zt_source *file, struct zt_slice_run run)
{
    assert(piece->file == NULL || piece->file == file);
    piece->file = file;
    if (run.offset + run.length - 1 > piece->last)
        piece->last = run.offset + run.length - 1;
    add_part(piece, zt_source_map(file) + run.offset, run.length);
}

static void add_runs(struct piece *piece, const struct segment *segment, struct zt_source *file,
                     uint64_t within, uint64_t length)
{
    struct zt_slice_run runs[RUNS];

    while (length > 0 && piece->count < PIECE_PARTS) {
        const size_t room = PIECE_PARTS - piece->count < RUNS ? PIECE_PARTS - piece->count : RUNS;
        const size_t count =
            zt_slice_source_runs(segment->source, segment->offset + within, length, runs, room);

        for (size_t i = 0; i < count; i++) {
            add_mapped(piece, file, runs[i]);
            within += runs[i].length;
            length -= runs[i].length;
        }
    }
}

/* Returns false if the bytes cannot be read. */
static bool add_gathered(struct piece *piece, const struct segment *segment, uint64_t within,
                         uint64_t length, struct piece_buffer *buffer)
{
    uint8_t *to = buffer->bytes + buffer->used;

    if (length > buffer->size - buffer->used)
        length = buffer->size - buffer->used;
    if (length == 0)
        return true;
    if (zt_source_read_at(segment->source, segment->offset + within, to, (size_t)length, NULL) !=
        ZT_OK)
        return false;
    buffer->used += length;
    piece->gathered = true;
    add_part(piece, to, length);
    return true;
}

/* Adds as much of the segment at place as is wanted and possible. */
static bool add_segment(struct piece *piece, const struct answer *answer, const struct place *place,
                        uint64_t length, struct piece_buffer *buffer)
{
    const struct segment *segment = place_segment(place, answer);
    const uint64_t end =
        answer->content_length > END_BYTES ? answer->content_length - END_BYTES : 0;
    const struct zt_slice *slice;
    struct zt_source *file = segment_file(segment, &slice);

    if (segment->kind == SEGMENT_MEMORY) {
        add_part(piece, segment->bytes + place->within, length);
        return true;
    }
    if (place->at >= end)
        return add_gathered(piece, segment, place->within, length, buffer);
    if (slice != NULL && slice->run_bytes < RUN_LEAST) {
        length = length / RUNS_MOST < slice->run_bytes ? length : RUNS_MOST * slice->run_bytes;
        return add_gathered(piece, segment, place->within, length, buffer);
    }
    if (length > end - place->at)
        length = end - place->at;
    /* A piece uses the mapping of one file only, so that one check of that file's end suffices. */
    if (piece->file != NULL && piece->file != file)
        return true;
    if (slice != NULL)
        add_runs(piece, segment, file, place->within, length);
    else
        add_mapped(piece, file, (struct zt_slice_run){segment->offset + place->within, length});
    return true;
}

static bool is_for_sendfile(const struct segment *segment)
{
    return segment->kind == SEGMENT_SOURCE && segment->length >= FILE_LEAST &&
           zt_source_descriptor(segment->source) >= 0;
}

bool piece_make(struct piece *piece, const struct answer *answer, struct place from, uint64_t most,
                struct piece_buffer *buffer)
{
    piece->length = 0;
    piece->file = NULL;
    piece->last = 0;
    piece->gathered = false;
    piece->count = 0;
    buffer->used = 0;
    while (from.segment < answer->segment_count && piece->length < most &&
           piece->count < PIECE_PARTS) {
        const struct segment *segment = place_segment(&from, answer);
        const uint64_t left = segment->length - from.within;
        const uint64_t wanted = left < most - piece->length ? left : most - piece->length;
        const uint64_t before = piece->length;

        if (is_for_sendfile(segment)) {
            if (piece->count > 0)
                break;
            piece->file = segment->source;
            piece->offset = segment->offset + from.within;
            piece->length = wanted;
            break;
        }
        if (!add_segment(piece, answer, &from, wanted, buffer))
            return false;
        if (piece->length - before < wanted)
            break;
        place_advance(&from, answer, wanted);
    }
    assert(piece->length > 0);
    return true;
}

/* --- sending --- */

static ssize_t result_of(ssize_t sent)
{
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent > 0 ? sent : -1;
}

/* Returns false if the file was truncated, so that other bytes than the file's may have been sent.
 * Reading a byte waits until a truncation is complete; asking for the length does not. */
static bool is_still_whole(const struct piece *piece)
{
    uint8_t last;

    return piece->file == NULL ||
           zt_source_read_at(piece->file, piece->last, &last, 1, NULL) == ZT_OK;
}

ssize_t piece_send(const struct piece *piece, int descriptor, bool more)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)piece->parts,
                                   .msg_iovlen = piece->count};
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    off_t offset = (off_t)piece->offset;
    ssize_t sent;

    /* 0 means that the file is too short. */
    if (piece->count == 0)
        return result_of(sendfile(descriptor, zt_source_descriptor(piece->file), &offset,
                                  (size_t)piece->length));
    sent = result_of(sendmsg(descriptor, &message, flags));
    return sent > 0 && !is_still_whole(piece) ? -1 : sent;
}
