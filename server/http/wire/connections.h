/* The TCP connections of a loop: the state and the deadlines of each. For the loop's thread, except
 * where stated otherwise. */
#ifndef HTTP_WIRE_CONNECTIONS_H
#define HTTP_WIRE_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "config/network.h"
#include "http/exchange/exchange.h"
#include "http/exchange/request.h"
#include "http/exchange/trace.h"
#include "http/limits/deadlines.h"
#include "http/limits/reader.h"

struct MHD_Connection;
struct gnutls_session_int;
struct mhd;
struct sockaddr;
struct tls_session;

struct connection {
    struct deadline deadline; /* first: for casts; set while the client has to do something */
    struct deadline look;     /* hangups.c's: set while the client has hung up */
    struct mhd *mhd;
    struct MHD_Connection *handle;
    struct tls_session *tls; /* NULL in plain text */
    struct request *request; /* in progress, or NULL */
    struct connection *before;
    struct connection *after;
    int descriptor;
    int kept; /* a duplicate that outlives the library's connection (kept_sockets.h); -1: none */
    bool has_peer; /* its address is known */
    bool is_local; /* the peer, which may be a proxy, is on this machine (address_is_local) */
    struct address peer;
    uint64_t body_begun_ms;  /* plus the time for which the body was paused */
    uint64_t body_paused_ms; /* since when the body is not read; 0 if it is */
    uint64_t answer_bytes;   /* lengths of the finished answers, heads included */
    uint64_t request_bytes;  /* lengths of the finished requests, headers included */
    uint64_t answer_begun;   /* with TLS: bytes acknowledged and under way when the current answer
                              * began, if it is large; else UINT64_MAX */
    uint64_t hung_up_ms;     /* since when the client is known to send no more during this request;
                              * 0 if it is not */
    atomic_bool deserted;    /* it has sent no more for so long that it counts as gone */
    struct reader reader;    /* of the current answer */
    const char *unsent;      /* what is left of an answer of own_answers.c */
    size_t unsent_bytes;
    bool suspended; /* the library leaves it alone */
    bool streaming; /* though suspended, it waits for the client to take bytes */
    bool bypassed;  /* bypass.c reads its body and sends its answer */
    bool answered;  /* an answer that the library did not send went out */
    bool gone;      /* the client was gone when a wait ended */
    bool timed_out; /* shut down because it took too long */
    bool spared;    /* its time was over once, but not all had been read that came within it */
    bool lingers;   /* bytes may still come that nobody reads */
    bool surplus;   /* over the limit: only a probe is answered, all else gets 503 */
};

/* The HTTP library's own timeouts are off: they cannot be changed, and clients that keep sending a
 * little outlive them. */
struct connections {
    struct connection *first;
    struct deadlines header;      /* from accept, or the first line, to the end of the header */
    struct deadlines idle;        /* from the end of a request to the first line of the next */
    struct deadlines body;        /* between two pieces of a body */
    struct deadlines answer;      /* between two looks at whether the client takes its answer */
    struct deadlines turned_away; /* from accept to the end of the header, over the limit */
    struct deadlines closing;     /* what idle is while the server drains */
    bool draining;
    uint64_t body_time_ms; /* for a whole body */
    uint64_t rate_grace_ms;
    uint64_t body_bytes_per_s; /* minimum rate after the grace period; 0: none */
    struct reader_limits reader_limits;
};

/* Takes the times from a configuration: at the start, and when they change, which also applies to
 * what has begun. All members are 0 at first. */
void connections_configure(struct connections *connections, const struct config *config);

/* A new connection, with its deadline for the first header. NULL if out of memory. */
struct connection *connections_add(struct connections *connections, int descriptor,
                                   uint64_t now_ms);

/* Opens a connection that the library has accepted: counts it, watches it for hangups, and turns it
 * away if it exceeds the limit. session is the library's, with TLS. NULL, shut down and not
 * counted, if out of memory. */
struct connection *connection_open(struct mhd *mhd, int descriptor,
                                   struct gnutls_session_int *session);

/* Notes the address of the client's end; to be called before the first request. */
void connection_set_peer(struct connection *connection, const struct sockaddr *address);

