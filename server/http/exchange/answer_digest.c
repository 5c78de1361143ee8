/* Finds the digests of an answer. A known digest costs nothing. A wanted but unknown digest is
 * computed by workers, a few MiB per turn, so that hashing ends soon after the client leaves or the
 * server stops; the answer then has no digest. Requests that want the same digest at the same time
 * share one computation. */
#include "http/exchange/answer_digest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "catalog/generation.h"
#include "digests/file_hashes.h"
#include "http/exchange/answer.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/exchange/router.h"
#include "http/exchange/s3api_fields.h"
#include "http/fields/digest_fields.h"
#include "store/store.h"
#include "tree/stored_file.h"
#include "zt/digest.h"

/* Up to this much memory is hashed on the loop, which is faster than waking a worker; such a digest
 * is not worth remembering. */
#define INLINE_BYTES    ((uint64_t)64 << 10)
#define INLINE_SEGMENTS 16

enum subject { SUBJECT_NONE, SUBJECT_WHOLE, SUBJECT_BODY };

/* A source over segments, for one reader. Files are read and not mapped: truncating a mapped file
 * raises a signal. */
struct segments_source {
    struct zt_source source; /* first, for casts */
    const struct segment *segments;
    size_t count;
    size_t index; /* index of the segment read last */
    uint64_t length;
};

struct digesting {
    struct hash_task task; /* first: the task is the structure */
    struct segments_source bytes;
    struct request *request;
    enum subject subject; /* NONE: no hashing is in progress */
    struct zt_error error;
};

/* --- segments as a source --- */

static uint64_t size_of(const struct zt_source *source)
{
    return ((const struct segments_source *)source)->length;
}

static enum zt_status read_segment(const struct segment *segment, uint64_t within, void *buffer,
                                   size_t length, struct zt_error *error)
{
    const uint64_t offset = segment->offset + within;

    assert(within < segment->length && length <= segment->length - within);
    if (segment->kind == SEGMENT_MEMORY) {
        memcpy(buffer, segment->bytes + within, length);
        return ZT_OK;
    }
    zt_source_read_on(segment->source, offset, segment->length - within, 0);
    return zt_source_read_at(segment->source, offset, buffer, length, error);
}

static enum zt_status read_at(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error)
{
    struct segments_source *bytes = (struct segments_source *)source;
    uint8_t *to = buffer;

    assert(offset <= bytes->length && length <= bytes->length - offset);
    if (length > 0 && bytes->segments[bytes->index].start > offset)
        bytes->index = 0;
    while (length > 0) {
        const struct segment *segment = &bytes->segments[bytes->index];
        const uint64_t within = offset - segment->start;
        const uint64_t left = within < segment->length ? segment->length - within : 0;
        const size_t size = left < length ? (size_t)left : length;
        const enum zt_status status =
            size > 0 ? read_segment(segment, within, to, size, error) : ZT_OK;

        if (status != ZT_OK)
            return status;
        to += size;
        offset += size;
        length -= size;
        bytes->index += length > 0;
        assert(bytes->index < bytes->count);
    }
    return ZT_OK;
}

static const struct zt_source_ops segments_ops = {.size = size_of, .read_at = read_at};

static bool is_small(const struct segments_source *bytes)
{
    assert(bytes->count > 0 || bytes->length == 0);
    if (bytes->length > INLINE_BYTES || bytes->count > INLINE_SEGMENTS)
        return false;
    for (size_t i = 0; i < bytes->count; i++)
        if (bytes->segments[i].kind != SEGMENT_MEMORY)
            return false;
    return true;
}

static enum zt_status prepare(struct hash_task *task, struct server *server)
{
    assert(((struct digesting *)task)->subject != SUBJECT_NONE);
    (void)server;
    task->source = &((struct digesting *)task)->bytes.source;
    return ZT_OK;
}

static void turn_is_over(struct hash_task *task, struct server *server, enum zt_status status)
{
    struct digesting *digesting = (struct digesting *)task;

    (void)server;
    assert(status == ZT_OK || digesting->error.status == status);
    request_wake(digesting->request);
}

/* --- what is known and what is missing --- */

/* Returns true if the digest of the reply is the body's, too. */
static bool body_is_whole(const struct request *request)
{
    const struct request_state *state = request_state_const(request);

    if (request->reply.digest_is_of_result)
        return false;
    return !state->ranged ||
           (state->parts_type == NULL && state->range.length == request->reply.length);
}

static bool range_is_known(struct request *request, uint64_t first, uint64_t length,
                           uint8_t out_sha256[32])
{
    const struct representation *reply = &request->reply;

    return reply->range_sha256 != NULL && reply->range_sha256(request, first, length, out_sha256);
}

