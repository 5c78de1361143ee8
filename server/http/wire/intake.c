/* Each body has a ring of pieces: the loop fills them from the socket, and one worker follows. The
 * receiver may keep a piece, for another worker that follows further behind.
 * Pieces are numbered from the start of the body; the number modulo PIECES is the index in the
 * ring. All pieces except the first begin and end at page boundaries, so that no page is written
 * twice. */
#include "http/wire/intake.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/workers.h"
#include "http/exchange/request_state.h"
#include "http/limits/deadlines.h"
#include "http/wire/connections.h"

/* The page size of the page cache. */
#define PAGE_BYTES ((size_t)4096)
/* Large enough that system calls and jobs cost little compared with hashing, which takes about 150
 * us per piece, and small enough that a piece is still in the processor's second cache when it is
 * hashed after it was written. */
#define PIECE_BYTES ((size_t)256 << 10)
/* Enough that some can be hashed and others written while others are filled. */
#define PIECES 8
/* The maximum that one job passes on, because other jobs wait for the worker. */
#define JOB_PIECES 32
#define RING_BYTES (PIECES * PIECE_BYTES)
/* The maximum memory of a loop; further bodies go through the library. */
#define RINGS_MOST (16 * RING_BYTES)
#define EVENTS     16
/* How long a partly filled piece waits for more bytes if the receiver keeps parts. */
#define PART_MS 100
/* The maximum number of reads per turn of the loop for a chunked body. */
#define CALLS_MOST 64
/* The maximum length of framing per read. */
#define FRAMING_BYTES 64

struct intake {
    struct deadline part; /* first, for casts: when to store a partly filled piece */
    struct intake_set *set;
    struct request *request;
    uint64_t left; /* bytes of the body still to be read, or INTAKE_CHUNKED */
    uint8_t *ring; /* PIECES places, or as many as a shorter body needs */
    size_t ring_bytes;
    size_t place_bytes; /* size of a piece's place */
    struct piece {
        uint8_t *bytes; /* in the ring; the first piece may begin after the start of its place */
        size_t length;
        uint64_t offset;
        struct piece_keeper keeper;
        struct intake *intake;
    } pieces[PIECES];
    atomic_uint_fast64_t filled; /* number of full pieces; changed by the loop */
    atomic_uint_fast64_t passed; /* number of pieces that the receiver was given; by the job */
    uint64_t done;               /* number of pieces whose places are free again */
    struct job job;
    bool is_working; /* the job is queued or running */
    bool filling;    /* the next piece has begun */
    bool watched;
    bool broken; /* the client is gone or took too long, or the body is malformed */
};

struct intake_set {
    struct mailbox *mailbox;
    struct intake_events events;
    size_t ring_bytes;       /* of all intakes */
    struct deadlines *parts; /* the loop's */
    int epoll;
};

/* --- state --- */

static struct connection *connection_of(const struct intake *intake)
{
    return intake->request->connection;
}

static struct chunks *chunks_of(const struct intake *intake)
{
    return &request_state(intake->request)->chunks;
}

static bool is_chunked(const struct intake *intake)
{
    return intake->left == INTAKE_CHUNKED;
}

static bool is_malformed(const struct intake *intake)
{
    return is_chunked(intake) && chunks_of(intake)->why != NULL;
}

/* Returns true if the whole body has been read. */
static bool is_over(const struct intake *intake)
{
    return is_chunked(intake) ? chunks_of(intake)->state == CHUNKS_OVER : intake->left == 0;
}

static uint64_t passed(const struct intake *intake)
{
    return atomic_load(&intake->passed);
}

/* Returns true if a worker uses the body. */
static bool is_in_use(const struct intake *intake)
{
    return intake->is_working || intake->done < passed(intake);
}

static bool can_read(const struct intake *intake)
{
    assert(intake->done <= passed(intake) && passed(intake) <= intake->filled);
    return !is_over(intake) && !intake->broken && intake->filled - intake->done < PIECES;
}

static bool keeps_parts(const struct intake *intake)
{
    return intake->request->receiver->keeps_parts;
}

static size_t least(uint64_t one, size_t other)
{
    return one < other ? (size_t)one : other;
}

/* --- from the socket to the pieces --- */

/* Ends the piece that is being filled, so that the receiver gets it. */
static void close_piece(struct intake *intake)
{
    assert(!intake->filling || intake->filled - intake->done < PIECES);
    deadline_clear(&intake->part);
    if (intake->filling && intake->pieces[intake->filled % PIECES].length > 0)
        intake->filled++;
    intake->filling = false;
}

/* Stops reading. */
static void break_off(struct intake *intake)
{
    intake->broken = true;
    if (keeps_parts(intake))
        close_piece(intake);
}

