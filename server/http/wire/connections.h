/* The TCP connections of a loop, each with its state and its deadlines. All functions are for the
 * loop's thread unless stated otherwise. */
#ifndef HTTP_WIRE_CONNECTIONS_H
#define HTTP_WIRE_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "http/exchange/client.h"
#include "http/exchange/exchange.h"
#include "http/exchange/request.h"
#include "http/exchange/trace.h"
#include "http/fields/raw_stream.h"
#include "http/limits/deadlines.h"
#include "http/limits/reader.h"

struct MHD_Connection;
struct gnutls_session_int;
struct mhd;
struct sockaddr;
struct tls_session;

/* Who owns the socket of a connection. The library's connection is suspended in all states except
 * LIBRARY, REFUSED and ENDING.
 *
 *               +------------wait over-----------+
 *               v                                |
 *   ---accept-> LIBRARY --request must wait--> WAITING <--bytes are missing--+
 *               |  |  |                         |  |                         |
 *               |  |  |            client gone--+  +--bytes are there--> SENDING
 *               |  |  +--answer to be sent here--------|-----------------^ ^ |
 *               |  |                            |      |                   | |
 *               |  +--long body--> RECEIVING ---|--answer too long at once-+ |
 *               |                      |        v                            |
 *               |                      +----> ENDING <---answered, or cut----+
 *               v
 *            REFUSED */
enum connection_state {
    CONNECTION_LIBRARY,   /* the library reads requests and sends answers */
    CONNECTION_WAITING,   /* the request waits for a worker */
    CONNECTION_SENDING,   /* the server sends the answer, or waits for the client to take it */
    CONNECTION_RECEIVING, /* the server reads the body and decides the answer (handover.c) */
    CONNECTION_REFUSED,   /* the last answer is being sent; bytes from the client are dropped (a
                           * late body may be malformed) */
    CONNECTION_ENDING,    /* back at the library, which only closes it */
};

/* How the request on a connection ended, in cases that the library cannot report. */
enum connection_result {
    RESULT_OPEN,
    RESULT_ANSWERED,  /* the server sent the whole answer itself */
    RESULT_TIMED_OUT, /* the server cut the connection because it took too long */
};

struct connection {
    struct deadline deadline; /* first, for casts; set while the server waits for the client */
    struct deadline look;     /* used by hangups.c; set after the client has hung up */
    struct mhd *mhd;
    struct MHD_Connection *handle;
    struct tls_session *tls; /* NULL in plain text */
    struct request *request; /* in progress, or NULL */
    struct connection *before;
    struct connection *after;
    int descriptor;
    int kept;      /* duplicate that outlives the library's connection (handover.h); -1: none */
    bool has_peer; /* peer is known */
    bool is_local; /* the peer, possibly a proxy, is on this machine (address_is_local) */
    struct peer peer;
    uint64_t body_begun_ms;  /* start of the body, plus the time for which it was paused */
    uint64_t body_paused_ms; /* when reading of the body was paused; 0: it is not paused */
    uint64_t answer_bytes;   /* lengths of the finished answers, heads included */
    uint64_t answer_begun;   /* with TLS: bytes acknowledged and under way when the current answer
                              * began, if it is large; else UINT64_MAX */
    uint64_t hung_up_ms;     /* since when the client is known to send no more during this request;
                              * 0 if it is not */
    atomic_bool is_deserted; /* it has sent no more for so long that it counts as gone */
    struct reader reader;    /* of the current answer */
    struct raw_stream raw;   /* the bytes that the library has received */
    const char *unsent;      /* the unsent rest of a direct_answer.c answer */
    size_t unsent_bytes;
    enum connection_state state;
    enum connection_result result;
    bool has_begun;     /* with TLS: its first bytes have arrived */
    bool has_extension; /* its deadline was extended once because timely bytes had not been read */
    bool is_of_s3;      /* accepted at s3.listen */
    bool is_surplus;    /* over the limit: only probes are answered; other requests fail with 503 */
};

/* The library's own timeouts are off: they cannot be changed while it runs, and a client that keeps
 * sending a few bytes never reaches them. */
struct connections {
    struct connection *first;
    struct connection **by_descriptor; /* NULL for descriptors of no connection */
    size_t descriptors;                /* number of entries in by_descriptor */
    struct deadlines header;     /* from accept, or the first line, to the end of the header */
    struct deadlines idle;       /* from the end of a request to the first line of the next */
    struct deadlines body;       /* between two pieces of a body */
    struct deadlines answer;     /* between two checks of whether the client is reading its
                                   * answer */
    struct deadlines over_limit; /* like header, for connections over the limit */
    struct deadlines closing;    /* like idle, while the server drains */
    bool draining;
    uint64_t body_time_ms; /* for a whole body */
    uint64_t rate_grace_ms;
    uint64_t body_bytes_per_s; /* minimum rate after the grace period; 0: none */
    struct reader_limits reader_limits;
};

/* Takes the timeouts from the configuration, at startup and on reload; new timeouts also apply to
 * waits that have begun. All members are initially 0. */
void connections_configure(struct connections *connections, const struct config *config);

/* Adds a connection and sets the deadline of its first header. Returns NULL if out of memory. */
struct connection *connections_add(struct connections *connections, int descriptor,
                                   uint64_t now_ms);

/* Returns the connection with this descriptor, or NULL. */
struct connection *connections_find(const struct connections *connections, int descriptor);

/* Opens a connection that the library has accepted: counts it, watches it for hangups, and turns it
 * away if it exceeds the limit. session is the library's TLS session. If out of memory, returns
 * NULL; the connection is then shut down and not counted. */
