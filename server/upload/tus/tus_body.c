/* Bodies of PATCH and of creation. The received part of an interrupted body stays, unless the
 * client stated its digest, which can then no longer be checked. */
#include "upload/tus/tus_body.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/exchange/authorize.h"
#include "http/exchange/client.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/tus.h"
#include "upload/tus/tus_fields.h"

#define MEDIA_TYPE  "application/offset+octet-stream"
#define PIECE_BYTES ((size_t)256 << 10)

/* --- life --- */

static void free_body(struct tus_body *body)
{
    body->server->store->ops->abandon(body->chunk);
    kept_upload_release(body->resumable);
    free(body);
}

static void run_drop(struct job *job)
{
    struct tus_body *body = (struct tus_body *)((char *)job - offsetof(struct tus_body, job));

    resumable_drop(body->resumable);
    free_body(body);
}

/* Whether no client can know the upload, so that it ends with its first request. */
static bool is_unknown(const struct tus_body *body)
{
    return body->is_creation && (!body->is_finished || body->failure.is_set) && body->claim != 0 &&
           claim_confirm(&body->resumable->claim, body->claim);
}

/* Called when the request is over, or its client gone. */
static void release(void *thing)
{
    struct tus_body *body = thing;

    if (is_unknown(body) && resumable_state(body->resumable) != RESUMABLE_GONE) {
        body->job.run = run_drop;
        workers_submit(body->server->workers, &body->job);
        return;
    }
    if (body->resumable != NULL)
        resumable_end_claim(body->resumable, &body->claim);
    free_body(body);
}

struct tus_body *tus_body_new(struct request *request)
{
    struct tus_body *body = calloc(1, sizeof(*body));

    if (body == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    body->server = request->server;
    body->stated_length = RESUMABLE_UNKNOWN;
    body->job.client = request_client_key(request);
    request->context = body;
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
                  "Upload-Checksum is malformed: an algorithm, a blank, base64");
    return true;
}

bool tus_body_refuse_fields(struct request *request, struct tus_body *body)
{
    if (!has_media_type(request)) {
        problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                      "the Content-Type of a piece is " MEDIA_TYPE);
        return true;
    }
    /* The Repr-Digest of a creation is that of the whole file, and is kept with it. */
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

/* Where the upload ends; or where it may end at the latest, as long as nobody knows. */
static uint64_t find_most(struct request *request, const struct tus_body *body)
{
    uint64_t length = atomic_load(&body->resumable->length);
    uint64_t most = (uint64_t)config_number(&request->server->config->upload.max_bytes);

    if (length == RESUMABLE_UNKNOWN)
        length = body->stated_length;
    if (length != RESUMABLE_UNKNOWN)
        return length;
    /* The setting may have been lowered meanwhile. */
    return most > body->begin ? most : body->begin;
}

static bool refuse_past_end(struct request *request, const struct tus_body *body)
{
    uint64_t length = request_body_length(request);

    if (length == UINT64_MAX || length <= body->most - body->begin)
        return false;
    problem_reply(request, PROBLEM_TOO_LARGE,
                  "the piece extends past the upload's end, which is at %llu at the latest",
                  (unsigned long long)body->most);
    return true;
}

bool tus_body_refuse_start(struct request *request, struct tus_body *body)
{
    struct store *store = body->server->store;
    struct zt_error error;

    body->begin = atomic_load(&body->resumable->kept.entry.received);
    body->most = find_most(request, body);
    atomic_store(&body->resumable->follower.client, request_client_key(request));
    if (refuse_past_end(request, body))
        return true;
    if (is_checked(body) &&
        store->ops->create(store, request_body_length(request), &body->chunk, &error) != ZT_OK) {
        failure_of_store(&body->failure, &error);
        failure_reply(request, &body->failure);
        return true;
    }
    if (body->stated_length != RESUMABLE_UNKNOWN)
        resumable_set_length(body->resumable, body->stated_length);
    return false;
}

/* --- the body --- */

static bool fail_lost(struct tus_body *body)
{
    return failure_refuse(&body->failure, PROBLEM_CONFLICT,
                          "the upload was ended, or continued by another request, meanwhile");
}

/* Reports bytes that were written: resumable_advance or resumable_count. */
typedef void report_function(struct resumable *resumable, uint64_t length);

static void store_piece(struct tus_body *body, const void *bytes, size_t length,
                        report_function *report)
{
    struct resumable *resumable = body->resumable;
    struct stored_upload *to = body->chunk != NULL ? body->chunk : resumable->data;
    uint64_t at = body->chunk != NULL ? body->received : body->begin + body->received;
    struct zt_error error;

    if (body->server->store->ops->write_at(to, at, bytes, length, &error) != ZT_OK) {
        failure_of_store(&body->failure, &error);
        return;
    }
    atomic_fetch_add(&body->received, length);
    if (body->chunk == NULL)
        report(resumable, length);
    else
        resumable_touch(resumable);
}

