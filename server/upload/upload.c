/* The request's side of an upload: refusals before the body, the body, the answer. */
#include "upload/upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/href.h"
#include "upload/upload_state.h"

/* NAME_MAX of Linux file systems. */
#define FILE_NAME_MAX 255
/* Said to a client that sends as many files as it may: one of them may be done by then. */
#define RETRY_AFTER_S "5"
/* Freeing the blocks of an unnamed file takes as long as it is large. */
#define SLOW_TO_FREE_BYTES ((uint64_t)64 << 20)

/* --- failures --- */

bool upload_fail(struct upload *upload, enum problem problem, const struct zt_error *error)
{
    if (!upload->has_failed) {
        upload->has_failed = true;
        upload->problem = problem;
        upload->error = *error;
    }
    return false;
}

bool upload_refuse(struct upload *upload, enum problem problem, const char *message)
{
    struct zt_error error;
    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return upload_fail(upload, problem, &error);
}

bool upload_fail_store(struct upload *upload, const struct zt_error *error)
{
    return upload_fail(upload, error->status == ZT_LIMIT ? PROBLEM_INSUFFICIENT_STORAGE : PROBLEM_INTERNAL, error);
}

/* --- life --- */

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
    upload_hash_free(upload);
    free(upload);
}

void upload_hold(struct upload *upload)
{
    atomic_fetch_add(&upload->references, 1);
}

void upload_release(struct upload *upload)
{
    if (atomic_fetch_sub(&upload->references, 1) == 1) {
        upload_free(upload);
    }
}

static void run_release(struct job *job)
{
    upload_release((struct upload *)((char *)job - offsetof(struct upload, hash.job)));
}

/* The request is over. A worker frees what takes long; the job is free to be used when nobody else has a reference. */
static void release_from_loop(void *thing)
{
    struct upload *upload = thing;
    bool is_last = atomic_load(&upload->references) == 1;
    if (is_last && upload->publication.stored != NULL && atomic_load(&upload->received) > SLOW_TO_FREE_BYTES) {
        upload->hash.job.run = run_release;
        workers_submit(upload->server->workers, &upload->hash.job);
    } else {
        upload_release(upload);
    }
}

/* NULL when memory is out. */
static struct upload *upload_new(struct request *request)
{
    struct upload *upload = calloc(1, sizeof *upload);
    if (upload == NULL) {
        return NULL;
    }
    atomic_init(&upload->references, 1);
    pthread_mutex_init(&upload->hash.lock, NULL);
    upload->server = request->server;
    memcpy(upload->name, request->names[0].bytes, request->names[0].length);
    upload->publication.server = request->server;
    upload->publication.name = upload->name;
    return upload;
}

/* --- begin: refusals in the order of the contract, before a byte of the body; each true when it replied --- */

/* The last part becomes the name of a file. */
static bool name_fits(struct zt_text name)
{
    const char *slash = memrchr(name.bytes, '/', name.length);
    size_t last = slash != NULL ? (size_t)(name.bytes + name.length - slash - 1) : name.length;
    return last + strlen(".zt") <= FILE_NAME_MAX;
}

static bool refuse_request(struct request *request)
{
    if (!request->server->config->writable) {
        problem_reply(request, PROBLEM_READ_ONLY, "writing is turned off on this server");
        return true;
    }
    if (!model_name_is_valid(request->names[0]) || !name_fits(request->names[0])) {
        problem_reply(
            request, PROBLEM_INVALID_NAME,
            "a model's name is parts of letters, digits, '.', '_' and '-' joined by '/' (as %%2F), and fits a "
            "file's name");
        return true;
    }
    if (request_header(request, "Content-Range") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "a model is put as a whole: no Content-Range");
        return true;
    }
    const char *coding = request_header(request, "Content-Encoding");
    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE, "the body is the file itself: no Content-Encoding");
        return true;
    }
    return false;
}

