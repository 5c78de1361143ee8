/* Two windows and one job: while one window is sent, the job fills the other. A window is refilled
 * as soon as its last byte is taken, so the windows hold the answer's bytes in order.
 *
 * All windows of the process share one budget. When it is spent, a new answer gets one small
 * window, so that slow readers cannot block other clients. */
#include "http/wire/readahead.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "http/body/pinned.h"
#include "http/exchange/request_state.h"
#include "http/wire/file_changes.h"
#include "http/wire/mhd_state.h"

/* The maximum for the windows and blocks of the whole process. */
#define BUDGET_BYTES ((size_t)64 << 20)
/* The first window is small, so that the first byte is sent soon; each further window is twice as
 * large. */
#define WINDOW_FIRST ((size_t)64 * 1024)
#define WINDOW_MOST  ((size_t)512 * 1024)
/* Every answer gets this much, even if the budget is spent. */
#define WINDOW_LEAST ((size_t)32 * 1024)
/* The maximum per call of the sender, if the budget allows: about the size of a send buffer. */
#define BLOCK_MOST ((size_t)256 * 1024)
/* How many remote bytes to fetch ahead of the read position: at first, and at most. */
#define AHEAD_FIRST ((uint64_t)8 << 20)
#define AHEAD_MOST  ((uint64_t)64 << 20)

struct window {
    uint8_t *bytes;
    size_t capacity;
    uint64_t start; /* in the answer */
    size_t length;  /* 0: empty */
};

struct readahead {
    struct job job; /* first: the job is the structure */
    struct request *request;
    struct mhd *mhd;
    const struct answer *answer;
    uint64_t stamp; /* of the answer's files */
    struct window windows[2];
    size_t growing; /* the size of the next window */
    size_t block;

    /* The worker owns these while it fills. */
    struct window *filling; /* NULL: no job runs */
    size_t wanted;
    size_t segment;
    uint64_t segment_taken;
    uint64_t advised; /* bytes ahead of the position that should be in transit */
    struct zt_error error;

    uint64_t begun; /* bytes of the answer that were read or are being read */
    bool failed;    /* see error; filled windows can still be taken */
    bool awaited;   /* the connection is suspended */
    bool ended;     /* the request is over */
    atomic_bool cancelled;
};

static atomic_size_t budget_spent;
static atomic_uint sharers;

/* --- memory --- */

/* Halves wanted, down to least, until the budget and a fair share of it allow it. */
static size_t budget_take(size_t wanted, size_t least)
{
    const size_t share = BUDGET_BYTES / 2 / atomic_load_explicit(&sharers, memory_order_relaxed);

    assert(wanted >= least && least > 0);
    while (wanted > least && wanted > share)
        wanted /= 2;
    while (wanted > least && atomic_fetch_add(&budget_spent, wanted) > BUDGET_BYTES - wanted) {
        atomic_fetch_sub(&budget_spent, wanted);
        wanted /= 2;
    }
    if (wanted <= least)
        atomic_fetch_add(&budget_spent, wanted);
    return wanted;
}

static void budget_give(size_t bytes)
{
    const size_t before = atomic_fetch_sub(&budget_spent, bytes);

    assert(before >= bytes);
    (void)before;
}

static bool budget_is_spent(void)
{
    return atomic_load(&budget_spent) >= BUDGET_BYTES;
}

static void window_free(struct window *window)
{
    assert((window->bytes == NULL) == (window->capacity == 0));
    free(window->bytes);
    budget_give(window->capacity);
    *window = (struct window){0};
}

/* Gives a window the wanted size, or less if the budget requires it. Returns false if out of
 * memory. */
static bool window_prepare(struct window *window, size_t due)
{
    uint8_t *bytes;
    size_t size;

    if (window->capacity == due)
        return true;
    size = budget_take(due, WINDOW_LEAST);
    bytes = size != window->capacity ? malloc(size) : NULL;
    if (bytes == NULL) {
        budget_give(size);
        return window->bytes != NULL;
    }
    window_free(window);
    window->bytes = bytes;
    window->capacity = size;
    return true;
}

