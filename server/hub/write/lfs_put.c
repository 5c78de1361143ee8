/* PUT /{repo}.git/info/lfs/objects/{oid}: the bytes of an object, hashed while they arrive, which
 * become a staged object if they have the SHA-256 that they are called by. */
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/lfs_body.h"
#include "hub/write/staged_objects.h"
#include "upload/shared/whole_body.h"
#include "upload/shared/write_checks.h"

struct lfs_put {
    struct whole_body body;
    struct server *server;
    struct lfs_permit permit;
    uint8_t sha256[32];           /* that it must have */
    struct staged_object *object; /* NULL once it is finished or abandoned */
    struct lfs_body counted;
    bool was_run;
    bool is_done;
};

/* --- the body --- */

static bool refuse_other_length(struct lfs_put *put)
{
    return failure_refuse(&put->body.failure, PROBLEM_SIZE_MISMATCH,
                          "this address is for %llu bytes", (unsigned long long)put->permit.length);
}

static bool store_piece(struct whole_body *body, const void *bytes, size_t length)
{
    struct lfs_put *put = (struct lfs_put *)body;
    const uint64_t received = body_follower_received(&body->follower);

    if (length > put->permit.length - received)
        return refuse_other_length(put);
    if (!staged_write(put->object, received, bytes, length, &body->failure))
        return false;
    lfs_body_note(&put->counted, received + length);
    return true;
}

static void drop_stored(struct whole_body *body)
{
    struct lfs_put *put = (struct lfs_put *)body;

    staged_abandon(put->object);
    put->object = NULL;
}

/* --- life --- */

static void free_put(struct whole_body *body)
{
    struct lfs_put *put = (struct lfs_put *)body;

    lfs_body_end(&put->counted, put->is_done);
    staged_abandon(put->object);
    whole_body_destroy(body);
    free(put);
}

static void release(void *thing)
{
    body_follower_release(&((struct lfs_put *)thing)->body.follower);
}

static const struct whole_body_ops body_ops = {
    .store = store_piece, .drop = drop_stored, .free = free_put};

static struct lfs_put *new_put(struct request *request, const struct lfs_permit *permit)
{
    struct lfs_put *put = calloc(1, sizeof(*put));

    if (put == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    whole_body_init(&put->body, request, &body_ops, release);
    put->server = request->server;
    put->permit = *permit;
    return put;
}

/* --- before the body --- */

static bool start(struct lfs_put *put)
{
    const struct staged_origin origin = {put->permit.repo, put->permit.client, put->permit.length};

    put->object = staged_begin(put->server, &origin, &put->body.failure);
    return put->object != NULL &&
           whole_body_start(&put->body, put->server, staged_file(put->object));
}

void lfs_put_begin(struct request *request)
{
    struct lfs_permit permit;
    struct lfs_put *put;

    if (write_refuse_read_only(request) || !lfs_permit_read(request, false, &permit) ||
        lfs_body_refuse_form(request) || write_refuse_large(request, permit.length) ||
        lfs_body_refuse_length(request, permit.length))
        return;
    put = new_put(request, &permit);
    if (put == NULL || whole_body_refuse_digests(&put->body, request))
        return;
    if (!lfs_oid_parse(zt_text_from(permit.oid), put->sha256))
        problem_reply(request, PROBLEM_INVALID_REQUEST, "the oid is no SHA-256");
    else if (!lfs_body_refuse_crowd(request, &permit, permit.length, &put->counted) && !start(put))
        hub_refuse_failure(request, &put->body.failure, 0);
}

/* --- the end, on a worker --- */

static bool check_digests(struct lfs_put *put)
{
    if (body_follower_received(&put->body.follower) != put->permit.length)
        return refuse_other_length(put);
    if (!whole_body_finish(&put->body))
        return false;
    return memcmp(put->body.digests.sha256.bytes, put->sha256, sizeof(put->sha256)) == 0 ||
           failure_refuse(&put->body.failure, PROBLEM_DIGEST_MISMATCH,
                          "the body does not have the SHA-256 that its address names");
}

static void work(struct request *request)
{
    struct lfs_put *put = request->context;

    put->is_done =
        check_digests(put) && staged_finish(put->object, put->sha256, &put->body.failure);
    if (put->is_done)
        put->object = NULL;
    lfs_body_end(&put->counted, put->is_done);
}

enum outcome lfs_put_handle(struct request *request)
{
    struct lfs_put *put = request->context;

    if (!put->was_run) {
        put->was_run = true;
        if (!put->body.failure.is_set)
            return request_work_long(request, work);
    }
    if (!put->is_done)
        return hub_refuse_failure(request, &put->body.failure, 0);
    reply_empty(request, 200);
    return OUTCOME_READY;
}
