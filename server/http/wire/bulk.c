/* One descriptor of epoll for all streams of a loop. It reports those whose sockets take more, one
 * after another, so that none is preferred.
 *
 * Before a window of a file is sent, mincore says whether it is in the page cache; if it is not, a
 * worker reads it in. The loop would otherwise wait for the disk in sendfile. */
#include "http/wire/bulk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "http/exchange/request_state.h"
#include "http/wire/listener.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"
#include "http/wire/page_cache.h"

/* Below this the library's own way costs less than a new connection of the library's. */
#define BULK_LEAST ((uint64_t)1 << 20)
/* Asked about, or read in, at a time. */
#define WINDOW_BYTES ((uint64_t)4 << 20)
#define PAGE_BYTES   4096u
/* The most of one stream in a turn, to a peer on the same machine: the peer reads what the
 * processor's cache still holds. */
#define LOCAL_MOST ((uint64_t)512 << 10)
/* And to others: what the kernel hands to the network in about 200 us. */
#define REMOTE_MOST ((uint64_t)2 << 20)
/* The same while small answers share the loop. */
#define LOCAL_SHARED  ((uint64_t)256 << 10)
#define REMOTE_SHARED ((uint64_t)512 << 10)
/* For how long a small answer makes streams give way. */
#define SHARED_MS 100
/* Streams in a turn, if they do not share the loop with small answers. */
#define EVENTS 8
/* A worker touches pages with reads of this length if the kernel cannot populate a mapping. */
#define TOUCH_BYTES ((size_t)64 << 10)

/* Looks at what was read; what a client sends in the meantime spoils one. */
#define LOOKS_MOST 4

struct bulk {
    struct job job; /* first: the job is the structure */
    struct bulk_set *set;
    struct connection *connection;
    const uint8_t *mapping; /* of the whole file, for mincore; NULL: none */
    int file;               /* borrowed from the source */
    bool is_local;
    uint64_t at; /* in the file */
    uint64_t end;
    uint64_t warm_end; /* up to here it is in the page cache */
    bool watched;
    bool failed;
};

struct bulk_kept {
    struct bulk_kept *next;
    int descriptor;
    struct sockaddr_storage address;
    uint64_t answer_bytes;
    uint64_t request_bytes;
};

struct bulk_set {
    int epoll;
    uint64_t small_ms; /* when the last small answer was given */
    struct bulk_kept *kept;
    const struct bulk_kept *readmitting;
};

/* --- choosing --- */

/* RFC 9112 section 9.3. An option whose name merely has "close" in it costs a connection. */
static bool wants_close(struct request *request)
{
    const char *options = request_header(request, "Connection");

    return options != NULL && strcasestr(options, "close") != NULL;
}

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

bool bulk_is_worthwhile(const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct answer *answer = &state->answer;
    const struct connection *connection = request->connection;

    return answer->segment_count == 1 && answer->segments[0].kind == SEGMENT_SOURCE &&
           answer->content_length >= BULK_LEAST && connection->tls == NULL && !state->http_1_0 &&
           !connection->surplus && request->method == METHOD_GET && state->body_length == 0 &&
           zt_source_descriptor(answer->segments[0].source) >= 0 &&
           nothing_more_was_read(connection);
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
    mhd_resume(bulk->connection);
}

static void fail(struct bulk *bulk)
{
    bulk->failed = true;
    finish(bulk);
}

/* --- what is in the page cache --- */

/* The end of the window behind what is known to be in the page cache. */
static uint64_t window_end(const struct bulk *bulk)
{
    return bulk->end - bulk->warm_end < WINDOW_BYTES ? bulk->end : bulk->warm_end + WINDOW_BYTES;
}

