/* Bodies of PATCH and of creation. If a body is interrupted, the received part is kept, unless the
 * client stated its digest, which can then no longer be checked. */
#include "upload/tus/tus_body.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/exchange/authorize.h"
#include "store/staging.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/tus.h"
#include "upload/tus/tus_fields.h"

#define MEDIA_TYPE "application/offset+octet-stream"

/* --- the body --- */

static bool fail_lost(struct tus_body *body)
{
    return failure_refuse(&body->failure, PROBLEM_CONFLICT,
                          "the upload was ended, or continued by another request, meanwhile");
}

static void store_piece(struct tus_body *body, const struct body_piece *piece)
{
    struct resumable *resumable = body->resumable;
    struct staged_file *to = body->chunk != NULL ? body->chunk : resumable->data;
    uint64_t at = body->chunk != NULL ? body->received : body->begin + body->received;
    struct zt_error error;

    assert(body->has_entered && body->claim != 0);
    assert(to != NULL);
    if (staged_file_write_at(to, at, piece->bytes, piece->length, &error) != ZT_OK) {
        atomic_store(&resumable->has_failed_write,
                     atomic_load(&resumable->has_failed_write) || error.status != ZT_LIMIT);
        failure_of_store(&body->failure, &error);
        return;
    }
    body->received += piece->length;
    if (body->chunk == NULL)
        resumable_take(resumable, piece);
    else
        resumable_touch(resumable);
}

/* A body with a stated digest is hashed when it is appended. */
static void receive(struct request *request, const struct body_piece *piece)
{
    struct tus_body *body = request->context;
    struct resumable *resumable = body->resumable;

    if (body->failure.is_set)
        return;
    assert(!body->is_finished);
    if (!claim_begin_store(&resumable->claim, body->claim)) {
        fail_lost(body);
        return;
    }
    /* Only now: a request that has taken over may have stored more than this body's length. */
    assert(body->begin + body->received <= body->most);
    if (piece->length > body->most - body->begin - body->received)
        failure_refuse(&body->failure, PROBLEM_TOO_LARGE,
                       "the piece extends past the upload's end");
    else
        store_piece(body, piece);
    claim_end_store(&resumable->claim, body->claim);
}

static const struct body_receiver receiver = {
    .receive = receive, .on_workers = true, .keeps_parts = true};

/* --- life --- */

static void leave(struct tus_body *body)
{
    assert(!body->has_entered || body->resumable != NULL);
    if (body->has_entered)
        resumable_leave(body->resumable);
    body->has_entered = false;
}

static void free_body(struct tus_body *body)
{
    assert(!body->has_entered || body->resumable != NULL);
    leave(body);
    staged_file_close(body->chunk);
    kept_upload_release(body->resumable);
    free(body);
}

static void run_drop(struct job *job)
{
    struct tus_body *body = (struct tus_body *)((char *)job - offsetof(struct tus_body, job));

    assert(body->is_creation && body->claim != 0);
    resumable_drop(body->resumable);
    free_body(body);
}

/* Returns true if no client can know the upload, so that it ends with its first request. */
static bool is_unknown(const struct tus_body *body)
{
    assert(body->claim == 0 || body->resumable != NULL);
    return body->is_creation && (!body->is_finished || body->failure.is_set) && body->claim != 0 &&
           claim_confirm(&body->resumable->claim, body->claim);
}

/* Called when the request has ended, or its client is gone. */
static void release(void *thing)
{
    struct tus_body *body = thing;

    if (is_unknown(body) && resumable_state(body->resumable) != RESUMABLE_GONE) {
        body->job.run = run_drop;
        workers_submit(body->server->workers, &body->job);
        return;
    }
    leave(body);
    if (body->resumable != NULL)
        resumable_end_claim(body->resumable, &body->claim);
    free_body(body);
}

struct tus_body *tus_body_new(struct request *request)
{
    struct tus_body *body = calloc(1, sizeof(*body));

