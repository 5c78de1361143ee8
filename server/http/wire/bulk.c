/* One descriptor of epoll for all streams of a loop. It reports those whose sockets take more, one
 * after another, so that none is preferred.
 *
 * Before a window of an answer is sent, mincore says whether it is in the page cache; if it is not,
 * workers read ahead (read_in.h). The loop would otherwise wait for the disk. */
#include "http/wire/bulk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "http/body/bring_in.h"
#include "http/body/piece.h"
#include "http/body/read_in.h"
#include "http/body/stamp.h"
#include "http/body/windows.h"
#include "http/exchange/client.h"
#include "http/exchange/request_state.h"
#include "http/wire/kept_sockets.h"
#include "http/wire/listener.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/page_cache.h"

/* Below this the library's own way costs less than a new connection of the library's. One piece of
 * a file for a peer on the same machine may be longer, since copying it from a mapping costs less
 * still. */
#define BULK_LEAST  ((uint64_t)1 << 20)
#define PIECE_LEAST PAGE_CACHE_PIECE_BYTES
/* The most of one stream in a turn, to a peer on the same machine: the peer reads what the
 * processor's cache still holds. */
#define LOCAL_MOST ((uint64_t)512 << 10)
/* And to others: as much as the socket takes. */
#define REMOTE_MOST ((uint64_t)8 << 20)
/* The same while small answers share the loop. */
#define LOCAL_SHARED  ((uint64_t)256 << 10)
#define REMOTE_SHARED ((uint64_t)512 << 10)
/* For how long a small answer makes streams give way. */
#define SHARED_MS 100
/* Streams in a turn, and bytes after which it ends, if they do not share the loop with small
 * answers: the kernel takes up to 3 ms for so many. */
#define STREAMS_MOST 8
#define TURN_BYTES   ((uint64_t)16 << 20)
/* A peer that takes so much at once is a quick one: the kernel has let its send buffer grow. It
 * gets twice as large a one as the kernel would give by itself, which reserves double what it is
 * asked for. */
#define QUICK_BYTES ((uint64_t)2 << 20)
#define DEEP_BYTES  (4 << 20)
/* For gathered bytes; stays in the processor's cache. */
#define GATHER_MOST ((size_t)512 << 10)
/* The least that is gathered for a peer that takes little at a time. */
#define GATHER_LEAST ((uint64_t)64 << 10)

/* Looks at what was read; what a client sends in the meantime spoils one. */
#define LOOKS_MOST 4

struct bulk {
    struct read_in reading; /* first: its job is the structure */
    struct bulk_set *set;
    struct connection *connection;
    struct bring_in *bring; /* NULL: the whole answer is here */
    /* The answer, or the part of it that is being sent; NULL between two parts. The places are in
     * it. */
    const struct answer *answer;
    uint64_t stamp; /* of its files */
    bool is_local;
    bool is_deep; /* its send buffer has been enlarged */
    bool is_cold; /* some of it was not in the page cache */
    struct place at;
    struct place warm_end; /* up to here it is in the page cache */
    uint64_t gather_most;  /* bytes for one piece: what is not taken is gathered again */
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

/* --- choosing --- */

/* Whether the library has read nothing beyond the request. What arrives during a look may count as
 * read, so it is looked at again. */
static bool nothing_more_was_read(const struct connection *connection)
{
    const struct request_state *state = request_state_const(connection->request);
    const uint64_t known = connection->request_bytes + state->header_bytes + state->body_received;

    for (unsigned i = 0; i < LOOKS_MOST; i++)
        if (connection_received(connection) == known)
            return true;
    return false;
}

/* Slices that are not in the page cache are read by workers, who leave out what is between. */
static bool begins_warm(const struct answer *answer)
{
    const struct zt_slice *slice;

    for (size_t i = 0; i < answer->segment_count; i++) {
        segment_file(&answer->segments[i], &slice);
        if (slice != NULL)
            return window_is_warm(answer, (struct place){0});
    }
    return true;
}

static bool is_piece_of_file(const struct answer *answer)
{
    return answer->segment_count == 1 && answer->segments[0].kind == SEGMENT_SOURCE &&
           zt_source_descriptor(answer->segments[0].source) >= 0;
}

/* What is not in memory is read by workers here, while the library's ways would make the loop wait
 * for the disk. */
static bool is_large(const struct connection *connection, const struct answer *answer)
{
    const bool is_piece = is_piece_of_file(answer);

    if (answer->content_length >= (is_piece && connection->is_local ? PIECE_LEAST : BULK_LEAST))
        return true;
    return is_piece && answer->content_length > PAGE_CACHE_SMALL_BYTES &&
           answer_is_mappable(answer) && !page_cache_holds(connection->mhd, answer);
}

static bool is_plain_request(const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct connection *connection = request->connection;

    return connection->tls == NULL && !state->http_1_0 && !connection->surplus &&
           request->method == METHOD_GET && state->body_length == 0;
}

bool bulk_is_worthwhile(const struct request *request)
{
    const struct answer *answer = &request_state_const(request)->answer;
    const struct connection *connection = request->connection;

    return is_plain_request(request) && answer->segment_count > 0 && is_large(connection, answer) &&
           nothing_more_was_read(connection) && pieces_can_send(answer) && begins_warm(answer);
}

bool bulk_can_stream(const struct request *request)
{
    return is_plain_request(request) && nothing_more_was_read(request->connection) &&
           pieces_can_send(&request_state_const(request)->answer);
}

/* --- watching --- */

/* False if that fails. */
static bool watch(struct bulk *bulk)
{
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = bulk};

