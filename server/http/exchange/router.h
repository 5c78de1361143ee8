/* Routing on raw paths: one constant table (routes.c), in the order of the API page, decides which
 * handler answers. */
#ifndef HTTP_EXCHANGE_ROUTER_H
#define HTTP_EXCHANGE_ROUTER_H

#include "http/exchange/request.h"

/* The query parameters that every operation has. */
#define PARAMETERS_OF_ALL "timing"

/* A piece of a body, in memory. */
struct body_piece {
    const void *bytes;
    size_t length;
    uint64_t offset; /* in the body */
};

/* The scope that a client must have. */
enum needs {
    NEEDS_BY_METHOD, /* read for GET and HEAD, else write */
    NEEDS_READ,
    NEEDS_WRITE,
    NEEDS_ADMIN
};

/* Who may use a route when clients must say who they are. */
enum audience {
    AUDIENCE_CLIENTS, /* known clients, if their scope allows it */
    AUDIENCE_EVERYBODY,
    AUDIENCE_METRICS /* the same, if metrics.public is set; else clients */
};

/* What one method of a route does. Only handle is required. */
struct operation {
    /* Called when the header fields are in and before the body: refuse here (with problem_reply),
     * so that the client need not send the body. */
    void (*begin)(struct request *request);
    /* Called for each piece of the body; if NULL, a body is read and dropped. A refusal made here
     * is sent at the end of the body. */
    void (*receive)(struct request *request, const void *bytes, size_t length);
    /* The same, but on workers while the request waits: everything after the first piece of a long
     * body may go to these two instead of receive. Each gets every piece, in order and one at a
     * time: one stores it, the other hashes it; neither waits for the other. Both or neither are
     * NULL. */
    void (*store)(struct request *request, const struct body_piece *piece);
    void (*digest)(struct request *request, const struct body_piece *piece);
    /* What came of a body that is cut off is not thrown away: it is stored soon, also if no whole
     * piece has come. */
    bool keeps_parts;
    /* Called when everything is in, and again after OUTCOME_WAITING. */
    enum outcome (*handle)(struct request *request);
    enum needs needs;
    /* The names of its query parameters, separated by spaces; NULL: those of all. A request with
     * another one is refused: the client would get other bytes than it asked for. */
    const char *parameters;
};

struct route {
    /* "/v1/models/{model}/objects/{object}"; "{model}" takes slashes too, up to a segment that
     * names a resource of the model; "{repo}" takes two segments, or one if what follows is not
     * there behind two; a last "{path...}" takes the rest of the path. Only a pattern with a slash
     * at its end, that of a folder, matches a path with one. */
    const char *pattern;
    struct operation get;
    struct operation put;
    struct operation post;
    struct operation delete;
    struct operation patch;
    /* A field that every answer at this path has; value NULL: none. */
    struct field field;
    /* Adds to the answer to OPTIONS; may be NULL. */
    void (*options)(struct request *request);
    /* Whether it answers even while the models are still being read. */
    bool needs_no_models;
    /* A page: what its path means is for its scripts to read. The names stay encoded, whatever they
     * are, and a slash at the end means nothing. */
    bool is_page;
    /* The names stay encoded, whatever they are: the handler splits them before it decodes them. */
    bool keeps_names;
    /* The second name, the rest of the path, may have empty segments: the handler tells, in its own
     * words, that there is nothing of such a name. With keeps_names. */
    bool takes_empty_segments;
    /* Unknown query parameters mean nothing. A page's never do. */
    bool ignores_parameters;
    /* Of the Hub's clients, which show the member "error" and the field X-Error-Message of a
     * problem (problem.h). */
    bool is_hub;
    enum audience audience;
};

extern const struct route routes[];
extern const size_t route_count;

/* Whether a raw path matches a pattern; out_names are the values of its {…}, still encoded and
 * never empty. */
bool route_matches(const char *pattern, struct zt_text path,
                   struct zt_text out_names[REQUEST_NAMES]);

/* Finds the route of a request's path and fills it in, with the names still encoded. Replies to
 * nothing: the route stays NULL if there is none. */
void router_find(struct request *request);

/* Finds the operation, and the route first if necessary, and decodes the names. NULL: it has
 * replied with 404, 405 and Allow, 400 invalid-name, 501, or 204 for OPTIONS. */
const struct operation *router_match(struct request *request);

#endif
