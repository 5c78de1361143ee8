/* Long pieces of a file that are in the page cache are copied to the sender directly. Workers read
 * everything else into windows: while one window is sent, a worker fills the next. A window is
 * refilled as soon as its last byte is taken, so the windows hold the answer's bytes in order.
 * Sources whose bytes are made in units, such as compressed frames, get a window for each unit, and
 * two workers fill them side by side.
 *
 * All windows of the process share one budget. When it is spent, a new answer gets one small
 * window, so that slow readers cannot block other clients. */
#include "http/wire/readahead.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/cache.h"
#include "http/body/page_cache.h"
#include "http/body/pinned.h"
#include "http/exchange/request_state.h"
#include "http/wire/file_changes.h"
#include "http/wire/mhd_state.h"
#include "http/wire/read_budget.h"

/* The first window is small, so that the first byte is sent soon; each further window is twice as
 * large. */
#define WINDOW_FIRST ((size_t)64 * 1024)
#define WINDOW_MOST  ((size_t)512 * 1024)
/* Every answer gets this much, even if the budget is spent. */
#define WINDOW_LEAST ((size_t)32 * 1024)
/* Units of these lengths are read one by one. Shorter ones are cheap enough to be read in a row. */
#define UNIT_LEAST WINDOW_MOST
#define UNIT_MOST  ((size_t)2 << 20)
/* One is sent while the others are filled; bytes without units need only one more. */
#define WINDOWS        3
#define WINDOWS_IN_ROW 2
/* The maximum per call of the sender, if the budget allows: about the size of a send buffer. */
#define BLOCK_MOST ((size_t)256 * 1024)
/* Shorter pieces of a file are gathered in windows, even if they are in the page cache. */
#define WARM_LEAST ((uint64_t)BLOCK_MOST)
/* How many remote bytes to fetch ahead of the read position: at first, and at most. */
#define AHEAD_FIRST ((uint64_t)8 << 20)
#define AHEAD_MOST  ((uint64_t)64 << 20)

enum window_state {
    WINDOW_EMPTY,
    WINDOW_FILLING, /* a worker owns its bytes and its error */
    WINDOW_FULL,
    WINDOW_FAILED
};

struct window {
    struct job job; /* first: the job is the window */
    struct readahead *ahead;
    enum window_state state;
    uint8_t *bytes;
    size_t capacity;
    struct place from; /* in the answer */
    size_t length;
    uint64_t advised; /* how many bytes from there on should be in transit */
    struct zt_error error;
    /* Called when the window's bytes can be read without waiting for a store; the other job carries
     * the call to the loop. */
    struct zt_source_waiter waiter;
    int64_t asked_ms;
    struct job call;
};

struct readahead {
    struct request *request;
    struct mhd *mhd;
    const struct answer *answer;
    uint64_t stamp; /* of the answer's files */
    struct window windows[WINDOWS];
    unsigned filling; /* windows in that state */
    size_t growing;   /* the size of the next window */
    size_t block;
    uint64_t advised;             /* the next window's */
    struct place begun;           /* bytes before it were read or are being read */
    const struct window *awaited; /* the connection is suspended until it is full; or NULL */
    const struct window *failed;  /* the first that failed; full windows before it can be taken */
    uint64_t warm_end;            /* from begun up to here, the bytes are in the page cache and are
                                   * taken without a window */
    struct zt_error error;        /* of such bytes */
    bool ended;                   /* the request is over */
    atomic_bool cancelled;
    atomic_uint unread; /* windows on their way, if the last one is among them; else more */
};

/* --- memory --- */

static void window_free(struct window *window)
{
    assert((window->bytes == NULL) == (window->capacity == 0));
    assert(window->state != WINDOW_FILLING);
    free(window->bytes);
    read_budget_give(window->capacity);
    window->bytes = NULL;
    window->capacity = 0;
}

/* Gives a window the wanted size, or less if the budget requires it. Returns false if out of
 * memory. */
static bool window_prepare(struct window *window, size_t due)
{
    uint8_t *bytes;
    size_t size;

    if (window->capacity == due)
        return true;
    size = read_budget_take(due, WINDOW_LEAST);
    bytes = size != window->capacity ? malloc(size) : NULL;
    if (bytes == NULL) {
        read_budget_give(size);
        return window->bytes != NULL;
    }
    window_free(window);
    window->bytes = bytes;
    window->capacity = size;
    return true;
}