static bool window_is_warm(const struct bulk *bulk)
{
    unsigned char pages[WINDOW_BYTES / PAGE_BYTES + 1];
    const uint64_t first = bulk->warm_end & ~(uint64_t)(PAGE_BYTES - 1);
    const size_t length = (size_t)(window_end(bulk) - first);
    const size_t count = (length + PAGE_BYTES - 1) / PAGE_BYTES;

    assert(count <= sizeof(pages));
    if (bulk->mapping == NULL ||
        mincore((void *)(uintptr_t)(bulk->mapping + first), length, pages) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if ((pages[i] & 1) == 0)
            return false;
    return true;
}

/* Reads what a mapping cannot be asked to: a file that has become too short ends it. */
static void touch(const struct bulk *bulk, uint64_t end)
{
    char bytes[TOUCH_BYTES];

    for (uint64_t at = bulk->warm_end; at < end;) {
        const size_t wanted = end - at < sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
        const ssize_t length = pread(bulk->file, bytes, wanted, (off_t)at);

        if (length <= 0)
            return;
        at += (uint64_t)length;
    }
}

/* On a worker. The window after this one is on its way while this one is sent. Errors appear when
 * the bytes are sent. */
static void read_in(struct job *job)
{
    const struct bulk *bulk = (const struct bulk *)job;
    const uint64_t end = window_end(bulk);
    const uint64_t first = bulk->warm_end & ~(uint64_t)(PAGE_BYTES - 1);

    readahead(bulk->file, (off_t)bulk->warm_end, (size_t)(end - bulk->warm_end));
    if (end < bulk->end)
        readahead(bulk->file, (off_t)end, (size_t)WINDOW_BYTES);
    if (bulk->mapping == NULL || madvise((void *)(uintptr_t)(bulk->mapping + first),
                                         (size_t)(end - first), MADV_POPULATE_READ) != 0)
        touch(bulk, end);
}

static void on_read_in(struct job *job)
{
    struct bulk *bulk = (struct bulk *)job;

    mhd_update_clock(bulk->connection->mhd);
    bulk->warm_end = window_end(bulk);
    if (!watch(bulk))
        fail(bulk);
}

/* Looks ahead, so that a piece of length bytes is known to be in the page cache, if it is. False:
 * nothing can be sent now, and a worker has been asked. */
static bool is_warm(struct bulk *bulk, uint64_t length)
{
    assert(bulk->at <= bulk->warm_end && bulk->warm_end <= bulk->end);
    while (bulk->warm_end < bulk->end && bulk->warm_end - bulk->at < length) {
        if (!window_is_warm(bulk))
            break;
        bulk->warm_end = window_end(bulk);
    }
    if (bulk->at < bulk->warm_end)
        return true;
    unwatch(bulk);
    workers_submit(bulk->connection->request->server->workers, &bulk->job);
    return false;
}

/* --- sending --- */

static uint64_t most_in_turn(const struct bulk *bulk, bool is_shared)
{
    if (bulk->is_local)
        return is_shared ? LOCAL_SHARED : LOCAL_MOST;
    return is_shared ? REMOTE_SHARED : REMOTE_MOST;
}

static void send_turn(struct bulk *bulk, bool is_shared)
{
    uint64_t length = most_in_turn(bulk, is_shared);
    off_t offset = (off_t)bulk->at;
    ssize_t sent;

    if (!is_warm(bulk, length))
        return;
    if (length > bulk->warm_end - bulk->at)
        length = bulk->warm_end - bulk->at;
    /* 0: the file is too short. */
    sent = sendfile(bulk->connection->descriptor, bulk->file, &offset, (size_t)length);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent <= 0) {
        fail(bulk);
        return;
    }
    bulk->at += (uint64_t)sent;
    assert(bulk->at <= bulk->end);
    if (bulk->at == bulk->end)
        finish(bulk);
}

