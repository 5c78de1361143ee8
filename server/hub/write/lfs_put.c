/* PUT /{repo}.git/info/lfs/objects/{oid}: the bytes of an object, hashed while they arrive. They
 * become a staged object if they have the SHA-256 in the address.
 *
 * PUT /{repo}.git/info/lfs/objects/{oid}/{part}: a part of an object, written at its offset. The
 * parts are hashed together, once all have arrived. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/server.h"
#include "http/exchange/problem.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/lfs_parts.h"
#include "hub/write/lfs_permit.h"
#include "hub/write/staged_objects.h"
#include "upload/shared/body_follower.h"
#include "upload/shared/registry.h"
#include "upload/shared/write_checks.h"

/* --- both --- */

/* Refuses fields that neither kind of body may have. Returns true if it has replied. */
static bool refuse_form(struct request *request)
{
    if (request_header(request, "Content-Range") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "send an object whole: Content-Range is not supported");
        return true;
    }
    return write_refuse_coding(request) || write_refuse_absent_body(request);
}

/* Refuses a declared length that differs from the permit. Returns true if it has replied. */
static bool refuse_length(struct request *request, uint64_t length)
{
    const uint64_t declared = request_body_length(request);

    if (declared == UINT64_MAX || declared == length)
        return false;
    problem_reply(request, PROBLEM_SIZE_MISMATCH, "this address is for %llu bytes, not %llu",
                  (unsigned long long)length, (unsigned long long)declared);
    return true;
}

static bool fail_other_length(struct failure *failure, uint64_t length)
{
    return failure_refuse(failure, PROBLEM_SIZE_MISMATCH, "this address is for %llu bytes",
                          (unsigned long long)length);
}

/* --- an object --- */

struct lfs_put {
    struct whole_body body;
    struct server *server;
    struct lfs_permit permit;
    uint8_t sha256[32];           /* the required SHA-256 */
    struct staged_object *object; /* NULL once it is finished or abandoned */
    struct counted_body counted;
    bool was_run;
    bool is_done;
};

static bool store_piece(struct whole_body *body, const void *bytes, size_t length)
{
    struct lfs_put *put = (struct lfs_put *)body;
    const uint64_t received = body_follower_received(&body->follower);

    if (length > put->permit.length - received)
        return fail_other_length(&put->body.failure, put->permit.length);
    if (!staged_write(put->object, received, bytes, length, &body->failure))
        return false;
    counted_body_note(&put->counted, received + length);
    return true;
}

static void drop_stored(struct whole_body *body)
{
    struct lfs_put *put = (struct lfs_put *)body;

    staged_abandon(put->object);
    put->object = NULL;
}

static void free_put(void *owner)
{
    struct lfs_put *put = owner;

    counted_body_end(&put->counted, put->is_done);
    staged_abandon(put->object);
    whole_body_destroy(&put->body);
    free(put);
}

static void release_put(void *thing)
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
    whole_body_init(&put->body, request, &body_ops, release_put);
    put->server = request->server;
    put->permit = *permit;
    return put;
}

static bool start_put(const struct request *request, struct lfs_put *put)
{
    const struct staged_origin origin = lfs_permit_origin(request, &put->permit);

    put->object = staged_begin(put->server, &origin, &put->body.failure);
    return put->object != NULL &&
           whole_body_start(&put->body, put->server, staged_file(put->object));
}

void lfs_put_begin(struct request *request)
{
    struct lfs_permit permit;
    struct lfs_put *put;

    if (write_refuse_read_only(request) || !lfs_permit_read(request, false, &permit) ||
        refuse_form(request) || write_refuse_large(request, permit.length) ||
        refuse_length(request, permit.length))
        return;
    put = new_put(request, &permit);
    if (put == NULL ||
        write_refuse_digests(request, &put->body.content_digest, &put->body.repr_digest))
        return;
    if (!zt_hex_read_lower(zt_text_from(permit.oid), put->sha256, 32))
        problem_reply(request, PROBLEM_INVALID_REQUEST, "the oid is not a SHA-256");
    else if (!counted_body_refuse(request, &put->counted, permit.repo, permit.client,
                                  permit.length) &&
             !start_put(request, put))
        hub_refuse_failure(request, &put->body.failure, 0);
}

static bool check_digests(struct lfs_put *put)
{
    if (body_follower_received(&put->body.follower) != put->permit.length)
        return fail_other_length(&put->body.failure, put->permit.length);
    if (!whole_body_finish(&put->body))
        return false;
    return memcmp(put->body.digests.sha256.bytes, put->sha256, sizeof(put->sha256)) == 0 ||
           failure_refuse(&put->body.failure, PROBLEM_DIGEST_MISMATCH,
                          "the body does not match the SHA-256 in its address");
}

