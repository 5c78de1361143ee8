/* Keeps the body in memory, up to a limit. */
#include "http/exchange/json_body.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "http/exchange/problem.h"

struct json_body {
    char *bytes;
    size_t length;
    size_t capacity;
    size_t most;
    bool is_too_long;
    bool is_out_of_memory;
};

static bool refuse_length(struct request *request, size_t most)
{
    problem_reply(request, PROBLEM_TOO_LARGE, "a JSON body may have at most %zu bytes", most);
    return true;
}

static void receive(struct request *request, const struct body_piece *piece)
{
    struct json_body *body = request->json_body;

    assert(body->length <= body->most && body->length <= body->capacity);
    if (piece->length == 0 || body->is_out_of_memory || body->is_too_long)
        return;
    body->is_too_long = piece->length > body->most - body->length;
    if (body->is_too_long)
        return;
    body->is_out_of_memory = zt_array_reserve(&body->bytes, &body->capacity,
                                              body->length + piece->length, 1, body->most) != ZT_OK;
    if (body->is_out_of_memory)
        return;
    memcpy(body->bytes + body->length, piece->bytes, piece->length);
    body->length += piece->length;
}

static const struct body_receiver receiver = {.receive = receive};

static void free_body(void *thing)
{
    struct json_body *body = thing;

    free(body->bytes);
    free(body);
}

bool json_body_refuse(struct request *request)
{
    return json_body_refuse_above(request, JSON_BODY_MAX);
}

bool json_body_refuse_above(struct request *request, size_t most)
{
    const uint64_t length = request_body_length(request);
    const char *coding = request_header(request, "Content-Encoding");

    assert(request->receiver == NULL && most > 0);
    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                      "a JSON body must not have a Content-Encoding");
        return true;
    }
    if (length != UINT64_MAX && length > most)
        return refuse_length(request, most);
    request->json_body = calloc(1, sizeof(*request->json_body));
    if (request->json_body == NULL) {
        problem_reply_no_memory(request);
        return true;
    }
    request->json_body->most = most;
    request->receiver = &receiver;
    request_hold(request, request->json_body, free_body);
    return false;
}

bool json_body_refuse_received(struct request *request)
{
    const struct json_body *body = request->json_body;

    assert(body != NULL);
    if (body->is_out_of_memory)
        problem_reply_no_memory(request);
    return body->is_out_of_memory || (body->is_too_long && refuse_length(request, body->most));
}

struct zt_text json_body_text(const struct request *request)
{
    const struct json_body *body = request->json_body;

    assert(body != NULL && !body->is_too_long);
    return (struct zt_text){body->length > 0 ? body->bytes : "", body->length};
}

void json_body_drop(struct request *request)
{
    struct json_body *body = request->json_body;

    free(body->bytes);
    body->bytes = NULL;
    body->length = body->capacity = 0;
}
