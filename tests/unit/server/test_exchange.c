/* The exchange, from header to answer, without a connection: routes, steps and sources are the
 * test's own. */
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
    representation_step(&request->reply, wait_once);
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
    representation_step(&request->reply, find_corrupt);
    representation_step(&request->reply, wait_once);
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
    request->reply.length_foretold = request_header(request, "X-Foretold") != NULL ? 77 : 0;
    representation_step(&request->reply, wait_once);
    return OUTCOME_READY;
}

/* Asks for the parameter q. */
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
    {.pattern = "/bytes", .get = {.handle = handle_bytes}},
    {.pattern = "/corrupt", .get = {.handle = handle_corrupt}},
    {.pattern = "/healthz", .get = {.handle = handle_health}, .needs_no_models = true},
    {.pattern = "/query", .get = {.handle = handle_query}},
    {.pattern = "/unknown", .get = {.handle = handle_unknown}},
    {.pattern = "/upload",
     .put = {.begin = begin_put, .receive = receive_put, .handle = handle_put}},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

static void add(struct request *request, const char *name, const char *value)
{
    const struct header_field field = {name, value, (uint32_t)strlen(name),
                                       (uint32_t)strlen(value)};

    assert_true(request_add_header(request, field));
}

static struct request *ask(enum method method, const char *target)
{
    struct request *request = request_new(&server, NULL, target);

    assert_non_null(request);
    request->method = method;
    add(request, "Host", "x");
    steps_run = 0;
    received = 0;
    return request;
}

/* Waits are over as soon as they begin. */
static const struct answer *answer_of(struct request *request)
{
    if (!exchange_begin(request))
        while (exchange_advance(request) == OUTCOME_WAITING)
            ;
    else
        assert_int_equal(exchange_advance(request), OUTCOME_READY);
    return exchange_answer(request);
}

static const struct answer *answer_with(struct request *request, const char *name,
                                        const char *value)
{
    add(request, name, value);
    return answer_of(request);
}

static const char *field_of(const struct answer *answer, const char *name)
{
    for (unsigned i = 0; i < answer->field_count; i++)
        if (strcmp(answer->fields[i].name, name) == 0)
            return answer->fields[i].value;
    return "";
}

static void assert_body(const struct answer *answer, const char *expected)
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

static void whole_answers_carry_every_field(void **state)
{
    struct request *request = ask(METHOD_GET, "/bytes");
    const struct answer *answer = answer_of(request);

    (void)state;
    assert_int_equal(answer->status, 200);
    assert_body(answer, HEAD_TEXT TAIL_TEXT);
    assert_int_equal(steps_run, 2);
    assert_string_equal(field_of(answer, "Content-Type"), "application/octet-stream");
    assert_string_equal(field_of(answer, "Accept-Ranges"), "bytes");
    assert_string_equal(field_of(answer, "ETag"), ETAG);
    assert_string_equal(field_of(answer, "Last-Modified"), "Tue, 14 Nov 2023 22:13:20 GMT");
    assert_string_equal(field_of(answer, "Cache-Control"), "no-cache");
    assert_string_equal(field_of(answer, "Vary"), "Accept-Encoding");
    assert_string_equal(field_of(answer, "ZT-Dtype"), "f32");
    assert_int_equal(strncmp(field_of(answer, "Repr-Digest"), "sha-256=:", 9), 0);
    assert_int_equal(strlen(field_of(answer, "X-Request-Id")), 16);
    request_free(request);
}

static void head_tells_the_length_and_sends_nothing(void **state)
{
    struct request *request = ask(METHOD_HEAD, "/bytes");
    const struct answer *answer = answer_with(request, "Range", "bytes=0-1");

    (void)state;
    assert_int_equal(answer->status, 200);
    assert_true(answer->content_length == 20);
    assert_int_equal(answer->segment_count, 0);
    request_free(request);
}

