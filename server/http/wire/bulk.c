/* All streams of a loop share one epoll descriptor, which reports writable streams in turn, so that
 * none is preferred.
 *
 * Before a window of an answer is sent, mincore shows whether it is in the page cache. If not,
 * workers read ahead (page_cache.h), because the loop must not wait for the disk. */
#include "http/wire/bulk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "http/body/page_cache.h"
#include "http/body/piece.h"
#include "http/exchange/request_state.h"
#include "http/wire/file_changes.h"
#include "http/wire/handover.h"
#include "http/wire/listener.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/remote_body.h"

/* The maximum per stream and turn for a peer on the same machine, which then reads bytes that are
 * still in the processor's cache. */
#define LOCAL_MOST ((uint64_t)512 << 10)
/* The same for other peers: as much as the socket takes. */
#define REMOTE_MOST ((uint64_t)8 << 20)
/* The same two limits while small answers share the loop. */
#define LOCAL_SHARED  ((uint64_t)256 << 10)
#define REMOTE_SHARED ((uint64_t)512 << 10)
/* How long streams give way after a small answer. */
#define SHARED_MS 100
/* The maximum number of streams per turn, and of bytes after which the turn ends, if no small
 * answers share the loop. The kernel takes up to 3 ms to accept that many bytes. */
#define STREAMS_MOST 8
#define TURN_BYTES   ((uint64_t)16 << 20)
/* A peer that takes this much at once is fast: the kernel has already grown its send buffer. Its
 * buffer is then set to twice the kernel's maximum, since the kernel reserves double the requested
 * size. */
#define QUICK_BYTES ((uint64_t)2 << 20)
#define DEEP_BYTES  (4 << 20)
/* For gathered bytes; small enough for the processor's cache. */
#define GATHER_MOST ((size_t)512 << 10)
/* The minimum to gather for a peer that takes little per call. */
#define GATHER_LEAST ((uint64_t)64 << 10)

struct bulk {
    struct page_reader reading; /* first: its job is the structure */
    struct bulk_set *set;
    struct connection *connection;
    struct remote_body *remote; /* NULL: the whole answer is local */
    /* The answer, or the part of it that is being sent; NULL between two parts. The places below
     * are positions in it. */
    const struct answer *answer;
    uint64_t stamp; /* of the answer's files */
    bool is_local;
    bool is_deep; /* its send buffer has been enlarged */
    bool is_cold; /* some of it was not in the page cache */
    struct place at;
    struct place warm_end; /* up to here the answer is in the page cache */
    uint64_t gather_most;  /* maximum per piece: bytes that the socket does not take must be
                            * gathered again */
    bool watched;
    bool ended;
    bool failed;
};

struct bulk_set {
    int epoll;
    uint64_t small_ms;          /* when the last small answer was given */
    struct piece_buffer buffer; /* of GATHER_MOST bytes */
    struct piece piece;
};

/* --- watching --- */

/* Returns false on failure. */
static bool watch(struct bulk *bulk)
{
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = bulk};

    if (!bulk->watched &&
        epoll_ctl(bulk->set->epoll, EPOLL_CTL_ADD, bulk->connection->descriptor, &event) != 0)
        return false;
    bulk->watched = true;
    if (bulk->connection->state == CONNECTION_WAITING)
        connection_enter(bulk->connection, CONNECTION_SENDING);
    return true;
}

static void unwatch(struct bulk *bulk)
{
    if (bulk->watched)
        epoll_ctl(bulk->set->epoll, EPOLL_CTL_DEL, bulk->connection->descriptor, NULL);
    bulk->watched = false;
    if (bulk->connection->state == CONNECTION_SENDING)
        connection_enter(bulk->connection, CONNECTION_WAITING);
}

/* Resumes the library, which asks for the body again and gets its end. */
static void finish(struct bulk *bulk)
{
    assert(connection_is_suspended(bulk->connection));
    unwatch(bulk);
    bulk->ended = true;
    /* If a worker is reading or fetching, finish is called again when it is done. */
    if (!bulk->reading.runs && (bulk->remote == NULL || !remote_body_is_fetching(bulk->remote)))
        mhd_resume(bulk->connection, CONNECTION_ENDING);
}

static void fail(struct bulk *bulk)
{
    bulk->failed = true;
    finish(bulk);
}

/* --- what is in the page cache --- */

static void read_pages(struct bulk *bulk)
{
    assert(!bulk->watched || bulk->is_cold);
    page_reader_begin(&bulk->reading, bulk->connection->request->server, bulk->warm_end);
}

static void on_pages_read(struct job *job)
{
    struct bulk *bulk = (struct bulk *)job;
    const struct place read_end = page_reader_done(&bulk->reading);

    mhd_update_clock(bulk->connection->mhd);
    if (bulk->warm_end.at < read_end.at)
        bulk->warm_end = read_end;
    if (bulk->ended)
        finish(bulk);
    else if (!watch(bulk))
        fail(bulk);
}

