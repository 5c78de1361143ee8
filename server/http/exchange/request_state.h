/* The state of a request that only the exchange and the wire see: header fields, memory, held
 * things, progress. One allocation, with the text of the target at its end. */
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

/* A request with more header fields is answered with 431. */
#define REQUEST_FIELDS_MAX 100
/* The most fields of an answer: those of its representation, and the exchange's own. */
#define ANSWER_FIELDS (REPRESENTATION_FIELDS + 15 + CORS_FIELDS)
/* Enough for the texts of an ordinary answer; more is allocated separately. */
#define REQUEST_SCRATCH 1536

/* An answer of up to this length leaves at once: its end is as good as its start, and the clock is
 * read only once. */
#define AT_ONCE_BYTES 65536

/* 32 digits, W3C Trace Context section 3.2.2.3. */
#define TRACE_ID_SIZE 33

struct bring_in;
struct bulk;
struct digesting;
struct intake;
struct kept_answer;
struct timing;

struct held {
    void *thing;
    void (*release)(void *thing);
};

/* A separate piece of the request's memory, in a list. */
struct scratch {
    struct scratch *next;
    max_align_t bytes[];
};

/* The progress of a request on its connection.
 *
 *   HEADER --header in--> BODY --body in, answer decided--> LOADING --its bytes are there--> QUEUED
 *                           +--refused early, or answered past the library---------------------^ */
enum request_phase {
    PHASE_HEADER,  /* the request line is in */
    PHASE_BODY,    /* the header is in; until the answer is decided */
    PHASE_LOADING, /* the answer is decided, its first bytes are being read */
    PHASE_QUEUED,  /* the library has the response */
};

/* How the bytes of an answer reach the connection (sender.c): from memory or a mapping, from a
 * descriptor, through the windows of a readahead, or past the library (bulk.h), whole or in the
 * parts that are brought from elsewhere. */
enum sending { SENDING_MAPPED, SENDING_DESCRIPTOR, SENDING_AHEAD, SENDING_BULK, SENDING_PARTS };

/* What the exchange needs from the request's connection. */
struct transport {
    /* Called on the loop's thread when a wait of the request has ended. */
    void (*resume)(struct request *request);
    /* Whether nothing can reach the client any more. From any thread while the request waits. */
    bool (*is_gone)(const struct connection *connection);
    /* Whether neither side has closed or half-closed the connection. */
    bool (*is_established)(const struct connection *connection);
    /* The names in the client's verified certificate (request_client_names). */
    const char *const *(*client_names)(const struct connection *connection);
};

enum exchange_stage { EXCHANGE_HANDLE, EXCHANGE_PREPARE, EXCHANGE_DIGEST, EXCHANGE_ANSWER };

struct request_state {
    struct request request; /* first: request_state() casts */

    const struct transport *transport; /* NULL without a connection (tests) */
    struct token_memory *token_memory; /* of the loop; NULL: none */
    const struct operation *operation; /* NULL if the request was refused before routing */
    enum exchange_stage stage;
    unsigned step;     /* the next of reply.steps */
    bool not_modified; /* 304 */
    bool broken;       /* where the request ends is in doubt: the connection must be closed */
    bool http_1_0;     /* not 1.1 or later */
    /* A query parameter that a handler read and whose escape is malformed. */
    const char *malformed_parameter;
    uint64_t body_length; /* declared; UINT64_MAX: chunked */
    uint64_t body_received;
    uint64_t body_dropped;
    bool ranged;             /* 206 */
    struct byte_range range; /* of the representation, if exactly one is sent */
    const char *parts_type;  /* the media type with the boundary, if several are sent */
    bool wants_repr;         /* digests (answer_digest.c) */
    bool wants_content;
    bool has_content_sha256;
    uint8_t content_sha256[32]; /* of the body as it is sent */
    struct digesting *digesting;
    bool has_own_id; /* request.id is the client's */
    char trace_id[TRACE_ID_SIZE];
    const struct address *peer; /* of the connection; NULL: unknown */
    const char *forwarded;      /* client.c's, once it is known */
    bool forwarded_is_known;
    uint64_t client_key;   /* client.c's; 0: not known yet */
    int64_t started_ns;    /* clock_ns: the request line was in */
    int64_t received_ns;   /* the whole request was in; 0: not yet */
    int64_t answered_ns;   /* the answer was ready to be sent, if it is a long one; else 0 */
    struct timing *timing; /* NULL: not measured */
    bool has_problem;      /* the reply is a problem, or was one */
    enum problem problem;