/* Ends a connection before its descriptor is closed; what still arrives may be read for a while.
 * Takes NULL. */
void connection_close(struct mhd *mhd, struct connection *connection);

/* Frees a connection. Takes NULL. */
void connections_remove(struct connections *connections, struct connection *connection);

/* Marks a connection as one too many. It stays open until the client has sent one request or hung
 * up, but not for long: a probe is answered, so that a full server does not look like a dead one.
 * Without TLS who has sent no request by then is refused as well. */
void connections_turn_away(struct connections *connections, struct connection *connection,
                           uint64_t now_ms);

/* Answers that there are too many connections; the connection must then be ended. With TLS the
 * handshake must be over. */
void connection_refuse(struct connection *connection);

/* Called when the first line of a request is in: the header must follow in time. */
void connections_header_begin(struct connections *connections, struct connection *connection,
                              uint64_t now_ms);

/* Called when an answer begins: the client must take it. */
void connections_answer_begin(struct connections *connections, struct connection *connection,
                              uint64_t now_ms);

/* Called when a request has ended and the next one may come. */
void connections_idle_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms);

/* Whether the server keeps the client waiting, so that nothing can be said about the client. */
bool connection_is_held_up(const struct connection *connection);

/* From now on idle connections end soon: only requests that are on their way are still taken. */
void connections_drain(struct connections *connections, uint64_t now_ms);

/* Begin a request when its first line is in (NULL if out of memory); end the current one and log
 * it. */
struct request *connection_begin_request(struct connection *connection, const char *target);
void connection_end_request(struct connection *connection, enum ending ending);

/* Ends a request whose end the library does not report: its header did not fit into the memory. */
void connection_forget_request(struct connection *connection);

/* Whether the server waits for a header or a body, rather than the client for an answer. */
bool connection_awaits_client(const struct connection *connection);

/* Whether bytes wait to be read or must be expected: the body of a refused request. */
bool connection_has_unread(const struct connection *connection);

/* How many bytes of the current answer the client's system has acknowledged; 0 if the kernel does
 * not say. With TLS a lower bound, 0 for a small answer. */
uint64_t connection_sent(const struct connection *connection);

/* To be called before the first byte of an answer is sent; large: connection_sent may be asked
 * about it. */
void connection_begin_answer(struct connection *connection, bool large);

/* An upper bound on how many of the client's bytes have been read; 0 if the kernel does not say. */
uint64_t connection_received(const struct connection *connection);

/* How far the client has taken what was sent to it. */
struct reader_progress connection_progress(const struct connection *connection, uint64_t now_ms);

/* Whether neither side has closed or half-closed the connection. */
bool connection_is_established(const struct connection *connection);

/* Finds out whether the peer is on this machine. If so, what is sent to it is never paced: some
 * ways of congestion control (BBR) let timers decide when it goes out, although nothing lies in
 * between. To be called once the peer is known, before anything is sent. */
void connection_suit_peer(struct connection *connection);

/* Whether nothing can reach the client any more. A client that has only shut down its sending side
 * may wait for its answer as long as hangups.c allows. From any thread while the connection is
 * open. */
bool connection_is_gone(const struct connection *connection);

/* Called when the header is in and a body follows. */
void connections_body_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms);

/* Called when a piece of the body has arrived; received counts the bytes of all pieces. False: the
 * body takes too long or arrives too slowly; the client has been answered with 408, and the
 * connection must be ended. */
bool connections_body_piece(struct connections *connections, struct connection *connection,
                            uint64_t received, uint64_t now_ms);

/* Stop and restart the client's clock while the server cannot keep up and does not read the body. A
 * second pause or resume in a row changes nothing. */
void connections_body_pause(struct connection *connection, uint64_t now_ms);
void connections_body_resume(struct connections *connections, struct connection *connection,
                             uint64_t now_ms);

/* Shut down all connections, or those whose deadlines have passed: the library notices and closes
 * them. */
void connections_cut(const struct connections *connections);
void connections_cut_due(struct connections *connections, uint64_t now_ms);

/* When connections_cut_due has something to do; UINT64_MAX: never. */
uint64_t connections_due_ms(const struct connections *connections);

#endif