    if (body == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    body->server = request->server;
    body->stated_length = RESUMABLE_UNKNOWN;
    body->job.client = request_client_key(request);
    request->context = body;
    request->receiver = &receiver;
    request_hold(request, body, release);
    return body;
}

/* --- before the body --- */

bool tus_refuse_version(struct request *request)
{
    const char *version = request_header(request, "Tus-Resumable");

    if (version != NULL && strcmp(version, TUS_VERSION) == 0)
        return false;
    problem_reply(request, PROBLEM_PRECONDITION_FAILED,
                  "Tus-Resumable: " TUS_VERSION " is required");
    representation_field(&request->reply, "Tus-Version", TUS_VERSION);
    return true;
}

static bool has_media_type(struct request *request)
{
    const char *type = request_header(request, "Content-Type");
    size_t length = strlen(MEDIA_TYPE);

    if (type == NULL || strncasecmp(type, MEDIA_TYPE, length) != 0)
        return false;
    type += length + strspn(type + length, " \t");
    return *type == '\0' || *type == ';';
}

static bool refuse_checksum(struct request *request, struct tus_body *body)
{
    const char *checksum = request_header(request, "Upload-Checksum");

    if (checksum == NULL)
        return false;
    switch (tus_checksum_parse(checksum, &body->checksum)) {
    case TUS_CHECKSUM_KNOWN:
        body->has_checksum = true;
        return false;
    case TUS_CHECKSUM_UNKNOWN:
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "Upload-Checksum: only sha1 and sha256 are supported");
        return true;
    case TUS_CHECKSUM_MALFORMED:
        break;
    }
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "Upload-Checksum is malformed: an algorithm, a space, base64");
    return true;
}

bool tus_body_refuse_fields(struct request *request, struct tus_body *body)
{
    if (!has_media_type(request)) {
        problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                      "the Content-Type of a piece is " MEDIA_TYPE);
        return true;
    }
    /* The Repr-Digest of a creation describes the whole file, and is stored with the upload. */
    return write_refuse_coding(request) ||
           write_refuse_digests(request, &body->content_digest,
                                body->is_creation ? NULL : &body->repr_digest) ||
           refuse_checksum(request, body);
}

static bool states_any(const struct digest_field *digest)
{
    return digest->has_sha256 || digest->has_sha512;
}

static bool is_checked(const struct tus_body *body)
{
    return body->has_checksum || states_any(&body->content_digest) ||
           states_any(&body->repr_digest);
}

/* Returns the total length, or its maximum if the length is not known yet. */
static uint64_t find_most(struct request *request, const struct tus_body *body)
{
    uint64_t length = atomic_load(&body->resumable->length);
    uint64_t most = (uint64_t)config_number(&request->server->config->upload.max_bytes);

    if (length == RESUMABLE_UNKNOWN)
        length = body->stated_length;
    if (length != RESUMABLE_UNKNOWN)
        return length;
    /* The setting may have been lowered since. */
    return most > body->begin ? most : body->begin;
}

static bool refuse_past_end(struct request *request, const struct tus_body *body)
{
    uint64_t length = request_body_length(request);

    /* A request that has taken over may have stored more. The claim then ends this one. */
    if (length == UINT64_MAX || body->begin > body->most || length <= body->most - body->begin)
        return false;
    problem_reply(request, PROBLEM_TOO_LARGE,
                  "the piece extends past the upload's end, which is at %llu at the latest",
                  (unsigned long long)body->most);
    return true;
}

/* Claims space for the body. Space for bytes that did not arrive is released when the request
 * ends. */
static enum zt_status take_space(struct request *request, const struct tus_body *body,
                                 struct zt_error *error)
{
    const uint64_t length = request_body_length(request);

    assert(body->has_entered);
    /* Without data, the upload has been removed meanwhile: the claim will say so. */
    return length != UINT64_MAX && length > 0 && body->resumable->data != NULL
               ? staged_file_take_space(body->resumable->data, length, error)
               : ZT_OK;
}

/* If this loop was held up for long, another request may have taken over and stated a length. */
static bool set_length(struct tus_body *body)
{
    if (body->stated_length == RESUMABLE_UNKNOWN)
        return true;
    if (!claim_begin_store(&body->resumable->claim, body->claim))
        return fail_lost(body);
    resumable_set_length(body->resumable, body->stated_length);
    claim_end_store(&body->resumable->claim, body->claim);
    return true;
}

bool tus_body_refuse_start(struct request *request, struct tus_body *body)
{
    struct store *store = body->server->store;
    struct zt_error error;
    enum zt_status status;

    assert(body->claim != 0 && !body->has_entered && body->chunk == NULL);
    body->begin = atomic_load(&body->resumable->kept.entry.received);
    body->most = find_most(request, body);
    atomic_store(&body->resumable->follower.client, request_client_key(request));
    if (refuse_past_end(request, body))
        return true;
    body->has_entered = resumable_enter(body->resumable, &body->failure);
    if (!body->has_entered) {
        failure_reply(request, &body->failure);
        return true;
    }
    status = is_checked(body) ? staging_create(store->staging, request_body_length(request),
                                               &body->chunk, &error)
                              : take_space(request, body, &error);
    if (status != ZT_OK) {
        failure_of_store(&body->failure, &error);
        failure_reply(request, &body->failure);
        return true;
    }
    if (set_length(body))
        return false;
    failure_reply(request, &body->failure);
    return true;
}

