/* Routes raw paths. In one constant table (routes.c, or s3_routes.c for the S3 API), the first
 * pattern that matches decides which handler answers. */
#ifndef HTTP_EXCHANGE_ROUTER_H
#define HTTP_EXCHANGE_ROUTER_H

#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* The query parameters that all operations have. */
#define PARAMETERS_OF_ALL "timing"

/* The scope that the client needs. */
enum needs {
    NEEDS_BY_METHOD, /* read for GET and HEAD, else write */
    NEEDS_READ,
    NEEDS_WRITE,
    NEEDS_ADMIN
};

/* Which clients may use a route if clients must authenticate. */
enum audience {
    AUDIENCE_CLIENTS, /* known clients, if their scope allows it */
    AUDIENCE_EVERYBODY,
    AUDIENCE_METRICS /* all clients if metrics.public is set; else known clients */
};

/* The implementation of one method of a route. Only handle is required. */
struct operation {
    /* Called after the header fields and before the body. It may refuse the request
     * (problem_reply), so that the client need not send the body, or set the body's receiver. */
    void (*begin)(struct request *request);
    /* Called when the request is complete, and again after OUTCOME_WAITING. */
    enum outcome (*handle)(struct request *request);
    enum needs needs;
    /* The body only describes what the client wants to read. Preconditions, ranges, digests and the
     * rules for web pages apply as they do for GET. Set for every QUERY. */
    bool is_read;
    /* handle answers at once and ignores the body. Clients probe some of these paths with a
     * complete body and use the status, so the length must not change the answer; if a body is too
     * long to be dropped, the answer is sent before it is read. There must be no receiver. */
    bool ignores_body;
    /* The names of its query parameters, separated by spaces; NULL: only the common ones. A request
     * with any other parameter is refused, because the client would get other bytes than it asked
     * for. */
    const char *parameters;
};

struct route {
    /* "/v1/models/{model}/objects/{object}". "{model}" also matches slashes, up to a segment that
     * names a resource of the model. "{repo}" matches two segments, or one if the pattern does not
     * match after two. A final "{path...}" matches the rest of the path. A path with a trailing
     * slash matches only a pattern that has one, which denotes a folder. */
    const char *pattern;
    const char *name; /* in the log and the metrics; NULL: the pattern */
    struct operation get;
    struct operation put;
    struct operation post;
    struct operation delete;
    struct operation patch;
    struct operation query;
    /* Chooses the operation of a path whose requests differ in their query, instead of the six
     * above. Returns NULL if it has replied. NULL: the method decides alone. */
    const struct operation *(*choose)(struct request *request);
    /* A field of every answer at this path; value NULL: none. */
    struct field field;
    /* Adds fields to the answer to OPTIONS; may be NULL. */
    void (*options)(struct request *request);
    /* The route answers even before the models have been read. */
    bool needs_no_models;
    /* A page whose scripts interpret the path. The names stay encoded, valid or not, and a trailing
     * slash is ignored. */
    bool is_page;
    /* The names stay encoded, valid or not, because the handler splits them before it decodes
     * them. */
    bool keeps_names;
    /* The pattern has two names, and the second, the rest of the path, may have empty segments: the
     * handler itself replies that no such name exists. Requires keeps_names. */
    bool takes_empty_segments;
    /* The names after the first are objects and components, which may be empty or contain U+0000.
     * The handler looks them up and refuses names that do not exist. A path with a trailing slash
     * has an empty last name. */
    bool takes_any_names;
    /* Unknown query parameters are ignored, as they always are for a page. */
    bool ignores_parameters;
    enum problem_form problems;
    enum audience audience;
};

extern const struct route routes[];
extern const size_t route_count;
/* The table for requests below s3.path, or that arrived at s3.listen. Its patterns begin after
 * s3.path. */
extern const struct route s3_routes[];
extern const size_t s3_route_count;

/* Returns true if the request is for the S3 API. Call it after router_find. */
static inline bool request_is_s3(const struct request *request)
{
    return request->route != NULL && request->route->problems == PROBLEM_FORM_S3;
}

/* Returns the name of a route in the log and the metrics. */
static inline const char *route_name(const struct route *route)
{
    return route->name != NULL ? route->name : route->pattern;
}

/* Returns true if a raw path matches a pattern; out_names are the values of its {…}, still encoded.
 * Only {object} and {component} may be empty. */
bool route_matches(const char *pattern, struct zt_text path,
                   struct zt_text out_names[REQUEST_NAMES]);

/* Returns the operation for a method of a route; its handle is NULL if the route does not have the
 * method. */
const struct operation *route_operation(const struct route *route, enum method method);

/* Returns true for GET, HEAD and every operation that is_read. Call it after router_find. */
bool request_is_read(const struct request *request);

/* Finds the raw path that the patterns are compared with: without the query, base_path and s3.path.
 * Returns false if the target is not a path. */
bool router_path(const struct request *request, struct zt_text *out_path);

/* Finds the route of a request's path and sets it, with the names still encoded. Never replies: the
 * route stays NULL if there is none. */
void router_find(struct request *request);

/* Finds the operation, if necessary after the route, and decodes the names. Returns NULL if it has
 * replied with 404, 405 and Allow, 400 invalid-name, 501, or 204 for OPTIONS. */
const struct operation *router_match(struct request *request);

#endif
