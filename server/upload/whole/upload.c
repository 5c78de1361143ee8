/* PUT from the first byte of the body to the answer; refusals before the body are upload_begin.c's.
 */
#include "upload/whole/upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/fields/href.h"
#include "upload/whole/upload_state.h"

/* Freeing the blocks of an unnamed file takes as long as it is large. */
#define SLOW_TO_FREE_BYTES ((uint64_t)64 << 20)

static struct upload *upload_of_job(struct job *job)
{
    return (struct upload *)((char *)job - offsetof(struct upload, job));
}

/* --- failures: the first is kept; always false, so that a step can end with them --- */

static bool upload_fail(struct upload *upload, enum problem problem, const struct zt_error *error)
{
    if (!upload->has_failed) {
        upload->has_failed = true;
        upload->problem = problem;
        upload->error = *error;
    }
    return false;
}

static bool upload_refuse(struct upload *upload, enum problem problem, const char *message)
{
    struct zt_error error;

    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return upload_fail(upload, problem, &error);
}

static bool upload_fail_store(struct upload *upload, const struct zt_error *error)
{
    return upload_fail(upload, problem_of_write(error), error);
}

/* --- life --- */

static void run_follow(struct job *job);

/* The client may begin another when it has its answer: so this comes before that. */
static void unregister(struct upload *upload)
{
    if (upload->is_registered) {
        upload->is_registered = false;
        registry_remove(upload->server->registry, &upload->entry);
    }
}

static void upload_free(struct upload *upload)
{
    unregister(upload);
    upload->server->store->ops->abandon(upload->publication.stored);
    upload_hash_free(&upload->hash);
    free(upload);
}

static void upload_hold(struct upload *upload)
{
    atomic_fetch_add(&upload->references, 1);
}

static void upload_release(struct upload *upload)
{
    if (atomic_fetch_sub(&upload->references, 1) == 1)
        upload_free(upload);
}

static void run_release(struct job *job)
{
    upload_release(upload_of_job(job));
}

/* The request is over. A worker frees what takes long; the job is free to be used when nobody else
 * has a reference. */
static void release_from_loop(void *thing)
{
    struct upload *upload = thing;
    bool is_last = atomic_load(&upload->references) == 1;

    if (is_last && upload->publication.stored != NULL &&
        atomic_load(&upload->entry.received) > SLOW_TO_FREE_BYTES) {
        upload->job.run = run_release;
        workers_submit(upload->server->workers, &upload->job);
    } else {
        upload_release(upload);
    }
}

struct upload *upload_new(struct request *request)
{
    struct upload *upload = calloc(1, sizeof(*upload));

    if (upload == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    request->context = upload;
    request_hold(request, upload, release_from_loop);
    atomic_init(&upload->references, 1);
    upload->job.run = run_follow;
    upload->server = request->server;
    memcpy(upload->name, request->names[0].bytes, request->names[0].length);
    upload->publication.server = request->server;
    upload->publication.name = upload->name;
    return upload;
}

/* --- the body, and hashing behind it --- */

/* A failure here is met again, and told, when the rest is hashed. */
static void run_follow(struct job *job)
{
    struct upload *upload = upload_of_job(job);
    struct zt_error error;
    uint64_t end = atomic_load(&upload->entry.received);
    uint64_t most = atomic_load(&upload->hash.hashed) + UPLOAD_HASH_JOB_BYTES;

    (void)upload_hash_to(&upload->hash, upload->server->store, upload->publication.stored,
                         end < most ? end : most, &error);
    atomic_store(&upload->is_queued, false);
    upload_release(upload);
}

/* Lets a worker catch up when it is worth a job. */
static void follow(struct upload *upload)
{
    uint64_t left = atomic_load(&upload->entry.received) - atomic_load(&upload->hash.hashed);

    if (left < UPLOAD_HASH_FOLLOW_BYTES || atomic_load(&upload->is_queued))
        return;
    atomic_store(&upload->is_queued, true);
    upload_hold(upload);
    workers_submit(upload->server->workers, &upload->job);
}

static void run_give_up(struct job *job)
{
    struct upload *upload = upload_of_job(job);

    upload->server->store->ops->abandon(upload->publication.stored);
    upload->publication.stored = NULL;
    upload_release(upload);
}

/* What was stored of a body that is refused goes at once: a full disk is not to wait for a slow
 * client. The job may be hashing still; then a later piece of the body finds it free. */
static void give_up(struct upload *upload)
{
    if (upload->has_given_up || atomic_exchange(&upload->is_queued, true))
        return;
    upload->has_given_up = true;
    upload->job.run = run_give_up;
    upload_hold(upload);
    workers_submit(upload->server->workers, &upload->job);
}

static bool store_piece(struct upload *upload, const void *bytes, size_t length)
{
    struct zt_error error;
    uint64_t received = atomic_load(&upload->entry.received);
    uint64_t most = (uint64_t)upload->server->config->upload.max_bytes;

    if (received > most || length > most - received) {
        return upload_refuse(upload, PROBLEM_TOO_LARGE,
                             "the body is larger than this server takes");
    }
    if (upload->server->store->ops->write_at(upload->publication.stored, received, bytes, length,
                                             &error) != ZT_OK)
        return upload_fail_store(upload, &error);
    atomic_store(&upload->entry.received, received + length);
    atomic_store(&upload->entry.active, time(NULL));
    return true;
}

/* The first piece is small, and hashed at once: so those after it can be, wherever they go
 * (model_put_digest). */
void model_put_receive(struct request *request, const void *bytes, size_t length)
{
    struct upload *upload = request->context;
    bool is_first = atomic_load(&upload->entry.received) == 0;

    if (upload->has_failed) {
        give_up(upload);
        return;
    }
    if (!store_piece(upload, bytes, length))
        return;
    if (is_first)
        upload_hash_append(&upload->hash, bytes, length);
    follow(upload);
}

void model_put_store(struct request *request, const struct body_piece *piece)
{
    struct upload *upload = request->context;

    if (upload->has_failed)
        give_up(upload);
    else
        store_piece(upload, piece->bytes, piece->length);
}

void model_put_digest(struct request *request, const struct body_piece *piece)
{
    struct upload *upload = request->context;

    upload_hash_append(&upload->hash, piece->bytes, piece->length);
}

/* --- the answer --- */

static enum outcome reply_published(struct request *request, const struct upload *upload)
{
    struct href href;
    char digest[DIGEST_FIELD_SIZE];
    struct representation *reply;

