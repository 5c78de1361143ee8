/* PUT: refusals before the body, the body, publication, the answer. */
#include "upload/whole/put.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "http/exchange/authorize.h"
#include "http/exchange/client.h"
#include "upload/shared/file_checks.h"
#include "upload/shared/publication.h"
#include "upload/shared/registry.h"
#include "upload/shared/whole_body.h"
#include "upload/shared/write_checks.h"
#include "upload/shared/written_name.h"

/* Freeing a larger file takes too long for a loop. */
#define SLOW_TO_FREE_BYTES ((uint64_t)64 << 20)

enum put_state { PUT_RECEIVING, PUT_FINISHING, PUT_PUBLISHED, PUT_FAILED };

/* The states that may follow each, bit by bit. */
static const unsigned next_states[] = {
    [PUT_RECEIVING] = 1U << PUT_FINISHING | 1U << PUT_FAILED,
    [PUT_FINISHING] = 1U << PUT_PUBLISHED | 1U << PUT_FAILED,
    [PUT_PUBLISHED] = 0,
    [PUT_FAILED] = 0,
};

struct put {
    struct whole_body body;
    struct server *server;
    enum put_state state;
    char name[MODEL_NAME_MAX + 1];
    /* Of a file at a path of its own, or of a model; stored is NULL once it is published. */
    struct file_publication file;
    bool is_file;
    struct registry_entry entry;
    bool is_registered;
};

static void set_state(struct put *put, enum put_state state)
{
    assert(next_states[put->state] >> state & 1);
    put->state = state;
}

/* --- the body --- */