static void recall_whole(struct request *request)
{
    struct file_hashes *hashes = request->server->hashes;
    struct representation *reply = &request->reply;

    if (reply->has_sha256 || reply->etag == NULL || hashes == NULL)
        return;
    reply->has_sha256 =
        answer_hashes_find(hashes, request_target(request), reply->etag, reply->sha256);
}

/* The digest of a known part costs nothing, so it is sent even if the client did not ask for it. */
static void recall_body(struct request *request)
{
    struct request_state *state = request_state(request);
    const char *key;

    assert(!state->ranged || request->reply.status == 200);
    if (state->ranged && state->parts_type == NULL && !state->has_content_sha256)
        state->has_content_sha256 =
            range_is_known(request, state->range.first, state->range.length, state->content_sha256);
    if (!state->wants_content || state->has_content_sha256 || request->server->hashes == NULL)
        return;
    key = s3api_checksum_key(request);
    state->has_content_sha256 =
        key != NULL && answer_hashes_find(request->server->hashes, request->route->pattern, key,
                                          state->content_sha256);
}

/* Clients of S3 fetch the same parts again and again. */
static void keep_body(struct request *request)
{
    struct file_hashes *hashes = request->server->hashes;
    const char *key = hashes != NULL ? s3api_checksum_key(request) : NULL;

    if (key != NULL)
        answer_hashes_keep(hashes, request->route->pattern, key,
                           request_state(request)->content_sha256);
}

/* Returns true if the bytes of the answer's file are on this machine and stay there. */
static bool is_local(const struct request *request)
{
    const struct store *store = request->server->store;

    if (store == NULL || !store_may_wait(store))
        return true;
    return (request->file == NULL || store_has_locally(store, zt_text_from(request->file->path))) &&
           (request->generation == NULL ||
            store_has_locally(store, zt_text_from(request->generation->own_path)));
}

/* Returns true if hashing would fetch remote bytes that are not even sent: a client's preference
 * does not justify that (RFC 9530 section 4). */
static bool costs_too_much(const struct request *request)
{
    if (request->method != METHOD_HEAD || is_local(request))
        return false;
    for (size_t i = 0; i < request->reply.segment_count; i++)
        if (request->reply.segments[i].kind == SEGMENT_SOURCE)
            return true;
    return false;
}

static enum subject find_missing(const struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const bool whole = body_is_whole(request);

    if (costs_too_much(request))
        return SUBJECT_NONE;
    /* A digest of bytes that are not verified would vouch for them. */
    if (!request->reply.has_sha256 && !answer_is_unverified(request) &&
        (state->wants_repr || (state->wants_content && whole && !state->has_content_sha256)))
        return SUBJECT_WHOLE;
    if (state->wants_content && !whole && !state->has_content_sha256)
        return SUBJECT_BODY;
    return SUBJECT_NONE;
}

/* --- one computation --- */

static void end_hashing(struct digesting *digesting)
{
    hash_task_clear(&digesting->task);
    digesting->subject = SUBJECT_NONE;
}

static void release_digesting(void *thing)
{
    end_hashing(thing);
}

static void begin_hashing(struct digesting *digesting, enum subject subject)
{
    static const struct hash_task_ops ops = {prepare, turn_is_over};
    struct request *request = digesting->request;
    const struct answer *answer = &request_state(request)->answer;
    const bool whole = subject == SUBJECT_WHOLE || !request_state(request)->ranged;

    assert(digesting->request != NULL);
    assert(digesting->subject == SUBJECT_NONE && subject != SUBJECT_NONE);
    digesting->subject = subject;
    zt_error_clear(&digesting->error);
    digesting->bytes = (struct segments_source){
        .source.ops = &segments_ops,
        .segments = whole ? request->reply.segments : answer->segments,
        .count = whole ? request->reply.segment_count : answer->segment_count,
        .length = whole ? request->reply.length : answer->content_length};
    digesting->task = (struct hash_task){.ops = &ops,
                                         .urgency = HASH_AWAITED,
                                         .length = digesting->bytes.length,
                                         .error = &digesting->error};
    digesting->task.job.client = request_client_key(request);
    if (is_small(&digesting->bytes))
        (void)hash_task_run(&digesting->task, request->server);
}

/* Returns false if the bytes were written to while they were read, so that the digest matches no
 * version of them. */
static bool bytes_are_unwritten(const struct request *request)
{
    assert(request != NULL);
    return (request->generation == NULL || request->is_unwritten(request->generation)) &&
           (request->file == NULL || request->is_file_unwritten(request->file));
}