/* Returns the number of bytes from the start of a piece to the end of its place. */
static size_t capacity_of(const struct intake *intake, const struct piece *piece)
{
    assert(piece->offset % PAGE_BYTES < intake->place_bytes);
    return intake->place_bytes - piece->offset % PAGE_BYTES;
}

/* Returns the piece that is being filled, or begins one in the place of a finished piece. */
static struct piece *piece_to_fill(struct intake *intake)
{
    const size_t index = intake->filled % PIECES;
    struct piece *piece = &intake->pieces[index];

    assert(intake->filled - intake->done < PIECES);
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
    assert(piece->length <= capacity_of(intake, piece));
    return capacity_of(intake, piece) - piece->length;
}

/* Counts bytes of the body that have been read into the piece. */
static void count_in(struct intake *intake, struct piece *piece, size_t length)
{
    assert(is_chunked(intake) || length <= intake->left);
    assert(length <= room_in(intake, piece));
    piece->length += length;
    if (is_chunked(intake))
        chunks_take_data(chunks_of(intake), length);
    else
        intake->left -= length;
    request_state(intake->request)->body_received += length;
}

/* Parses framing. Data that follows it is copied to the piece. */
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

/* How many bytes to read from the socket into the piece, and how many to read as framing. The total
 * never reaches beyond the body, and contains no more data than fits into the piece. */
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

    assert(plan.data + plan.framing > 0);
    return recvmsg(connection_of(intake)->descriptor, &message, MSG_DONTWAIT);
}

static void take_read(struct intake *intake, struct piece *piece, size_t data,
                      const uint8_t *framing, size_t length)
{
    const struct intake_events *events = &intake->set->events;

    assert(intake->filling);
    if (data > 0)
        count_in(intake, piece, data);
    take_framing(intake, piece, framing, length);
    if (piece->length == capacity_of(intake, piece) || is_over(intake))
        close_piece(intake);
    else if (keeps_parts(intake))
        deadline_set(&intake->part, intake->set->parts, (uint64_t)clock_coarse_ms());
    if (is_malformed(intake) || !events->received(events->context, connection_of(intake)))
        break_off(intake);
}

/* Returns true if bytes were read. */
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
        break_off(intake);
    }
    return length > 0;
}

/* Reads at most one piece, so that other connections of the loop get their turns. With small chunks
 * it reads less. */
static void read_piece(struct intake *intake)
{
    const uint64_t filled = intake->filled;
    unsigned calls = is_chunked(intake) ? CALLS_MOST : 1;

    while (calls-- > 0 && receive(intake) && can_read(intake) && intake->filled == filled)
        ;
}

/* --- watching --- */

/* Watches the socket. Returns false and marks the intake as broken on failure. */
static bool watch(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = intake};

    if (intake->watched)
        return true;
    if (epoll_ctl(intake->set->epoll, EPOLL_CTL_ADD, connection_of(intake)->descriptor, &event) !=
        0) {
        intake->broken = true;
        return false;
    }
    intake->watched = true;
    events->awaited(events->context, connection_of(intake));
    return true;
}

static void unwatch(struct intake *intake)
{
    if (intake->watched)
        epoll_ctl(intake->set->epoll, EPOLL_CTL_DEL, connection_of(intake)->descriptor, NULL);
    intake->watched = false;
}

/* --- the receiver's job --- */

static void run_job(struct job *job)
{
    struct intake *intake = (struct intake *)((char *)job - offsetof(struct intake, job));

    for (unsigned i = 0; i < JOB_PIECES && passed(intake) < intake->filled; i++) {
        struct piece *piece = &intake->pieces[passed(intake) % PIECES];
        const struct body_piece given = {piece->bytes, piece->length, piece->offset, false,
                                         &piece->keeper};

        intake->request->receiver->receive(intake->request, &given);
        atomic_fetch_add(&intake->passed, 1);
    }
}

static void submit_job(struct intake *intake)
{
    if (intake->is_working || passed(intake) == intake->filled)
        return;
    assert(intake->filled - intake->done <= PIECES);
    intake->is_working = true;
    workers_submit(intake->request->server->workers, &intake->job);
}

static void free_intake(struct intake *intake)
{
    assert(intake->set->ring_bytes >= intake->ring_bytes);
    assert(!is_in_use(intake));
    intake->set->ring_bytes -= intake->ring_bytes;
    deadline_clear(&intake->part);
    request_state(intake->request)->intake = NULL;
    free(intake->ring);
    free(intake);
}

static void end(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;
    struct connection *connection = connection_of(intake);
    const enum intake_ending ending = is_malformed(intake) ? INTAKE_MALFORMED
                                      : intake->broken     ? INTAKE_BROKEN
                                                           : INTAKE_WHOLE;

    assert(!intake->watched && !is_in_use(intake));
    free_intake(intake);
    events->ended(events->context, connection, ending);
}