static bool store_piece(struct whole_body *body, const void *bytes, size_t length)
{
    struct put *put = (struct put *)body;
    struct zt_error error;
    uint64_t received = body_follower_received(&body->follower);
    uint64_t most = (uint64_t)config_number(&put->server->config->upload.max_bytes);

    assert(put->state == PUT_RECEIVING);
    if (received > most || length > most - received)
        return failure_refuse(&body->failure, PROBLEM_TOO_LARGE,
                              "the body is larger than this server accepts");
    if (put->server->store->ops->write_at(put->file.publication.stored, received, bytes, length,
                                          &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    atomic_store(&put->entry.received, received + length);
    atomic_store(&put->entry.active, time(NULL));
    return true;
}

static void drop_stored(struct whole_body *body)
{
    struct put *put = (struct put *)body;

    put->server->store->ops->abandon(put->file.publication.stored);
    put->file.publication.stored = NULL;
}

/* --- life --- */

/* Called before the answer, after which the client may begin another upload. */
static void unregister(struct put *put)
{
    if (put->is_registered) {
        put->is_registered = false;
        registry_remove(put->server->registry, &put->entry);
        metric_add(put->state == PUT_PUBLISHED ? METRIC_PUBLISHED_FILE : METRIC_FAILED_FILE, 1);
    }
}

static void free_put(struct whole_body *body)
{
    struct put *put = (struct put *)body;

    unregister(put);
    put->server->store->ops->abandon(put->file.publication.stored);
    file_publication_clear(&put->file);
    whole_body_destroy(&put->body);
    free(put);
}

static const struct whole_body_ops body_ops = {
    .store = store_piece, .drop = drop_stored, .free = free_put};

/* The request is over. */
static void release_from_loop(void *thing)
{
    struct put *put = thing;

    /* A worker may be dropping what was stored, and then the pointer is that worker's. */
    if (!put->body.is_dropped && put->file.publication.stored != NULL &&
        body_follower_received(&put->body.follower) > SLOW_TO_FREE_BYTES)
        body_follower_release_on_worker(&put->body.follower);
    else
        body_follower_release(&put->body.follower);
}

static struct put *new_put(struct request *request)
{
    struct put *put = calloc(1, sizeof(*put));

    if (put == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    assert(request->names[0].length < sizeof(put->name));
    whole_body_init(&put->body, request, &body_ops, release_from_loop);
    put->server = request->server;
    memcpy(put->name, request->names[0].bytes, request->names[0].length);
    put->file.publication.server = request->server;
    put->file.publication.name = put->name;
    put->file.publication.covers = authorize_filter(request);
    return put;
}

/* --- before the body, in the order in which clients see refusals; true: replied --- */

static bool refuse_form(struct request *request)
{
    if (request_header(request, "Content-Range") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "a file is sent as a whole: Content-Range is not supported");
        return true;
    }
    return write_refuse_coding(request);
}

static bool refuse_model(struct request *request)
{
    return write_refuse_read_only(request) ||
           written_name_refuse(request, request->names[0], true) || refuse_form(request);
}

static bool refuse_file(struct request *request)
{
    return write_refuse_read_only(request) || write_refuse_file_path(request, request->names[0]) ||
           refuse_form(request);
}

static bool refuse_length(struct request *request)
{
    return write_refuse_absent_body(request) ||
           write_refuse_large(request, request_body_length(request));
}

/* Counts the body toward the client's limit. */
static bool refuse_crowd(struct request *request, struct put *put)
{
    struct registry_entry *entry = &put->entry;
    unsigned limit = (unsigned)config_number(&request->server->config->upload.open_per_client);

    assert(!put->is_registered);
    entry->kind = UPLOAD_KIND_FILE;
    registry_make_id(entry->id);
    strcpy(entry->model, put->name);
    registry_client(request, entry->client);
    entry->created = time(NULL);
    if (request_body_length(request) != UINT64_MAX)
        entry->length = request_body_length(request);
    atomic_init(&entry->active, entry->created);
    put->is_registered = registry_add(request->server->registry, entry, limit);
    if (put->is_registered)
        metric_add(METRIC_BEGUN_FILE, 1);
    else
        write_reply_crowded(request, limit, "upload.open_per_client");
    return !put->is_registered;
}

static bool start(struct put *put, uint64_t expected_bytes)
{
    struct store *store = put->server->store;
    struct stored_upload **stored = &put->file.publication.stored;
    struct zt_error error;

    if (store->ops->create(store, expected_bytes, stored, &error) != ZT_OK)
        return failure_of_store(&put->body.failure, &error);
    return whole_body_start(&put->body, put->server, *stored);
}

/* After the refusals of what is named; preconditions were read. */
static void begin(struct request *request, struct put *put)
{
    if (refuse_length(request) || refuse_crowd(request, put))
        return;
    if (!start(put, request_body_length(request)))
        failure_reply(request, &put->body.failure);
}

void model_put_begin(struct request *request)
{
    struct put *put = refuse_model(request) ? NULL : new_put(request);

    if (put == NULL || whole_body_refuse_digests(&put->body, request) ||
        write_refuse_preconditions(request, request->names[0],
                                   &put->file.publication.preconditions) ||
        write_refuse_behind(request, request->names[0]))
        return;
    begin(request, put);
}

void file_put_begin(struct request *request)
{
    struct put *put = refuse_file(request) ? NULL : new_put(request);

    if (put == NULL || whole_body_refuse_digests(&put->body, request) ||
        write_refuse_file_preconditions(request, put->name, &put->file.publication.preconditions))
        return;
    put->is_file = true;
    begin(request, put);
}

/* --- the end, on a worker --- */

static bool finish_digests(struct put *put)
{
    uint8_t *sha256 = put->file.publication.published.sha256;

    if (!whole_body_finish(&put->body))
        return false;
    memcpy(sha256, put->body.digests.sha256.bytes, sizeof(put->file.publication.published.sha256));
    return true;
}

static bool publish(struct put *put)
{
    return put->is_file ? file_publication_check(&put->file, &put->body.failure) &&
                              file_publication_publish(&put->file, &put->body.failure)
                        : publication_run(&put->file.publication, &put->body.failure);
}

/* Whether what is stored is what was sent; then published has its ETag. */
static bool file_is_there(struct put *put, struct published *published)
{
    struct failure ignored = {.is_set = false};
    struct file_found found;

    if (!file_look(put->server, put->name, &found, &ignored) || !found.has_sha256)
        return false;
    snprintf(published->etag, sizeof(published->etag), "%s", found.etag);
    return memcmp(found.sha256, published->sha256, sizeof(found.sha256)) == 0;
}

static bool model_is_there(struct put *put, struct published *published)
{
    struct generation *current = model_find_current(put->server, put->name);
    uint8_t sha256[32];
    bool is_there = current != NULL && write_file_sha256(put->server, current, sha256) &&
                    memcmp(sha256, published->sha256, sizeof(sha256)) == 0;

    if (is_there)
        snprintf(published->etag, sizeof(published->etag), "%s", current->etag);
    generation_release(current);
    return is_there;
}

/* Two attempts at one upload may be under way at once, and a bucket is asked only now: the one
 * whose precondition fails because the other was first has succeeded too (RFC 9110 section
 * 13.2.1). */
static bool was_done_already(struct put *put)
{
    struct published *published = &put->file.publication.published;

    if (put->body.failure.problem != PROBLEM_PRECONDITION_FAILED ||
        !put->body.repr_digest.has_sha256)
        return false;
    if (!(put->is_file ? file_is_there(put, published) : model_is_there(put, published)))
        return false;
    put->body.failure = (struct failure){.is_set = false};
    published->replaced = true;
    return true;
}

static void work_finish(struct request *request)
{
    struct put *put = request->context;
    bool published = finish_digests(put) && (publish(put) || was_done_already(put));

    assert(published == !put->body.failure.is_set);
    set_state(put, published ? PUT_PUBLISHED : PUT_FAILED);
    unregister(put);
}

enum outcome model_put_handle(struct request *request)
{
    struct put *put = request->context;

    if (put->state == PUT_RECEIVING) {
        set_state(put, put->body.failure.is_set ? PUT_FAILED : PUT_FINISHING);
        if (put->state == PUT_FINISHING)
            return store_is_elsewhere(request->server->store)
                       ? request_work_long(request, work_finish)
                       : request_work(request, work_finish);
    }
    if (put->state == PUT_FAILED)
        return failure_reply(request, &put->body.failure);
    assert(put->state == PUT_PUBLISHED);
    reply_empty(request, put->file.publication.published.replaced ? 204 : 201);
    if (put->is_file)
        published_reply_file(request, request->names[0]);
    else
        published_reply_location(request, request->names[0]);
    published_reply_digest(request, &put->file.publication.published);
    return OUTCOME_READY;
}
