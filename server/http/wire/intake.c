/* A ring of pieces for each body: the loop fills them, and two tasks on workers follow, each at its
 * own pace. Pieces are numbered from the start of the body; the number modulo PIECES is the index
 * in the ring. Pieces that follow each other in the ring have no gap between them, so that one
 * write stores several; and all but the first begin and end at the bounds of pages, so that no page
 * is written twice. */
#include "http/wire/intake.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/exchange/client.h"
#include "http/exchange/request_state.h"
#include "http/wire/connections.h"

/* Of the page cache. */
#define PAGE_BYTES ((size_t)4096)
/* Large enough that calls and jobs cost little beside hashing, which takes about 250 us. */
#define PIECE_BYTES ((size_t)512 << 10)
/* Enough for some to be worked on while others are filled. */
#define PIECES 4
/* Further bodies of a loop go through the library. This bounds the memory to 32 MiB a loop. */
#define INTAKES_MOST 16
#define EVENTS       INTAKES_MOST

/* What is done with each piece. */
enum { STORE, DIGEST, TASKS };

struct task {
    struct job job;
    struct intake *intake;
    uint64_t done; /* number of finished pieces */
    uint64_t due;  /* what done will be after the current job; equal to done if there is none */
};

struct intake {
    struct intake_set *set;
    struct request *request;
    uint64_t left; /* bytes of the body still to be read */
    uint8_t *ring; /* PIECES times PIECE_BYTES */
    struct piece {
        uint8_t *bytes; /* in the ring; the first piece begins a little behind its place */
        size_t length;
        uint64_t offset;
    } pieces[PIECES];
    uint64_t filled; /* number of full pieces */
    struct task tasks[TASKS];
    bool filling; /* the next piece is begun */
    bool watched;
    bool broken; /* the client is gone or took too long */
};

struct intake_set {
    struct mailbox *mailbox;
    struct intake_events events;
    unsigned count;
    int epoll;
};

static struct connection *connection_of(const struct intake *intake)
{
    return intake->request->connection;
}

/* --- watching --- */

/* If it fails, the intake is broken. */
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

/* --- tasks --- */

static struct body_piece piece_given(const struct intake *intake, uint64_t number)
{
    const struct piece *piece = &intake->pieces[number % PIECES];

    return (struct body_piece){piece->bytes, piece->length, piece->offset};
}

/* The pieces from *number to end, as far as they lie side by side; advances *number. */
static struct body_piece pieces_given(const struct intake *intake, uint64_t *number, uint64_t end)
{
    struct body_piece given = piece_given(intake, *number);

    while (++*number < end && *number % PIECES != 0) {
        const struct body_piece next = piece_given(intake, *number);

        assert(next.bytes == (const uint8_t *)given.bytes + given.length);
        given.length += next.length;
    }
    return given;
}

static void run_task(struct job *job)
{
    const struct task *task = (const struct task *)job;
    const struct intake *intake = task->intake;
    const struct operation *operation = request_state(intake->request)->operation;
    uint64_t at = task->done;

    while (at < task->due) {
        /* Hashing reads a piece while it is in the processor's cache. */
        const bool stores = task == &intake->tasks[STORE];
        const struct body_piece given =
            stores ? pieces_given(intake, &at, task->due) : piece_given(intake, at++);

        if (stores)
            operation->store(intake->request, &given);
        else
            operation->digest(intake->request, &given);
    }
}

static bool is_working(const struct intake *intake)
{
    return intake->tasks[STORE].done < intake->tasks[STORE].due ||
           intake->tasks[DIGEST].done < intake->tasks[DIGEST].due;
}

/* The number of pieces that both tasks have finished. */
static uint64_t finished(const struct intake *intake)
{
    const uint64_t stored = intake->tasks[STORE].done;
    const uint64_t digested = intake->tasks[DIGEST].done;

    return stored < digested ? stored : digested;
}

static void submit_tasks(struct intake *intake)
{
    for (struct task *task = intake->tasks; task < intake->tasks + TASKS; task++) {
        assert(task->done <= task->due && task->due <= intake->filled);
        if (task->done < task->due || task->due == intake->filled)
            continue;
        task->due = intake->filled;
        workers_submit(intake->request->server->workers, &task->job);
    }
}

static void free_intake(struct intake *intake)
{
    assert(intake->set->count > 0 && !is_working(intake));
    intake->set->count--;
    free(intake->ring);
    free(intake);
}

