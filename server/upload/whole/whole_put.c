/* The body, publication, and the end of a PUT. */
#include "upload/whole/whole_put.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/client.h"
#include "store/staging.h"
#include "upload/shared/current_model.h"
#include "upload/shared/write_checks.h"

/* Freeing a larger file takes too long on a loop. */
#define SLOW_TO_FREE_BYTES ((uint64_t)64 << 20)

/* A bit mask of the states that may follow each state. */
static const unsigned next_states[] = {
    [PUT_RECEIVING] = 1U << PUT_FINISHING | 1U << PUT_FAILED,
    [PUT_FINISHING] = 1U << PUT_PUBLISHED | 1U << PUT_FAILED,
    [PUT_PUBLISHED] = 0,
    [PUT_FAILED] = 0,
};

static void set_state(struct whole_put *put, enum whole_put_state state)
{
    assert(put->state <= PUT_FAILED && state <= PUT_FAILED);
    assert(next_states[put->state] >> state & 1);
    put->state = state;
}

/* --- the body --- */

static bool store_piece(struct whole_body *body, const void *bytes, size_t length)
{
    struct whole_put *put = (struct whole_put *)body;
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
    struct whole_put *put = (struct whole_put *)body;

    staged_file_close(put->publication.stored);
    put->publication.stored = NULL;
}

/* --- life --- */

static void free_put(void *owner)
{
    struct whole_put *put = owner;

    counted_body_end(&put->counted, put->state == PUT_PUBLISHED);
    if (put->ops->free != NULL)
        put->ops->free(put);
    staged_file_close(put->publication.stored);
    whole_body_destroy(&put->body);
    free(put);
}

static const struct whole_body_ops body_ops = {
    .store = store_piece, .drop = drop_stored, .free = free_put};

/* The request is over. */
static void release_from_loop(void *thing)
{
    struct whole_put *put = thing;

    /* A worker may be removing the stored file, and then owns the pointer. */
    if (!put->body.is_dropped && put->publication.stored != NULL &&
        body_follower_received(&put->body.follower) > SLOW_TO_FREE_BYTES)
        body_follower_release_on_worker(&put->body.follower);
    else
        body_follower_release(&put->body.follower);
}

void *whole_put_new(struct request *request, struct zt_text name, bool is_file, size_t size,
                    const struct whole_put_ops *ops)
{
    struct whole_put *put = calloc(1, size);

    assert(size >= sizeof(*put) && name.length < sizeof(put->name));
    if (put == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    whole_body_init(&put->body, request, &body_ops, release_from_loop);
    put->server = request->server;
    put->ops = ops;
    memcpy(put->name, name.bytes, name.length);
    put->publication.server = request->server;
    put->publication.name = put->name;
    put->publication.is_file = is_file;
    put->publication.covers = authorize_filter(request);
    put->publication.client = request->client;
    put->publication.action = "PUT";
    put->counted.entry.is_file = is_file;
    return put;
}

bool whole_put_begin(struct request *request, struct whole_put *put, uint64_t length)
{
    struct zt_error error;

    assert(put->state == PUT_RECEIVING && put->publication.stored == NULL);
    if (write_refuse_absent_body(request) || write_refuse_large(request, length) ||
        counted_body_refuse(request, &put->counted, put->name, NULL, length))
        return false;
    if (staging_create(request->server->store->staging, length, &put->publication.stored, &error) !=
        ZT_OK)
        (void)failure_of_store(&put->body.failure, &error);
    else
        (void)whole_body_start(&put->body, request->server, put->publication.stored);
    if (put->body.failure.is_set)
        failure_reply(request, &put->body.failure);
    return !put->body.failure.is_set;
}

/* --- the end, on a worker --- */

/* Returns true if the current file has the uploaded bytes. Sets published's ETag. */
static bool file_is_there(struct whole_put *put, struct published *published)
{
    struct failure ignored = {.is_set = false};
    struct current_file found;

    if (!file_find_current(put->server, put->name, &found, &ignored) || !found.has_sha256)
        return false;
    snprintf(published->etag, sizeof(published->etag), "%s", found.etag);
    return memcmp(found.sha256, published->sha256, sizeof(found.sha256)) == 0;
}

static bool model_is_there(struct whole_put *put, struct published *published)
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
static bool was_done_already(struct whole_put *put)
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
    struct whole_put *put = request->context;
    struct publication *publication = &put->publication;
    struct failure *failure = &put->body.failure;
    bool published = whole_body_finish(&put->body);

    assert(put->state == PUT_FINISHING);
    memcpy(publication->published.sha256, put->body.digests.sha256.bytes,
           sizeof(publication->published.sha256));
    published = published && (put->ops->check == NULL || put->ops->check(put)) &&
                (publication_run(publication, failure) || was_done_already(put));
    assert(published == !failure->is_set);
    set_state(put, published ? PUT_PUBLISHED : PUT_FAILED);
    if (put->ops->end != NULL)
        put->ops->end(put);
    counted_body_end(&put->counted, published);
}

enum outcome whole_put_finish(struct request *request, struct whole_put *put)
{
    assert(request->context == put);
    if (put->state != PUT_RECEIVING)
        return OUTCOME_READY;
    set_state(put, put->body.failure.is_set ? PUT_FAILED : PUT_FINISHING);
    if (put->state == PUT_FAILED)
        return OUTCOME_READY;
    return store_needs_claims(request->server->store) ? request_work_long(request, work_finish)
                                                      : request_work(request, work_finish);
}