/* On a worker. */
static void finish_put(struct request *request)
{
    struct lfs_put *put = request->context;

    put->is_done =
        check_digests(put) && staged_finish(put->object, put->sha256, &put->body.failure);
    if (put->is_done)
        put->object = NULL;
    counted_body_end(&put->counted, put->is_done);
}

enum outcome lfs_put_handle(struct request *request)
{
    struct lfs_put *put = request->context;

    if (!put->was_run) {
        put->was_run = true;
        if (!put->body.failure.is_set)
            return request_work_long(request, finish_put);
    }
    if (!put->is_done)
        return hub_refuse_failure(request, &put->body.failure, 0);
    reply_empty(request, 200);
    return OUTCOME_READY;
}

/* --- a part --- */

struct lfs_part {
    struct lfs_permit permit;
    struct staged_object *object; /* NULL: not joined */
    uint64_t offset;              /* in the object */
    uint64_t length;
    uint64_t received;
    struct counted_body counted;
    bool is_done;
    struct failure failure; /* kept while the rest of the body is discarded */
};

/* Called before the response: the client may then end the object at once. */
static void leave_part(void *thing)
{
    struct lfs_part *part = thing;

    counted_body_end(&part->counted, part->is_done);
    if (part->object != NULL)
        staged_leave(part->object);
    part->object = NULL;
}

static void receive_part(struct request *request, const struct body_piece *piece)
{
    struct lfs_part *part = request->context;

    if (part->failure.is_set)
        return;
    if (piece->length > part->length - part->received)
        fail_other_length(&part->failure, part->length);
    else if (staged_write(part->object, part->offset + part->received, piece->bytes, piece->length,
                          &part->failure)) {
        part->received += piece->length;
        counted_body_note(&part->counted, part->received);
    }
}

static const struct body_receiver part_receiver = {.receive = receive_part, .on_workers = true};

/* The permit is signed, so its numbers are consistent. */
static void measure(struct lfs_part *part)
{
    const struct lfs_permit *permit = &part->permit;
    uint64_t rest;

    part->offset = (permit->part - 1) * permit->part_length;
    rest = permit->length - part->offset;
    part->length = rest < permit->part_length ? rest : permit->part_length;
}

static bool join(struct request *request, struct lfs_part *part)
{
    const struct lfs_permit *permit = &part->permit;
    const struct staged_origin origin = lfs_permit_origin(request, permit);
    uint8_t sha256[32];
    const struct staged_whole whole = {sha256, permit->part_length};

    if (!zt_hex_read_lower(zt_text_from(permit->oid), sha256, 32))
        return failure_refuse(&part->failure, PROBLEM_INVALID_REQUEST, "the oid is not a SHA-256");
    part->object = staged_join(request->server, &origin, &whole, &part->failure);
    if (part->object == NULL)
        return false;
    staged_mark_part(part->object, permit->part - 1, false);
    return staged_take_space(part->object, part->length, &part->failure);
}

void lfs_part_begin(struct request *request)
{
    struct lfs_permit permit;
    struct lfs_part *part;

    if (write_refuse_read_only(request) || !lfs_permit_read(request, true, &permit) ||
        refuse_form(request) || write_refuse_large(request, permit.length))
        return;
    part = request_new_context(request, sizeof(*part));
    if (part == NULL)
        return;
    part->permit = permit;
    measure(part);
    request->receiver = &part_receiver;
    request_hold(request, part, leave_part);
    if (!refuse_length(request, part->length) &&
        !counted_body_refuse(request, &part->counted, permit.repo, permit.client, part->length) &&
        !join(request, part))
        hub_refuse_failure(request, &part->failure, 0);
}

/* Clients send the ETag of each part back when they end the object. */
enum outcome lfs_part_handle(struct request *request)
{
    struct lfs_part *part = request->context;
    char tag[LFS_PART_TAG_SIZE];
    const char *etag;

    lfs_part_tag(part->permit.part, tag);
    etag = request_print(request, "%s", tag);

    if (!part->failure.is_set && part->received != part->length)
        fail_other_length(&part->failure, part->length);
    part->is_done = !part->failure.is_set && etag != NULL;
    if (part->is_done)
        staged_mark_part(part->object, part->permit.part - 1, true);
    leave_part(part);
    if (part->failure.is_set)
        return hub_refuse_failure(request, &part->failure, 0);
    if (etag == NULL)
        return problem_reply_no_memory(request);
    reply_empty(request, 200);
    representation_field(&request->reply, "ETag", etag);
    return OUTCOME_READY;
}