static bool refuse_digests(struct request *request, struct upload *upload)
{
    const char *content = request_header(request, "Content-Digest");
    const char *repr = request_header(request, "Repr-Digest");
    if ((content == NULL || digest_field_parse(content, &upload->content_digest)) &&
        (repr == NULL || digest_field_parse(repr, &upload->repr_digest))) {
        return false;
    }
    problem_reply(request, PROBLEM_INVALID_REQUEST, "Content-Digest or Repr-Digest is malformed");
    return true;
}

static void forget_waiter(struct waiter *waiter)
{
    free(waiter);
}

typedef enum catalog_answer (*catalog_question)(struct catalog *catalog, struct zt_text text, struct waiter *waiter,
                                                struct generation **out_generation);

/* Asks without waiting: nobody may wait before the body. */
static enum catalog_answer ask_now(struct request *request, catalog_question question, struct zt_text text,
                                   struct generation **out_current)
{
    struct waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter == NULL) {
        return CATALOG_PENDING;
    }
    waiter->wake = forget_waiter;
    enum catalog_answer answer = question(request->server->catalog, text, waiter, out_current);
    if (answer != CATALOG_PENDING) {
        free(waiter);
    }
    return answer;
}

/* What stands under the name, a data shard too: those are found by path only. False when a scan has to tell first; then
 * the preconditions are checked at publication only. */
static bool find_now(struct request *request, struct generation **out_current)
{
    struct zt_text name = request->names[0];
    char path[MODEL_NAME_MAX + sizeof ".zt"];
    *out_current = NULL;
    enum catalog_answer answer = ask_now(request, catalog_find, name, out_current);
    if (answer == CATALOG_NOT_FOUND) {
        int length = snprintf(path, sizeof path, "%.*s.zt", (int)name.length, name.bytes);
        answer = ask_now(request, catalog_find_path, (struct zt_text){path, (size_t)length}, out_current);
    }
    return answer != CATALOG_PENDING;
}

static bool refuse_preconditions(struct request *request, struct upload *upload)
{
    struct generation *current;
    upload->publication.preconditions = (struct preconditions){
        .if_match = request_header(request, "If-Match"),
        .if_none_match = request_header(request, "If-None-Match"),
        .if_unmodified_since = request_header(request, "If-Unmodified-Since"),
    };
    if (!find_now(request, &current)) {
        return false;
    }
    bool hold = publication_preconditions_hold(&upload->publication.preconditions, current);
    generation_release(current);
    if (!hold) {
        problem_reply(request, PROBLEM_PRECONDITION_FAILED,
                      "what stands under the name is not what the request asks for");
    }
    return !hold;
}

/* Counts the body in; true when the client sends as many already as it may. */
static bool refuse_crowd(struct request *request, struct upload *upload)
{
    struct registry_entry *entry = &upload->entry;
    unsigned limit = (unsigned)request->server->config->upload.open_per_client;
    entry->kind = UPLOAD_KIND_FILE;
    registry_make_id(entry->id);
    strcpy(entry->model, upload->name);
    request_client(request, entry->client);
    entry->created = time(NULL);
    atomic_init(&entry->active, entry->created);
    upload->is_registered = registry_add(request->server->registry, entry, limit);
    if (!upload->is_registered) {
        problem_reply(request, PROBLEM_RATE_LIMITED, "this client sends %u files already: upload.open_per_client",
                      limit);
        representation_field(&request->reply, "Retry-After", RETRY_AFTER_S);
    }
    return !upload->is_registered;
}

static bool refuse_storage(struct request *request, struct upload *upload)
{
    struct store *store = request->server->store;
    struct zt_error error;
    enum zt_status status =
        store->ops->create(store, request_body_length(request), &upload->publication.stored, &error);
    if (status == ZT_OK) {
        return false;
    }
    problem_reply_error_as(request, status == ZT_LIMIT ? PROBLEM_INSUFFICIENT_STORAGE : PROBLEM_INTERNAL, &error);
    return true;
}

