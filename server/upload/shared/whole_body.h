/* A body that is a whole file: it is stored piece by piece and hashed meanwhile. The first failure
 * is kept, and the rest of the body discarded. */
#ifndef UPLOAD_SHARED_WHOLE_BODY_H
#define UPLOAD_SHARED_WHOLE_BODY_H

#include "http/exchange/router.h"
#include "upload/shared/body_follower.h"
#include "upload/shared/failure.h"

struct whole_body;

struct whole_body_ops {
    /* Writes bytes where the body has got to. False: failure is set. */
    bool (*store)(struct whole_body *body, const void *bytes, size_t length);
    /* Removes what was stored. On a worker, while nothing reads it. */
    void (*drop)(struct whole_body *body);
    /* Frees the owner, with whole_body_destroy. */
    void (*free)(struct whole_body *body);
};

/* The first member of the structure that owns it, which is the context of the request. */
struct whole_body {
    struct body_follower follower; /* its references are those to the owner */
    const struct whole_body_ops *ops;
    struct digest_field content_digest; /* that the request states */
    struct digest_field repr_digest;
    struct byte_digests digests; /* valid after whole_body_finish */
    bool is_dropped;             /* what was stored is removed, or about to be */
    struct failure failure;
};

/* With one reference, which is the request's: it calls release when it is over. */
void whole_body_init(struct whole_body *body, struct request *request,
                     const struct whole_body_ops *ops, void (*release)(void *owner));
void whole_body_destroy(struct whole_body *body);

/* The refusals that digests get; true: replied. */
bool whole_body_refuse_digests(struct whole_body *body, struct request *request);

/* Before the first byte. stored stays the owner's. False: failure is set. */
bool whole_body_start(struct whole_body *body, struct server *server, struct stored_upload *stored);

/* The functions of a route whose requests have such a context. */
void whole_body_receive(struct request *request, const void *bytes, size_t length);
void whole_body_store(struct request *request, const struct body_piece *piece);
void whole_body_digest(struct request *request, const struct body_piece *piece);

/* Hashes what is left, and compares it with what the request states. On a worker. False: failure is
 * set. */
bool whole_body_finish(struct whole_body *body);

#endif