/* Called after each state change; starts everything that is now possible. May free the intake. */
static void advance(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;

    if (!intake->broken || keeps_parts(intake))
        submit_job(intake);
    if (can_read(intake) && watch(intake))
        return;
    unwatch(intake);
    if (!is_in_use(intake) && (intake->broken || is_over(intake)))
        end(intake);
    else
        events->paused(events->context, connection_of(intake));
}

/* Frees the places of unused pieces, in order. */
static void free_places(struct intake *intake)
{
    assert(intake->done <= passed(intake) && passed(intake) <= intake->filled);
    while (intake->done < passed(intake) && !intake->pieces[intake->done % PIECES].keeper.is_kept)
        intake->done++;
}

static void on_job_done(struct job *job)
{
    struct intake *intake = (struct intake *)((char *)job - offsetof(struct intake, job));

    assert(intake->is_working);
    intake->is_working = false;
    free_places(intake);
    advance(intake);
}

/* The job that passed the piece on may still run. */
static void on_returned(struct job *returned)
{
    struct piece *piece =
        (struct piece *)((char *)returned - offsetof(struct piece, keeper.returned));
    struct intake *intake = piece->intake;

    assert(piece->keeper.is_kept);
    piece->keeper.is_kept = false;
    free_places(intake);
    advance(intake);
}

void intake_store_parts(struct intake_set *set, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(set->parts, now_ms)) != NULL) {
        struct intake *intake = (struct intake *)due;

        close_piece(intake);
        advance(intake);
    }
}

void intake_cut(struct intake *intake)
{
    break_off(intake);
    advance(intake);
}

void intake_run(void *context)
{
    struct intake_set *set = context;
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(set->epoll, events, EVENTS, 0);

    for (int i = 0; i < count; i++) {
        struct intake *intake = events[i].data.ptr;

        read_piece(intake);
        advance(intake);
    }
}

/* Returns the number of bytes in whole pages for the body, including the bytes before it in its
 * first page. */
static size_t bytes_of_body(const struct request *request, uint64_t left)
{
    const uint64_t offset = request_state_const(request)->body_received % PAGE_BYTES;
    const uint64_t wanted = (offset + least(left, RING_BYTES) + PAGE_BYTES - 1) / PAGE_BYTES;

    return least(wanted * PAGE_BYTES, RING_BYTES);
}

bool intake_begin(struct intake_set *set, struct request *request, uint64_t left)
{
    const bool keeps = request->receiver->keeps_parts;
    const size_t body_bytes = bytes_of_body(request, left);
    /* A body that is kept in parts may need any number of places, however short it is. */
    const size_t place_bytes = keeps ? least(body_bytes, PIECE_BYTES) : PIECE_BYTES;
    const size_t ring_bytes = keeps ? PIECES * place_bytes : body_bytes;
    struct intake *intake =
        ring_bytes <= RINGS_MOST - set->ring_bytes ? calloc(1, sizeof(*intake)) : NULL;

    assert(request_state_const(request)->intake == NULL);
    if (intake == NULL)
        return false;
    intake->ring = aligned_alloc(PAGE_BYTES, ring_bytes);
    intake->ring_bytes = ring_bytes;
    intake->place_bytes = place_bytes;
    intake->job = (struct job){.run = run_job,
                               .done = on_job_done,
                               .mailbox = set->mailbox,
                               .client = request_client_key(request)};
    for (size_t i = 0; i < PIECES; i++) {
        intake->pieces[i].intake = intake;
        intake->pieces[i].keeper.returned =
            (struct job){.done = on_returned, .mailbox = set->mailbox};
    }
    intake->set = set;
    intake->request = request;
    intake->left = left;
    if (intake->ring == NULL || !watch(intake)) {
        free(intake->ring);
        free(intake);
        return false;
    }
    set->ring_bytes += ring_bytes;
    request_state(request)->intake = intake;
    return true;
}

/* --- the set --- */

struct intake_set *intake_set_new(struct mailbox *mailbox, struct deadlines *parts,
                                  const struct intake_events *events)
{
    struct intake_set *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    parts->time_ms = PART_MS;
    *set = (struct intake_set){.mailbox = mailbox,
                               .events = *events,
                               .parts = parts,
                               .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (set->epoll >= 0)
        return set;
    free(set);
    return NULL;
}

void intake_set_free(struct intake_set *set)
{
    if (set == NULL)
        return;
    assert(set->ring_bytes == 0);
    close(set->epoll);
    free(set);
}

int intake_descriptor(const struct intake_set *set)
{
    return set->epoll;
}
