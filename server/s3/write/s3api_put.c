/* PutObject: what a PUT to /files does, with S3's body, checks and answer. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange/s3api_error.h"
#include "s3/s3api_meta.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_body.h"
#include "s3/write/s3api_write_checks.h"
#include "upload/shared/recorded.h"
#include "upload/shared/write_checks.h"
#include "upload/whole/whole_put.h"

struct object_put {
    struct whole_put put; /* first: the context of the request */
    struct s3api_body body;
    const struct body_receiver *inner;
    char *fields; /* that the object keeps (s3api_meta.h) */
};

/* --- the body --- */

/* The failure of the stored body makes its receiver free the bytes. */
static void note_failure(struct object_put *object)
{
    assert(object->body.has_failed);
    failure_refuse(&object->put.body.failure, PROBLEM_INVALID_REQUEST, "%s", object->body.why);
}

static void receive(struct request *request, const struct body_piece *piece)
{
    struct object_put *object = request->context;

    assert(object->put.state == PUT_RECEIVING);
    if (s3api_body_receive(&object->body, request, piece))
        return;
    note_failure(object);
    object->inner->receive(request, piece);
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};

static void hash(void *context, const void *bytes, size_t length)
{
    s3api_body_hash(context, bytes, length);
}

static bool check(struct whole_put *put)
{
    struct object_put *object = (struct object_put *)put;

    assert(put->state == PUT_FINISHING);
    if (s3api_body_finish(&object->body, put->body.digests.sha256.bytes))
        return true;
    note_failure(object);
    return false;
}

static void end(struct whole_put *put)
{
    const struct object_put *object = (struct object_put *)put;
    const struct publication *publication = &put->publication;

    if (put->state == PUT_PUBLISHED)
        s3api_keep_fields(put->server, put->name, &publication->published, object->fields);
    else
        s3api_explain_absence(put->server, put->name, &publication->preconditions,
                              &put->body.failure);
}

static void free_rest(struct whole_put *put)
{
    struct object_put *object = (struct object_put *)put;

    s3api_body_free(&object->body);
    free(object->fields);
}

static const struct whole_put_ops ops = {.check = check, .end = end, .free = free_rest};

/* --- the request --- */

static void begin(struct request *request, struct object_put *object)
{
    struct whole_put *put = &object->put;

    object->inner = request->receiver;
    request->receiver = &receiver;
    if (!s3api_meta_read(request, zt_text_from(put->name), &object->fields) ||
        !s3api_body_begin(&object->body, request, object->inner, true))
        return;
    put->publication.preconditions = s3api_preconditions(request);
    if (s3api_refuse_preconditions(request, put->name, &put->publication.preconditions) ||
        !whole_put_begin(request, put, object->body.length))
        return;
    if (s3api_body_wants_hash(&object->body)) {
        put->body.digests.also = hash;
        put->body.digests.also_context = &object->body;
    }
}

/* Some clients mark a folder by an empty object whose key ends with a slash. Here folders exist
 * only while they have files, so the object is not stored. */
static void begin_folder(struct request *request)
{
    const char *decoded = request_header(request, "x-amz-decoded-content-length");

    if (decoded != NULL ? strcmp(decoded, "0") != 0 : request_body_length(request) != 0)
        s3api_problem(request, S3API_INVALID_ARGUMENT,
                      "a key that ends with a slash is a folder, which has no bytes");
}

void s3api_put_object_begin(struct request *request)
{
    struct zt_text key;
    bool is_folder;
    struct object_put *object;

    if (s3api_refuse_key(request, &key, &is_folder) || s3api_refuse_unsupported(request))
        return;
    if (is_folder) {
        begin_folder(request);
        return;
    }
    object = whole_put_new(request, key, true, sizeof(*object), &ops);
    if (object != NULL)
        begin(request, object);
}

static enum outcome reply_failure(struct request *request, const struct object_put *object)
{
    if (object->body.has_failed)
        return s3api_body_reply_failure(request, &object->body);
    return failure_reply(request, &object->put.body.failure);
}

static enum outcome reply_published(struct request *request, const struct object_put *object)
{
    const struct published *published = &object->put.publication.published;
    char etag[S3API_ETAG_SIZE];

    reply_empty(request, 200);
    if (!s3api_body_reply_checksums(request, &object->body))
        s3api_reply_sha256(request, published->sha256);
    recorded_reply(request, published->commit);
    /* Without a tag, another client has removed or replaced the object meanwhile. */
    if (published->etag[0] == '\0')
        return OUTCOME_READY;
    s3api_etag(object->put.name, &published->identity, etag);
    request->reply.etag = request_copy(request, etag, strlen(etag));
    return OUTCOME_READY;
}

enum outcome s3api_put_object(struct request *request)
{
    struct object_put *object = request->context;

    if (object == NULL) {
        reply_empty(request, 200);
        request->reply.etag = S3API_FOLDER_ETAG;
        return OUTCOME_READY;
    }
    if (whole_put_finish(request, &object->put) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (object->put.state == PUT_FAILED)
        return reply_failure(request, object);
    assert(object->put.state == PUT_PUBLISHED);
    if (published_refuse(request, &object->put.publication.published))
        return OUTCOME_READY;
    return reply_published(request, object);
}
