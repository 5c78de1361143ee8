/* The digests of an answer. A known digest costs nothing. One that is wanted and unknown is
 * computed by workers, a few MiB at a time, so that hashing ends soon after the client goes away or
 * the server stops; the answer then has no digest. Requests that want the same digest at the same
 * time all use it as soon as the first of them has computed it. */
#include "http/exchange/answer_digest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange/client.h"
#include "http/exchange/digest_memory.h"
#include "http/exchange/digest_queue.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/fields/digest_fields.h"
#include "zt/digest.h"

/* One job: some milliseconds of a worker. */
#define JOB_BYTES ((uint64_t)4 << 20)
/* Read at a time; stays in the processor's cache until it is hashed. */
#define BLOCK_BYTES ((size_t)256 << 10)
/* Up to this much memory is hashed on the loop, which is faster than waking a worker; the digest is
 * not worth remembering. */
#define INLINE_BYTES    ((uint64_t)64 << 10)
#define INLINE_SEGMENTS 16

enum subject { SUBJECT_NONE, SUBJECT_WHOLE, SUBJECT_BODY };

struct digesting {
    struct digest_job job; /* first: the job is the structure */
    struct request *request;
    enum subject subject; /* NONE: no hashing is under way */
    struct zt_hasher *hasher;
    const struct segment *segments;
    size_t segment; /* the index of the segment with the next byte */
    uint64_t length;
    uint64_t done;
    struct zt_error error;
};

/* --- hashing --- */

static enum zt_status read_source(const struct segment *segment, uint64_t within, void *buffer,
                                  size_t length, struct zt_error *error)
{
    const uint64_t left = segment->length - within;
    const uint64_t offset = segment->offset + within;

    zt_source_read_on(segment->source, offset, left, 0);
    return zt_source_read_at(segment->source, offset, buffer, length, error);
}

static enum zt_status hash_piece(struct digesting *digesting, const struct segment *segment,
                                 size_t length, uint8_t *buffer)
{
    const uint64_t within = digesting->done - segment->start;
    const uint8_t *bytes = buffer;

    if (segment->kind == SEGMENT_MEMORY)
        bytes = segment->bytes + within;
    else if (read_source(segment, within, buffer, length, &digesting->error) != ZT_OK)
        return digesting->error.status;
    zt_hasher_update(digesting->hasher, bytes, length);
    return ZT_OK;
}

/* Hashes up to end. Reads files rather than their mappings: truncating a mapped file raises a
 * signal. */
static void hash_until(struct digesting *digesting, uint64_t end, uint8_t *buffer)
{
    while (digesting->done < end) {
        const struct segment *segment = &digesting->segments[digesting->segment];
        const uint64_t left = segment->start + segment->length - digesting->done;
        uint64_t length = left < end - digesting->done ? left : end - digesting->done;

        assert(left > 0 && left <= segment->length);
        length = length < BLOCK_BYTES ? length : BLOCK_BYTES;
        if (hash_piece(digesting, segment, (size_t)length, buffer) != ZT_OK)
            return;
        digesting->done += length;
        digesting->segment += length == left;
    }
}

static void hash_on_worker(struct digest_job *job)
{
    struct digesting *digesting = (struct digesting *)job;
    const uint64_t left = digesting->length - digesting->done;
    uint8_t *buffer = malloc(BLOCK_BYTES);

    if (buffer != NULL)
        hash_until(digesting, digesting->done + (left < JOB_BYTES ? left : JOB_BYTES), buffer);
    else
        zt_fail(&digesting->error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to hash with");
    free(buffer);
    request_wake(digesting->request);
}

static bool is_small(const struct digesting *digesting, size_t segment_count)
{
    if (digesting->length > INLINE_BYTES || segment_count > INLINE_SEGMENTS)
        return false;
    for (size_t i = 0; i < segment_count; i++)
        if (digesting->segments[i].kind != SEGMENT_MEMORY)
            return false;
    return true;
}

/* --- what is known and what is missing --- */

static bool body_is_whole(const struct request *request)
{
    const struct request_state *state = request_state_const(request);

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
    struct digest_memory *memory = request->server->digests;
    struct representation *reply = &request->reply;

    if (reply->has_sha256 || reply->etag == NULL || memory == NULL)
        return;
    reply->has_sha256 =
        digest_memory_find(memory, request_target(request), reply->etag, reply->sha256);
}

/* The digest of a known part costs nothing, so it is sent even if the client does not want it. */
static void recall_body(struct request *request)
{
    struct request_state *state = request_state(request);

    if (state->ranged && state->parts_type == NULL && !state->has_content_sha256)
        state->has_content_sha256 =
            range_is_known(request, state->range.first, state->range.length, state->content_sha256);
}

/* Whether hashing would bring bytes from elsewhere that are not even sent: a wish is not worth
 * that (RFC 9530 section 4). */
static bool costs_too_much(const struct request *request)
{
    if (request->method != METHOD_HEAD || request->server->waiters == NULL)
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
    if (!request->reply.has_sha256 &&
        (state->wants_repr || (state->wants_content && whole && !state->has_content_sha256)))
        return SUBJECT_WHOLE;
    if (state->wants_content && !whole && !state->has_content_sha256)
        return SUBJECT_BODY;
    return SUBJECT_NONE;
}

/* --- one computation --- */

static void end_hashing(struct digesting *digesting)
{
    zt_hasher_free(digesting->hasher);
    digesting->hasher = NULL;
    digesting->subject = SUBJECT_NONE;
}

static void release_digesting(void *thing)
{
    end_hashing(thing);
}

static bool begin_hashing(struct digesting *digesting, enum subject subject)
{
    const struct request *request = digesting->request;
    const struct answer *answer = &request_state_const(request)->answer;
    const bool whole = subject == SUBJECT_WHOLE;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &digesting->hasher) != ZT_OK)
        return false;
    assert(digesting->subject == SUBJECT_NONE && subject != SUBJECT_NONE);
    digesting->subject = subject;
    digesting->segments = whole ? request->reply.segments : answer->segments;
    digesting->length = whole ? request->reply.length : answer->content_length;
    digesting->segment = 0;
    digesting->done = 0;
    zt_error_clear(&digesting->error);
    if (is_small(digesting, whole ? request->reply.segment_count : answer->segment_count))
        hash_until(digesting, digesting->length, NULL);
    return true;
}

