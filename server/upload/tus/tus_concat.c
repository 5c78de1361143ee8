/* Claims the parts first, so that no other request and no expiry can touch them. Then a worker
 * copies, while others hash the copied bytes. */
#include "upload/tus/tus_concat.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange/authorize.h"
#include "store/staging.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/tus.h"
#include "upload/tus/tus_body.h"
#include "upload/tus/tus_fields.h"

/* Bytes per call; another worker then hashes them. */
#define STEP_BYTES ((uint64_t)8 << 20)

struct part {
    struct resumable *resumable; /* held */
    uint64_t claim;              /* 0: none, or ended */
};

struct concat {
    struct creation creation;
    struct part *parts;
    size_t count;
    struct resumable *final; /* held; the worker makes its folder and its entry in the table */
    uint64_t claim;          /* of final */
    bool is_repeated;        /* it was already published */
    bool is_done;
    struct failure failure;
};

/* --- life --- */

static void end_claims(struct concat *concat)
{
    assert(concat->count == 0 || concat->parts != NULL);
    for (size_t i = 0; i < concat->count; i++)
        resumable_end_claim(concat->parts[i].resumable, &concat->parts[i].claim);
    if (concat->final != NULL)
        resumable_end_claim(concat->final, &concat->claim);
}

static void release(void *thing)
{
    struct concat *concat = thing;

    end_claims(concat);
    for (size_t i = 0; i < concat->count; i++)
        kept_upload_release(concat->parts[i].resumable);
    kept_upload_release(concat->final);
}

static void refuse_body(struct request *request)
{
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "a final upload consists of its parts and takes no bytes");
}

static void receive(struct request *request, const struct body_piece *piece)
{
    (void)piece;
    refuse_body(request);
}

static const struct body_receiver receiver = {.receive = receive};

/* --- a client that asks again, because the answer was lost --- */

static bool are_same_parts(const char *some, const char *others)
{
    struct zt_text one;
    struct zt_text other;
    bool has_one;

    do {
        has_one = tus_concat_next(&some, &one);
        if (tus_concat_next(&others, &other) != has_one || !zt_text_equal(one, other))
            return false;
    } while (has_one);
    return true;
}

static bool is_published_already(const void *context, const struct kept_upload *upload)
{
    const struct creation *creation = context;
    const struct resumable *resumable = (const struct resumable *)upload;
    const char *parts = NULL;

    return upload->entry.kind == UPLOAD_KIND_RESUMABLE && resumable->role == RESUMABLE_FINAL &&
           resumable_state(resumable) == RESUMABLE_PUBLISHED &&
           resumable->kept.entry.is_file == creation->is_file &&
           strcmp(upload->entry.model, creation->model) == 0 &&
           tus_concat_parse(resumable->texts[RESUMABLE_CONCAT], &parts) == TUS_CONCAT_FINAL &&
           are_same_parts(parts, creation->parts);
}

/* --- the parts; true: replied with a refusal --- */

static bool refuse_part(struct request *request, enum problem problem, size_t index,
                        const char *what)
{
    assert(what != NULL);
    problem_reply(request, problem, "Upload-Concat: part %zu %s", index + 1, what);
    return true;
}

static bool refuse_unknown(struct request *request, struct concat *concat, struct zt_text id)
{
    struct part *part = &concat->parts[concat->count];
    bool is_unreadable;

    part->resumable = (struct resumable *)kept_uploads_find_or_adopt(
        request->server->kept, UPLOAD_KIND_RESUMABLE, id, &is_unreadable);
    if (part->resumable == NULL && is_unreadable) {
        tus_reply_unreadable(request);
        return true;
    }
    if (part->resumable == NULL)
        return refuse_part(request, PROBLEM_INVALID_REQUEST, concat->count,
                           "is not, or no longer, a partial upload of this server");
    concat->count++;
    if (part->resumable->role != RESUMABLE_PART || !tus_sees(request, part->resumable) ||
        resumable_state(part->resumable) != RESUMABLE_RECEIVING)
        return refuse_part(request, PROBLEM_INVALID_REQUEST, concat->count - 1,
                           "is not, or no longer, a partial upload of this server");
    return false;
}

static bool refuse_unknown_parts(struct request *request, struct concat *concat)
{
    const char *at = concat->creation.parts;
    struct zt_text id;
    size_t count = 0;

    while (tus_concat_next(&at, &id))
        count++;
    concat->parts = request_allocate(request, count * sizeof(concat->parts[0]));
    if (concat->parts == NULL) {
        problem_reply_no_memory(request);
        return true;
    }
    memset(concat->parts, 0, count * sizeof(concat->parts[0]));
    at = concat->creation.parts;
    while (tus_concat_next(&at, &id))
        if (refuse_unknown(request, concat, id))
            return true;
    assert(concat->count == count && count > 0);
    return false;
}

static bool is_earlier(const struct concat *concat, size_t index)
{
    assert(index < concat->count);
    for (size_t i = 0; i < index; i++)
        if (concat->parts[i].resumable == concat->parts[index].resumable)
            return true;
    return false;
}

static bool refuse_used(struct request *request, struct concat *concat, size_t index)
{
    struct part *part = &concat->parts[index];

    assert(part->resumable != NULL && part->claim == 0);
    claim_end_silent(&part->resumable->claim);
    part->claim = claim_take(&part->resumable->claim);
    if (part->claim == 0 && is_earlier(concat, index))
        return refuse_part(request, PROBLEM_INVALID_REQUEST, index, "is listed twice");
    if (part->claim == 0) {
        tus_reply_busy(request);
        return true;
    }
    if (resumable_state(part->resumable) != RESUMABLE_RECEIVING ||
        !resumable_is_whole(part->resumable))
        return refuse_part(request, PROBLEM_CONFLICT, index, "is not complete");
    return false;
}

