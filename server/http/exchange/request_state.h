/* The part of a request that only the exchange and the wire see: header fields, memory, held
 * objects and progress. It is one allocation, with the target's text at its end. */
#ifndef HTTP_EXCHANGE_REQUEST_STATE_H
#define HTTP_EXCHANGE_REQUEST_STATE_H

#include <assert.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "config/network.h"
#include "http/exchange/cors.h"
#include "http/exchange/exchange.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"
#include "http/exchange/router.h"
#include "http/fields/chunks.h"
#include "http/fields/header_field.h"
#include "http/fields/ranges.h"

/* Requests with more header fields get 431. */
#define REQUEST_FIELDS_MAX 100
/* The maximum number of an answer's fields: the representation's, and the exchange's own. */
#define ANSWER_FIELDS (REPRESENTATION_FIELDS + REPRESENTATION_MORE + 20 + CORS_FIELDS)
/* Enough for the texts of an ordinary answer; more memory is allocated separately. */
#define REQUEST_SCRATCH 1536

/* An answer up to this length is sent at once: its start and its end count as the same time, and
 * the clock is read only once. */
#define AT_ONCE_BYTES 65536

/* 32 digits, W3C Trace Context section 3.2.2.3. */
#define TRACE_ID_SIZE 33

struct bulk;
struct digesting;
struct intake;
struct kept_answer;
struct peer;
struct remote_body;
struct sigv4_body;
struct timing;

struct held {
    void *thing;
    void (*release)(void *thing);
};

/* The progress of a request. It waits in the stages from HANDLE to ANSWER for as long as it must.
 *
 *   LINE --header in--> BODY --body in--> HANDLE --> PREPARE --> DIGEST --> ANSWER --> QUEUED
 *                         |                                                              ^
 *                         +--refused early, or a repeated request (repeat.c)---------------+ */
enum request_stage {
    STAGE_LINE,    /* the request line is in */
    STAGE_BODY,    /* the header is in */
    STAGE_HANDLE,  /* the body is in; the handler fills the reply */
    STAGE_PREPARE, /* the steps of the reply run */
    STAGE_DIGEST,  /* the digests that the client wants are computed */
    STAGE_ANSWER,  /* the answer is decided; its first bytes are being read */
    STAGE_QUEUED,  /* the library has the response, or the server has sent it */
};

/* How the bytes of an answer get to the connection (sender.c). */
enum sending {
    SENDING_BUFFER, /* the library sends them from memory */
    SENDING_MAPPED, /* the library sends them from the mapping of a file (file_changes.h) */
    SENDING_AHEAD,  /* the library copies the windows of a readahead */
    SENDING_BULK,   /* past the library (bulk.h), whole or in the parts of remote */
};

/* The exchange's interface to the request's connection. */
struct transport {
    /* Called on the loop's thread when the request's wait has ended. */
    void (*resume)(struct request *request);
    /* Returns true if nothing can reach the client any more. May be called on any thread while the
     * request waits. */
    bool (*is_gone)(const struct connection *connection);
    /* Returns true if neither side has closed or half-closed the connection. */
    bool (*is_established)(const struct connection *connection);
    /* Returns the names in the client's verified certificate (request_client_names). */
    const char *const *(*client_names)(const struct connection *connection);
};

/* The position where request_query found the last value of a name. */
struct query_cursor {
    const char *name;     /* NULL: none */
    unsigned nth;         /* index of the next value */
    const char *position; /* after the last value, in the target (query_next) */
};

struct request_state {
    struct request request; /* first: request_state() casts */

    const struct transport *transport; /* NULL without a connection (tests) */
    struct token_memory *token_memory; /* the loop's; NULL: none */
    const struct operation *operation; /* NULL if the request was refused before routing */
    enum request_stage stage;
    unsigned step;          /* next index in reply.steps */
    bool not_modified;      /* 304 */
    bool broken;            /* the end of the request is unclear: the connection must be closed */
    bool http_1_0;          /* version 1.0, not later */
    bool is_of_s3_listener; /* it arrived at s3.listen: its path is the S3 API's */
    /* A query parameter that a handler read and that has a malformed escape. */
    const char *malformed_parameter;
    const char *query_text; /* the target's query, from its '?'; NULL: none */
    struct query_cursor query;
    uint64_t body_length; /* declared; UINT64_MAX: chunked */
    uint64_t body_received;
    uint64_t body_dropped;
    bool ranged;             /* 206 */
    struct byte_range range; /* of the representation, if exactly one is sent */
    const char *parts_type;  /* the media type with the boundary, if several are sent */
    bool wants_repr;         /* client wants these digests (answer_digest.c) */
    bool wants_content;
    bool has_content_sha256;
    uint8_t content_sha256[32]; /* of the body as sent */
    struct digesting *digesting;
    struct sigv4_body *signed_body; /* signed_request.h; NULL: not read yet */
    bool has_own_id;                /* request.id is the client's */
    char trace_id[TRACE_ID_SIZE];
    const struct peer *peer; /* the connection's (client.h); NULL: unknown */
    const char *forwarded;   /* the client, if a trusted proxy names it (client.h); else NULL */
    uint64_t client_key;     /* request_client_key */
    int64_t started_ns;      /* clock_ns after the request line */
    int64_t received_ns;     /* end of the request; 0: not yet */
    int64_t answered_ns;     /* when a long answer was ready to be sent; else 0 */
    struct timing *timing;   /* NULL: not measured */
    bool has_problem;        /* the reply is or was a problem */
    enum problem problem;

