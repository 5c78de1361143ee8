/* Bodies of PATCH and of creation. What came of a body that was cut stays, unless its digest was
 * stated: then it may be wrong, and nobody can tell any more. */
#include "upload/tus/tus_body.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "upload/shared/write_checks.h"
#include "upload/tus/tus.h"
#include "upload/tus/tus_fields.h"

#define MEDIA_TYPE  "application/offset+octet-stream"
#define PIECE_BYTES ((size_t)256 << 10)

/* --- failures: the first is kept; always false --- */

static bool fail(struct tus_body *body, enum problem problem, const struct zt_error *error)
{
    if (!body->has_failed) {
        body->has_failed = true;
        body->failure.problem = problem;
        body->failure.error = *error;
    }
    return false;
}

static bool refuse(struct tus_body *body, enum problem problem, const char *message)
{
    struct zt_error error;

    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return fail(body, problem, &error);
}

static bool fail_store(struct tus_body *body, const struct zt_error *error)
{
    return fail(body, problem_of_write(error), error);
}

/* --- life --- */

static void unclaim(struct tus_body *body)
{
    if (body->claim != 0) {
        resumable_unclaim(body->resumable, body->claim);
        body->claim = 0;
    }
}

static void body_free(struct tus_body *body)
{
    body->server->store->ops->abandon(body->chunk);
    resumable_release(body->resumable);
    free(body);
}

static void run_drop(struct job *job)
{
    struct tus_body *body = (struct tus_body *)((char *)job - offsetof(struct tus_body, job));

    resumables_drop(body->server->resumables, body->resumable);
    body_free(body);
}

/* The request is over, or its client gone. */
static void release(void *thing)
{
    struct tus_body *body = thing;
    bool is_unknown = body->is_creation && (!body->is_answerable || body->has_failed);

    if (is_unknown && body->claim != 0 && claim_settle(&body->resumable->claim, body->claim)) {
        body->job.run = run_drop;
        workers_submit(body->server->workers, &body->job);
        return;
    }
    unclaim(body);
    body_free(body);
}

struct tus_body *tus_body_new(struct request *request)
{
    struct tus_body *body = calloc(1, sizeof(*body));