    /* For the wire (handler.c, sender.c). */
    enum request_phase phase;
    unsigned
        library_status; /* of the answer that the library gave by itself; 0: unknown, or none */
    bool body_ended;    /* the library has delivered all of the body */
    /* A chunked body, as far as bypass.c could follow the library through its buffer. */
    struct chunks chunks;
    const char *chunks_base; /* where the buffer holds what was read behind the header */
    const char *chunks_at;   /* up to here it was followed; NULL: it cannot be */
    unsigned chunks_turn;    /* mhd.turns then */
    struct intake *intake;   /* NULL: the library reads the body */
    bool chunks_are_whole;   /* the server itself has read the body to its end */
    size_t header_bytes;     /* length of the request line and the header as received */
    uint64_t head_bytes;     /* length of the answer's status line and fields */
    uint8_t *loaded;         /* the answer's bytes, read by a worker */
    enum sending sending;
    bool mapped;             /* sent from the mappings of files, see mapped_files.h */
    struct readahead *ahead; /* of SENDING_AHEAD */
    struct bring_in *bring;  /* brings what is elsewhere (elsewhere.c); NULL: nothing is */
    struct bulk *bulk;       /* of SENDING_BULK and _PARTS, once the body is being sent */
    bool closes;             /* the answer says that the connection is closed */

    uint64_t changes;         /* the count before the answer was made (kept_answers.c) */
    uint64_t key_hash;        /* of the request, if its answer may be kept; else 0 */
    struct kept_answer *kept; /* its answer, held; NULL: it is to be made */

    struct held holds[REQUEST_HOLDS];
    unsigned hold_count;
    struct scratch *scratch;
    size_t inline_used;

    struct job wake;      /* done: resumes the request on its loop */
    struct waiter waiter; /* wakes this request */
    struct job work;      /* request_work's */
    void (*work_run)(struct request *request);
    atomic_bool woken; /* set by request_wake if there is no mailbox (tests) */

    bool method_malformed; /* not a token */
    bool headers_cut;      /* there were more than REQUEST_FIELDS_MAX */
    bool headers_long;     /* they leave too little memory for an answer */
    bool headers_hidden;   /* the library misread some of them (header_block_is_plain) */
    unsigned header_count;
    struct answer answer;

    /* Members from here on are not cleared at the start. */
    struct zt_error load_error; /* set by the worker that fills loaded */
    struct segment answer_segments[REPRESENTATION_SEGMENTS];
    struct field answer_fields[ANSWER_FIELDS];
    struct header_field headers[REQUEST_FIELDS_MAX];
    max_align_t inline_scratch[REQUEST_SCRATCH / sizeof(max_align_t)];
    struct request_pool *pool;        /* where it goes when it ends; NULL: it is freed */
    struct request_state *next_spare; /* in the pool */
    size_t target_length;
    char target[];
};

/* Requests of a loop that have ended and whose memory the next ones take: a request is large, and
 * to allocate it anew costs more than to answer it. All members are 0 at first. */
struct request_pool {
    struct request_state *spare;
    unsigned count;
};

/* Enters a later phase along the edges of the drawing above. */
static inline void request_enter_phase(struct request_state *state, enum request_phase phase)
{
    assert(phase > state->phase);
    assert((state->phase == PHASE_HEADER) == (phase == PHASE_BODY));
    state->phase = phase;
    if (phase == PHASE_QUEUED && state->answer.content_length > AT_ONCE_BYTES)
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

/* A request for a raw target, which is copied; the caller then adds the header fields. NULL if
 * out of memory. */
struct request *request_new(struct server *server, struct mailbox *mailbox, const char *target);

/* The same from a pool, which must outlive the request; of one thread. */
struct request *request_take(struct request_pool *pool, struct server *server,
                             struct mailbox *mailbox, const char *target);

/* Frees the memory that waits in a pool. */
void request_pool_clear(struct request_pool *pool);

/* Releases what the request holds, in reverse order, and frees it, or gives it back to its pool. On
 * the loop's thread. Takes NULL. */
void request_free(struct request *request);

/* Adds a field of the header, whose texts are borrowed. False if there are too many. */
bool request_add_header(struct request *request, struct header_field field);

/* Whether the request only reads and its client is gone: nobody needs the answer any more. From any
 * thread while the request waits, or on the loop's thread. */
bool request_is_abandoned(const struct request *request);

/* The names in the certificate that the client showed, which an authority of tls.client_ca signed:
 * common name of the subject; DNS names, URIs and email addresses of the alternative names. A list
 * that ends with NULL, borrowed until the request ends; NULL without a certificate. On the loop's
 * thread. The first call on a connection takes about 100 us. */
const char *const *request_client_names(const struct request *request);

enum method method_parse(const char *text);
const char *method_name(enum method method);

#endif