    if (!bulk->watched &&
        epoll_ctl(bulk->set->epoll, EPOLL_CTL_ADD, bulk->connection->descriptor, &event) != 0)
        return false;
    bulk->watched = true;
    bulk->connection->streaming = true;
    return true;
}

static void unwatch(struct bulk *bulk)
{
    if (bulk->watched)
        epoll_ctl(bulk->set->epoll, EPOLL_CTL_DEL, bulk->connection->descriptor, NULL);
    bulk->watched = false;
    bulk->connection->streaming = false;
}

/* The library asks for the body again, and gets an end. */
static void finish(struct bulk *bulk)
{
    unwatch(bulk);
    bulk->ended = true;
    /* If a worker is reading or bringing, this is called again. */
    if (!bulk->reading.runs && (bulk->bring == NULL || !bulk->bring->runs))
        mhd_resume(bulk->connection);
}

static void fail(struct bulk *bulk)
{
    bulk->failed = true;
    finish(bulk);
}

/* --- what is in the page cache --- */

static void read_in(struct bulk *bulk)
{
    read_in_begin(&bulk->reading, bulk->connection->request->server, bulk->warm_end);
}

static void on_read_in(struct job *job)
{
    struct bulk *bulk = (struct bulk *)job;
    const struct place read_end = read_in_done(&bulk->reading);

    mhd_update_clock(bulk->connection->mhd);
    if (bulk->warm_end.at < read_end.at)
        bulk->warm_end = read_end;
    if (bulk->ended)
        finish(bulk);
    else if (!watch(bulk))
        fail(bulk);
}

/* Looks ahead, so that a piece of length bytes is known to be in the page cache, if it is. False:
 * nothing can be sent now, and a worker is reading. */
static bool is_warm(struct bulk *bulk, uint64_t length)
{
    const uint64_t end = bulk->answer->content_length;

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
        read_in(bulk);
        return false;
    }
    if (bulk->is_cold && bulk->warm_end.at < end && read_in_is_due(&bulk->reading, bulk->at.at))
        read_in(bulk);
    return true;
}

/* --- what is brought --- */

static void use_answer(struct bulk *bulk, const struct answer *answer)
{
    assert(!bulk->reading.runs);
    bulk->answer = bulk->reading.answer = answer;
    bulk->reading.asked = bulk->at = bulk->warm_end = (struct place){0};
    bulk->stamp = answer_stamp(answer);
}

/* Goes on to the next part at the end of one. False: nothing can be sent now, and bulk_continue or
 * on_read_in will be called, or never, if the parts have failed. */
static bool has_part(struct bulk *bulk)
{
    const struct answer *next;

    if (bulk->bring == NULL || (bulk->answer != NULL && bulk->at.at < bulk->answer->content_length))
        return true;
    if (bulk->reading.runs) {
        unwatch(bulk);
        return false;
    }
    if (bulk->answer != NULL)
        bring_in_drop(bulk->bring);
    bulk->answer = NULL;
    bring_in_continue(bulk->bring, bulk->connection->request->server);
    next = bring_in_part(bulk->bring);
    if (next != NULL)
        use_answer(bulk, next);
    else if (bring_in_error(bulk->bring) != NULL)
        fail(bulk);
    else
        unwatch(bulk);
    return next != NULL;
}

