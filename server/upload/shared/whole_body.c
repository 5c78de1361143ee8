#include "upload/shared/whole_body.h"

#include <assert.h>

#include "base/server.h"
#include "http/exchange/client.h"
#include "upload/shared/write_checks.h"

/* --- life --- */

static void free_owner(void *owner)
{
    struct whole_body *body = owner;

    body->ops->free(body);
}

void whole_body_init(struct whole_body *body, struct request *request,
                     const struct whole_body_ops *ops, void (*release)(void *owner))
{
    body_follower_init(&body->follower, body, free_owner);
    body->follower.client = request_client_key(request);
    body->ops = ops;
    request->context = body;
    request_hold(request, body, release);
}

void whole_body_destroy(struct whole_body *body)
{
    byte_digests_free(&body->digests);
    body_follower_destroy(&body->follower);
}

/* --- before the body --- */

bool whole_body_refuse_digests(struct whole_body *body, struct request *request)
{
    return write_refuse_digests(request, &body->content_digest, &body->repr_digest);
}

bool whole_body_start(struct whole_body *body, struct server *server, struct stored_upload *stored)
{
    const bool with_sha512 = body->content_digest.has_sha512 || body->repr_digest.has_sha512;

    if (!byte_digests_init(&body->digests, with_sha512, false))
        return failure_no_memory(&body->failure, "hashing");
    body->follower.workers = server->workers;
    body->follower.store = server->store;
    body->follower.stored = stored;
    body->follower.sink = (struct zt_sink){byte_digests_take, &body->digests};
    return true;
}

/* --- the body --- */

static void drop_stored(void *context)
{
    struct whole_body *body = context;

    body_follower_stop(&body->follower);
    body->ops->drop(body);
}

/* Removes what was stored of a refused body at once: a full disk should not wait for a slow client.
 * That is impossible while a worker hashes; the next piece of the body tries again. */
static void drop(struct whole_body *body)
{
    assert(body->failure.is_set);
    if (!body->is_dropped)
        body->is_dropped = body_follower_run(&body->follower, drop_stored, body);
}

/* The first piece is small and is hashed at once, so that later pieces need not be read back even
 * if workers get them (whole_body_digest). */
void whole_body_receive(struct request *request, const void *bytes, size_t length)
{
    struct whole_body *body = request->context;
    const bool is_first = body_follower_received(&body->follower) == 0;

    if (body->failure.is_set) {
        drop(body);
        return;
    }
    if (!body->ops->store(body, bytes, length))
        return;
    if (is_first)
        body_follower_take(&body->follower, 0, bytes, length);
    body_follower_advance(&body->follower, length);
}

void whole_body_store(struct request *request, const struct body_piece *piece)
{
    struct whole_body *body = request->context;

    if (body->failure.is_set)
        drop(body);
    else if (body->ops->store(body, piece->bytes, piece->length))
        body_follower_count(&body->follower, piece->length);
}

void whole_body_digest(struct request *request, const struct body_piece *piece)
{
    struct whole_body *body = request->context;

    body_follower_take(&body->follower, piece->offset, piece->bytes, piece->length);
}

/* --- the end --- */

static bool check_digest(struct whole_body *body, const struct digest_field *stated,
                         const char *field)
{
    return byte_digests_agree(&body->digests, stated) ||
           failure_refuse(&body->failure, PROBLEM_DIGEST_MISMATCH,
                          "the body does not have the digest of %s", field);
}

bool whole_body_finish(struct whole_body *body)
{
    struct zt_error error;

    if (body_follower_finish(&body->follower, &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    byte_digests_finish(&body->digests);
    return check_digest(body, &body->content_digest, "Content-Digest") &&
           check_digest(body, &body->repr_digest, "Repr-Digest");
}
