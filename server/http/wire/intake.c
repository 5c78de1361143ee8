/* A ring of pieces for each body: the loop fills them, and two tasks on workers follow, each at its
 * own pace. Pieces are numbered from the start of the body; the number modulo PIECES is the index
 * in the ring. Pieces that follow each other in the ring have no gap between them, so that one
 * write stores several; and all but the first begin and end at the bounds of pages, so that no page
 * is written twice. */
#include "http/wire/intake.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http/exchange/client.h"
#include "http/wire/connections.h"
#include "http/wire/intake_work.h"

/* The memory of a loop; further bodies go through the library. */
#define RINGS_MOST (16 * RING_BYTES)
#define EVENTS     16
/* For how long what has come of a piece waits for the rest, if the operation keeps parts. */
#define PART_MS 100

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

/* The pieces from *number to end, as far as they lie side by side; advances *number. Behind a part
 * of a piece there is a gap. */
static struct body_piece pieces_given(const struct intake *intake, uint64_t *number, uint64_t end)
{
    struct body_piece given = piece_given(intake, *number);

    while (++*number < end && *number % PIECES != 0) {
        const struct body_piece next = piece_given(intake, *number);

        if (next.bytes != (const uint8_t *)given.bytes + given.length)
            break;
        given.length += next.length;
    }
    return given;
}

static void run_both(const struct intake *intake, const struct operation *operation)
{
    const struct body_piece given = piece_given(intake, 0);

    operation->store(intake->request, &given);
    operation->digest(intake->request, &given);
}

static void run_task(struct job *job)
{
    const struct task *task = (const struct task *)job;
    const struct intake *intake = task->intake;
    const struct operation *operation = request_state(intake->request)->operation;
    uint64_t at = task->done;

    if (intake->is_short) {
        run_both(intake, operation);
        return;
    }

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

static void submit_tasks(struct intake *intake)
{
    const unsigned count = intake->is_short ? 1 : TASKS;

    for (struct task *task = intake->tasks; task < intake->tasks + count; task++) {
        assert(task->done <= task->due && task->due <= intake->filled);
        if (task->done < task->due || task->due == intake->filled)
            continue;
        task->due = intake->filled;
        workers_submit(intake->request->server->workers, &task->job);
    }
}

static void free_intake(struct intake *intake)
{
    assert(intake->set->ring_bytes >= intake->ring_bytes && !is_working(intake));
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

    free_intake(intake);
    events->ended(events->context, connection, ending);
}

/* Called after each change of the state; starts whatever is possible now. May free the intake. */
static void advance(struct intake *intake)
{
    const struct intake_events *events = &intake->set->events;

    if (!intake->broken || keeps_parts(intake))
        submit_tasks(intake);
    if (can_read(intake) && watch(intake))
        return;
    unwatch(intake);
    if (!is_working(intake) && (intake->broken || is_over(intake)))
        end(intake);
    else
        events->paused(events->context, connection_of(intake));
}

static void on_task_done(struct job *job)
{
    struct task *task = (struct task *)job;

    task->done = task->due;
    if (task->intake->is_short)
        task->intake->tasks[DIGEST].done = task->intake->tasks[DIGEST].due = task->done;
    advance(task->intake);
}

uint64_t intake_parts_due_ms(const struct intake_set *set)
{
    return deadlines_due_ms(&set->parts);
}

void intake_store_parts(struct intake_set *set, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(&set->parts, now_ms)) != NULL) {
        struct intake *intake = (struct intake *)due;

        intake_close_piece(intake);
        advance(intake);
    }
}

void intake_cut(struct intake *intake)
{
    intake_break_off(intake);
    advance(intake);
}

void intake_run(void *context)
{
    struct intake_set *set = context;
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(set->epoll, events, EVENTS, 0);

    for (int i = 0; i < count; i++) {
        struct intake *intake = events[i].data.ptr;

        intake_receive(intake);
        advance(intake);
    }
}

/* Whole pages for the body and what lies before it in its first page. */
static size_t bytes_of_body(const struct request *request, uint64_t left)
{
    const uint64_t offset = request_state_const(request)->body_received % PAGE_BYTES;
    const uint64_t wanted = (offset + least(left, RING_BYTES) + PAGE_BYTES - 1) / PAGE_BYTES;

    return least(wanted * PAGE_BYTES, RING_BYTES);
}

bool intake_begin(struct intake_set *set, struct request *request, uint64_t left)
{
    const bool keeps = request_state(request)->operation->keeps_parts;
    const size_t body_bytes = bytes_of_body(request, left);
    /* A body that is kept in parts may need any number of places, whatever its length is. */
    const size_t place_bytes = keeps ? least(body_bytes, PIECE_BYTES) : PIECE_BYTES;
    const size_t ring_bytes = keeps ? PIECES * place_bytes : body_bytes;
    struct intake *intake =
        ring_bytes <= RINGS_MOST - set->ring_bytes ? calloc(1, sizeof(*intake)) : NULL;

    if (intake == NULL)
        return false;
    intake->ring = aligned_alloc(PAGE_BYTES, ring_bytes);
    intake->ring_bytes = ring_bytes;
    intake->place_bytes = place_bytes;
    intake->is_short = ring_bytes <= PIECE_BYTES && !keeps;
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
    set->ring_bytes += ring_bytes;
    request_state(request)->intake = intake;
    return true;
}

/* --- the set --- */

struct intake_set *intake_set_new(struct mailbox *mailbox, const struct intake_events *events)
{
    struct intake_set *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    *set = (struct intake_set){.mailbox = mailbox,
                               .events = *events,
                               .parts = {.time_ms = PART_MS},
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
