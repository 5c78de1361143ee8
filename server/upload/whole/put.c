/* PUT: refusals before the body, the body, publication, the answer. */
#include "upload/whole/put.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "http/exchange/authorize.h"
#include "http/exchange/client.h"
#include "store/staging.h"
#include "upload/shared/body_follower.h"
#include "upload/shared/current_model.h"
#include "upload/shared/publication.h"
#include "upload/shared/registry.h"
#include "upload/shared/write_checks.h"

/* Freeing a larger file takes too long on a loop. */
#define SLOW_TO_FREE_BYTES ((uint64_t)64 << 20)

enum put_state { PUT_RECEIVING, PUT_FINISHING, PUT_PUBLISHED, PUT_FAILED };

/* A bit mask of the states that may follow each state. */
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
    struct publication publication; /* stored is NULL once it is published */
    struct counted_body counted;
};

static void set_state(struct put *put, enum put_state state)
{
    assert(put->state <= PUT_FAILED && state <= PUT_FAILED);
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

    assert(put->publication.stored != NULL && put->counted.is_registered);
    assert(put->state == PUT_RECEIVING);
    if (received > most || length > most - received)
        return failure_refuse(&body->failure, PROBLEM_TOO_LARGE,
                              "the body is larger than this server accepts");
    if (staged_file_write_at(put->publication.stored, received, bytes, length, &error) != ZT_OK)
        return failure_of_store(&body->failure, &error);
    counted_body_note(&put->counted, received + length);
    return true;
}

static void drop_stored(struct whole_body *body)
{
    struct put *put = (struct put *)body;

    staged_file_close(put->publication.stored);
    put->publication.stored = NULL;
}

/* --- life --- */

static void free_put(void *owner)
{
    struct put *put = owner;

    counted_body_end(&put->counted, put->state == PUT_PUBLISHED);
    staged_file_close(put->publication.stored);
    whole_body_destroy(&put->body);
    free(put);
}

static const struct whole_body_ops body_ops = {
    .store = store_piece, .drop = drop_stored, .free = free_put};

/* The request is over. */
static void release_from_loop(void *thing)
{
    struct put *put = thing;

    /* A worker may be removing the stored file, and then owns the pointer. */
    if (!put->body.is_dropped && put->publication.stored != NULL &&
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
    put->publication.server = request->server;
    put->publication.name = put->name;
    put->publication.covers = authorize_filter(request);
    return put;
}

/* --- before the body, in the order in which clients see refusals --- */

/* Returns true if it has replied. */
static bool refuse_form(struct request *request)
{
    if (request_header(request, "Content-Range") != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "send a file whole: Content-Range is not supported");
        return true;
    }
    return write_refuse_coding(request);
}

/* Called after the name and the preconditions were checked. */
static void begin(struct request *request, struct put *put)
{
    const uint64_t length = request_body_length(request);
    struct zt_error error;

    assert(put->state == PUT_RECEIVING && put->publication.stored == NULL);
    if (write_refuse_absent_body(request) || write_refuse_large(request, length) ||
        counted_body_refuse(request, &put->counted, put->name, NULL, length))
        return;
    if (staging_create(request->server->store->staging, length, &put->publication.stored, &error) !=
        ZT_OK)
        (void)failure_of_store(&put->body.failure, &error);
    else
        (void)whole_body_start(&put->body, request->server, put->publication.stored);
    if (put->body.failure.is_set)
        failure_reply(request, &put->body.failure);
}

void model_put_begin(struct request *request)
{
    const struct zt_text name = request->names[0];
    struct put *put;

    if (write_refuse_read_only(request) || written_name_refuse(request, name, true) ||
        refuse_form(request))
        return;
    put = new_put(request);
    if (put != NULL &&
        !write_refuse_digests(request, &put->body.content_digest, &put->body.repr_digest) &&
        !write_refuse_preconditions(request, name, &put->publication.preconditions) &&
        !write_refuse_shadowed(request, name))
        begin(request, put);
}

void file_put_begin(struct request *request)
{
    struct put *put;

    if (write_refuse_read_only(request) || write_refuse_file_path(request, request->names[0]) ||
        refuse_form(request))
        return;
    put = new_put(request);
    if (put == NULL)
        return;
    put->publication.is_file = true;
    put->counted.entry.is_file = true;
    if (!write_refuse_digests(request, &put->body.content_digest, &put->body.repr_digest) &&
        !write_refuse_file_preconditions(request, put->name, &put->publication.preconditions))
        begin(request, put);
}

/* --- the end, on a worker --- */

/* Returns true if the current file has the uploaded bytes. Sets published's ETag. */
static bool file_is_there(struct put *put, struct published *published)
{
    struct failure ignored = {.is_set = false};
    struct current_file found;

    if (!file_find_current(put->server, put->name, &found, &ignored) || !found.has_sha256)
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

/* Two attempts at the same upload may run at once, and a bucket is asked only now. If this
 * attempt's precondition fails because the other one was first, it has succeeded too (RFC 9110
 * section 13.2.1). */
static bool was_done_already(struct put *put)
{
    struct published *published = &put->publication.published;

    assert(put->state == PUT_FINISHING);
    if (put->body.failure.problem != PROBLEM_PRECONDITION_FAILED ||
        !put->body.repr_digest.has_sha256)
        return false;
    if (!(put->publication.is_file ? file_is_there(put, published)
                                   : model_is_there(put, published)))
        return false;
    put->body.failure = (struct failure){.is_set = false};
    published->replaced = true;
    /* The other attempt may have failed to sync the folder. */
    remains_settle(&published->remains, put->server->store, put->name, "published");
    return true;
}

static void work_finish(struct request *request)
{
    struct put *put = request->context;
    struct publication *publication = &put->publication;
    struct failure *failure = &put->body.failure;
    bool published = whole_body_finish(&put->body);

    assert(put->state == PUT_FINISHING);
    memcpy(publication->published.sha256, put->body.digests.sha256.bytes,
           sizeof(publication->published.sha256));
    published = published && (publication_run(publication, failure) || was_done_already(put));
    assert(published == !failure->is_set);
    set_state(put, published ? PUT_PUBLISHED : PUT_FAILED);
    counted_body_end(&put->counted, published);
}

enum outcome model_put_handle(struct request *request)
{
    struct put *put = request->context;

    if (put->state == PUT_RECEIVING) {
        set_state(put, put->body.failure.is_set ? PUT_FAILED : PUT_FINISHING);
        if (put->state == PUT_FINISHING)
            return store_is_remote(request->server->store) ? request_work_long(request, work_finish)
                                                           : request_work(request, work_finish);
    }
    if (put->state == PUT_FAILED)
        return failure_reply(request, &put->body.failure);
    assert(put->state == PUT_PUBLISHED);
    if (published_refuse(request, &put->publication.published))
        return OUTCOME_READY;
    published_reply(request, put->publication.published.replaced ? 204 : 201,
                    (struct published_name){request->names[0], put->publication.is_file},
                    &put->publication.published);
    return OUTCOME_READY;
}
