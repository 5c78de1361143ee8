/* The body is kept in memory, within a bound. */
#include "upload/writer/json_body.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "http/exchange/problem.h"

static bool refuse_length(struct request *request)
{
    problem_reply(request, PROBLEM_TOO_LARGE, "a JSON body may have at most %zu bytes",
                  JSON_BODY_MAX);
    return true;
}

bool json_body_refuse(struct request *request)
{
    uint64_t length = request_body_length(request);
    const char *coding = request_header(request, "Content-Encoding");

    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                      "a JSON body must not have a Content-Encoding");
        return true;
    }
    return length != UINT64_MAX && length > JSON_BODY_MAX && refuse_length(request);
}

void json_body_receive(struct json_body *body, const void *bytes, size_t length)
{
    if (length == 0 || body->failed || body->too_long)
        return;
    assert(body->length <= JSON_BODY_MAX && body->length <= body->capacity);
    body->too_long = length > JSON_BODY_MAX - body->length;
    if (body->too_long)
        return;
    body->failed = zt_array_reserve(&body->bytes, &body->capacity, body->length + length, 1,
                                    JSON_BODY_MAX) != ZT_OK;
    if (body->failed)
        return;
    memcpy(body->bytes + body->length, bytes, length);
    body->length += length;
}

bool json_body_refuse_received(struct request *request, const struct json_body *body)
{
    if (body->failed)
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
    return body->failed || (body->too_long && refuse_length(request));
}

struct zt_text json_body_text(const struct json_body *body)
{
    return (struct zt_text){body->length > 0 ? body->bytes : "", body->length};
}

void json_body_free(struct json_body *body)
{
    free(body->bytes);
}