/* Whether the bytes were not written to while they were read; otherwise the digest belongs to no
 * version of them. */
static bool is_trusted(const struct request *request)
{
    return (request->generation == NULL || request->is_unwritten(request->generation)) &&
           (request->file == NULL || request->is_file_unwritten(request->file));
}

static void take_whole(struct request *request, const uint8_t sha256[32])
{
    struct digest_memory *memory = request->server->digests;
    struct representation *reply = &request->reply;

    memcpy(reply->sha256, sha256, sizeof(reply->sha256));
    reply->has_sha256 = true;
    if (reply->etag != NULL && memory != NULL && reply->length > INLINE_BYTES)
        digest_memory_keep(memory, request_target(request), reply->etag, sha256);
}

/* False: the digest must not be used. */
static bool finish_hashing(struct digesting *digesting)
{
    struct request *request = digesting->request;
    struct request_state *state = request_state(request);
    const enum subject subject = digesting->subject;
    struct zt_digest digest;

    assert(subject != SUBJECT_NONE && digesting->done == digesting->length);
    zt_hasher_finish(digesting->hasher, &digest);
    end_hashing(digesting);
    if (!is_trusted(request))
        return false;
    if (subject == SUBJECT_WHOLE) {
        take_whole(request, digest.bytes);
    } else {
        memcpy(state->content_sha256, digest.bytes, sizeof(state->content_sha256));
        state->has_content_sha256 = true;
    }
    return true;
}

/* Whether to continue. A client that has shut down its sending side may be gone: it gets its
 * answer, but no digest that takes a long time. */
static bool is_awaited(const struct digesting *digesting)
{
    const struct request *request = digesting->request;
    const struct transport *transport = request_state_const(request)->transport;

    return !digest_queue_is_stopped(request->server->digest_queue) &&
           (digesting->done == 0 || transport == NULL ||
            transport->is_established(request->connection));
}

/* READY: this computation is over, and *out_continue says whether another may follow. */
static enum outcome continue_hashing(struct digesting *digesting, bool *out_continue)
{
    struct request *request = digesting->request;

    *out_continue = false;
    if (digesting->error.status != ZT_OK)
        return problem_reply_error(request, &digesting->error);
    if (digesting->done == digesting->length) {
        *out_continue = finish_hashing(digesting);
        return OUTCOME_READY;
    }
    if (!is_awaited(digesting))
        return OUTCOME_READY;
    digesting->job.run = hash_on_worker;
    digesting->job.client = request_client_key(request);
    digest_queue_submit(request->server->digest_queue, &digesting->job);
    return OUTCOME_WAITING;
}

/* --- the stage --- */

static struct digesting *new_digesting(struct request *request)
{
    struct digesting *digesting = request_allocate(request, sizeof(*digesting));

    if (digesting == NULL)
        return NULL;
    memset(digesting, 0, sizeof(*digesting));
    digesting->request = request;
    request_hold(request, digesting, release_digesting);
    return digesting;
}

/* Computes one missing digest after the other. A digest is left out if there is no memory for
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
        if (state->digesting->subject == SUBJECT_NONE && !begin_hashing(state->digesting, missing))
            break;
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
        digest_field_wants_sha256(request_header(request, "Want-Content-Digest")) > 0;
}

enum outcome answer_digest_find(struct request *request)
{
    struct request_state *state = request_state(request);
    const struct representation *reply = &request->reply;

    assert(reply->status == 200 && !state->not_modified);
    assert(request->method == METHOD_GET || request->method == METHOD_HEAD);
    if (state->digesting == NULL) {
        read_wishes(request);
        recall_body(request);
    }
    recall_whole(request);
    /* Another request has computed the same digest. */
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