static void free_all(struct readahead *ahead)
{
    assert(ahead->filling == NULL || ahead->ended);
    window_free(&ahead->windows[0]);
    window_free(&ahead->windows[1]);
    budget_give(ahead->block);
    atomic_fetch_sub(&sharers, 1);
    free(ahead);
}

/* --- filling --- */

/* Reads from one segment. Returns how many bytes were read; 0 on failure. */
static size_t read_piece(struct readahead *ahead, uint8_t *to, size_t room)
{
    const struct segment *segment = &ahead->answer->segments[ahead->segment];
    uint64_t left;
    size_t length;

    assert(room > 0 && ahead->segment < ahead->answer->segment_count);
    assert(ahead->segment_taken < segment->length);
    left = segment->length - ahead->segment_taken;
    length = left < room ? (size_t)left : room;
    if (segment->kind == SEGMENT_MEMORY)
        memcpy(to, segment->bytes + ahead->segment_taken, length);
    else if (zt_source_read_at(segment->source, segment->offset + ahead->segment_taken, to, length,
                               &ahead->error) != ZT_OK)
        return 0;
    ahead->segment_taken += length;
    if (ahead->segment_taken == segment->length) {
        ahead->segment++;
        ahead->segment_taken = 0;
    }
    return length;
}

/* Checks, once all has been read, that the files are unchanged since the beginning: an answer that
 * mixes old and new bytes must never complete. */
static void check_files(struct readahead *ahead)
{
    if (ahead->segment == ahead->answer->segment_count &&
        answer_stamp(ahead->answer) != ahead->stamp)
        zt_fail(&ahead->error, ZT_IO, NULL, ZT_NO_OFFSET, "the file has changed");
}

/* Announces the next bytes to the store; without this, reading would wait for one block after
 * another. */
static void advise(struct readahead *ahead)
{
    const struct place from = {.segment = ahead->segment, .within = ahead->segment_taken};

    if (ahead->request->server->waiters == NULL)
        return;
    answer_advise(ahead->answer, from, ahead->advised);
    ahead->advised = ahead->advised * 2 < AHEAD_MOST ? ahead->advised * 2 : AHEAD_MOST;
}

/* Fills a window; runs on a worker. */
static void fill(struct job *job)
{
    struct readahead *ahead = (struct readahead *)job;
    size_t filled = 0;

    assert(ahead->filling != NULL && ahead->wanted <= ahead->filling->capacity);
    advise(ahead);
    while (filled < ahead->wanted &&
           !atomic_load_explicit(&ahead->cancelled, memory_order_relaxed)) {
        const size_t piece =
            read_piece(ahead, ahead->filling->bytes + filled, ahead->wanted - filled);

        if (piece == 0)
            return;
        filled += piece;
    }
    check_files(ahead);
}

/* Returns the window to fill next; NULL if both are full, or if the budget allows only one. */
static struct window *window_to_fill(struct readahead *ahead)
{
    struct window *first = &ahead->windows[0];
    struct window *second = &ahead->windows[1];

    if (first->length > 0 && second->length > 0)
        return NULL;
    if (first->length == 0 && second->length == 0)
        return first->bytes != NULL ? first : second;
    if (first->length > 0)
        first = second;
    return first->bytes != NULL || !budget_is_spent() ? first : NULL;
}

static size_t due_size(struct readahead *ahead, uint64_t left)
{
    size_t due = ahead->growing;

    assert(left > 0 && ahead->growing <= WINDOW_MOST);
    if (ahead->growing < WINDOW_MOST)
        ahead->growing *= 2;
    while (due > WINDOW_LEAST && due / 2 >= left)
        due /= 2;
    return due;
}

