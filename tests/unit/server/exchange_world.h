/* A server of a few routes without connections, loops and models: requests are filled in by hand
 * and go through the exchange. */
#ifndef EXCHANGE_WORLD_H
#define EXCHANGE_WORLD_H

#include "exchange_request.h"

#include "http/exchange/exchange.h"
#include "http/exchange/problem.h"

#define ETAG          "\"tag\""
#define LAST_MODIFIED 1700000000
#define HEAD_TEXT     "0123456789"
#define TAIL_TEXT     "abcdefghij"

static unsigned steps_run;
static size_t received;
static struct zt_source *tail;

static inline int open_exchange(void **state)
{
    (void)state;
    config_defaults(&config);
    return zt_source_from_memory(TAIL_TEXT, 10, &tail, NULL) == ZT_OK ? 0 : -1;
}

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

static void receive_put(struct request *request, const struct body_piece *piece)
{
    received += piece->length;
    if (received > 100)
        problem_reply(request, PROBLEM_TOO_LARGE, "too large");
}

static const struct body_receiver put_receiver = {.receive = receive_put};

static void begin_put(struct request *request)
{
    request->receiver = &put_receiver;
    if (request_header(request, "X-Refuse") != NULL)
        problem_reply(request, PROBLEM_READ_ONLY, "read-only");
}

static enum outcome handle_put(struct request *request)
{
    reply_empty(request, 201);
    return OUTCOME_READY;
}

const struct route routes[] = {
    {.pattern = "/bytes",
     .get = {.handle = handle_bytes},
     .query = {.handle = handle_bytes, .needs = NEEDS_READ, .is_read = true},
     .ignores_parameters = true},
    {.pattern = "/corrupt", .get = {.handle = handle_corrupt}},
    {.pattern = "/healthz", .get = {.handle = handle_health}, .needs_no_models = true},
    {.pattern = "/query", .get = {.handle = handle_query, .parameters = "q slice"}},
    {.pattern = "/unknown", .get = {.handle = handle_unknown}},
    {.pattern = "/upload", .put = {.begin = begin_put, .handle = handle_put}},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

static inline struct request *ask(enum method method, const char *target)
{
    struct request *request = request_of(method, target);

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

/* As ask(), but the request is freed by the next one, or by free_last. */
static inline struct request *ask_next(enum method method, const char *target)
{
    free_last(NULL);
    last = ask(method, target);
    return last;
}

/* The answer to a GET with one more field. */
static inline const struct answer *get(const char *target, const char *name, const char *value)
{
    return answer_with(ask_next(METHOD_GET, target), name, value);
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
            assert_ok(zt_source_read_at(segment->source, segment->offset, body + at,
                                        segment->length, NULL));
        at += segment->length;
    }
    assert_string_equal(body, expected);
    assert_true(answer->content_length == at);
}

#endif
