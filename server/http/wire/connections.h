/* The TCP connections of a loop, and how long each may take for what it is at. */
#ifndef HTTP_WIRE_CONNECTIONS_H
#define HTTP_WIRE_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "http/wire/deadlines.h"

struct MHD_Connection;
struct mhd;
struct request;

struct connection {
    struct deadline
        deadline; /* first, so that one is the other; set while the client is to send something */
    struct deadline look; /* of hangups.c: the client has shut down */
    struct mhd *mhd;
    struct MHD_Connection *handle;
    struct request *request; /* begun and not finished */
    struct connection *before;
    struct connection *after;
    int descriptor;
    uint64_t body_begun_ms;  /* later by what it was not read for */
    uint64_t body_paused_ms; /* since when it is not read; 0: it is */
    uint64_t answered_bytes; /* heads and bodies of the answers that went out whole */
    uint64_t asked_bytes;    /* heads and bodies of the requests they were for */
    uint64_t
        /* since when the client was known to send no more while this request was open; 0: it may */
        hung_up_ms;
    atomic_bool deserted; /* it has waited for too long since to be there still */
    bool suspended;
    bool
        /* its body was read by intake.c: the answer goes past the library too, and is the last */
        past_library;
    bool answered;      /* so it did */
    bool gone;          /* the client, as was seen when a wait ended */
    bool timed_out;     /* cut since it took too long */
    bool refused_early; /* the answer went out before the body was read */
};

/* An idle connection is the HTTP library's to end. These are for clients that keep sending a
 * little. */
struct connections {
    struct connection *first;
    struct deadlines first_header; /* from accept to the end of the header */
    struct deadlines
        next_header;       /* from the end of a request to the end of the next one's header */
    struct deadlines body; /* between pieces of a body */
    uint64_t body_time_ms; /* of a whole body */
    uint64_t rate_grace_ms;
    uint64_t body_bytes_per_s; /* the least after the grace; 0: none */
};

void connections_init(struct connections *connections, const struct config *config);

/* A new one, its deadline for the first header begun; NULL when memory is out. */
struct connection *connections_add(struct connections *connections, int descriptor,
                                   uint64_t now_ms);

/* Whether the server waits for a header or a body, not the client for an answer. */
bool connection_awaits_client(const struct connection *connection);

/* Whether bytes wait to be read, or are to be expected: a body that was refused. */
bool connection_has_unread(const struct connection *connection);

/* Bytes of the current answer that the client's system has received; 0 if the kernel does not
 * tell. */
uint64_t connection_sent(const struct connection *connection);

/* At most so many bytes that the client sent are in this program's hands; 0 where the kernel does
 * not tell. */
uint64_t connection_received(const struct connection *connection);

/* Whether nobody has closed it, so that bytes could go both ways still. */
bool connection_is_established(const struct connection *connection);

/* The header is in, a body is to come. */
void connections_body_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms);

/* A piece of it came, received in all. False: it takes too long, or comes too slowly, and the
 * connection is to be ended (the client was told). */
bool connections_body_piece(struct connections *connections, struct connection *connection,
                            uint64_t received, uint64_t now_ms);

/* While it is paused the client's time does not run: it is the server that cannot keep up. Pausing
 * twice is pausing once, and so is resuming. */
void connections_body_pause(struct connection *connection, uint64_t now_ms);
void connections_body_resume(struct connections *connections, struct connection *connection,
                             uint64_t now_ms);

/* Whether nothing can reach the client any more. One that has only shut down its sending side is
 * not gone at once: it may wait for its answer, for as long as hangups.c lets it. From any thread
 * as long as the connection is there. */
bool connection_is_gone(const struct connection *connection);

/* Frees it. Takes NULL. */
void connections_remove(struct connections *connections, struct connection *connection);

/* Shut down: the library sees the end of the connection and closes it. */
void connections_cut(struct connections *connections);
void connections_cut_due(struct connections *connections, uint64_t now_ms);

/* When connections_cut_due is to be called next; UINT64_MAX: no need. */
uint64_t connections_due_ms(const struct connections *connections);

#endif