/* --- its end, on a worker --- */

static bool hash_chunk(struct tus_body *body, enum zt_digest_algorithm algorithm,
                       struct zt_digest *out_digest)
{
    struct zt_error error;

    assert(body->chunk != NULL && staged_file_length(body->chunk) == body->received);
    return staged_file_digest(body->chunk, algorithm, NULL, out_digest, &error) == ZT_OK ||
           failure_of_store(&body->failure, &error);
}

static bool check_checksum(struct tus_body *body)
{
    struct zt_digest actual = {0};

    if (!body->has_checksum)
        return true;
    return hash_chunk(body, body->checksum.algorithm, &actual) &&
           (zt_digest_equal(&actual, &body->checksum) ||
            failure_refuse(&body->failure, PROBLEM_CHECKSUM_MISMATCH,
                           "the piece does not match Upload-Checksum"));
}

static bool check_bytes(struct tus_body *body, enum zt_digest_algorithm algorithm,
                        const uint8_t *expected, const char *message)
{
    struct zt_digest actual = {0};

    assert(algorithm == ZT_DIGEST_SHA256 || algorithm == ZT_DIGEST_SHA512);
    return hash_chunk(body, algorithm, &actual) &&
           (memcmp(actual.bytes, expected, actual.length_bytes) == 0 ||
            failure_refuse(&body->failure, PROBLEM_DIGEST_MISMATCH, "%s", message));
}

static bool check_digest(struct tus_body *body, const struct digest_field *digest,
                         const char *message)
{
    return (!digest->has_sha256 || check_bytes(body, ZT_DIGEST_SHA256, digest->sha256, message)) &&
           (!digest->has_sha512 || check_bytes(body, ZT_DIGEST_SHA512, digest->sha512, message));
}

static bool check_chunk(struct tus_body *body)
{
    return check_checksum(body) &&
           check_digest(body, &body->content_digest,
                        "the body does not match the digest in Content-Digest") &&
           check_digest(
               body, &body->repr_digest,
               "the piece does not match the digest in Repr-Digest; state the whole file's "
               "digest at creation");
}

static bool append_chunk(struct tus_body *body)
{
    struct zt_error error;

    assert(body->chunk != NULL);
    /* No bytes: succeeds also for an upload that is already published and has no file any more. */
    if (body->received == 0)
        return true;
    assert(atomic_load(&body->resumable->kept.entry.received) == body->begin);
    assert(body->begin + body->received <= atomic_load(&body->resumable->length));
    if (staged_file_copy(body->chunk, 0, body->resumable->data, body->begin, body->received,
                         &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    resumable_advance(body->resumable, body->received);
    return true;
}

static bool make_durable(struct tus_body *body)
{
    struct zt_error error;

    if (body->is_creation && resumable_files_sync(body->resumable, &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    if (resumable_make_durable(body->resumable, &error) == ZT_OK)
        return true;
    if (!body->is_creation && atomic_load(&body->resumable->has_failed_write))
        resumable_put_down(body->resumable);
    return failure_of_store(&body->failure, &error);
}

static bool publish_whole(struct tus_body *body, const struct request *request)
{
    struct resumable *resumable = body->resumable;

    if (resumable_state(resumable) == RESUMABLE_PUBLISHED)
        return resumable_complete(resumable, &body->failure);
    return resumable->role == RESUMABLE_PART || !resumable_is_whole(resumable) ||
           (resumable_publish(resumable, request, &body->failure) &&
            resumable_report(resumable, &body->failure));
}

void tus_body_work(struct request *request)
{
    struct tus_body *body = request->context;
    bool finished = claim_confirm(&body->resumable->claim, body->claim) || fail_lost(body);

    assert(body->claim != 0);
    assert(!body->is_finished);
    body->is_finished = true;
    finished = finished && !body->failure.is_set &&
               (body->chunk == NULL || (check_chunk(body) && append_chunk(body))) &&
               make_durable(body) && publish_whole(body, request);
    assert(finished == !body->failure.is_set);
    body->offset = atomic_load(&body->resumable->durable);
    leave(body);
    /* A failed creation is removed with its request. */
    if (finished || !body->is_creation)
        resumable_end_claim(body->resumable, &body->claim);
}