void bulk_run(void *context)
{
    struct mhd *mhd = context;
    struct bulk_set *set = mhd->bulks;
    const bool is_shared = mhd->now_ms - set->small_ms < SHARED_MS;
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(set->epoll, events, is_shared ? 1 : EVENTS, 0);

    for (int i = 0; i < count; i++)
        send_turn(events[i].data.ptr, is_shared);
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
    const struct segment *segment = &state->answer.segments[0];
    struct bulk *bulk = calloc(1, sizeof(*bulk));

    assert(state->bulk == NULL && segment->kind == SEGMENT_SOURCE);
    if (bulk == NULL)
        return false;
    *bulk = (struct bulk){
        .job = {.run = read_in, .done = on_read_in, .mailbox = request->mailbox},
        .set = connection->mhd->bulks,
        .connection = connection,
        .mapping = zt_source_map(segment->source),
        .file = zt_source_descriptor(segment->source),
        .is_local = connection_is_local(connection),
        .at = segment->offset,
        .end = segment->offset + segment->length,
        .warm_end = segment->offset,
    };
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

/* The library's connection would have stayed open. */
static bool is_kept_alive(const struct connection *connection)
{
    const struct request_state *state = request_state_const(connection->request);

    return !connection->mhd->cutting && !connection->mhd->connections.draining &&
           !state->answer.close && !state->closes && !wants_close(connection->request) &&
           nothing_more_was_read(connection);
}

bool bulk_finish(struct request *request)
{
    const struct bulk *bulk = request_state(request)->bulk;
    struct connection *connection = request->connection;

    assert(bulk != NULL && !bulk->watched && !connection->suspended);
    if (bulk->failed) {
        if (connection_is_established(connection))
            log_write(LOG_LEVEL_ERROR, "request %s: its answer is cut: the file has changed",
                      request->id);
        return false;
    }
    connection->answered = true;
    if (is_kept_alive(connection))
        connection->kept = fcntl(connection->descriptor, F_DUPFD_CLOEXEC, 0);
    return true;
}

void bulk_free(struct bulk *bulk)
{
    assert(bulk == NULL || !bulk->watched);
    free(bulk);
}

/* --- sockets that outlive a connection of the library --- */

void bulk_keep(struct connection *connection, const struct sockaddr *address)
{
    struct bulk_set *set = connection->mhd->bulks;
    struct bulk_kept *kept = address != NULL ? calloc(1, sizeof(*kept)) : NULL;

    assert(connection->kept >= 0);
    if (kept == NULL) {
        close(connection->kept);
        return;
    }
    kept->next = set->kept;
    kept->descriptor = connection->kept;
    memcpy(&kept->address, address,
           address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in));
    kept->answer_bytes = connection->answer_bytes;
    kept->request_bytes = connection->request_bytes;
    set->kept = kept;
}

void bulk_readmit(struct mhd *mhd,
                  void (*add)(struct mhd *mhd, int descriptor, const struct sockaddr *address))
{
    struct bulk_set *set = mhd->bulks;

    while (set->kept != NULL) {
        struct bulk_kept *kept = set->kept;

        set->kept = kept->next;
        set->readmitting = kept;
        add(mhd, kept->descriptor, (const struct sockaddr *)&kept->address);
        set->readmitting = NULL;
        free(kept);
    }
}

bool bulk_is_readmitting(const struct bulk_set *set)
{
    return set->readmitting != NULL;
}

void bulk_restore(const struct bulk_set *set, struct connection *connection)
{
    if (set->readmitting == NULL)
        return;
    connection->answer_bytes = set->readmitting->answer_bytes;
    connection->request_bytes = set->readmitting->request_bytes;
    connections_idle_begin(&connection->mhd->connections, connection, connection->mhd->now_ms);
}

/* --- the set --- */

struct bulk_set *bulk_set_new(void)
{
    struct bulk_set *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    set->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (set->epoll >= 0)
        return set;
    free(set);
    return NULL;
}

void bulk_set_free(struct bulk_set *set)
{
    if (set == NULL)
        return;
    while (set->kept != NULL) {
        struct bulk_kept *kept = set->kept;

        set->kept = kept->next;
        close(kept->descriptor);
        free(kept);
    }
    close(set->epoll);
    free(set);
}

int bulk_descriptor(const struct bulk_set *set)
{
    return set->epoll;
}
