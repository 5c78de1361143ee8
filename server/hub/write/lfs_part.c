/* PUT /{repo}.git/info/lfs/objects/{oid}/{part}: a part of an object, written where it belongs.
 * What it is worth is known when all parts are there: then their SHA-256 is. */
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/lfs_body.h"
#include "hub/write/lfs_parts.h"
#include "hub/write/staged_objects.h"
#include "upload/shared/write_checks.h"

struct lfs_part {
    struct lfs_permit permit;
    struct staged_object *object; /* NULL: not joined */
    uint64_t offset;              /* in the object */
    uint64_t length;
    uint64_t received;
    struct lfs_body body;
    bool is_done;
    struct failure failure; /* kept while the rest of the body is discarded */
};

/* Before the answer: who hears of it may ask for the end at once. */
static void leave(void *thing)
{
    struct lfs_part *part = thing;

    lfs_body_end(&part->body, part->is_done);
    if (part->object != NULL)
        staged_leave(part->object);
    part->object = NULL;
}

/* The permit was signed, so that its numbers belong together. */
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
    const struct staged_origin origin = {permit->repo, permit->client, permit->length};
    uint8_t sha256[32];
    const struct staged_whole whole = {sha256, permit->part_length};

    if (!lfs_oid_parse(zt_text_from(permit->oid), sha256))
        return failure_refuse(&part->failure, PROBLEM_INVALID_REQUEST, "the oid is no SHA-256");
    part->object = staged_join(request->server, &origin, &whole, &part->failure);
    if (part->object == NULL)
        return false;
    staged_mark_part(part->object, permit->part - 1, false);
    return true;
}

void lfs_part_begin(struct request *request)
{
    struct lfs_permit permit;
    struct lfs_part *part;

    if (write_refuse_read_only(request) || !lfs_permit_read(request, true, &permit) ||
        lfs_body_refuse_form(request) || write_refuse_large(request, permit.length))
        return;
    part = write_context(request, sizeof(*part));
    if (part == NULL)
        return;
    part->permit = permit;
    measure(part);
    request_hold(request, part, leave);
    if (!lfs_body_refuse_length(request, part->length) &&
        !lfs_body_refuse_crowd(request, &permit, part->length, &part->body) && !join(request, part))
        hub_refuse_failure(request, &part->failure, 0);
}

static bool refuse_other_length(struct lfs_part *part)
{
    return failure_refuse(&part->failure, PROBLEM_SIZE_MISMATCH, "this address is for %llu bytes",
                          (unsigned long long)part->length);
}

static void take(struct lfs_part *part, const void *bytes, size_t length)
{
    if (part->failure.is_set)
        return;
    if (length > part->length - part->received)
        refuse_other_length(part);
    else if (staged_write(part->object, part->offset + part->received, bytes, length,
                          &part->failure)) {
        part->received += length;
        lfs_body_note(&part->body, part->received);
    }
}

void lfs_part_receive(struct request *request, const void *bytes, size_t length)
{
    take(request->context, bytes, length);
}

void lfs_part_store(struct request *request, const struct body_piece *piece)
{
    take(request->context, piece->bytes, piece->length);
}

/* All parts are hashed together, at the end. */
void lfs_part_digest(struct request *request, const struct body_piece *piece)
{
    (void)request;
    (void)piece;
}

/* Clients send the tag of each part back when they ask for the end. */
enum outcome lfs_part_handle(struct request *request)
{
    struct lfs_part *part = request->context;
    char tag[LFS_PART_TAG_SIZE];
    const char *etag;

    lfs_part_tag(part->permit.part, tag);
    etag = request_print(request, "%s", tag);

    if (!part->failure.is_set && part->received != part->length)
        refuse_other_length(part);
    part->is_done = !part->failure.is_set && etag != NULL;
    if (part->is_done)
        staged_mark_part(part->object, part->permit.part - 1, true);
    leave(part);
    if (part->failure.is_set)
        return hub_refuse_failure(request, &part->failure, 0);
    if (etag == NULL)
        return problem_reply_no_memory(request);
    reply_empty(request, 200);
    representation_field(&request->reply, "ETag", etag);
    return OUTCOME_READY;
}