/* Starts to fill the next window, unless the answer ends or no window is free. */
static void fill_next(struct readahead *ahead)
{
    const uint64_t left = ahead->answer->content_length - ahead->begun;
    struct window *window = window_to_fill(ahead);

    assert(ahead->begun <= ahead->answer->content_length);
    if (ahead->filling != NULL || ahead->failed || window == NULL || left == 0 ||
        atomic_load(&ahead->cancelled))
        return;
    if (!window_prepare(window, due_size(ahead, left))) {
        zt_fail(&ahead->error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to read an answer");
        ahead->failed = true;
        return;
    }
    assert(window->length == 0);
    window->start = ahead->begun;
    ahead->wanted = left < window->capacity ? (size_t)left : window->capacity;
    ahead->begun += ahead->wanted;
    ahead->filling = window;
    mhd_work_begun(ahead->mhd);
    workers_submit(server_waiters(ahead->request->server), &ahead->job);
}

/* Runs on the loop when a window is full or reading has failed. */
static void on_filled(struct job *job)
{
    struct readahead *ahead = (struct readahead *)job;
    struct request *request = ahead->request;
    const bool awaited = ahead->awaited;

    mhd_work_ended(ahead->mhd);
    if (ahead->ended) {
        free_all(ahead);
        request_free(request);
        return;
    }
    assert(ahead->filling != NULL);
    ahead->failed = ahead->error.status != ZT_OK;
    if (!ahead->failed)
        ahead->filling->length = ahead->wanted;
    ahead->filling = NULL;
    ahead->awaited = false;
    fill_next(ahead);
    if (awaited)
        request_state(request)->transport->resume(request);
}

/* --- for the sender --- */

struct readahead *readahead_begin(struct request *request, struct mhd *mhd)
{
    struct readahead *ahead = calloc(1, sizeof(*ahead));

    if (ahead == NULL)
        return NULL;
    ahead->job = (struct job){.run = fill,
                              .done = on_filled,
                              .mailbox = request->mailbox,
                              .client = request_client_key(request)};
    ahead->request = request;
    ahead->mhd = mhd;
    ahead->answer = &request_state(request)->answer;
    ahead->stamp = answer_stamp(ahead->answer);
    ahead->growing = WINDOW_FIRST;
    ahead->advised = AHEAD_FIRST;
    ahead->awaited = true;
    zt_error_clear(&ahead->error);
    atomic_fetch_add(&sharers, 1);
    ahead->block = budget_take(BLOCK_MOST, WINDOW_LEAST);
    fill_next(ahead);
    if (ahead->filling == NULL) {
        free_all(ahead);
        return NULL;
    }
    return ahead;
}

/* Returns the window that holds the byte at position. */
static struct window *window_at(struct readahead *ahead, uint64_t position)
{
    assert(position < ahead->answer->content_length);
    for (unsigned i = 0; i < 2; i++) {
        struct window *window = &ahead->windows[i];

        if (window != ahead->filling && position - window->start < window->length)
            return window;
    }
    return NULL;
}

ssize_t readahead_take(struct readahead *ahead, uint64_t position, void *buffer, size_t size)
{
    struct window *window = window_at(ahead, position);
    size_t taken;
    size_t left;

    if (atomic_load(&ahead->cancelled))
        return -1;
    if (window == NULL) {
        ahead->awaited = ahead->filling != NULL;
        return ahead->awaited ? 0 : -1;
    }
    taken = (size_t)(position - window->start);
    left = window->length - taken;
    size = left < size ? left : size;
    assert(size > 0 && window->length <= window->capacity);
    memcpy(buffer, window->bytes + taken, size);
    if (size == left) {
        window->length = 0;
        if (ahead->begun == ahead->answer->content_length)
            window_free(window);
        fill_next(ahead);
    }
    return (ssize_t)size;
}

size_t readahead_block(const struct readahead *ahead)
{
    return ahead->block;
}

const struct zt_error *readahead_error(const struct readahead *ahead)
{
    return ahead->failed ? &ahead->error : NULL;
}

void readahead_cancel(struct readahead *ahead)
{
    if (ahead != NULL)
        atomic_store(&ahead->cancelled, true);
}

bool readahead_end(struct readahead *ahead)
{
    assert(!ahead->ended);
    if (ahead->filling == NULL) {
        free_all(ahead);
        return true;
    }
    ahead->ended = true;
    readahead_cancel(ahead);
    return false;
}
