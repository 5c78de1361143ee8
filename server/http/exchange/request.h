/* A request as handlers see it: method, decoded names, query, header fields, and the reply to fill
 * in.
 *
 * A request belongs to one loop and only that loop's thread touches it; other threads may only call
 * request_wake. Handlers never see libmicrohttpd. */
#ifndef HTTP_EXCHANGE_REQUEST_H
#define HTTP_EXCHANGE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/access.h"
#include "base/server.h"
#include "base/workers.h"
#include "http/exchange/representation.h"
#include "zt/status.h"
#include "zt/text.h"

enum method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_PUT,
    METHOD_POST,
    METHOD_DELETE,
    METHOD_PATCH,
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_CONNECT,
    METHOD_QUERY,
    METHOD_UNKNOWN
};

#define REQUEST_NAMES   4
#define REQUEST_HOLDS   9
#define REQUEST_ID_SIZE 129

struct connection; /* see http/wire/connections.h */
struct generation;
struct route;
struct stored_file; /* see tree/stored_file.h */

struct request {
    struct server *server;
    struct mailbox *mailbox; /* of its loop; NULL in tests that have none */
    struct connection *connection;
    const struct access *access; /* who may do what, as of the beginning of the request */
    const struct grant *grant;   /* what the client may do; NULL if clients need not be known */
    const char *client; /* its name in the tokens file, or else in its certificate; or NULL */
    enum method method;
    const struct route *route;
    /* The values of the {…} in the route's pattern, percent-decoded: valid UTF-8 without NUL.
     * {path...} is one text with its slashes. Of a page (route.is_page) they are as they came. */
    struct zt_text names[REQUEST_NAMES];
    char id[REQUEST_ID_SIZE];
    struct representation reply;
    bool replied; /* the reply is final: neither the handler nor a step is called again */
    /* The generation that the reply's bytes come from, held by the request (model_resolve), and a
     * function that tells whether its files are unchanged since they were opened. NULL: none. */
    struct generation *generation;
    bool (*is_unwritten)(const struct generation *generation);
    /* The same of a stored file that need not be a model (api/stored_reply.h). */
    const struct stored_file *file;
    bool (*is_file_unwritten)(const struct stored_file *file);
    /* For the handler: set by begin or the first call, freed through request_hold. */
    void *context;
};

/* The raw target as the client sent it, NUL-terminated. */
const char *request_target(const struct request *request);

/* The value of a header field, or NULL. The values of a repeated field are joined by ", ". */
const char *request_header(struct request *request, const char *name);

/* The nth (from 0) query parameter of that name, percent-decoded ('+' stays '+'). False if it is
 * absent or has a malformed escape; in the latter case the handler's reply is replaced by a 400.
 * name is borrowed for as long as the request lives. */
bool request_query(struct request *request, const char *name, unsigned nth,
                   struct zt_text *out_value);

/* The declared length of the body: UINT64_MAX if it is chunked, 0 if there is none. */
uint64_t request_body_length(const struct request *request);

/* A copy of a text, terminated by NUL, that lives as long as the request. NULL only if out of
 * memory. */
char *request_copy(struct request *request, const char *text, size_t length);

/* Text and memory that live as long as the request. NULL only if out of memory. */
char *request_print(struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *request_allocate(struct request *request, size_t length);

/* Keeps a thing until the last byte is sent or the connection is gone. Then release(thing) is
 * called on the loop's thread; things are released in reverse order. */
void request_hold(struct request *request, void *thing, void (*release)(void *thing));

/* Ends an OUTCOME_WAITING. From any thread, once for each wait. */
void request_wake(struct request *request);

/* A waiter that wakes this request. There is only one: it can wait for one result at a time. */
struct waiter *request_waiter(struct request *request);

/* Runs work(request) on a worker while the request waits, for steps whose result is not shared. The
 * step calls this once, returns its result, and must remember in its own state that the work was
 * done. work must touch only what the waiting request owns. If the client is gone by then, the work
 * is skipped and the request ends without another call of its step. */
enum outcome request_work(struct request *request, void (*work)(struct request *request));

/* The same, for work that touches nothing but memory and files of this machine: it does not queue
 * behind what waits for a store. */
enum outcome request_work_here(struct request *request, void (*work)(struct request *request));

/* The same as request_work, for work that may take longer than about 10 ms. */
enum outcome request_work_long(struct request *request, void (*work)(struct request *request));

/* Replies with a short JSON text, which is copied. */
void reply_json(struct request *request, unsigned status, const char *text, size_t length);
/* Replies without a body. */
void reply_empty(struct request *request, unsigned status);

#endif