static void ranges_cut_across_segments(void **state)
{
    static const struct {
        const char *range;
        const char *content_range;
        const char *body;
    } cases[] = {
        {"bytes=0-0", "bytes 0-0/20", "0"},
        {"bytes=8-11", "bytes 8-11/20", "89ab"},
        {"bytes=10-", "bytes 10-19/20", TAIL_TEXT},
        {"bytes=-1", "bytes 19-19/20", "j"},
        {"bytes=9-9", "bytes 9-9/20", "9"},
        {"bytes=12-13", "bytes 12-13/20", "cd"},
        {"bytes=0-9", "bytes 0-9/20", HEAD_TEXT},
        {"bytes=5-999", "bytes 5-19/20", "56789" TAIL_TEXT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request *request = ask(METHOD_GET, "/bytes");
        const struct answer *answer = answer_with(request, "Range", cases[i].range);

        assert_int_equal(answer->status, 206);
        assert_string_equal(field_of(answer, "Content-Range"), cases[i].content_range);
        assert_string_not_equal(field_of(answer, "Repr-Digest"), "");
        assert_body(answer, cases[i].body);
        request_free(request);
    }
}

static void ranges_past_the_end_are_416(void **state)
{
    struct request *request = ask(METHOD_GET, "/bytes");
    const struct answer *answer = answer_with(request, "Range", "bytes=20-");

    (void)state;
    assert_int_equal(answer->status, 416);
    assert_string_equal(field_of(answer, "Content-Range"), "bytes */20");
    assert_string_equal(field_of(answer, "Content-Type"), "application/problem+json");
    assert_string_equal(field_of(answer, "ETag"), "");
    request_free(request);
}

static void nonsense_gets_the_whole(void **state)
{
    static const char *const ranges[] = {"bytes=", "bytes=5-4", "lines=0-1", "bytes=a-b",
                                         "bytes=0-1,x"};

    (void)state;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct request *request = ask(METHOD_GET, "/bytes");
        const struct answer *answer = answer_with(request, "Range", ranges[i]);

        assert_int_equal(answer->status, 200);
        assert_body(answer, HEAD_TEXT TAIL_TEXT);
        request_free(request);
    }
}

static void ranges_that_meet_are_one(void **state)
{
    static const char *const ranges[] = {"bytes=8-9,10-11", "bytes=10-11,8-10", "bytes=8-11,99-",
                                         "bytes=9-9,8-11,-0"};

    (void)state;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct request *request = ask(METHOD_GET, "/bytes");
        const struct answer *answer = answer_with(request, "Range", ranges[i]);

        assert_int_equal(answer->status, 206);
        assert_string_equal(field_of(answer, "Content-Range"), "bytes 8-11/20");
        assert_string_equal(field_of(answer, "Content-Type"), "application/octet-stream");
        assert_body(answer, "89ab");
        request_free(request);
    }
}

static void several_ranges_become_parts(void **state)
{
    static const char type[] = "multipart/byteranges; boundary=";
    struct request *request = ask(METHOD_GET, "/bytes");
    const struct answer *answer = answer_with(request, "Range", "bytes=15-, 9-10,0-0");
    const char *boundary = field_of(answer, "Content-Type") + strlen(type);
    char expected[1024];

    (void)state;
    assert_int_equal(answer->status, 206);
    assert_int_equal(strncmp(field_of(answer, "Content-Type"), type, strlen(type)), 0);
    assert_string_equal(field_of(answer, "Content-Range"), "");
    assert_string_equal(field_of(answer, "ETag"), ETAG);
    assert_string_equal(field_of(answer, "Vary"), "Accept-Encoding");
    assert_int_equal(strncmp(field_of(answer, "Repr-Digest"), "sha-256=:", 9), 0);
    snprintf(
        expected, sizeof(expected),
        "--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes "
        "15-19/20\r\n\r\nfghij"
        "\r\n--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes "
        "9-10/20\r\n\r\n9a"
        "\r\n--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes 0-0/20\r\n\r\n0"
        "\r\n--%s--\r\n",
        boundary, boundary, boundary, boundary);
    assert_body(answer, expected);
    request_free(request);
}

static void parts_are_not_sent_for_head_or_in_vain(void **state)
{
    struct request *request = ask(METHOD_HEAD, "/bytes");
    const struct answer *answer = answer_with(request, "Range", "bytes=0-1,5-6");

    (void)state;
    assert_int_equal(answer->status, 200);
    assert_true(answer->content_length == 20);
    request_free(request);
    request = ask(METHOD_GET, "/bytes");
    add(request, "If-None-Match", ETAG);
    answer = answer_with(request, "Range", "bytes=0-1,5-6");
    assert_int_equal(answer->status, 304);
    assert_string_equal(field_of(answer, "Content-Type"), "");
    request_free(request);
    request = ask(METHOD_GET, "/corrupt");
    assert_int_equal(answer_with(request, "Range", "bytes=0-1,5-6")->status, 500);
    request_free(request);
}