static void take_piece(struct tus_body *body, const void *bytes, size_t length,
                       report_function *report)
{
    struct resumable *resumable = body->resumable;

    if (body->failure.is_set)
        return;
    assert(!body->is_finished && body->begin + body->received <= body->most);
    if (length > body->most - body->begin - body->received) {
        failure_refuse(&body->failure, PROBLEM_TOO_LARGE,
                       "the piece extends past the upload's end");
        return;
    }
    if (!claim_begin_store(&resumable->claim, body->claim)) {
        fail_lost(body);
        return;
    }
    store_piece(body, bytes, length, report);
    claim_end_store(&resumable->claim, body->claim);
}

void tus_body_receive(struct tus_body *body, const void *bytes, size_t length)
{
    take_piece(body, bytes, length, resumable_advance);
}

void tus_body_store(struct tus_body *body, const struct body_piece *piece)
{
    take_piece(body, piece->bytes, piece->length, resumable_count);
}

/* Only what this body has stored already: if storing fails, or another request continues the upload
 * meanwhile, other bytes will stand there. What is left out is read back from the file. A body with
 * a stated digest is hashed when it is appended. */
void tus_body_digest(struct tus_body *body, const struct body_piece *piece)
{
    if (body->chunk == NULL && piece->offset + piece->length <= atomic_load(&body->received))
        body_follower_take(&body->resumable->follower, body->begin + piece->offset, piece->bytes,
                           piece->length);
}

/* --- its end, on a worker --- */

static bool hash_chunk(struct tus_body *body, enum zt_digest_algorithm algorithm,
                       struct zt_digest *out_digest)
{
    struct zt_source *source;
    struct zt_hasher *hasher = NULL;
    struct zt_error error;
    uint8_t *buffer = malloc(PIECE_BYTES);
    enum zt_status status = buffer != NULL ? zt_hasher_new(algorithm, &hasher) : ZT_NO_MEMORY;

    zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to hash with");
    if (status == ZT_OK)
        status = body->server->store->ops->read_back(body->chunk, &source, &error);
    for (uint64_t at = 0; status == ZT_OK && at < body->received; at += PIECE_BYTES) {
        uint64_t left = body->received - at;
        size_t length = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

        status = zt_source_read_at(source, at, buffer, length, &error);
        if (status == ZT_OK)
            zt_hasher_update(hasher, buffer, length);
    }
    if (status == ZT_OK)
        zt_hasher_finish(hasher, out_digest);
    zt_hasher_free(hasher);
    free(buffer);
    return status == ZT_OK || failure_of_store(&body->failure, &error);
}

static bool check_checksum(struct tus_body *body)
{
    struct zt_digest actual = {0};

    if (!body->has_checksum)
        return true;
    return hash_chunk(body, body->checksum.algorithm, &actual) &&
           (zt_digest_equal(&actual, &body->checksum) ||
            failure_refuse(&body->failure, PROBLEM_CHECKSUM_MISMATCH,
                           "the piece does not have the checksum of Upload-Checksum"));
}

static bool check_bytes(struct tus_body *body, enum zt_digest_algorithm algorithm,
                        const uint8_t *expected, const char *message)
{
    struct zt_digest actual = {0};

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
                        "the body does not have the digest of Content-Digest") &&
           check_digest(body, &body->repr_digest,
                        "the piece does not have the digest of Repr-Digest; creation is where to "
                        "state the whole file's");
}

static bool append_chunk(struct tus_body *body)
{
    struct zt_error error;

    /* So also for an upload that is already published and has no file any more. */
    if (body->received == 0)
        return true;
    assert(atomic_load(&body->resumable->kept.entry.received) == body->begin);
    if (body->server->store->ops->copy(body->chunk, 0, body->resumable->data, body->begin,
                                       body->received, &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    resumable_advance(body->resumable, body->received);
    return true;
}

static bool make_durable(struct tus_body *body)
{
    struct zt_error error;

    if (body->is_creation && resumable_files_sync(body->resumable, &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    return resumable_make_durable(body->resumable, &error) == ZT_OK ||
           failure_of_store(&body->failure, &error);
}

static bool publish_whole(struct tus_body *body, struct name_filter covers)
{
    struct resumable *resumable = body->resumable;

    return resumable_state(resumable) == RESUMABLE_PUBLISHED || resumable->role == RESUMABLE_PART ||
           !resumable_is_whole(resumable) || resumable_publish(resumable, covers, &body->failure);
}

void tus_body_work(struct request *request)
{
    struct tus_body *body = request->context;
    bool finished = claim_confirm(&body->resumable->claim, body->claim) || fail_lost(body);

    assert(!body->is_finished);
    body->is_finished = true;
    finished = finished && !body->failure.is_set &&
               (body->chunk == NULL || (check_chunk(body) && append_chunk(body))) &&
               make_durable(body) && publish_whole(body, authorize_filter(request));
    assert(finished == !body->failure.is_set);
    body->offset = atomic_load(&body->resumable->durable);
    /* A failed creation is removed with its request. */
    if (finished || !body->is_creation)
        resumable_end_claim(body->resumable, &body->claim);
}