    if (body == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    body->server = request->server;
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
    problem_reply(request, PROBLEM_PRECONDITION_FAILED, "Tus-Resumable: " TUS_VERSION " is wanted");
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

/* Creation's Repr-Digest is that of the whole file, and kept with it. */
static bool refuse_digests(struct request *request, struct tus_body *body)
{
    const char *content = request_header(request, "Content-Digest");
    const char *repr = body->is_creation ? NULL : request_header(request, "Repr-Digest");

    if ((content == NULL || digest_field_parse(content, &body->content_digest)) &&
        (repr == NULL || digest_field_parse(repr, &body->repr_digest)))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "Content-Digest or Repr-Digest is malformed");
    return true;
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
                      "Upload-Checksum: sha1 and sha256 are known here");
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
    return refuse_coding(request) || refuse_digests(request, body) ||
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

bool tus_body_refuse_start(struct request *request, struct tus_body *body)
{
    struct store *store = body->server->store;
    uint64_t length = request_body_length(request);
    struct zt_error error;

    body->begin = atomic_load(&body->resumable->entry.received);
    if (length != UINT64_MAX && length > body->resumable->length - body->begin) {
        problem_reply(request, PROBLEM_TOO_LARGE,
                      "the piece goes past the upload's end: Upload-Length is %llu",
                      (unsigned long long)body->resumable->length);
        return true;
    }
    if (is_checked(body) && store->ops->create(store, length, &body->chunk, &error) != ZT_OK) {
        reply_store_failure(request, &error);
        return true;
    }
    return false;
}

/* --- the body --- */

static bool refuse_lost(struct tus_body *body)
{
    return refuse(body, PROBLEM_CONFLICT,
                  "the upload was ended, or gone on with by another request, meanwhile");
}

static void store_piece(struct tus_body *body, const void *bytes, size_t length)
{
    struct resumable *resumable = body->resumable;
    struct store *store = body->server->store;
    struct zt_error error;
    enum zt_status status =
        body->chunk != NULL
            ? store->ops->write_at(body->chunk, body->received, bytes, length, &error)
            : store->ops->write_at(resumable->data, body->begin + body->received, bytes, length,
                                   &error);

    if (status != ZT_OK) {
        fail_store(body, &error);
        return;
    }
    body->received += length;
    if (body->chunk == NULL)
        resumable_advance(resumable, body->begin + body->received);
    else
        resumable_touch(resumable);
}

void tus_body_receive(struct tus_body *body, const void *bytes, size_t length)
{
    struct resumable *resumable = body->resumable;

    if (body->has_failed)
        return;
    if (length > resumable->length - body->begin - body->received) {
        refuse(body, PROBLEM_TOO_LARGE, "the piece goes past the upload's end");
        return;
    }
    if (!claim_begin_store(&resumable->claim, body->claim)) {
        refuse_lost(body);
        return;
    }
    store_piece(body, bytes, length);
    claim_end_store(&resumable->claim, body->claim);
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
    return status == ZT_OK || fail_store(body, &error);
}

static bool check_checksum(struct tus_body *body)
{
    struct zt_digest actual = {0};

    if (!body->has_checksum)
        return true;
    return hash_chunk(body, body->checksum.algorithm, &actual) &&
           (zt_digest_equal(&actual, &body->checksum) ||
            refuse(body, PROBLEM_CHECKSUM_MISMATCH,
                   "the piece does not have the checksum of Upload-Checksum"));
}

static bool check_bytes(struct tus_body *body, enum zt_digest_algorithm algorithm,
                        const uint8_t *expected, const char *message)
{
    struct zt_digest actual = {0};

    return hash_chunk(body, algorithm, &actual) &&
           (memcmp(actual.bytes, expected, actual.length_bytes) == 0 ||
            refuse(body, PROBLEM_DIGEST_MISMATCH, message));
}

static bool check_digest(struct tus_body *body, const struct digest_field *digest,
                         const char *message)
{
    return (!digest->has_sha256 || check_bytes(body, ZT_DIGEST_SHA256, digest->sha256, message)) &&
           (!digest->has_sha512 || check_bytes(body, ZT_DIGEST_SHA512, digest->sha512, message));
}

static bool take_chunk(struct tus_body *body)
{
    struct zt_error error;

    if (!check_checksum(body) ||
        !check_digest(body, &body->content_digest,
                      "the body does not have the digest of Content-Digest") ||
        !check_digest(body, &body->repr_digest,
                      "the piece does not have the digest of Repr-Digest; creation is where to "
                      "state the whole file's"))
        return false;
    if (body->server->store->ops->copy(body->chunk, 0, body->resumable->data, body->begin,
                                       body->received, &error) != ZT_OK)
        return fail_store(body, &error);
    resumable_advance(body->resumable, body->begin + body->received);
    return true;
}

static bool settle(struct tus_body *body)
{
    struct zt_error error;

    if (body->is_creation && resumable_files_sync(body->resumable, &error) != ZT_OK)
        return fail_store(body, &error);
    return resumable_settle(body->resumable, &error) == ZT_OK || fail_store(body, &error);
}

static bool publish_whole(struct tus_body *body)
{
    struct resumable *resumable = body->resumable;
    struct resumable_failure failure;

    if (atomic_load(&resumable->is_published) ||
        atomic_load(&resumable->entry.received) < resumable->length)
        return true;
    return resumable_publish(resumable, &failure) || fail(body, failure.problem, &failure.error);
}

bool tus_body_finish(struct tus_body *body)
{
    bool is_held;
    bool finished;

    body->is_answerable = true;
    is_held = claim_settle(&body->resumable->claim, body->claim) || refuse_lost(body);
    finished = is_held && !body->has_failed && (body->chunk == NULL || take_chunk(body)) &&
               settle(body) && publish_whole(body);
    body->offset = atomic_load(&body->resumable->durable);
    /* A creation that failed is nobody's: it goes when its request does. */
    if (finished || !body->is_creation)
        unclaim(body);
    return finished;
}