    href_init(&href);
    href_model(&href, request->names[0]);
    digest_field_format(upload->publication.sha256, digest);
    reply_empty(request, upload->publication.replaced ? 204 : 201);
    reply = &request->reply;
    representation_field(reply, "Location",
                         href.failed ? NULL : request_print(request, "%s", href.text));
    representation_field(reply, "Repr-Digest", request_print(request, "%s", digest));
    reply->etag = upload->publication.etag[0] != '\0' ? upload->publication.etag : NULL;
    href_free(&href);
    return OUTCOME_READY;
}

static bool agrees(const struct digest_field *field, const uint8_t sha256[32],
                   const uint8_t sha512[64])
{
    return (!field->has_sha256 || memcmp(field->sha256, sha256, sizeof(field->sha256)) == 0) &&
           (!field->has_sha512 || memcmp(field->sha512, sha512, sizeof(field->sha512)) == 0);
}

/* Hashes what is left and compares with what the request stated. */
static bool finish_hash(struct upload *upload)
{
    uint8_t *sha256 = upload->publication.sha256;
    uint8_t sha512[64] = {0};
    struct zt_error error;

    if (upload_hash_to(&upload->hash, upload->server->store, upload->publication.stored,
                       atomic_load(&upload->entry.received), &error) != ZT_OK)
        return upload_fail_store(upload, &error);
    upload_hash_finish(&upload->hash, sha256, sha512);
    if (!agrees(&upload->content_digest, sha256, sha512)) {
        return upload_refuse(upload, PROBLEM_DIGEST_MISMATCH,
                             "the body does not have the digest of Content-Digest");
    }
    if (!agrees(&upload->repr_digest, sha256, sha512)) {
        return upload_refuse(upload, PROBLEM_DIGEST_MISMATCH,
                             "the body does not have the digest of Repr-Digest");
    }
    return true;
}

static void work_finish(struct request *request)
{
    struct upload *upload = request->context;
    bool published = finish_hash(upload) &&
                     (publication_run(&upload->publication) ||
                      upload_fail(upload, upload->publication.problem, &upload->publication.error));

    upload->state = published ? UPLOAD_PUBLISHED : UPLOAD_FAILED;
    unregister(upload);
}

enum outcome model_put_handle(struct request *request)
{
    struct upload *upload = request->context;

    if (upload->state == UPLOAD_RECEIVING && !upload->has_failed) {
        upload->state = UPLOAD_FINISHING;
        return request_work(request, work_finish);
    }
    if (upload->state == UPLOAD_PUBLISHED)
        return reply_published(request, upload);
    return problem_reply_error_as(request, upload->problem, &upload->error);
}
