/* PUT /{repo}.git/info/lfs/objects/{oid}: the bytes of an object, hashed while they arrive, which
 * become a staged object if they have the SHA-256 that they are called by. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/lfs_body.h"
#include "hub/write/staged_objects.h"
#include "upload/shared/body_follower.h"
#include "upload/shared/write_checks.h"

struct lfs_put {
    struct body_follower follower; /* its references are those to this structure */
    struct server *server;
    struct lfs_permit permit;
    uint8_t sha256[32];           /* that it must have */
    struct staged_object *object; /* NULL once it is finished or abandoned */
    struct digest_field content_digest;
    struct digest_field repr_digest;
    struct byte_digests digests;
    struct lfs_body body;
    bool is_dropped; /* what was stored is removed, or about to be */
    bool was_run;
    bool is_done;
    struct failure failure; /* kept while the rest of the body is discarded */
};

/* --- life --- */

static void free_put(void *owner)
{
    struct lfs_put *put = owner;

    lfs_body_end(&put->body, put->is_done);
    staged_abandon(put->object);
    byte_digests_free(&put->digests);
    body_follower_destroy(&put->follower);
    free(put);
}

static void release(void *thing)
{
    body_follower_release(&((struct lfs_put *)thing)->follower);
}

static struct lfs_put *new_put(struct request *request, const struct lfs_permit *permit)
{
    struct lfs_put *put = calloc(1, sizeof(*put));

    if (put == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    body_follower_init(&put->follower, put, free_put);
    request->context = put;
    request_hold(request, put, release);
    put->server = request->server;
    put->permit = *permit;
    put->follower.client = request_client_key(request);
    return put;
}

/* --- before the body --- */

static bool start(struct lfs_put *put)
{
    const struct staged_origin origin = {put->permit.repo, put->permit.client, put->permit.length};
    struct body_follower *follower = &put->follower;
    const bool with_sha512 = put->content_digest.has_sha512 || put->repr_digest.has_sha512;

    if (!byte_digests_init(&put->digests, with_sha512, false))
        return failure_no_memory(&put->failure, "hashing");
    put->object = staged_begin(put->server, &origin, &put->failure);
    if (put->object == NULL)
        return false;
    follower->workers = put->server->workers;
    follower->store = put->server->store;
    follower->stored = staged_file(put->object);
    follower->sink = (struct zt_sink){byte_digests_take, &put->digests};
    return true;
}

void lfs_put_begin(struct request *request)
{
    struct lfs_permit permit;
    struct lfs_put *put;

    if (hub_refuse_read_only(request) || !lfs_permit_read(request, false, &permit) ||
        lfs_body_refuse_form(request) || write_refuse_large(request, permit.length) ||
        lfs_body_refuse_length(request, permit.length))
        return;
    put = new_put(request, &permit);
    if (put == NULL || write_refuse_digests(request, &put->content_digest, &put->repr_digest))
        return;
    if (!lfs_oid_parse(zt_text_from(permit.oid), put->sha256))
        hub_refuse(request, PROBLEM_INVALID_REQUEST, NULL, "the oid is no SHA-256");
    else if (!lfs_body_refuse_crowd(request, &permit, permit.length, &put->body) && !start(put))
        hub_refuse_failure(request, &put->failure, 0);
}

/* --- the body --- */

static void drop_stored(void *context)
{
    struct lfs_put *put = context;

    body_follower_stop(&put->follower);
    staged_abandon(put->object);
    put->object = NULL;
}

/* What was stored of a refused body goes at once: a full disk should not wait for a slow client.
 * That is impossible while a worker hashes; the next piece of the body tries again. */
static void drop(struct lfs_put *put)
{
    assert(put->failure.is_set);
    if (!put->is_dropped)
        put->is_dropped = body_follower_run(&put->follower, drop_stored, put);
}

static bool refuse_other_length(struct lfs_put *put)
{
    return failure_refuse(&put->failure, PROBLEM_SIZE_MISMATCH, "this address is for %llu bytes",
                          (unsigned long long)put->permit.length);
}

static bool store_piece(struct lfs_put *put, const void *bytes, size_t length)
{
    const uint64_t received = body_follower_received(&put->follower);

    if (length > put->permit.length - received)
        return refuse_other_length(put);
    if (!staged_write(put->object, received, bytes, length, &put->failure))
        return false;
    lfs_body_note(&put->body, received + length);
    return true;
}

/* The first piece is small and is hashed at once, so that later pieces need not be read back even
 * if workers get them (lfs_put_digest). */
void lfs_put_receive(struct request *request, const void *bytes, size_t length)
{
    struct lfs_put *put = request->context;
    const bool is_first = body_follower_received(&put->follower) == 0;

    if (put->failure.is_set) {
        drop(put);
        return;
    }
    if (!store_piece(put, bytes, length))
        return;
    if (is_first)
        body_follower_take(&put->follower, 0, bytes, length);
    body_follower_advance(&put->follower, length);
}

void lfs_put_store(struct request *request, const struct body_piece *piece)
{
    struct lfs_put *put = request->context;

    if (put->failure.is_set)
        drop(put);
    else if (store_piece(put, piece->bytes, piece->length))
        body_follower_count(&put->follower, piece->length);
}

void lfs_put_digest(struct request *request, const struct body_piece *piece)
{
    struct lfs_put *put = request->context;

    body_follower_take(&put->follower, piece->offset, piece->bytes, piece->length);
}

/* --- the end, on a worker --- */

static bool check_digests(struct lfs_put *put)
{
    struct zt_error error;

    if (body_follower_received(&put->follower) != put->permit.length)
        return refuse_other_length(put);
    if (body_follower_finish(&put->follower, &error) != ZT_OK)
        return failure_of_store(&put->failure, &error);
    byte_digests_finish(&put->digests);
    if (memcmp(put->digests.sha256.bytes, put->sha256, sizeof(put->sha256)) != 0)
        return failure_refuse(&put->failure, PROBLEM_DIGEST_MISMATCH,
                              "the body does not have the SHA-256 that its address names");
    if (!byte_digests_agree(&put->digests, &put->content_digest) ||
        !byte_digests_agree(&put->digests, &put->repr_digest))
        return failure_refuse(&put->failure, PROBLEM_DIGEST_MISMATCH,
                              "the body does not have the digest of Content-Digest or Repr-Digest");
    return true;
}

static void work(struct request *request)
{
    struct lfs_put *put = request->context;

    put->is_done = check_digests(put) && staged_finish(put->object, put->sha256, &put->failure);
    if (put->is_done)
        put->object = NULL;
    lfs_body_end(&put->body, put->is_done);
}

enum outcome lfs_put_handle(struct request *request)
{
    struct lfs_put *put = request->context;

    if (!put->was_run) {
        put->was_run = true;
        if (!put->failure.is_set)
            return request_work_long(request, work);
    }
    if (!put->is_done)
        return hub_refuse_failure(request, &put->failure, 0);
    reply_empty(request, 200);
    return OUTCOME_READY;
}
