/* A request as handlers see it: method, decoded names, query, header fields, and the reply to fill
 * in.
 *
 * A request belongs to one loop, and only that loop's thread may use it; other threads may only
 * call request_wake. Handlers never see libmicrohttpd. */
#ifndef HTTP_EXCHANGE_REQUEST_H
#define HTTP_EXCHANGE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/access.h"
#include "base/server.h"
#include "base/workers.h"
#include "http/exchange/body_piece.h"
#include "http/exchange/representation.h"
#include "http/fields/header_field.h"
#include "zt/status.h"
#include "zt/text.h"

enum method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_PUT,
    METHOD_POST,
    METHOD_DELETE,
    METHOD_PATCH,
    METHOD_QUERY, /* RFC 10008: safe like GET, with a body that describes what is wanted */
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_CONNECT,
    METHOD_UNKNOWN
};

#define REQUEST_NAMES   4
#define REQUEST_HOLDS   10
#define REQUEST_ID_SIZE 129

struct connection; /* see http/wire/connections.h */
struct generation;
struct json_body; /* see json_body.h */
struct request;
struct route;
struct stored_file; /* see tree/stored_file.h */

/* Receives the body of a request. */
struct body_receiver {
    /* Called for each piece, in order and never concurrently. A failure is answered at the end of
     * the body; until then the receiver discards the rest. */
    void (*receive)(struct request *request, const struct body_piece *piece);
    /* receive may be called on a worker while the request waits: everything after the first piece
     * of a long body is then read past the HTTP library, in large pieces. */
    bool on_workers;
    /* A truncated body keeps its effect: received bytes are passed on soon, even if they do not
     * fill a piece. */
    bool keeps_parts;
};

struct request {
    struct server *server;
    struct mailbox *mailbox; /* of the request's loop; NULL in some tests */
    struct connection *connection;
    const struct access *access; /* access rights when the request began */
    const struct grant *grant;   /* the client's rights; NULL if clients need not be known */
    const char *client;          /* name in the tokens file, else in the certificate; or NULL */
    enum method method;
    const struct route *route;
    /* The values of the {…} in the route's pattern, percent-decoded: valid UTF-8 without NUL.
     * {path...} is one text including its slashes. They stay encoded on routes with is_page or
     * keeps_names, and may contain NUL with takes_any_names. */
    struct zt_text names[REQUEST_NAMES];
    /* The revision at which the first name is read ("weights@v1"), decoded; NULL: the current
     * state. whole_name is the first name with its revision, in case the model is called so. */
    struct zt_text revision;
    struct zt_text whole_name;
    struct revision_search *revision_search; /* see http/revisions/revision.h */
    const char *commit;                      /* ZT-Commit of the answer; NULL: none */
    char id[REQUEST_ID_SIZE];
    struct representation reply;
    bool replied; /* the reply is final: no handler or step is called again */
    /* The generation that contains the reply's bytes, held by the request (model_resolve), and a
     * function that returns true if its files are unchanged since they were opened. NULL: none. */
    struct generation *generation;
    bool (*is_unwritten)(const struct generation *generation);
    /* The same for a stored file that need not be a model (api/stored_reply.h). */
    const struct stored_file *file;
    bool (*is_file_unwritten)(const struct stored_file *file);
    /* Set by begin. NULL: a body is read and dropped. */
    const struct body_receiver *receiver;
    struct json_body *json_body; /* see json_body.h */
    /* For the handler: set by begin or by the first call of handle, freed through request_hold. */
    void *context;
};

/* Returns the raw target as the client sent it, NUL-terminated. */
const char *request_target(const struct request *request);

/* Returns the value of a header field, or NULL. The values of a repeated field are joined by ",
 * ". */
const char *request_header(struct request *request, const char *name);

/* Returns the field of the header at that index, in the order in which they were received. Returns
 * false if there are fewer. The texts live as long as the request. */
bool request_header_at(const struct request *request, unsigned index,
                       struct header_field *out_field);

/* Finds the nth query parameter (from 0) with this name and percent-decodes it ('+' stays '+').
 * Returns false if it is absent or has a malformed escape; in the latter case a 400 replaces the
 * handler's reply. name must live as long as the request. */
bool request_query(struct request *request, const char *name, unsigned nth,
                   struct zt_text *out_value);

/* Returns the declared length of the body: UINT64_MAX if it is chunked, 0 if there is none. */
uint64_t request_body_length(const struct request *request);

/* Returns a number that identifies the client, so that workers are shared fairly between clients
 * (struct job). It is derived from the client's name, or else from its address (for IPv6, the first
 * 64 bits). Never 0. */
uint64_t request_client_key(const struct request *request);

/* Returns a NUL-terminated copy of a text that lives as long as the request; NULL only if out of
 * memory. */
char *request_copy(struct request *request, const char *text, size_t length);

/* Return text and memory that live as long as the request; NULL only if out of memory. */
char *request_print(struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *request_allocate(struct request *request, size_t length);

/* Return cleared memory that lives as long as the request, or NULL if they have replied that the
 * server is out of memory. request_new_context makes it the request's context. */
void *request_new_memory(struct request *request, size_t size);
static inline void *request_new_context(struct request *request, size_t size)
{
    request->context = request_new_memory(request, size);
    return request->context;
}

/* Keeps an object until the last byte is sent or the connection is gone. Then release(thing) is
 * called on the loop's thread, in reverse order of the calls. */
void request_hold(struct request *request, void *thing, void (*release)(void *thing));

/* Ends an OUTCOME_WAITING. May be called on any thread, once per wait. */
void request_wake(struct request *request);

/* Returns a waiter that wakes this request. There is only one, so a request can wait for only one
 * result. */
struct waiter *request_waiter(struct request *request);

/* Runs work(request) on a worker while the request waits, for steps whose result is not shared. The
 * step calls this once, returns its result, and must record in its own state that the work was
 * done. work may use only memory that the waiting request owns. If the client is gone before the
 * work starts, the work is skipped and the request ends without another call of the step. */
enum outcome request_work(struct request *request, void (*work)(struct request *request));

/* Does the same for work that uses only local memory and files: it does not queue behind work that
 * waits for a store. */
enum outcome request_work_here(struct request *request, void (*work)(struct request *request));

/* Does the same as request_work, for work that may take longer than about 10 ms. */
enum outcome request_work_long(struct request *request, void (*work)(struct request *request));

/* Replies with a short JSON text, which it copies. */
void reply_json(struct request *request, unsigned status, const char *text, size_t length);
/* Replies without a body. */
void reply_empty(struct request *request, unsigned status);

#endif