static void free_all(struct readahead *ahead)
{
    assert(ahead->filling == 0);
    for (unsigned i = 0; i < WINDOWS; i++)
        window_free(&ahead->windows[i]);
    read_budget_give(ahead->block);
    read_budget_leave();
    free(ahead);
}

/* --- filling --- */

/* Reads from one segment. Returns how many bytes were read; 0 on failure. */
static size_t read_piece(struct window *window, const struct place *at, uint8_t *to, size_t room)
{
    const struct segment *segment = place_segment(at, window->ahead->answer);
    const uint64_t left = segment->length - at->within;
    const size_t length = left < room ? (size_t)left : room;

    assert(room > 0 && at->within < segment->length);
    if (segment->kind == SEGMENT_MEMORY)
        memcpy(to, segment->bytes + at->within, length);
    else if (zt_source_read_at(segment->source, segment->offset + at->within, to, length,
                               &window->error) != ZT_OK)
        return 0;
    return length;
}

/* Checks, once all has been read, that the files are unchanged since the beginning: an answer that
 * mixes old and new bytes must never complete. */
static void check_files(struct window *window)
{
    struct readahead *ahead = window->ahead;

    if (atomic_fetch_sub(&ahead->unread, 1) == 1 && answer_stamp(ahead->answer) != ahead->stamp)
        zt_fail(&window->error, ZT_IO, NULL, ZT_NO_OFFSET, "the file has changed");
}

/* Announces the next bytes to the store; without this, reading would wait for one block after
 * another. */
static void advise(const struct window *window)
{
    if (window->ahead->request->server->waiters != NULL)
        answer_advise(window->ahead->answer, window->from, window->advised);
}

/* The remote source that has the byte at a place; NULL for other bytes, and for slices. */
static struct zt_source *remote_origin(const struct readahead *ahead, const struct place *place)
{
    const struct zt_slice *slice;
    struct zt_source *origin = segment_origin(place_segment(place, ahead->answer), &slice);

    return origin != NULL && slice == NULL && zt_source_is_remote(origin) ? origin : NULL;
}

/* Fills a window; runs on a worker. */
static void fill(struct job *job)
{
    struct window *window = (struct window *)job;
    const struct readahead *ahead = window->ahead;
    struct place at = window->from;
    size_t filled = 0;

    assert(window->length > 0 && window->length <= window->capacity);
    advise(window);
    while (filled < window->length &&
           !atomic_load_explicit(&ahead->cancelled, memory_order_relaxed)) {
        const size_t piece =
            read_piece(window, &at, window->bytes + filled, window->length - filled);

        if (piece == 0)
            return;
        filled += piece;
        place_advance(&at, ahead->answer, piece);
    }
    check_files(window);
}

/* Returns the length of a segment's units if each needs its own window; else 0. */
static size_t unit_of(const struct segment *segment)
{
    const size_t unit =
        segment->kind == SEGMENT_SOURCE ? (size_t)zt_source_unit(segment->source) : 0;

    return unit >= UNIT_LEAST && unit <= UNIT_MOST ? unit : 0;
}

/* Returns how many bytes the next window may have: to the end of a unit, or to the beginning of
 * bytes that have units. *out_unit: their length, or 0. */
static uint64_t next_run(const struct readahead *ahead, size_t *out_unit)
{
    const struct answer *answer = ahead->answer;
    const struct segment *segment = place_segment(&ahead->begun, answer);
    const size_t unit = unit_of(segment);
    uint64_t run = segment->length - ahead->begun.within;

    *out_unit = unit;
    if (unit > 0) {
        const uint64_t left = unit - (segment->offset + ahead->begun.within) % unit;

        return left < run ? left : run;
    }
    for (size_t i = ahead->begun.segment + 1; run < WINDOW_MOST && i < answer->segment_count; i++) {
        if (unit_of(&answer->segments[i]) > 0)
            break;
        run += answer->segments[i].length;
    }
    return run;
}

