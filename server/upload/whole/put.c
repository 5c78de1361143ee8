/* PUT: refusals before the body, in the order in which clients see them, and the answer. */
#include "upload/whole/put.h"

#include <assert.h>

#include "upload/shared/write_checks.h"
#include "upload/whole/whole_put.h"

static const struct whole_put_ops put_ops = {.check = NULL};

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

static struct whole_put *new_put(struct request *request, bool is_file)
{
    return whole_put_new(request, request->names[0], is_file, sizeof(struct whole_put), &put_ops);
}

static bool refuse_digests(struct request *request, struct whole_put *put)
{
    assert(put->state == PUT_RECEIVING);
    return write_refuse_digests(request, &put->body.content_digest, &put->body.repr_digest);
}

void model_put_begin(struct request *request)
{
    const struct zt_text name = request->names[0];
    struct whole_put *put;

    if (write_refuse_read_only(request) || written_name_refuse(request, name, true) ||
        refuse_form(request))
        return;
    put = new_put(request, false);
    if (put != NULL && !refuse_digests(request, put) &&
        !write_refuse_preconditions(request, name, &put->publication.preconditions) &&
        !write_refuse_shadowed(request, name))
        (void)whole_put_begin(request, put, request_body_length(request));
}

void file_put_begin(struct request *request)
{
    struct whole_put *put;

    if (write_refuse_read_only(request) || write_refuse_file_path(request, request->names[0]) ||
        refuse_form(request))
        return;
    put = new_put(request, true);
    if (put != NULL && !refuse_digests(request, put) &&
        !write_refuse_file_preconditions(request, put->name, &put->publication.preconditions))
        (void)whole_put_begin(request, put, request_body_length(request));
}

enum outcome model_put_handle(struct request *request)
{
    struct whole_put *put = request->context;

    if (whole_put_finish(request, put) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
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