struct connection *connection_open(struct mhd *mhd, int descriptor,
                                   struct gnutls_session_int *session);

/* Returns true if a warning may be logged now: repeated attempts by clients must not flood the log.
 * Each warning has its own next_ms, initially 0. */
bool connections_warning_is_due(_Atomic uint64_t *next_ms, uint64_t now_ms);

/* Moves to a state along an edge of the diagram above. */
void connection_enter(struct connection *connection, enum connection_state state);

/* Returns true if the library ignores the connection. */
static inline bool connection_is_suspended(const struct connection *connection)
{
    return connection->state == CONNECTION_WAITING || connection->state == CONNECTION_SENDING ||
           connection->state == CONNECTION_RECEIVING;
}

/* Records the address of the peer. Call it before the first request. */
void connection_set_peer(struct connection *connection, const struct sockaddr *address);

/* Ends a connection before its descriptor is closed; bytes that still arrive may be read for a
 * while. keeps_place: its socket stays open and has taken over its place in the admission count.
 * connection may be NULL. */
void connection_close(struct mhd *mhd, struct connection *connection, bool keeps_place);

/* Frees the list; all connections must have been removed. */
void connections_end(struct connections *connections);

/* Frees a connection. Accepts NULL. */
void connections_remove(struct connections *connections, struct connection *connection);

/* Marks a connection as over the limit. It stays open briefly, until the client has sent one
 * request or hung up, so that a probe is answered and a full server does not look dead. Without
 * TLS, a client that has not sent a request in time is refused too. */
void connections_refuse(struct connections *connections, struct connection *connection,
                        uint64_t now_ms);

/* Sends the "too many connections" answer; the caller must then end the connection. With TLS the
 * handshake must be complete. */
void connection_refuse(struct connection *connection);

/* Called after the first line of a request: the rest of the header must follow in time. */
void connections_header_begin(struct connections *connections, struct connection *connection,
                              uint64_t now_ms);

/* Called when an answer begins: the client must read it in time. */
void connections_answer_begin(struct connections *connections, struct connection *connection,
                              uint64_t now_ms);

/* Called when a request has ended and the connection waits for the next one. */
void connections_idle_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms);

/* Returns true if the client is waiting for the server, so that its silence proves nothing. */
bool connection_is_held_up(const struct connection *connection);

/* From now on idle connections end soon; only requests already in transit are accepted. */
void connections_drain(struct connections *connections, uint64_t now_ms);

/* connection_begin_request is called after a request's first line and returns NULL if out of
 * memory. connection_end_request ends the current request and logs it. */
struct request *connection_begin_request(struct connection *connection, const char *target);
void connection_end_request(struct connection *connection, enum ending ending);

/* Returns why the connection's answer was not sent completely. */
enum ending connection_failure(const struct connection *connection);

/* Ends a request whose end the library does not report, because its header did not fit into the
 * library's memory. */
void connection_drop_request(struct connection *connection);

/* Returns true if the server is waiting for a header or a body, and not the client for an
 * answer. */
bool connection_awaits_client(const struct connection *connection);

/* Returns true if bytes are unread or must be expected, such as the body of a refused request. */
bool connection_has_unread(const struct connection *connection);

/* Returns how many bytes of the current answer the peer's kernel has acknowledged; 0 if the kernel
 * does not report it. With TLS this is a lower bound, and 0 for a small answer. */
uint64_t connection_sent(const struct connection *connection);

/* Returns how many bytes have been written to the socket; 0 if the kernel does not report it. */
uint64_t connection_written(const struct connection *connection);

/* Call it with TLS before the first byte of a large answer is sent; connection_sent will be asked
 * about it. */
void connection_begin_large(struct connection *connection);

/* How far the client has taken what was sent to it. */
struct reader_progress connection_progress(const struct connection *connection, uint64_t now_ms);

/* Returns true if neither side has closed or half-closed the connection. */
bool connection_is_established(const struct connection *connection);

/* Finds out whether the peer is on this machine and, if so, turns off pacing: some congestion
 * control algorithms (BBR) delay sending by timers, which is useless without a network. Call it
 * once the peer is known, before anything is sent. */
void connection_suit_peer(struct connection *connection);

/* Returns true if nothing can reach the client any more. A client that has only shut down its
 * sending side still waits for its answer, for as long as hangups.c allows. May be called on any
 * thread while the connection is open. */
bool connection_is_gone(const struct connection *connection);

/* Called after the header if a body follows. */
void connections_body_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms);

/* Called when a piece of the body has arrived; received is the total so far. Returns false if the
 * body takes too long or arrives too slowly: a 408 has then been sent, and the caller must end the
 * connection. */
bool connections_body_piece(struct connections *connections, struct connection *connection,
                            uint64_t received, uint64_t now_ms);

/* Stop and restart the client's clock while the server cannot keep up and does not read the body.
 * Repeated calls have no effect. */
void connections_body_pause(struct connection *connection, uint64_t now_ms);
void connections_body_resume(struct connections *connections, struct connection *connection,
                             uint64_t now_ms);

/* Shut down all connections, or only those whose deadlines have passed. The library notices and
 * closes them. */
void connections_cut(const struct connections *connections);
void connections_cut_due(struct connections *connections, uint64_t now_ms);

/* Returns how many bytes have been sent on all connections with an answer in progress. */
uint64_t connections_sent(const struct connections *connections);

/* Returns when connections_cut_due is next needed; UINT64_MAX: never. */
uint64_t connections_due_ms(const struct connections *connections);

#endif
