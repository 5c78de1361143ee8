/* A ring of pieces for each body: the loop fills them, and a job at a time has the full ones absorbed. */
#include "http/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/connections.h"
#include "http/request_state.h"

/* Large enough that calls and jobs do not count beside hashing (about 250 us a piece). */
#define PIECE_BYTES ((size_t)512 << 10)
/* Two are absorbed while two are filled. */
#define PIECES 4
/* More than that on one loop go the library's way: it bounds the memory, to 32 MiB a loop. */
#define INTAKES_MOST 16
#define EVENTS       INTAKES_MOST

struct piece {
    uint8_t *bytes;
    size_t length;
};

struct intake {
    struct job job; /* absorbs job_pieces from first on */
    struct intake_set *set;
    struct request *request;
    uint64_t left; /* of the body, to be read */
    struct piece pieces[PIECES];
    unsigned first; /* full and not absorbed */
    unsigned full;
    unsigned job_pieces; /* 0: no job is queued or runs */
    bool watched;
    bool broken; /* the client is gone, or took too long */
};

struct intake_set {
    struct loop *loop;
    struct intake_events events;
    unsigned count;
    int epoll;
};

static struct connection *connection_of(const struct intake *intake)
{
    return intake->request->connection;
}

/* --- watching --- */

static void watch(struct intake *intake)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = intake};

    if (intake->watched)
        return;
    intake->watched = epoll_ctl(intake->set->epoll, EPOLL_CTL_ADD, connection_of(intake)->descriptor, &event) == 0;
    intake->broken = !intake->watched;
}

static void unwatch(struct intake *intake)
{
    if (intake->watched)
        epoll_ctl(intake->set->epoll, EPOLL_CTL_DEL, connection_of(intake)->descriptor, NULL);
    intake->watched = false;
}

/* --- absorbing --- */

static void run_absorb(struct job *job)
{
    const struct intake *intake = (const struct intake *)job;
    struct request *request = intake->request;

    for (unsigned i = 0; i < intake->job_pieces; i++) {
        const struct piece *piece = &intake->pieces[(intake->first + i) % PIECES];

        request_state(request)->operation->absorb(request, piece->bytes, piece->length);
    }
}

static void free_intake(struct intake *intake)
{
    intake->set->count--;
    for (unsigned i = 0; i < PIECES; i++)
        free(intake->pieces[i].bytes);
    free(intake);
}

static void end(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;
    struct connection *connection = connection_of(intake);
    bool whole = !intake->broken;

    unwatch(intake);
    free_intake(intake);
    events->ended(events->context, connection, whole);
}

/* What follows from the state, after every change of it; the intake may be gone afterwards. */
static void go_on(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;

    if (intake->job_pieces == 0 && intake->full > 0 && !intake->broken) {
        intake->job_pieces = intake->full;
        workers_submit(intake->request->server->workers, &intake->job);
    }
    if (intake->job_pieces == 0 && (intake->broken || (intake->left == 0 && intake->full == 0))) {
        end(intake);
        return;
    }
    if (intake->left > 0 && intake->full < PIECES && !intake->broken) {
        watch(intake);
        return;
    }
    unwatch(intake);
    events->paused(events->context, connection_of(intake));
}

static void on_absorbed(struct job *job)
{
    struct intake *intake = (struct intake *)job;

    for (unsigned i = 0; i < intake->job_pieces; i++)
        intake->pieces[(intake->first + i) % PIECES].length = 0;
    intake->first = (intake->first + intake->job_pieces) % PIECES;
    intake->full -= intake->job_pieces;
    intake->job_pieces = 0;
    go_on(intake);
}

/* --- reading --- */

/* The piece that is being filled; its memory comes with its first bytes. */
static struct piece *filling(struct intake *intake)
{
    struct piece *piece = &intake->pieces[(intake->first + intake->full) % PIECES];

    if (piece->bytes == NULL)
        piece->bytes = malloc(PIECE_BYTES);
    return piece->bytes != NULL ? piece : NULL;
}

static size_t room_in(const struct intake *intake, const struct piece *piece)
{
    const size_t room = PIECE_BYTES - piece->length;

    return intake->left < room ? (size_t)intake->left : room;
}

static void count_in(struct intake *intake, struct piece *piece, size_t length)
{
    const struct intake_events *events = &intake->set->events;

    piece->length += length;
    intake->left -= length;
    request_state(intake->request)->body_received += length;
    if (piece->length == PIECE_BYTES || intake->left == 0)
        intake->full++;
    if (!events->received(events->context, connection_of(intake)))
        intake->broken = true;
}

/* At most a piece at a time: others of the loop have their turns between. */
static void receive(struct intake *intake)
{
    struct piece *piece = filling(intake);
    ssize_t length;

    if (piece == NULL) {
        intake->broken = true;
        return;
    }
    length =
        recv(connection_of(intake)->descriptor, piece->bytes + piece->length, room_in(intake, piece), MSG_DONTWAIT);
    if (length > 0)
        count_in(intake, piece, (size_t)length);
    else if (length == 0 || (errno != EAGAIN && errno != EINTR))
        intake->broken = true;
}

void intake_run(void *context)
{
    struct intake_set *set = context;
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(set->epoll, events, EVENTS, 0);

    for (int i = 0; i < count; i++) {
        struct intake *intake = events[i].data.ptr;

        receive(intake);
        go_on(intake);
    }
}

bool intake_begin(struct intake_set *set, struct request *request, uint64_t left)
{
    struct intake *intake = set->count < INTAKES_MOST ? calloc(1, sizeof(*intake)) : NULL;

    if (intake == NULL)
        return false;
    intake->job = (struct job){.run = run_absorb, .done = on_absorbed, .loop = set->loop};
    intake->set = set;
    intake->request = request;
    intake->left = left;
    watch(intake);
    if (!intake->watched) {
        free(intake);
        return false;
    }
    set->count++;
    return true;
}

/* --- the set --- */

struct intake_set *intake_set_new(struct loop *loop, const struct intake_events *events)
{
    struct intake_set *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    *set = (struct intake_set){.loop = loop, .events = *events, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (set->epoll >= 0)
        return set;
    free(set);
    return NULL;
}

void intake_set_free(struct intake_set *set)
{
    if (set == NULL)
        return;
    close(set->epoll);
    free(set);
}

int intake_descriptor(const struct intake_set *set)
{
    return set->epoll;
}