/* Returns an empty window; NULL if there is none, or if the budget allows no more. */
static struct window *empty_window(struct readahead *ahead, unsigned count)
{
    struct window *found = NULL;
    bool is_first = true;

    for (unsigned i = 0; i < count; i++) {
        struct window *window = &ahead->windows[i];

        is_first = is_first && window->state == WINDOW_EMPTY;
        if (window->state == WINDOW_EMPTY && (found == NULL || window->bytes != NULL))
            found = window;
    }
    return found == NULL || found->bytes != NULL || is_first || !read_budget_is_spent() ? found
                                                                                        : NULL;
}

static size_t due_size(struct readahead *ahead, uint64_t run, size_t unit)
{
    size_t due = ahead->growing;

    assert(run > 0 && ahead->growing <= WINDOW_MOST);
    if (unit > 0)
        return unit;
    if (ahead->growing < WINDOW_MOST)
        ahead->growing *= 2;
    while (due > WINDOW_LEAST && due / 2 >= run)
        due /= 2;
    return due;
}

static void wake(struct zt_source_waiter *waiter)
{
    struct window *window = (struct window *)((char *)waiter - offsetof(struct window, waiter));

    mailbox_put(window->call.mailbox, &window->call.mail);
}

/* Returns true if the client may not have all of the window's bytes yet. */
static bool is_held_back(const struct window *window)
{
    return answer_pass(window->ahead->answer, window->from, window->length) < window->length;
}

/* Bytes of a store occupy no thread until they have arrived and may be given to the client. Slices
 * are only called back for the latter, because their span may be long. */
static void fill_or_await(struct window *window)
{
    const struct readahead *ahead = window->ahead;
    const struct zt_source *remote = remote_origin(ahead, &window->from);

    assert(window->state == WINDOW_FILLING && window->length > 0);
    if ((remote != NULL && zt_source_can_await(remote)) || is_held_back(window)) {
        advise(window);
        window->asked_ms = clock_ms();
        answer_await(ahead->answer, window->from, window->length, window->length, &window->waiter);
    } else
        workers_submit(server_waiters(ahead->request->server), &window->job);
}

/* How many bytes of a run a window may take at once. At least one; the first may be held back. */
static size_t window_length(const struct readahead *ahead, const struct window *window,
                            uint64_t run)
{
    const struct segment *segment = place_segment(&ahead->begun, ahead->answer);
    const struct zt_source *remote = remote_origin(ahead, &ahead->begun);
    const uint64_t left = segment->length - ahead->begun.within;
    uint64_t length = run < window->capacity ? run : window->capacity;
    uint64_t passed;

    assert(window->capacity > 0 && run > 0);
    /* So that no thread waits for a second run of the store's blocks. */
    if (remote != NULL && zt_source_can_await(remote)) {
        const uint64_t offset = segment->offset + ahead->begun.within;
        const uint64_t in_block = CACHE_BLOCK_BYTES - offset % CACHE_BLOCK_BYTES;

        length = length < left ? length : left;
        length = length < in_block ? length : in_block;
    }
    passed = answer_pass(ahead->answer, ahead->begun, length);
    if (passed > 0)
        return (size_t)passed;
    /* answer_await waits for one segment. */
    return (size_t)(length < left ? length : left);
}

static void begin_fill(struct readahead *ahead, struct window *window, uint64_t run)
{
    assert(window->state == WINDOW_EMPTY && window->capacity > 0);
    window->advised = ahead->advised;
    ahead->advised = ahead->advised * 2 < AHEAD_MOST ? ahead->advised * 2 : AHEAD_MOST;
    window->from = ahead->begun;
    window->length = window_length(ahead, window, run);
    window->state = WINDOW_FILLING;
    ahead->filling++;
    place_advance(&ahead->begun, ahead->answer, window->length);
    atomic_fetch_add(&ahead->unread, 1);
    /* The initial count represents all windows that have not begun. */
    if (ahead->begun.at == ahead->answer->content_length)
        atomic_fetch_sub(&ahead->unread, 1);
    mhd_work_begun(ahead->mhd);
    fill_or_await(window);
}

/* Returns true if the next bytes need no window, because they are a long piece of a file in the
 * page cache. A worker reads the first window anyway, so that a problem is noticed before the head
 * is sent. */