static bool refuse_length(struct request *request)
{
    uint64_t length = request_body_length(request);
    uint64_t most = (uint64_t)request->server->config->upload.max_bytes;
    if (length == 0 && request_header(request, "Content-Length") == NULL) {
        problem_reply(request, PROBLEM_LENGTH_REQUIRED,
                      "a body is wanted: send its Content-Length, or send it chunked");
        return true;
    }
    if (length != UINT64_MAX && length > most) {
        problem_reply(request, PROBLEM_TOO_LARGE, "larger than this server takes: upload.max_bytes is %llu",
                      (unsigned long long)most);
        return true;
    }
    return false;
}

void model_put_begin(struct request *request)
{
    if (refuse_request(request)) {
        return;
    }
    struct upload *upload = upload_new(request);
    if (upload == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return;
    }
    request->context = upload;
    request_hold(request, upload, release_from_loop);
    if (refuse_digests(request, upload)) {
        return;
    }
    if (!upload_hash_init(upload)) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return;
    }
    if (refuse_preconditions(request, upload) || refuse_length(request) || refuse_crowd(request, upload)) {
        return;
    }
    refuse_storage(request, upload);
}

/* --- the body --- */

static void run_give_up(struct job *job)
{
    struct upload *upload = (struct upload *)((char *)job - offsetof(struct upload, hash.job));
    upload->server->store->ops->abandon(upload->publication.stored);
    upload->publication.stored = NULL;
    upload_release(upload);
}

/* What was stored of a body that is refused goes at once: a full disk is not to wait for a slow client. The job may be
 * hashing still; then a later piece of the body finds it free. */
static void give_up(struct upload *upload)
{
    if (upload->has_given_up || atomic_exchange(&upload->hash.is_queued, true)) {
        return;
    }
    upload->has_given_up = true;
    upload->hash.job.run = run_give_up;
    upload_hold(upload);
    workers_submit(upload->server->workers, &upload->hash.job);
}

void model_put_receive(struct request *request, const void *bytes, size_t length)
{
    struct upload *upload = request->context;
    struct zt_error error;
    if (upload->has_failed) {
        give_up(upload);
        return;
    }
    uint64_t received = atomic_load(&upload->received);
    uint64_t most = (uint64_t)request->server->config->upload.max_bytes;
    if (received > most || length > most - received) {
        upload_refuse(upload, PROBLEM_TOO_LARGE, "the body is larger than this server takes");
        return;
    }
    if (request->server->store->ops->write_at(upload->publication.stored, received, bytes, length, &error) != ZT_OK) {
        upload_fail_store(upload, &error);
        return;
    }
    atomic_store(&upload->received, received + length);
    atomic_store(&upload->entry.received, received + length);
    atomic_store(&upload->entry.active, time(NULL));
    upload_hash_follow(upload);
}

/* --- the answer --- */

static enum outcome reply_published(struct request *request, const struct upload *upload)
{
    struct href href;
    char digest[DIGEST_FIELD_SIZE];
    href_init(&href);
    href_model(&href, request->names[0]);
    digest_field_format(upload->publication.sha256, digest);
    reply_empty(request, upload->publication.replaced ? 204 : 201);
    struct representation *reply = &request->reply;
    representation_field(reply, "Location", href.failed ? NULL : request_print(request, "%s", href.text));
    representation_field(reply, "Repr-Digest", request_print(request, "%s", digest));
    reply->etag = upload->publication.etag[0] != '\0' ? upload->publication.etag : NULL;
    href_free(&href);
    return OUTCOME_READY;
}

static void work_finish(struct request *request)
{
    struct upload *upload = request->context;
    bool published =
        upload_hash_finish(upload) && (publication_run(&upload->publication) ||
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
    if (upload->state == UPLOAD_PUBLISHED) {
        return reply_published(request, upload);
    }
    return problem_reply_error_as(request, upload->problem, &upload->error);
}
