/* A request as handlers see it: method, decoded names, query, header fields, and the reply to fill.
 *
 * A request belongs to one loop and is touched on that loop's thread alone; only request_wake may
 * be called from others. Handlers never see libmicrohttpd. */
#ifndef HTTP_EXCHANGE_REQUEST_H
#define HTTP_EXCHANGE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/server.h"
#include "base/workers.h"
#include "http/exchange/representation.h"
#include "zt/status.h"

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
#define REQUEST_HOLDS   6
#define REQUEST_ID_SIZE 129

struct connection; /* mhd.c's */
struct route;

struct request {
    struct server *server;
    struct loop *loop;
    struct connection *connection;
    enum method method;
    const struct route *route;
    /* What stands at the {…} of the route's pattern, percent-decoded: valid UTF-8 without NUL.
     * {path...} is raw-decoded as one text with its slashes. */
    struct zt_text names[REQUEST_NAMES];
    char id[REQUEST_ID_SIZE];
    struct representation reply;
    bool replied; /* a handler or step has settled the reply as it stands: no further step */
    /* The generation a model route is about, held by the request (model_resolve). */
    struct generation *generation;
    /* The handler's own: set at begin or on the first call, freed through request_hold. */
    void *context;
};

/* The raw target as the client sent it, NUL-terminated. */
const char *request_target(const struct request *request);

/* First value of a header field, or NULL. A field that may be a list and occurs several times is
 * joined by ", ". */
const char *request_header(struct request *request, const char *name);

/* A query parameter, percent-decoded ('+' stays '+'). False when it is absent, or has a malformed
 * escape: then whatever the handler replies with becomes 400. nth counts from 0 for repeated ones.
 * name is borrowed as long as the request lives. */
bool request_query(struct request *request, const char *name, unsigned nth,
                   struct zt_text *out_value);

/* Declared length of the body: UINT64_MAX for a chunked one, 0 for none. */
uint64_t request_body_length(const struct request *request);

/* Text and memory that live as long as the request. NULL only when memory is out. */
char *request_print(struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *request_allocate(struct request *request, size_t length);

/* Keeps a thing until the last byte is sent, or the connection is gone: release(thing) is then
 * called, in reverse order. Always on the loop's thread. */
void request_hold(struct request *request, void *thing, void (*release)(void *thing));

/* Ends an OUTCOME_WAITING. From any thread, once. */
void request_wake(struct request *request);

/* A waiter that wakes this request; one at a time. */
struct waiter *request_waiter(struct request *request);

/* Runs work(request) on a worker while the request waits; for steps without anybody to share the
 * result with. The step returns what this returns; it is to call it once and to know by its own
 * state that the work was done. work must touch only what the waiting request owns. Where nobody is
 * there any more to take the answer it is left out: the request ends without its step being called
 * again. */
enum outcome request_work(struct request *request, void (*work)(struct request *request));

/* The same for work that may take longer than about 10 ms. */
enum outcome request_work_long(struct request *request, void (*work)(struct request *request));

/* Answers with a short JSON text, which is copied. */
void reply_json(struct request *request, unsigned status, const char *text, size_t length);
/* No body (204, 201 without one). */
void reply_empty(struct request *request, unsigned status);

#endif