static void if_range_of_another_version_gets_the_whole(void **state)
{
    struct request *request = ask(METHOD_GET, "/bytes");
    const struct answer *answer;

    (void)state;
    add(request, "If-Range", "\"other\"");
    answer = answer_with(request, "Range", "bytes=0-1");
    assert_int_equal(answer->status, 200);
    request_free(request);
    request = ask(METHOD_GET, "/bytes");
    add(request, "If-Range", ETAG);
    answer = answer_with(request, "Range", "bytes=0-1");
    assert_int_equal(answer->status, 206);
    request_free(request);
}

static void not_modified_costs_no_step(void **state)
{
    struct request *request = ask(METHOD_GET, "/corrupt");
    const struct answer *answer = answer_with(request, "If-None-Match", "\"x\", " ETAG);

    (void)state;
    assert_int_equal(answer->status, 304);
    assert_int_equal(steps_run, 0);
    assert_int_equal(answer->segment_count, 0);
    assert_true(answer->content_length == 20);
    assert_string_equal(field_of(answer, "ETag"), ETAG);
    assert_string_equal(field_of(answer, "Vary"), "Accept-Encoding");
    assert_string_equal(field_of(answer, "Cache-Control"), "no-cache");
    assert_string_equal(field_of(answer, "Content-Type"), "");
    request_free(request);
}

static void not_modified_tells_no_length_that_is_not_known(void **state)
{
    struct request *request = ask(METHOD_GET, "/unknown");

    (void)state;
    assert_true(answer_with(request, "If-None-Match", ETAG)->content_length ==
                ANSWER_LENGTH_UNKNOWN);
    request_free(request);
    request = ask(METHOD_GET, "/unknown");
    add(request, "X-Foretold", "1");
    assert_true(answer_with(request, "If-None-Match", ETAG)->content_length == 77);
    request_free(request);
}

static void failed_preconditions_are_412_before_any_step(void **state)
{
    struct request *request = ask(METHOD_GET, "/bytes");
    const struct answer *answer = answer_with(request, "If-Match", "\"other\"");

    (void)state;
    assert_int_equal(answer->status, 412);
    assert_int_equal(steps_run, 0);
    request_free(request);
}

static void a_step_that_fails_sends_no_byte(void **state)
{
    struct request *request = ask(METHOD_GET, "/corrupt");
    const struct answer *answer = answer_with(request, "Range", "bytes=0-3");

    (void)state;
    assert_int_equal(answer->status, 500);
    assert_int_equal(steps_run, 1);
    assert_string_equal(field_of(answer, "Cache-Control"), "no-store");
    assert_string_equal(field_of(answer, "ETag"), "");
    assert_string_equal(field_of(answer, "Repr-Digest"), "");
    request_free(request);
}

static void sane_request_ids_come_back(void **state)
{
    static const char *const sane[] = {"a", "Az09._-"};
    static const char *const odd[] = {"", "a b", "a\"b", "\xc3\xa9"};
    char longest[REQUEST_ID_SIZE + 1];
    struct request *request;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        request = ask(METHOD_GET, "/healthz");
        assert_string_equal(field_of(answer_with(request, "X-Request-Id", sane[i]), "X-Request-Id"),
                            sane[i]);
        request_free(request);
    }
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    for (size_t i = 0; i < 5; i++) {
        const char *id = i < 4 ? odd[i] : longest;

        request = ask(METHOD_GET, "/healthz");
        assert_int_equal(strlen(field_of(answer_with(request, "X-Request-Id", id), "X-Request-Id")),
                         16);
        request_free(request);
    }
}