void bulk_continue(struct bulk *bulk)
{
    mhd_update_clock(bulk->connection->mhd);
    if (bulk->ended) {
        finish(bulk);
        return;
    }
    bring_in_continue(bulk->bring, bulk->connection->request->server);
    if (!watch(bulk))
        fail(bulk);
}

/* Whether the end of what is being sent is that of the answer. */
static bool is_last(const struct bulk *bulk)
{
    return bulk->bring == NULL || bring_in_is_last(bulk->bring);
}

/* --- sending --- */

static uint64_t most_in_turn(const struct bulk *bulk, bool is_shared)
{
    if (bulk->is_local)
        return is_shared ? LOCAL_SHARED : LOCAL_MOST;
    return is_shared ? REMOTE_SHARED : REMOTE_MOST;
}

/* A peer that took all gets twice as much the next time. */
static void learn(struct bulk *bulk, const struct piece *piece, uint64_t sent)
{
    if (!piece->gathered)
        return;
    if (sent == piece->length)
        bulk->gather_most =
            bulk->gather_most * 2 < GATHER_MOST ? bulk->gather_most * 2 : GATHER_MOST;
    else
        bulk->gather_most = sent > GATHER_LEAST ? sent : GATHER_LEAST;
}

/* Before the end of an answer is sent, within the next length bytes, its files must be what they
 * were at its beginning: a mixture never becomes whole. */
static bool is_unchanged(const struct bulk *bulk, uint64_t length)
{
    return bulk->at.at + length < bulk->answer->content_length ||
           answer_stamp(bulk->answer) == bulk->stamp;
}

/* Sends one piece of at most length bytes. Returns whether the socket took all of it and more can
 * be sent; *out_sent: how much it took. */
static bool send_piece(struct bulk *bulk, uint64_t length, uint64_t *out_sent)
{
    struct piece *piece = &bulk->set->piece;
    const uint64_t end = bulk->answer->content_length;
    ssize_t sent;

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

/* As long as the kernel has something to send, acknowledgements and timers make it send more. When
 * it has run out, each call sends all by itself, and wakes the peer again and again. */
static void deepen(struct bulk *bulk, uint64_t sent)
{
    if (bulk->is_local || bulk->is_deep || sent < QUICK_BYTES)
        return;
    bulk->is_deep = true;
    listener_raise_send_buffer(bulk->connection->descriptor, DEEP_BYTES);
}

/* Returns how many bytes were sent. */
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

    /* One at a time: those that are reported and left alone would go to the end of the line. */
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
        .reading = {.job = {.done = on_read_in,
                            .mailbox = request->mailbox,
                            .client = request_client_key(request)}},
        .set = connection->mhd->bulks,
        .connection = connection,
        .is_local = connection->is_local,
        .gather_most = GATHER_MOST,
    };
    if (state->sending == SENDING_PARTS)
        bulk->bring = state->bring;
    else
        use_answer(bulk, &state->answer);
    if (!bulk->is_local)
        listener_cap_send_buffer(connection->descriptor, 0);
    if (!watch(bulk)) {
        free(bulk);
        return false;
    }
    state->bulk = bulk;
    mhd_suspend(connection);
    return true;
}

static const char *why_cut(const struct bulk *bulk)
{
    const struct zt_error *error = bulk->bring != NULL ? bring_in_error(bulk->bring) : NULL;

    return error != NULL ? error->message : "the file has changed";
}

bool bulk_finish(struct request *request)
{
    const struct bulk *bulk = request_state(request)->bulk;
    struct connection *connection = request->connection;

    assert(bulk != NULL && !bulk->watched && !connection->suspended);
    if (bulk->failed) {
        if (connection_is_established(connection))
            log_write(LOG_LEVEL_ERROR, "request %s: its answer is cut: %s", request->id,
                      why_cut(bulk));
        return false;
    }
    connection->answered = true;
    if (kept_sockets_may_keep(connection) && nothing_more_was_read(connection))
        (void)kept_sockets_take(connection);
    return true;
}

void bulk_free(struct bulk *bulk)
{
    assert(bulk == NULL || (!bulk->watched && !bulk->reading.runs));
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