/* Checks ahead whether a piece of length bytes is in the page cache. Returns false if nothing can
 * be sent now; a worker is then reading. */
static bool is_warm(struct bulk *bulk, uint64_t length)
{
    uint64_t end;

    assert(bulk->answer != NULL && length > 0);
    end = bulk->answer->content_length;
    assert(bulk->at.at <= bulk->warm_end.at && bulk->warm_end.at <= end);
    while (bulk->warm_end.at < end && bulk->warm_end.at - bulk->at.at < length) {
        if (!window_is_warm(bulk->answer, bulk->warm_end)) {
            bulk->is_cold = true;
            break;
        }
        bulk->warm_end = window_end(bulk->answer, bulk->warm_end);
    }
    if (bulk->at.at == bulk->warm_end.at) {
        unwatch(bulk);
        read_pages(bulk);
        return false;
    }
    if (bulk->is_cold && bulk->warm_end.at < end && page_reader_is_due(&bulk->reading, bulk->at.at))
        read_pages(bulk);
    return true;
}

/* --- parts of a remote answer --- */

static void use_answer(struct bulk *bulk, const struct answer *answer)
{
    assert(!bulk->reading.runs);
    bulk->answer = bulk->reading.answer = answer;
    bulk->reading.asked = bulk->at = bulk->warm_end = (struct place){0};
    bulk->stamp = answer_stamp(answer);
}

/* Moves to the next part at the end of the current one. Returns false if nothing can be sent now;
 * bulk_continue or on_pages_read is called later, unless the parts have failed. */
static bool has_part(struct bulk *bulk)
{
    const struct answer *next;

    if (bulk->remote == NULL ||
        (bulk->answer != NULL && bulk->at.at < bulk->answer->content_length))
        return true;
    if (bulk->reading.runs) {
        unwatch(bulk);
        return false;
    }
    if (bulk->answer != NULL)
        remote_body_drop(bulk->remote);
    bulk->answer = NULL;
    remote_body_continue(bulk->remote);
    assert(!bulk->reading.runs);
    next = remote_body_part(bulk->remote);
    if (next != NULL)
        use_answer(bulk, next);
    else if (remote_body_error(bulk->remote) != NULL)
        fail(bulk);
    else
        unwatch(bulk);
    return next != NULL;
}

void bulk_continue(struct bulk *bulk)
{
    assert(bulk->remote != NULL);
    mhd_update_clock(bulk->connection->mhd);
    if (bulk->ended) {
        finish(bulk);
        return;
    }
    remote_body_continue(bulk->remote);
    if (!watch(bulk))
        fail(bulk);
}

/* Returns true if the current part is the last one. */
static bool is_last(const struct bulk *bulk)
{
    return bulk->remote == NULL || remote_body_is_last(bulk->remote);
}

/* --- sending --- */

static uint64_t most_in_turn(const struct bulk *bulk, bool is_shared)
{
    if (bulk->is_local)
        return is_shared ? LOCAL_SHARED : LOCAL_MOST;
    return is_shared ? REMOTE_SHARED : REMOTE_MOST;
}

/* Adapts the piece size: a peer that took a whole piece gets twice as much next time. */
static void learn(struct bulk *bulk, const struct piece *piece, uint64_t sent)
{
    assert(sent <= piece->length);
    if (!piece->gathered)
        return;
    if (sent == piece->length)
        bulk->gather_most =
            bulk->gather_most * 2 < GATHER_MOST ? bulk->gather_most * 2 : GATHER_MOST;
    else
        bulk->gather_most = sent > GATHER_LEAST ? sent : GATHER_LEAST;
}

/* Returns false if the next length bytes reach the end of the answer and its files have changed
 * since its beginning: an answer that mixes old and new bytes must never complete. */
static bool is_unchanged(const struct bulk *bulk, uint64_t length)
{
    assert(bulk->at.at + length <= bulk->answer->content_length);
    return bulk->at.at + length < bulk->answer->content_length ||
           answer_stamp(bulk->answer) == bulk->stamp;
}

/* Sends one piece of at most length bytes. Returns true if the socket took all of it and more can
 * be sent. *out_sent: how many bytes the socket took. */
static bool send_piece(struct bulk *bulk, uint64_t length, uint64_t *out_sent)
{
    struct piece *piece = &bulk->set->piece;
    const uint64_t end = bulk->answer->content_length;
    ssize_t sent;

    assert(bulk->at.at < bulk->warm_end.at && length > 0);
    *out_sent = 0;
    if (length > bulk->warm_end.at - bulk->at.at)
        length = bulk->warm_end.at - bulk->at.at;
    bulk->set->buffer.size = (size_t)bulk->gather_most;
    if (!is_unchanged(bulk, length) ||
        !piece_make(piece, bulk->answer, bulk->at, length, &bulk->set->buffer)) {
        fail(bulk);
        return false;
    }
    sent = piece_send(piece, bulk->connection->descriptor, piece->length < length);
    if (sent < 0) {
        fail(bulk);
        return false;
    }
    learn(bulk, piece, (uint64_t)sent);
    place_advance(&bulk->at, bulk->answer, (uint64_t)sent);
    *out_sent = (uint64_t)sent;
    if (bulk->at.at == end && is_last(bulk))
        finish(bulk);
    return (uint64_t)sent == piece->length && bulk->at.at < end;
}