    /* For the wire (handler.c, sender.c). */
    unsigned
        library_status;    /* status of an answer that the library generated itself; 0: unknown, or
                            * none */
    bool body_ended;       /* the library has delivered the whole body */
    struct chunks chunks;  /* of a chunked body that is read past the library */
    struct intake *intake; /* NULL: the library reads the body */
    bool chunks_are_whole; /* the server itself has read the body to its end */
    size_t header_bytes;   /* length of the request line and the header as received */
    uint64_t head_bytes;   /* length of the answer's status line and fields */
    uint8_t *loaded;       /* the answer's bytes, which a worker has read */
    enum sending sending;
    struct readahead *ahead; /* of SENDING_AHEAD */
    struct remote_body
        *remote;       /* fetches the rest of the answer (remote_body.c); NULL: all bytes are
                        * local */
    struct bulk *bulk; /* of SENDING_BULK, once the body is being sent */
    bool closes;       /* the answer contains Connection: close */

    uint64_t changes; /* the count of changes before the answer was made (response_cache.c) */
    struct kept_answer *kept; /* the cached answer that it gets, held; NULL: none */

    struct held holds[REQUEST_HOLDS];
    unsigned hold_count;
    struct scratch *scratch; /* separate pieces of the request's memory */
    size_t inline_used;

    struct job wake;      /* done: resumes the request on its loop */
    struct waiter waiter; /* wakes this request */
    struct job work;      /* for request_work */
    void (*work_run)(struct request *request);
    atomic_bool woken; /* set by request_wake if there is no mailbox (tests) */

    bool method_malformed; /* not a token */
    bool headers_cut;      /* there were more than REQUEST_FIELDS_MAX */
    bool headers_long;     /* they leave too little memory for an answer */
    bool headers_hidden;   /* the library misread some of them (header_block_is_plain) */
    unsigned header_count;
    struct answer answer;

    /* The members below are not cleared at the start. */
    struct zt_error load_error; /* set by the worker that fills loaded */
    struct segment answer_segments[REPRESENTATION_SEGMENTS];
    struct field answer_fields[ANSWER_FIELDS];
    struct header_field headers[REQUEST_FIELDS_MAX];
    max_align_t inline_scratch[REQUEST_SCRATCH / sizeof(max_align_t)];
    struct request_pool *pool;       /* takes the request when it ends; NULL: free it */
    struct request_state *next_free; /* in the pool */
    size_t target_length;
    char target[];
};

/* Ended requests of a loop whose memory the next requests reuse: a request is large, and allocating
 * it costs more than answering it. All members are initially 0. */
struct request_pool {
    struct request_state *spare;
    unsigned count;
};

/* Moves to a later stage along the edges of the diagram above. */
static inline void request_enter(struct request_state *state, enum request_stage stage)
{
    assert(stage == state->stage + 1 || (stage == STAGE_QUEUED && state->stage == STAGE_BODY));
    state->stage = stage;
    if (stage == STAGE_QUEUED && state->answer.content_length > AT_ONCE_BYTES)
        state->answered_ns = clock_ns();
}

static inline struct request_state *request_state(struct request *request)
{
    return (struct request_state *)request;
}

static inline const struct request_state *request_state_const(const struct request *request)
{
    return (const struct request_state *)request;
}

/* Creates a request for a raw target, which it copies; the caller then adds the header fields.
 * Returns NULL if out of memory. */
struct request *request_new(struct server *server, struct mailbox *mailbox, const char *target);

/* Does the same with memory from a pool. The pool must outlive the request and be used by one
 * thread only. */
struct request *request_take(struct request_pool *pool, struct server *server,
                             struct mailbox *mailbox, const char *target);

/* Frees the spare memory of a pool. */
void request_pool_clear(struct request_pool *pool);

/* Releases everything that the request holds, in reverse order, and frees the request or returns it
 * to its pool. Accepts NULL. For the loop's thread. */
void request_free(struct request *request);

/* Adds a header field; the request does not copy its texts. Returns false if there are too many. */
bool request_add_header(struct request *request, struct header_field field);

/* Returns true if the request only reads and its client is gone, so that its answer is not needed.
 * May be called on any thread while the request waits, or on the loop's thread. */
bool request_is_abandoned(const struct request *request);

/* Returns the names in the client's certificate, which must be signed by an authority of
 * tls.client_ca: the subject's common name, and the DNS names, URIs and email addresses of the
 * alternative names. The list ends with NULL and is valid until the request ends; NULL without a
 * certificate. For the loop's thread. The first call on a connection takes about 100 us. */
const char *const *request_client_names(const struct request *request);

enum method method_parse(const char *text);
const char *method_name(enum method method);

#endif
