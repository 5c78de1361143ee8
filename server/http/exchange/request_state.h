/* What the exchange and the connection know of a request and handlers do not: header fields,
 * memory, what is held, how far it has come. One allocation, the target's text behind it. */
#ifndef HTTP_EXCHANGE_REQUEST_STATE_H
#define HTTP_EXCHANGE_REQUEST_STATE_H

#include <stdatomic.h>

#include "http/exchange/exchange.h"
#include "http/exchange/request.h"
#include "http/exchange/router.h"
#include "http/fields/ranges.h"

/* More header fields than this are 431. */
#define REQUEST_FIELDS_MAX 100
/* Fields an answer may have beyond those of its representation. */
#define ANSWER_FIELDS (REPRESENTATION_FIELDS + 14)
/* Enough for the texts of an ordinary answer; what does not fit is allocated on its own. */
#define REQUEST_SCRATCH 512

/* 32 digits, W3C Trace Context section 3.2.2.3. */
#define TRACE_ID_SIZE 33

/* One field of the header, borrowed from whoever read it for as long as the request lives. */
struct header_field {
    const char *name;
    const char *value;
    uint32_t name_length;
    uint32_t value_length;
};

struct digesting;

struct held {
    void *thing;
    void (*release)(void *thing);
};

/* A piece of memory of the request's own, in a list. */
struct scratch {
    struct scratch *next;
    /* Aligned for whatever malloc is. */
    max_align_t bytes[];
};

/* How far the connection is: begun with the first call of the library's handler, queued when it has
 * its response. */
enum request_phase { PHASE_HEADER, PHASE_BODY, PHASE_LOADING, PHASE_QUEUED };

/* How an answer's bytes get to the connection (sender.c): from where they lie in memory, from a
 * descriptor, or through the windows of a readahead. */
enum sending { SENDING_MAPPED, SENDING_DESCRIPTOR, SENDING_AHEAD };

enum exchange_stage { EXCHANGE_HANDLE, EXCHANGE_PREPARE, EXCHANGE_DIGEST, EXCHANGE_ANSWER };

struct request_state {
    struct request request; /* first, so that one is the other */

    const struct operation *operation; /* NULL when the request was refused before it had one */
    enum exchange_stage stage;
    unsigned step;     /* of reply.steps, the next */
    bool not_modified; /* 304: the client has it */
    bool broken;       /* where the request ends is in doubt: the connection must not go on */
    bool http_1_0;     /* not 1.1 or later */
    /* A query parameter that was asked for and has an escape which is none. */
    const char *malformed_parameter;
    uint64_t body_length; /* declared; UINT64_MAX: chunked */
    uint64_t body_received;
    uint64_t body_dropped;
    struct byte_range range; /* of the representation, when one is sent */
    bool ranged;             /* 206 */
    const char *parts_type;  /* several ranges: the media type with the boundary */
    bool wants_repr;         /* digests (answer_digest.c) */
    bool wants_content;
    bool has_content_sha256;
    uint8_t content_sha256[32]; /* of the body as it is sent */
    struct digesting *digesting;
    char trace_id[TRACE_ID_SIZE];
    uint64_t started_ns;

    /* The connection's (mhd.c, sender.c). */
    enum request_phase phase;
    size_t header_bytes; /* of the request line and the header, as they came */
    uint64_t head_bytes; /* of the answer's status line and fields */
    uint8_t *loaded;     /* segments that were read by a worker */
    enum sending sending;
    struct readahead *ahead; /* of SENDING_AHEAD */

    struct held holds[REQUEST_HOLDS];
    unsigned hold_count;
    struct scratch *scratch;
    size_t inline_used;

    struct job wake;      /* done: resumes the request on its loop */
    struct waiter waiter; /* wakes this request */
    struct job work;      /* request_work's */
    void (*work_run)(struct request *request);
    /* Set at the loop by the connection; called on the loop's thread when a wait has ended. */
    void (*resume)(struct request *request);
    atomic_bool woken; /* without a loop (tests): all that request_wake does */

    bool headers_cut;    /* there were more than fit */
    bool headers_hidden; /* the library took something in them for what it is not */
    unsigned header_count;
    struct answer answer;

    /* From here on nothing is cleared. */
    struct zt_error load_error; /* of sender.c: set by the worker that fills loaded */
    struct segment answer_segments[REPRESENTATION_SEGMENTS];
    struct field answer_fields[ANSWER_FIELDS];
    struct header_field headers[REQUEST_FIELDS_MAX];
    max_align_t inline_scratch[REQUEST_SCRATCH / sizeof(max_align_t)];
    size_t target_length;
    char target[];
};

static inline struct request_state *request_state(struct request *request)
{
    return (struct request_state *)request;
}

static inline const struct request_state *request_state_const(const struct request *request)
{
    return (const struct request_state *)request;
}

/* A request for a raw target, which is copied. NULL when memory is out. Header fields are added
 * after it. */
struct request *request_new(struct server *server, struct loop *loop, const char *target);

/* Releases what is held, in reverse order, and frees. On the loop's thread. Takes NULL. */
void request_free(struct request *request);

/* Adds a field of the header; the texts are borrowed. False when there are too many. */
bool request_add_header(struct request *request, struct header_field field);

/* Whether nobody is there any more to take the answer. What changes something is done all the same.
 * From any thread while the request waits, or on the loop's. */
bool request_is_abandoned(const struct request *request);

enum method method_parse(const char *text);
const char *method_name(enum method method);

#endif
