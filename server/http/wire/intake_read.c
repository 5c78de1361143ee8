/* From the socket to the pieces: of a body of known length straight, of a chunked one without its
 * framing. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "http/wire/connections.h"
#include "http/wire/intake_work.h"

/* Calls in a turn of the loop that read a chunked body. */
#define CALLS_MOST 64
/* Framing is read in pieces of at most this length. */
#define FRAMING_BYTES 64

void intake_close_piece(struct intake *intake)
{
    deadline_clear(&intake->part);
    if (intake->filling && intake->pieces[intake->filled % PIECES].length > 0)
        intake->filled++;
    intake->filling = false;
}

void intake_break_off(struct intake *intake)
{
    intake->broken = true;
    if (keeps_parts(intake))
        intake_close_piece(intake);
}

/* Bytes from the start of a piece to the end of its place. */
static size_t capacity_of(const struct intake *intake, const struct piece *piece)
{
    return intake->place_bytes - piece->offset % PAGE_BYTES;
}

/* The piece that is being filled, in the place of a finished one. */
static struct piece *piece_to_fill(struct intake *intake)
{
    const size_t index = intake->filled % PIECES;
    struct piece *piece = &intake->pieces[index];

    assert(intake->filled - finished(intake) < PIECES);
    if (!intake->filling) {
        piece->offset = request_state(intake->request)->body_received;
        piece->bytes = intake->ring + index * intake->place_bytes + piece->offset % PAGE_BYTES;
        piece->length = 0;
    }
    assert(piece->bytes + least(intake->left, capacity_of(intake, piece)) <=
           intake->ring + intake->ring_bytes);
    intake->filling = true;
    return piece;
}

static size_t room_in(const struct intake *intake, const struct piece *piece)
{
    return capacity_of(intake, piece) - piece->length;
}

/* Bytes of the body that are in their place in the piece. */
static void count_in(struct intake *intake, struct piece *piece, size_t length)
{
    assert(length <= room_in(intake, piece));
    piece->length += length;
    if (is_chunked(intake))
        chunks_take_data(chunks_of(intake), length);
    else
        intake->left -= length;
    request_state(intake->request)->body_received += length;
}

/* Framing, perhaps with data behind it, which goes to the piece. */
static void take_framing(struct intake *intake, struct piece *piece, const uint8_t *bytes,
                         size_t length)
{
    struct chunks *chunks = chunks_of(intake);

    while (length > 0 && !is_malformed(intake)) {
        const bool is_data = chunks->state == CHUNKS_DATA;
        const size_t taken =
            is_data ? least(chunks->left, length) : chunks_take(chunks, bytes, length);

        if (is_data) {
            memcpy(piece->bytes + piece->length, bytes, taken);
            count_in(intake, piece, taken);
        }
        bytes += taken;
        length -= taken;
    }
}

/* A part of the socket's bytes for the piece, and another for framing. No more than is sure to
 * belong to the body, and no more data in it than the piece takes. */
struct plan {
    size_t data;
    size_t framing;
};

static struct plan plan_to_read(const struct intake *intake, const struct piece *piece)
{
    const size_t room = room_in(intake, piece);
    struct plan plan = {0, 0};
    uint64_t left;

    if (!is_chunked(intake)) {
        plan.data = least(intake->left, room);
        return plan;
    }
    left = chunks_of(intake)->state == CHUNKS_DATA ? chunks_of(intake)->left : 0;
    plan.data = least(left, room);
    if (plan.data == left)
        plan.framing =
            least(chunks_least(chunks_of(intake)) - left, least(FRAMING_BYTES, room - plan.data));
    return plan;
}

static ssize_t read_planned(const struct intake *intake, struct piece *piece, struct plan plan,
                            uint8_t *framing)
{
    struct iovec parts[] = {{piece->bytes + piece->length, plan.data}, {framing, plan.framing}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    return recvmsg(connection_of(intake)->descriptor, &message, MSG_DONTWAIT);
}

static void take_read(struct intake *intake, struct piece *piece, size_t data,
                      const uint8_t *framing, size_t length)
{
    const struct intake_events *events = &intake->set->events;

    if (data > 0)
        count_in(intake, piece, data);
    take_framing(intake, piece, framing, length);
    if (piece->length == capacity_of(intake, piece) || is_over(intake))
        intake_close_piece(intake);
    else if (keeps_parts(intake))
        deadline_set(&intake->part, &intake->set->parts, (uint64_t)clock_coarse_ms());
    if (is_malformed(intake) || !events->received(events->context, connection_of(intake)))
        intake_break_off(intake);
}

/* Whether something came. */
static bool receive(struct intake *intake)
{
    struct piece *piece = piece_to_fill(intake);
    const struct plan plan = plan_to_read(intake, piece);
    uint8_t framing[FRAMING_BYTES];
    const ssize_t length = read_planned(intake, piece, plan, framing);

    if (length > 0) {
        const size_t data = least((uint64_t)length, plan.data);

        take_read(intake, piece, data, framing, (size_t)length - data);
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        intake_break_off(intake);
    }
    return length > 0;
}

/* At most one piece, so that other connections of the loop get their turns; and of small chunks not
 * even that. */
void intake_receive(struct intake *intake)
{
    const uint64_t filled = intake->filled;
    unsigned calls = is_chunked(intake) ? CALLS_MOST : 1;

    while (calls-- > 0 && receive(intake) && can_read(intake) && intake->filled == filled)
        ;
}