/* Enlarges the send buffer of a fast peer. While the kernel has data queued, acknowledgements and
 * timers drive the sending. When its queue is empty, each call sends directly and wakes the peer
 * each time. */
static void deepen(struct bulk *bulk, uint64_t sent)
{
    if (bulk->is_local || bulk->is_deep || sent < QUICK_BYTES)
        return;
    bulk->is_deep = true;
    listener_raise_send_buffer(bulk->connection->descriptor, DEEP_BYTES);
}

/* Sends the stream's share of a turn. Returns how many bytes were sent. */
static uint64_t send_turn(struct bulk *bulk, bool is_shared)
{
    uint64_t length = most_in_turn(bulk, is_shared);
    uint64_t begun;
    uint64_t sent;

    if (!has_part(bulk) || !is_warm(bulk, length))
        return 0;
    begun = bulk->at.at;
    while (length > 0 && bulk->at.at < bulk->warm_end.at && send_piece(bulk, length, &sent))
        length -= sent;
    deepen(bulk, bulk->at.at - begun);
    return bulk->at.at - begun;
}

void bulk_run(void *context)
{
    struct mhd *mhd = context;
    struct bulk_set *set = mhd->bulks;
    const bool is_shared = mhd->now_ms - set->small_ms < SHARED_MS;
    const unsigned most = is_shared ? 1 : STREAMS_MOST;
    struct epoll_event event;
    uint64_t sent = 0;

    /* Ask epoll for one stream per call: streams that it reports without being served would move to
     * the end of its queue. */
    for (unsigned i = 0; i < most && sent < TURN_BYTES; i++) {
        if (epoll_wait(set->epoll, &event, 1, 0) != 1)
            return;
        sent += send_turn(event.data.ptr, is_shared);
    }
}

void bulk_make_way(struct bulk_set *set, uint64_t now_ms)
{
    set->small_ms = now_ms;
}

/* --- one stream --- */

bool bulk_begin(struct request *request)
{
    struct request_state *state = request_state(request);
    struct connection *connection = request->connection;
    struct bulk *bulk = calloc(1, sizeof(*bulk));

    assert(state->bulk == NULL);
    if (bulk == NULL)
        return false;
    *bulk = (struct bulk){
        .reading = {.job = {.done = on_pages_read,
                            .mailbox = request->mailbox,
                            .client = request_client_key(request)}},
        .set = connection->mhd->bulks,
        .connection = connection,
        .is_local = connection->is_local,
        .gather_most = GATHER_MOST,
    };
    if (state->remote != NULL)
        bulk->remote = state->remote;
    else
        use_answer(bulk, &state->answer);
    if (!bulk->is_local)
        listener_cap_send_buffer(connection->descriptor, 0);
    if (!watch(bulk)) {
        free(bulk);
        return false;
    }
    state->bulk = bulk;
    mhd_suspend(connection, CONNECTION_SENDING);
    return true;
}

static const char *why_cut(const struct bulk *bulk)
{
    const struct zt_error *error = bulk->remote != NULL ? remote_body_error(bulk->remote) : NULL;

    return error != NULL ? error->message : "the file has changed";
}

bool bulk_finish(struct request *request)
{
    const struct bulk *bulk = request_state(request)->bulk;
    struct connection *connection = request->connection;

    assert(bulk != NULL && !bulk->watched && connection->state == CONNECTION_ENDING);
    assert(bulk->ended && !bulk->reading.runs);
    if (bulk->failed) {
        if (connection_is_established(connection))
            log_write(LOG_LEVEL_ERROR, "request %s: its response is cut off: %s", request->id,
                      why_cut(bulk));
        return false;
    }
    connection->result = RESULT_ANSWERED;
    /* Bytes that the library has read beyond the request would be lost. */
    if (connection->raw.state == RAW_START)
        (void)handover_keep(connection);
    return true;
}

void bulk_free(struct bulk *bulk)
{
    assert(!bulk->watched && !bulk->reading.runs);
    free(bulk);
}

/* --- the set --- */

struct bulk_set *bulk_set_new(void)
{
    struct bulk_set *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    set->epoll = epoll_create1(EPOLL_CLOEXEC);
    set->buffer.bytes = malloc(GATHER_MOST);
    if (set->epoll >= 0 && set->buffer.bytes != NULL)
        return set;
    bulk_set_free(set);
    return NULL;
}

void bulk_set_free(struct bulk_set *set)
{
    if (set == NULL)
        return;
    if (set->epoll >= 0)
        close(set->epoll);
    free(set->buffer.bytes);
    free(set);
}

int bulk_descriptor(const struct bulk_set *set)
{
    return set->epoll;
}
