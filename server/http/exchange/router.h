/* Routing on raw paths: one constant table in the order of the API page (routes.c) decides what
 * answers. */
#ifndef HTTP_EXCHANGE_ROUTER_H
#define HTTP_EXCHANGE_ROUTER_H

#include "http/exchange/request.h"

/* A part of a body, in memory. */
struct body_piece {
    const void *bytes;
    size_t length;
    uint64_t offset; /* in the body */
};

/* What one method of a route does. Only handle is needed. */
struct operation {
    /* Header fields are in, the body is not: refuse here (by problem_reply), before a byte of it is
     * sent. */
    void (*begin)(struct request *request);
    /* A piece of the body. Without it a body is read and dropped. A refusal made here is answered
     * at its end. */
    void (*receive)(struct request *request, const void *bytes, size_t length);
    /* The same on workers, while the request waits: of a long body what comes after its first piece
     * may be given to these instead of to receive. Each gets every piece, in order and one at a
     * time, to keep it and to hash it; neither waits for the other. Both or none. */
    void (*store)(struct request *request, const struct body_piece *piece);
    void (*digest)(struct request *request, const struct body_piece *piece);
    /* Everything is in. Called again after OUTCOME_WAITING. */
    enum outcome (*handle)(struct request *request);
};

struct route {
    /* "/v1/models/{model}/objects/{object}"; a last "{path...}" takes the rest of the path, slashes
     * included. */
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
};

extern const struct route routes[];
extern const size_t route_count;

/* Whether a raw path has the pattern's shape; out_names get what stands at its {…}, still encoded.
 * A name is never empty. */
bool route_matches(const char *pattern, struct zt_text path,
                   struct zt_text out_names[REQUEST_NAMES]);

/* Finds the route for a request's path and fills route and names, or replies with the problem (404,
 * 405 with Allow, 400 invalid-name, 501, and 204 for OPTIONS). */
const struct operation *router_match(struct request *request);

#endif