static void take_whole(struct request *request, const uint8_t sha256[32])
{
    struct file_hashes *hashes = request->server->hashes;
    struct representation *reply = &request->reply;

    assert(!reply->has_sha256);
    memcpy(reply->sha256, sha256, sizeof(reply->sha256));
    reply->has_sha256 = true;
    if (reply->etag != NULL && hashes != NULL && reply->length > INLINE_BYTES)
        answer_hashes_keep(hashes, request_target(request), reply->etag, sha256);
}

/* Returns false if the digest must not be used. */
static bool finish_hashing(struct digesting *digesting)
{
    struct request *request = digesting->request;
    struct request_state *state = request_state(request);
    const bool is_trusted = bytes_are_unwritten(request);

    assert(digesting->subject != SUBJECT_NONE && hash_task_is_done(&digesting->task));
    if (is_trusted && digesting->subject == SUBJECT_WHOLE) {
        take_whole(request, digesting->task.digests);
    } else if (is_trusted) {
        memcpy(state->content_sha256, digesting->task.digests, sizeof(state->content_sha256));
        state->has_content_sha256 = true;
        keep_body(request);
    }
    end_hashing(digesting);
    return is_trusted;
}

/* Returns false if the client has shut down its sending side. It may be gone, so it gets its answer
 * but no digest that takes long. */
static bool is_awaited(const struct digesting *digesting)
{
    const struct request *request = digesting->request;
    const struct transport *transport = request_state_const(request)->transport;

    return digesting->task.done_bytes == 0 || transport == NULL ||
           transport->is_established(request->connection);
}

/* Returns READY when this computation is over; *out_continue then says whether another may
 * follow. */
static enum outcome continue_hashing(struct digesting *digesting, bool *out_continue)
{
    struct request *request = digesting->request;

    assert(digesting->subject != SUBJECT_NONE);
    *out_continue = false;
    if (digesting->error.status == ZT_NO_MEMORY)
        return OUTCOME_READY;
    if (digesting->error.status != ZT_OK)
        return problem_reply_error(request, &digesting->error);
    if (hash_task_is_done(&digesting->task)) {
        *out_continue = finish_hashing(digesting);
        return OUTCOME_READY;
    }
    return is_awaited(digesting) && hash_queue_await(request->server->hash_queue, &digesting->task)
               ? OUTCOME_WAITING
               : OUTCOME_READY;
}

/* --- the stage --- */

static struct digesting *new_digesting(struct request *request)
{
    struct digesting *digesting = request_allocate(request, sizeof(*digesting));

    assert(request_state_const(request)->digesting == NULL);
    if (digesting == NULL)
        return NULL;
    memset(digesting, 0, sizeof(*digesting));
    digesting->request = request;
    request_hold(request, digesting, release_digesting);
    return digesting;
}

/* Computes the missing digests one after another. A digest is omitted if there is no memory for
 * it. */
static enum outcome compute(struct request *request)
{
    struct request_state *state = request_state(request);
    enum subject missing;
    bool proceed = true;

    if (state->digesting == NULL && find_missing(request) != SUBJECT_NONE)
        state->digesting = new_digesting(request);
    while (state->digesting != NULL && proceed &&
           (missing = find_missing(request)) != SUBJECT_NONE) {
        if (state->digesting->subject == SUBJECT_NONE)
            begin_hashing(state->digesting, missing);
        if (continue_hashing(state->digesting, &proceed) == OUTCOME_WAITING)
            return OUTCOME_WAITING;
    }
    return OUTCOME_READY;
}

static void read_wishes(struct request *request)
{
    struct request_state *state = request_state(request);

    state->wants_repr = digest_field_wants_sha256(request_header(request, "Want-Repr-Digest")) > 0;
    state->wants_content =
        digest_field_wants_sha256(request_header(request, "Want-Content-Digest")) > 0 ||
        (request_is_s3(request) && s3api_wants_checksum(request));
}

enum outcome answer_digest_find(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct representation *reply = &request->reply;

    assert(reply->status == 200 && !state->not_modified);
    assert(request_is_read(request));
    if (state->digesting == NULL) {
        read_wishes(request);
        recall_body(request);
    }
    recall_whole(request);
    if (!state->wants_repr && !state->wants_content)
        return OUTCOME_READY;
    /* Another request has computed the same digest in the meantime. */
    if (state->digesting != NULL && state->digesting->subject == SUBJECT_WHOLE && reply->has_sha256)
        end_hashing(state->digesting);
    if (compute(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (state->wants_content && body_is_whole(request) && reply->has_sha256) {
        memcpy(state->content_sha256, reply->sha256, sizeof(state->content_sha256));
        state->has_content_sha256 = true;
    }
    return OUTCOME_READY;
}