static void end(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;
    struct connection *connection = connection_of(intake);
    bool whole = !intake->broken;

    free_intake(intake);
    events->ended(events->context, connection, whole);
}

static bool can_read(const struct intake *intake)
{
    return intake->left > 0 && !intake->broken && intake->filled - finished(intake) < PIECES;
}

/* Called after each change of the state; starts whatever is possible now. May free the intake. */
static void advance(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;

    if (!intake->broken)
        submit_tasks(intake);
    if (can_read(intake) && watch(intake))
        return;
    unwatch(intake);
    if (!is_working(intake) && (intake->broken || intake->left == 0))
        end(intake);
    else
        events->paused(events->context, connection_of(intake));
}

static void on_task_done(struct job *job)
{
    struct task *task = (struct task *)job;

    task->done = task->due;
    advance(task->intake);
}

/* --- reading --- */

/* The piece that is being filled, in the place of a finished one. */
static struct piece *piece_to_fill(struct intake *intake)
{
    const size_t index = intake->filled % PIECES;
    struct piece *piece = &intake->pieces[index];

    assert(intake->filled - finished(intake) < PIECES);
    if (!intake->filling) {
        piece->offset = request_state(intake->request)->body_received;
        piece->bytes = intake->ring + index * PIECE_BYTES + piece->offset % PAGE_BYTES;
        piece->length = 0;
    }
    intake->filling = true;
    return piece;
}

/* Bytes from the start of a piece to the end of its place. */
static size_t capacity_of(const struct piece *piece)
{
    return PIECE_BYTES - piece->offset % PAGE_BYTES;
}

/* The last byte is read by itself. */
static size_t room_in(const struct intake *intake, const struct piece *piece)
{
    const size_t room = capacity_of(piece) - piece->length;
    const uint64_t most = intake->left > 1 ? intake->left - 1 : 1;

    return most < room ? (size_t)most : room;
}

static void count_in(struct intake *intake, struct piece *piece, size_t length)
{
    const struct intake_events *events = &intake->set->events;

    assert(length <= room_in(intake, piece));
    piece->length += length;
    intake->left -= length;
    request_state(intake->request)->body_received += length;
    if (piece->length == capacity_of(piece) || intake->left == 0) {
        intake->filled++;
        intake->filling = false;
    }
    if (!events->received(events->context, connection_of(intake)))
        intake->broken = true;
}

/* At most one piece, so that other connections of the loop get their turns. The last byte stays in
 * the socket, where the library finds it: otherwise the only way to make it close the connection
 * would be to shut down the receiving side, and then whatever a client sends behind its body resets
 * the connection and may destroy the answer. */
static void receive(struct intake *intake)
{
    struct piece *piece = piece_to_fill(intake);
    const int how = MSG_DONTWAIT | (intake->left == 1 ? MSG_PEEK : 0);
    ssize_t length;

    length = recv(connection_of(intake)->descriptor, piece->bytes + piece->length,
                  room_in(intake, piece), how);
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
        advance(intake);
    }
}

bool intake_begin(struct intake_set *set, struct request *request, uint64_t left)
{
    struct intake *intake = set->count < INTAKES_MOST ? calloc(1, sizeof(*intake)) : NULL;

    if (intake == NULL)
        return false;
    intake->ring = aligned_alloc(PAGE_BYTES, PIECES * PIECE_BYTES);
    for (int i = 0; i < TASKS; i++) {
        intake->tasks[i].job = (struct job){.run = run_task,
                                            .done = on_task_done,
                                            .mailbox = set->mailbox,
                                            .client = request_client_key(request)};
        intake->tasks[i].intake = intake;
    }
    intake->set = set;
    intake->request = request;
    intake->left = left;
    if (intake->ring == NULL || !watch(intake)) {
        free(intake->ring);
        free(intake);
        return false;
    }
    set->count++;
    return true;
}

/* --- the set --- */

struct intake_set *intake_set_new(struct mailbox *mailbox, const struct intake_events *events)
{
    struct intake_set *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    *set = (struct intake_set){
        .mailbox = mailbox, .events = *events, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (set->epoll >= 0)
        return set;
    free(set);
    return NULL;
}

void intake_set_free(struct intake_set *set)
{
    if (set == NULL)
        return;
    assert(set->count == 0);
    close(set->epoll);
    free(set);
}

int intake_descriptor(const struct intake_set *set)
{
    return set->epoll;
}