static bool is_warm(struct readahead *ahead)
{
    const struct answer *answer = ahead->answer;
    const uint64_t at = ahead->begun.at;
    const struct segment *segment;
    uint64_t left;

    if (at == 0 || at == answer->content_length)
        return false;
    if (at < ahead->warm_end)
        return true;
    segment = place_segment(&ahead->begun, answer);
    left = segment->length - ahead->begun.within;
    if (left < WARM_LEAST || segment->kind != SEGMENT_SOURCE ||
        zt_source_descriptor(segment->source) < 0 || !window_is_warm(answer, ahead->begun))
        return false;
    ahead->warm_end = window_end(answer, ahead->begun).at;
    if (ahead->warm_end > at + left)
        ahead->warm_end = at + left;
    return true;
}

/* Starts to fill the next window, unless the answer ends or no window is free. Returns true if
 * another one may be begun. */
static bool fill_next(struct readahead *ahead)
{
    struct window *window;
    size_t unit;
    uint64_t run;

    if (ahead->failed != NULL || ahead->begun.at == ahead->answer->content_length ||
        atomic_load(&ahead->cancelled) || is_warm(ahead))
        return false;
    run = next_run(ahead, &unit);
    if (unit == 0 && ahead->filling > 0)
        return false;
    window = empty_window(ahead, unit > 0 ? WINDOWS : WINDOWS_IN_ROW);
    if (window == NULL)
        return false;
    if (!window_prepare(window, due_size(ahead, run, unit))) {
        zt_fail(&window->error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to read an answer");
        window->state = WINDOW_FAILED;
        ahead->failed = window;
        return false;
    }
    begin_fill(ahead, window, run);
    return true;
}

static void fill_more(struct readahead *ahead)
{
    while (fill_next(ahead))
        ;
}

/* Runs on the loop when a window is full or reading has failed. */
static void on_filled(struct job *job)
{
    struct window *window = (struct window *)job;
    struct readahead *ahead = window->ahead;
    struct request *request = ahead->request;

    mhd_work_ended(ahead->mhd);
    assert(window->state == WINDOW_FILLING && ahead->filling > 0);
    ahead->filling--;
    window->state = window->error.status == ZT_OK ? WINDOW_FULL : WINDOW_FAILED;
    if (window->state == WINDOW_FAILED && ahead->failed == NULL)
        ahead->failed = window;
    if (ahead->ended) {
        if (ahead->filling == 0) {
            free_all(ahead);
            request_free(request);
        }
        return;
    }
    fill_more(ahead);
    if (ahead->awaited == window) {
        ahead->awaited = NULL;
        request_state(request)->transport->resume(request);
    }
}

/* Runs on the loop when the window's bytes have arrived, or cannot be had. */
static void on_called(struct job *job)
{
    struct window *window = (struct window *)((char *)job - offsetof(struct window, call));
    struct readahead *ahead = window->ahead;

    assert(window->state == WINDOW_FILLING);
    window->error = window->waiter.error;
    if (window->error.status != ZT_OK || atomic_load(&ahead->cancelled))
        on_filled(&window->job);
    else if (is_held_back(window))
        fill_or_await(window);
    else
        workers_submit(server_waiters(ahead->request->server), &window->job);
}

/* --- for the sender --- */

static void init_windows(struct readahead *ahead)
{
    const struct request *request = ahead->request;

    for (unsigned i = 0; i < WINDOWS; i++) {
        struct window *window = &ahead->windows[i];

        window->ahead = ahead;
        window->job = (struct job){.run = fill,
                                   .done = on_filled,
                                   .mailbox = request->mailbox,
                                   .client = request_client_key(request)};
        window->call = (struct job){.done = on_called, .mailbox = request->mailbox};
        window->waiter.wake = wake;
        zt_error_clear(&window->error);
    }
}

struct readahead *readahead_begin(struct request *request, struct mhd *mhd)
{
    struct readahead *ahead = calloc(1, sizeof(*ahead));

    if (ahead == NULL)
        return NULL;
    ahead->request = request;
    ahead->mhd = mhd;
    ahead->answer = &request_state(request)->answer;
    ahead->stamp = answer_stamp(ahead->answer);
    ahead->growing = WINDOW_FIRST;
    ahead->advised = AHEAD_FIRST;
    atomic_init(&ahead->unread, 1);
    zt_error_clear(&ahead->error);
    init_windows(ahead);
    read_budget_join();
    ahead->block = read_budget_take(BLOCK_MOST, WINDOW_LEAST);
    fill_more(ahead);
    if (ahead->filling == 0) {
        free_all(ahead);
        return NULL;
    }
    ahead->awaited = &ahead->windows[0];
    return ahead;
}

/* Returns the window that holds the byte at position, or will hold it; NULL if there is none. */
static struct window *window_at(struct readahead *ahead, uint64_t position)
{
    assert(position < ahead->answer->content_length);
    for (unsigned i = 0; i < WINDOWS; i++) {
        struct window *window = &ahead->windows[i];

        if (window->state != WINDOW_EMPTY && position - window->from.at < window->length)
            return window;
    }
    return NULL;
}

/* Copies bytes from the page cache. Returns as readahead_take, but never 0. */
static ssize_t take_warm(struct readahead *ahead, void *buffer, size_t size)
{
    const struct answer *answer = ahead->answer;
    const struct segment *segment = place_segment(&ahead->begun, answer);
    const uint64_t left = ahead->warm_end - ahead->begun.at;

    if (size > left)
        size = (size_t)left;
    assert(size > 0 && segment->kind == SEGMENT_SOURCE);
    assert(ahead->begun.within + size <= segment->length);
    if (zt_source_read_at(segment->source, segment->offset + ahead->begun.within, buffer, size,
                          &ahead->error) != ZT_OK)
        return -1;
    place_advance(&ahead->begun, answer, size);
    if (ahead->begun.at == answer->content_length && answer_stamp(answer) != ahead->stamp) {
        zt_fail(&ahead->error, ZT_IO, NULL, ZT_NO_OFFSET, "the file has changed");
        return -1;
    }
    fill_more(ahead);
    return (ssize_t)size;
}

ssize_t readahead_take(struct readahead *ahead, uint64_t position, void *buffer, size_t size)
{
    struct window *window = window_at(ahead, position);
    size_t taken;
    size_t left;

    if (atomic_load(&ahead->cancelled) || ahead->error.status != ZT_OK)
        return -1;
    if (window == NULL && position == ahead->begun.at && is_warm(ahead))
        return take_warm(ahead, buffer, size);
    if (window == NULL || window->state == WINDOW_FAILED)
        return -1;
    if (window->state == WINDOW_FILLING) {
        ahead->awaited = window;
        return 0;
    }
    taken = (size_t)(position - window->from.at);
    left = window->length - taken;
    size = left < size ? left : size;
    assert(size > 0 && window->length <= window->capacity);
    memcpy(buffer, window->bytes + taken, size);
    if (size == left) {
        window->state = WINDOW_EMPTY;
        if (ahead->begun.at == ahead->answer->content_length)
            window_free(window);
        fill_more(ahead);
    }
    return (ssize_t)size;
}

size_t readahead_block(const struct readahead *ahead)
{
    return ahead->block;
}

const struct zt_error *readahead_error(const struct readahead *ahead)
{
    if (ahead->error.status != ZT_OK)
        return &ahead->error;
    return ahead->failed != NULL ? &ahead->failed->error : NULL;
}

void readahead_cancel(struct readahead *ahead)
{
    if (ahead != NULL)
        atomic_store(&ahead->cancelled, true);
}

void readahead_give_up(struct readahead *ahead, int64_t waited_ms)
{
    assert(waited_ms >= 0 && ahead->filling <= WINDOWS);
    for (unsigned i = 0; i < WINDOWS; i++) {
        struct window *window = &ahead->windows[i];

        if (window->state != WINDOW_FILLING || clock_ms() - window->asked_ms < waited_ms ||
            !zt_source_forget(&window->waiter))
            continue;
        zt_fail(&window->waiter.error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the client has left");
        wake(&window->waiter);
    }
}

bool readahead_end(struct readahead *ahead)
{
    assert(!ahead->ended);
    if (ahead->filling == 0) {
        free_all(ahead);
        return true;
    }
    ahead->ended = true;
    readahead_cancel(ahead);
    readahead_give_up(ahead, 0);
    return false;
}