static void traces_are_read_when_well_formed(void **state)
{
    struct request *request = ask(METHOD_GET, "/healthz");

    (void)state;
    answer_with(request, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_string_equal(request_state(request)->trace_id, "0af7651916cd43dd8448eb211c80319c");
    request_free(request);
    request = ask(METHOD_GET, "/healthz");
    answer_with(request, "traceparent", "00-00000000000000000000000000000000-b7ad6b7169203331-01");
    assert_string_equal(request_state(request)->trace_id, "");
    request_free(request);
    request = ask(METHOD_GET, "/healthz");
    answer_with(request, "traceparent", "00-0af7");
    assert_string_equal(request_state(request)->trace_id, "");
    request_free(request);
}

static void broken_framing_closes(void **state)
{
    struct request *request = ask(METHOD_GET, "/healthz");
    const struct answer *answer;

    (void)state;
    add(request, "Content-Length", "1");
    add(request, "Content-Length", "2");
    assert_true(exchange_begin(request));
    answer = exchange_answer(request);
    assert_int_equal(answer->status, 400);
    assert_true(answer->close);
    request_free(request);
}

static void odd_targets_are_refused(void **state)
{
    char target[9000];
    struct request *request;

    (void)state;
    memset(target, 'a', sizeof(target));
    target[0] = '/';
    target[sizeof(target) - 1] = '\0';
    request = ask(METHOD_GET, target);
    assert_int_equal(answer_of(request)->status, 414);
    request_free(request);
    for (size_t i = 0; i < 3; i++) {
        static const char *const odd[] = {"/bytes\x01", "/bytes#a", "bytes"};

        request = ask(METHOD_GET, odd[i]);
        assert_int_equal(answer_of(request)->status, 400);
        request_free(request);
    }
}

static void assert_queried(const char *target, unsigned status, const char *value)
{
    struct request *request = ask(METHOD_GET, target);
    const struct answer *answer = answer_of(request);

    assert_int_equal(answer->status, status);
    if (value != NULL) {
        assert_int_equal(answer->content_length, strlen(value));
        assert_memory_equal(answer->segments[0].bytes, value, strlen(value));
    }
    request_free(request);
}

static void only_a_parameter_that_is_asked_for_can_be_malformed(void **state)
{
    (void)state;
    assert_queried("/query?q=%41&%zz=1&unknown=%zz&%", 200, "A");
    assert_queried("/query?unknown=%", 200, "none");
    assert_queried("/bytes?q=%zz", 200, NULL);
    assert_queried("/query?%71=a%zz", 400, NULL);
    assert_queried("/query?q=%4", 400, NULL);
    assert_queried("http://host?q=%zz", 404, NULL);
    assert_queried("http://host/query?q=http://h/?", 200, "http://h/?");
}

static void refusals_come_before_the_body(void **state)
{
    struct request *request = ask(METHOD_PUT, "/upload");

    (void)state;
    add(request, "Content-Length", "5");
    add(request, "X-Refuse", "1");
    assert_true(exchange_begin(request));
    assert_int_equal(exchange_answer(request)->status, 403);
    request_free(request);
    request = ask(METHOD_GET, "/bytes");
    add(request, "Content-Length", "999999999");
    assert_true(exchange_begin(request));
    assert_int_equal(exchange_answer(request)->status, 413);
    request_free(request);
}

static void refusals_within_the_body_wait_for_its_end(void **state)
{
    static const char piece[60];
    struct request *request = ask(METHOD_PUT, "/upload");

    (void)state;
    add(request, "Transfer-Encoding", "chunked");
    assert_false(exchange_begin(request));
    for (unsigned i = 0; i < 5; i++)
        assert_true(exchange_receive(request, piece, sizeof(piece)));
    assert_int_equal(received, 120);
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    assert_int_equal(exchange_answer(request)->status, 413);
    request_free(request);
}

static void bodies_nobody_wants_are_dropped_up_to_a_bound(void **state)
{
    static const char piece[65536];
    struct request *request = ask(METHOD_GET, "/bytes");
    unsigned taken = 0;

    (void)state;
    add(request, "Transfer-Encoding", "chunked");
    assert_false(exchange_begin(request));
    while (taken < 100 && exchange_receive(request, piece, sizeof(piece)))
        taken++;
    assert_int_equal(taken, 16);
    request_free(request);
}

static bool not_loaded(const struct catalog *catalog)
{
    (void)catalog;
    return false;
}

static void routes_that_need_models_are_unavailable_while_these_are_read(void **state)
{
    struct request *request;
    const struct answer *answer;

    (void)state;
    server.is_loaded = not_loaded;
    request = ask(METHOD_GET, "/bytes");
    answer = answer_of(request);
    assert_int_equal(answer->status, 503);
    assert_string_equal(field_of(answer, "Retry-After"), "1");
    request_free(request);
    request = ask(METHOD_GET, "/healthz?x");
    assert_int_equal(answer_of(request)->status, 200);
    request_free(request);
    request = ask(METHOD_GET, "/nothing");
    assert_int_equal(answer_of(request)->status, 404);
    request_free(request);
    server.is_loaded = NULL;
}

static void queries_are_decoded(void **state)
{
    struct request *request = ask(METHOD_GET, "/bytes?a=1&b=%2F+x&a=2&c&=d&%61=3&e=");
    struct zt_text value;

    (void)state;
    assert_true(request_query(request, "a", 0, &value));
    assert_int_equal(value.length, 1);
    assert_memory_equal(value.bytes, "1", 1);
    assert_true(request_query(request, "a", 2, &value));
    assert_memory_equal(value.bytes, "3", 1);
    assert_false(request_query(request, "a", 3, &value));
    assert_true(request_query(request, "b", 0, &value));
    assert_int_equal(value.length, 3);
    assert_memory_equal(value.bytes, "/+x", 3);
    assert_true(request_query(request, "c", 0, &value));
    assert_int_equal(value.length, 0);
    assert_true(request_query(request, "e", 0, &value));
    assert_int_equal(value.length, 0);
    assert_false(request_query(request, "d", 0, &value));
    request_free(request);
}

static unsigned released[3];
static unsigned release_count;

static void note_release(void *thing)
{
    released[release_count++] = *(const unsigned *)thing;
}

static void held_things_are_released_in_reverse(void **state)
{
    static unsigned things[3] = {0, 1, 2};
    struct request *request = ask(METHOD_GET, "/bytes");

    (void)state;
    release_count = 0;
    for (unsigned i = 0; i < 3; i++)
        request_hold(request, &things[i], note_release);
    for (unsigned i = 0; i < 100; i++)
        assert_non_null(request_print(request, "%050u", i));
    request_free(request);
    assert_int_equal(release_count, 3);
    assert_int_equal(released[0], 2);
    assert_int_equal(released[2], 0);
}

static void repeated_fields_are_joined(void **state)
{
    struct request *request = ask(METHOD_GET, "/bytes");

    (void)state;
    add(request, "If-None-Match", "\"a\"");
    add(request, "Accept", "x");
    add(request, "if-none-match", "\"b\"");
    assert_string_equal(request_header(request, "If-None-Match"), "\"a\", \"b\"");
    assert_null(request_header(request, "If-None"));
    request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_answers_carry_every_field),
        cmocka_unit_test(head_tells_the_length_and_sends_nothing),
        cmocka_unit_test(ranges_cut_across_segments),
        cmocka_unit_test(ranges_past_the_end_are_416),
        cmocka_unit_test(nonsense_gets_the_whole),
        cmocka_unit_test(ranges_that_meet_are_one),
        cmocka_unit_test(several_ranges_become_parts),
        cmocka_unit_test(parts_are_not_sent_for_head_or_in_vain),
        cmocka_unit_test(if_range_of_another_version_gets_the_whole),
        cmocka_unit_test(not_modified_costs_no_step),
        cmocka_unit_test(not_modified_tells_no_length_that_is_not_known),
        cmocka_unit_test(failed_preconditions_are_412_before_any_step),
        cmocka_unit_test(a_step_that_fails_sends_no_byte),
        cmocka_unit_test(sane_request_ids_come_back),
        cmocka_unit_test(traces_are_read_when_well_formed),
        cmocka_unit_test(broken_framing_closes),
        cmocka_unit_test(odd_targets_are_refused),
        cmocka_unit_test(only_a_parameter_that_is_asked_for_can_be_malformed),
        cmocka_unit_test(refusals_come_before_the_body),
        cmocka_unit_test(refusals_within_the_body_wait_for_its_end),
        cmocka_unit_test(bodies_nobody_wants_are_dropped_up_to_a_bound),
        cmocka_unit_test(routes_that_need_models_are_unavailable_while_these_are_read),
        cmocka_unit_test(queries_are_decoded),
        cmocka_unit_test(held_things_are_released_in_reverse),
        cmocka_unit_test(repeated_fields_are_joined),
    };

    config_defaults(&config);
    if (zt_source_from_memory(TAIL_TEXT, 10, &tail, NULL) != ZT_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