static bool refuse_used_parts(struct request *request, struct concat *concat)
{
    uint64_t length = 0;

    for (size_t i = 0; i < concat->count; i++) {
        uint64_t more;

        if (refuse_used(request, concat, i))
            return true;
        more = atomic_load(&concat->parts[i].resumable->length);
        length = more <= INT64_MAX - length ? length + more : INT64_MAX;
    }
    concat->creation.length = length;
    return false;
}

void tus_concat_begin(struct request *request, const struct creation *creation)
{
    struct concat *concat;

    if (request_body_length(request) != 0 && request_body_length(request) != UINT64_MAX) {
        refuse_body(request);
        return;
    }
    concat = request_new_context(request, sizeof(*concat));
    if (concat == NULL)
        return;
    concat->creation = *creation;
    request->receiver = &receiver;
    request_hold(request, concat, release);
    concat->final = (struct resumable *)kept_uploads_search(request->server->kept,
                                                            is_published_already, creation);
    concat->is_repeated = concat->final != NULL;
    if (!concat->is_repeated &&
        (refuse_unknown_parts(request, concat) || refuse_used_parts(request, concat) ||
         tus_creation_refuse_target(request, &concat->creation)))
        end_claims(concat);
}

/* --- the final upload, on a worker --- */

/* Adds the final upload without a limit: it replaces its parts, which are within the client's
 * limits. */
static bool add_final(struct concat *concat)
{
    struct resumable *final = concat->final;
    struct zt_error error;

    assert(concat->claim != 0 && final->role == RESUMABLE_FINAL);
    assert(final->kept.entry.client[0] == '\0');
    if (resumable_files_create(final, &error) != ZT_OK)
        return failure_of_store(&concat->failure, &error);
    if (kept_uploads_add(&final->kept))
        return true;
    return failure_refuse(&concat->failure, PROBLEM_INTERNAL, "the upload cannot be listed");
}

static bool copy_bytes(struct concat *concat, struct resumable *part)
{
    const uint64_t length = atomic_load(&part->length);
    struct resumable *final = concat->final;

    assert(part->role == RESUMABLE_PART && part->data != NULL);
    for (uint64_t at = 0; at < length;) {
        uint64_t step = length - at < STEP_BYTES ? length - at : STEP_BYTES;
        struct zt_error error;

        if (staged_file_copy(part->data, at, final->data, atomic_load(&final->kept.entry.received),
                             step, &error) != ZT_OK)
            return failure_of_store(&concat->failure, &error);
        resumable_advance(final, step);
        at += step;
    }
    return true;
}

static bool copy_part(struct concat *concat, struct resumable *part)
{
    bool is_copied;

    if (!resumable_enter(part, &concat->failure))
        return false;
    is_copied = copy_bytes(concat, part);
    resumable_leave(part);
    return is_copied;
}

static bool copy_parts(struct concat *concat)
{
    for (size_t i = 0; i < concat->count; i++)
        if (!copy_part(concat, concat->parts[i].resumable))
            return false;
    assert(resumable_is_whole(concat->final));
    return true;
}

static bool make_durable(struct concat *concat)
{
    struct zt_error error;

    return (resumable_files_sync(concat->final, &error) == ZT_OK &&
            resumable_make_durable(concat->final, &error) == ZT_OK) ||
           failure_of_store(&concat->failure, &error);
}

static bool fill(struct concat *concat)
{
    bool is_filled;

    if (!resumable_enter(concat->final, &concat->failure))
        return false;
    is_filled = copy_parts(concat) && make_durable(concat);
    resumable_leave(concat->final);
    return is_filled;
}

static bool fill_and_publish(struct concat *concat, const struct request *request)
{
    assert(concat->claim != 0);
    if (fill(concat) && resumable_publish(concat->final, request, &concat->failure))
        return true;
    if (resumable_state(concat->final) != RESUMABLE_GONE)
        resumable_drop(concat->final);
    return false;
}

static void end_parts(struct concat *concat)
{
    assert(resumable_state(concat->final) == RESUMABLE_PUBLISHED && concat->final->is_hashed);
    for (size_t i = 0; i < concat->count; i++)
        resumable_use_up(concat->parts[i].resumable, concat->final->published.sha256);
}

/* The claims end before the answer, since the client may then send the next request. */
static void work(struct request *request)
{
    struct concat *concat = request->context;

    assert(!concat->is_done);
    if (concat->is_repeated) {
        (void)resumable_complete(concat->final, &concat->failure);
    } else if (add_final(concat) && fill_and_publish(concat, request)) {
        end_parts(concat);
        (void)resumable_report(concat->final, &concat->failure);
    }
    concat->is_done = true;
    end_claims(concat);
}

/* --- the answer --- */

static enum outcome begin_work(struct request *request, struct concat *concat)
{
    if (concat->is_repeated)
        return request_work(request, work);
    assert(concat->final == NULL);
    concat->final = tus_creation_make(request, &concat->creation);
    if (concat->final == NULL)
        return OUTCOME_READY;
    concat->final->kept.entry.client[0] = '\0';
    atomic_store(&concat->final->follower.client, request_client_key(request));
    concat->claim = claim_take(&concat->final->claim);
    assert(concat->claim != 0);
    return request_work_long(request, work);
}

enum outcome tus_concat_handle(struct request *request)
{
    struct concat *concat = request->context;

    if (!concat->is_done)
        return begin_work(request, concat);
    if (concat->failure.is_set)
        return failure_reply(request, &concat->failure);
    /* Its outcome may have expired since. */
    assert(resumable_state(concat->final) != RESUMABLE_RECEIVING);
    tus_reply_created(request, concat->final, atomic_load(&concat->final->durable));
    return OUTCOME_READY;
}
