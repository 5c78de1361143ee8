/* A server of a few routes without connections, loops and models: requests are filled in by hand
 * and go through the exchange. */
#ifndef EXCHANGE_WORLD_H
#define EXCHANGE_WORLD_H

#include "support.h"

#include <stdio.h>
#include <string.h>

#include "http/exchange/exchange.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"

#define ETAG          "\"tag\""
#define LAST_MODIFIED 1700000000
#define HEAD_TEXT     "0123456789"
#define TAIL_TEXT     "abcdefghij"

static struct config config;
static struct server server = {.config = &config};
static unsigned steps_run;
static size_t received;
static struct zt_source *tail;

static void fill(struct request *request)
{
    struct representation *reply = &request->reply;

    reply->media_type = "application/octet-stream";
    reply->etag = ETAG;
    reply->last_modified = LAST_MODIFIED;
    reply->cache_control = "no-cache";
    reply->vary = "Accept-Encoding";
    reply->ranges = true;
    reply->has_sha256 = true;
    representation_memory(reply, HEAD_TEXT, 10);
    representation_source(reply, tail, 0, 10);
    representation_field(reply, "ZT-Dtype", "f32");
}

static enum outcome wait_once(struct request *request)
{
    steps_run++;
    if (request->context != NULL)
        return OUTCOME_READY;
    request->context = request;
    return OUTCOME_WAITING;
}

static enum outcome handle_bytes(struct request *request)
{
    fill(request);
    representation_step(&request->reply, "verify", wait_once);
    return OUTCOME_READY;
}

static enum outcome find_corrupt(struct request *request)
{
    steps_run++;
    return problem_reply(request, PROBLEM_CORRUPT_COMPONENT, "flipped");
}

static enum outcome handle_corrupt(struct request *request)
{
    fill(request);
    representation_step(&request->reply, "verify", find_corrupt);
    representation_step(&request->reply, "verify", wait_once);
    return OUTCOME_READY;
}

static enum outcome handle_health(struct request *request)
{
    reply_json(request, 200, "{}", 2);
    return OUTCOME_READY;
}

static enum outcome handle_unknown(struct request *request)
{
    request->reply.etag = ETAG;
    request->reply.expected_length = request_header(request, "X-Foretold") != NULL ? 77 : 0;
    representation_step(&request->reply, "verify", wait_once);
    return OUTCOME_READY;
}

/* Replies with the parameter q. */
static enum outcome handle_query(struct request *request)
{
    struct zt_text value;

    if (!request_query(request, "q", 0, &value))
        value = (struct zt_text){"none", 4};
    reply_json(request, 200, value.bytes, value.length);
    return OUTCOME_READY;
}

static void begin_put(struct request *request)
{
    if (request_header(request, "X-Refuse") != NULL)
        problem_reply(request, PROBLEM_READ_ONLY, "read-only");
}

static void receive_put(struct request *request, const void *bytes, size_t length)
{
    (void)bytes;
    received += length;
    if (received > 100)
        problem_reply(request, PROBLEM_TOO_LARGE, "too large");
}

static enum outcome handle_put(struct request *request)
{
    reply_empty(request, 201);
    return OUTCOME_READY;
}

const struct route routes[] = {
    {.pattern = "/bytes", .get = {.handle = handle_bytes}, .ignores_parameters = true},
    {.pattern = "/corrupt", .get = {.handle = handle_corrupt}},
    {.pattern = "/healthz", .get = {.handle = handle_health}, .needs_no_models = true},
    {.pattern = "/query", .get = {.handle = handle_query, .parameters = "q slice"}},
    {.pattern = "/unknown", .get = {.handle = handle_unknown}},
    {.pattern = "/upload",
     .put = {.begin = begin_put, .receive = receive_put, .handle = handle_put}},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

static inline void add(struct request *request, const char *name, const char *value)
{
    const struct header_field field = {name, value, (uint32_t)strlen(name),
                                       (uint32_t)strlen(value)};

    assert_true(request_add_header(request, field));
}

static inline struct request *ask(enum method method, const char *target)
{
    struct request *request = request_new(&server, NULL, target);

    assert_non_null(request);
    request->method = method;
    add(request, "Host", "x");
    steps_run = 0;
    received = 0;
    return request;
}

/* Waits end at once. */
static inline const struct answer *answer_of(struct request *request)
{
    if (!exchange_begin(request))
        while (exchange_advance(request) == OUTCOME_WAITING)
            ;
    else
        assert_int_equal(exchange_advance(request), OUTCOME_READY);
    return exchange_answer(request);
}

static inline const struct answer *answer_with(struct request *request, const char *name,
                                               const char *value)
{
    add(request, name, value);
    return answer_of(request);
}

static inline const char *field_of(const struct answer *answer, const char *name)
{
    for (unsigned i = 0; i < answer->field_count; i++)
        if (strcmp(answer->fields[i].name, name) == 0)
            return answer->fields[i].value;
    return "";
}

static inline void assert_body(const struct answer *answer, const char *expected)
{
    char body[1024] = "";
    size_t at = 0;

    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        assert_true(at + segment->length < sizeof(body));
        assert_true(segment->start == at);
        if (segment->kind == SEGMENT_MEMORY)
            memcpy(body + at, segment->bytes, segment->length);
        else
            assert_int_equal(zt_source_read_at(segment->source, segment->offset, body + at,
                                               segment->length, NULL),
                             ZT_OK);
        at += segment->length;
    }
    assert_string_equal(body, expected);
    assert_true(answer->content_length == at);
}

#endif
