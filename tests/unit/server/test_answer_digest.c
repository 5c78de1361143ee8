/* Repr-Digest and Content-Digest, from the begin of the exchange to its answer, with and without
 * workers. */
#include "support.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog/generation.h"
#include "http/exchange/digest_memory.h"
#include "http/exchange/digest_queue.h"
#include "http/exchange/exchange.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_state.h"
#include "http/fields/digest_fields.h"
#include "zt/digest.h"

#define SMALL  1000
#define LARGE  ((size_t)10 << 20)
#define WANTED "sha-256=10"

static struct config config;
static struct server server = {.config = &config};
static uint8_t *large;
static atomic_uint reads;
static atomic_bool cut_short;
static struct generation generation;
static bool is_written_to;

/* --- a source that counts and can fail --- */

static uint64_t source_size(const struct zt_source *source)
{
    (void)source;
    return LARGE;
}

static enum zt_status source_read(struct zt_source *source, uint64_t offset, void *buffer,
                                  size_t length, struct zt_error *error)
{
    (void)source;
    if (atomic_load(&cut_short) && offset + length > LARGE / 2)
        return zt_fail(error, ZT_IO, NULL, offset, "cut short");
    atomic_fetch_add(&reads, 1);
    memcpy(buffer, large + offset, length);
    return ZT_OK;
}

static const uint8_t *source_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void source_close(struct zt_source *source)
{
    (void)source;
}

static const struct zt_source_ops source_ops = {
    .size = source_size, .read_at = source_read, .map = source_map, .close = source_close};
static struct zt_source source = {&source_ops};

/* --- routes --- */

static enum outcome handle_small(struct request *request)
{
    request->reply.etag = "\"small\"";
    request->reply.ranges = true;
    representation_memory(&request->reply, large, SMALL);
    return OUTCOME_READY;
}

/* In two pieces, one of them memory. */
static enum outcome handle_large(struct request *request)
{
    request->reply.etag = "\"large\"";
    request->reply.ranges = true;
    representation_memory(&request->reply, large, SMALL);
    representation_source(&request->reply, &source, SMALL, LARGE - SMALL);
    return OUTCOME_READY;
}

static bool know_part(struct request *request, uint64_t first, uint64_t length,
                      uint8_t out_sha256[32])
{
    (void)request;
    if (first != 4096 || length != 4096)
        return false;
    memset(out_sha256, 7, 32);
    return true;
}

static enum outcome handle_pieces(struct request *request)
{
    request->reply.range_sha256 = know_part;
    return handle_large(request);
}

static bool is_unwritten(const struct generation *asked)
{
    assert_ptr_equal(asked, &generation);
    return !is_written_to;
}

static enum outcome handle_file(struct request *request)
{
    request->generation = &generation;
    request->is_unwritten = is_unwritten;
    return handle_large(request);
}

static enum outcome handle_post(struct request *request)
{
    return handle_small(request);
}

const struct route routes[] = {
    {.pattern = "/small", .get = {.handle = handle_small}, .post = {.handle = handle_post}},
    {.pattern = "/large", .get = {.handle = handle_large}, .ignores_parameters = true},
    {.pattern = "/pieces", .get = {.handle = handle_pieces}},
    {.pattern = "/file", .get = {.handle = handle_file}},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

/* --- asking --- */

static struct request *ask(enum method method, const char *target)
{
    struct request *request = request_new(&server, NULL, target);

    assert_non_null(request);
    request->method = method;
    assert_true(request_add_header(request, (struct header_field){"Host", "x", 4, 1}));
    atomic_store(&reads, 0);
    return request;
}

static struct request *add(struct request *request, const char *name, const char *value)
{
    const struct header_field field = {name, value, (uint32_t)strlen(name),
                                       (uint32_t)strlen(value)};

    assert_true(request_add_header(request, field));
    return request;
}

static const struct answer *answer_of(struct request *request)
{
    struct request_state *state = request_state(request);

    assert_false(exchange_begin(request));
    while (exchange_advance(request) == OUTCOME_WAITING) {
        while (!atomic_load(&state->woken))
            usleep(100);
        atomic_store(&state->woken, false);
    }
    return exchange_answer(request);
}

static const char *field_of(const struct answer *answer, const char *name)
{
    for (unsigned i = 0; i < answer->field_count; i++)
        if (strcmp(answer->fields[i].name, name) == 0)
            return answer->fields[i].value;
    return "";
}

/* --- checking --- */

static void add_bytes(struct zt_hasher *hasher, const struct segment *segment)
{
    const uint8_t *bytes =
        segment->kind == SEGMENT_MEMORY ? segment->bytes : large + segment->offset;

    zt_hasher_update(hasher, bytes, (size_t)segment->length);
}

static void finish(struct zt_hasher *hasher, char out_text[DIGEST_FIELD_SIZE])
{
    struct zt_digest digest;

    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    digest_field_format(digest.bytes, out_text);
}

static void assert_is_body(const struct answer *answer, const char *field)
{
    char expected[DIGEST_FIELD_SIZE];
    struct zt_hasher *hasher;

    assert_int_equal(zt_hasher_new(ZT_DIGEST_SHA256, &hasher), ZT_OK);
    for (size_t i = 0; i < answer->segment_count; i++)
        add_bytes(hasher, &answer->segments[i]);
    finish(hasher, expected);
    assert_string_equal(field_of(answer, field), expected);
}

static void assert_is_of(const struct answer *answer, const char *field, size_t length)
{
    char expected[DIGEST_FIELD_SIZE];
    struct zt_hasher *hasher;

    assert_int_equal(zt_hasher_new(ZT_DIGEST_SHA256, &hasher), ZT_OK);
    zt_hasher_update(hasher, large, length);
    finish(hasher, expected);
    assert_string_equal(field_of(answer, field), expected);
}

static int forget(void **state)
{
    (void)state;
    digest_memory_free(server.digests);
    server.digests = digest_memory_new();
    atomic_store(&cut_short, false);
    is_written_to = false;
    return server.digests == NULL;
}

static void unwanted_digests_are_not_computed(void **state)
{
    static const char *const wishes[] = {"sha-256=0",      "sha-512=10", "sha-256", "sha-256=11",
                                         "sha-256=\"10\"", "=",          ""};

    (void)state;
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        struct request *request = ask(METHOD_GET, "/large");
        const struct answer *answer = answer_of(
            add(add(request, "Want-Repr-Digest", wishes[i]), "Want-Content-Digest", wishes[i]));

        assert_int_equal(answer->status, 200);
        assert_string_equal(field_of(answer, "Repr-Digest"), "");
        assert_string_equal(field_of(answer, "Content-Digest"), "");
        assert_int_equal(atomic_load(&reads), 0);
        request_free(request);
    }
}

static void small_bodies_are_hashed_without_waiting(void **state)
{
    struct request *request = add(ask(METHOD_GET, "/small"), "Want-Content-Digest", WANTED);

    (void)state;
    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    assert_is_of(exchange_answer(request), "Content-Digest", SMALL);
    assert_is_of(exchange_answer(request), "Repr-Digest", SMALL);
    request_free(request);
}

static void a_wanted_digest_is_computed_once(void **state)
{
    struct request *request =
        add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", "sha-512=3, sha-256=1;x");
    const struct answer *answer = answer_of(request);

    (void)state;
    assert_is_of(answer, "Repr-Digest", LARGE);
    assert_string_equal(field_of(answer, "Content-Digest"), "");
    assert_true(atomic_load(&reads) > 0);
    request_free(request);
    /* Later answers have it, wanted or not. */
    request = ask(METHOD_GET, "/large");
    assert_is_of(answer_of(request), "Repr-Digest", LARGE);
    assert_int_equal(atomic_load(&reads), 0);
    request_free(request);
    request = add(ask(METHOD_GET, "/large"), "Want-Content-Digest", WANTED);
    assert_is_of(answer_of(request), "Content-Digest", LARGE);
    assert_int_equal(atomic_load(&reads), 0);
    request_free(request);
    request = ask(METHOD_GET, "/large?other");
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    request_free(request);
}

static void parts_are_hashed_as_they_are_sent(void **state)
{
    static const char *const ranges[] = {"bytes=5-5",
                                         "bytes=999-70000",
                                         "bytes=-9999999",
                                         "bytes=0-9,5000-70000",
                                         "bytes=9000000-,5-7,100-200",
                                         "bytes=0-"};

    (void)state;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct request *request = add(ask(METHOD_GET, "/large"), "Range", ranges[i]);
        const struct answer *answer = answer_of(add(request, "Want-Content-Digest", WANTED));

        assert_int_equal(answer->status, 206);
        assert_is_body(answer, "Content-Digest");
        if (i < 5)
            assert_string_equal(field_of(answer, "Repr-Digest"), "");
        request_free(request);
    }
}

static void a_range_can_have_both_digests(void **state)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Range", "bytes=100-5000000");
    const struct answer *answer =
        answer_of(add(add(request, "Want-Content-Digest", WANTED), "Want-Repr-Digest", WANTED));

    (void)state;
    assert_int_equal(answer->status, 206);
    assert_is_body(answer, "Content-Digest");
    assert_is_of(answer, "Repr-Digest", LARGE);
    request_free(request);
}

static void head_has_the_digests_of_get(void **state)
{
    struct request *request = add(ask(METHOD_HEAD, "/large"), "Range", "bytes=0-5");
    const struct answer *answer = answer_of(add(request, "Want-Content-Digest", WANTED));

    (void)state;
    assert_int_equal(answer->status, 200);
    assert_int_equal(answer->segment_count, 0);
    assert_is_of(answer, "Content-Digest", LARGE);
    assert_is_of(answer, "Repr-Digest", LARGE);
    request_free(request);
}

static void digests_of_known_pieces_are_sent_unasked(void **state)
{
    char expected[DIGEST_FIELD_SIZE];
    uint8_t sha256[32];
    struct request *request = add(ask(METHOD_GET, "/pieces"), "Range", "bytes=4096-8191");

    (void)state;
    memset(sha256, 7, sizeof(sha256));
    digest_field_format(sha256, expected);
    assert_string_equal(field_of(answer_of(request), "Content-Digest"), expected);
    request_free(request);
    request = add(ask(METHOD_GET, "/pieces"), "Range", "bytes=4096-8192");
    assert_string_equal(field_of(answer_of(request), "Content-Digest"), "");
    request_free(request);
    request = add(ask(METHOD_GET, "/pieces"), "Range", "bytes=4096-8191");
    assert_string_equal(
        field_of(answer_of(add(request, "Want-Content-Digest", WANTED)), "Content-Digest"),
        expected);
    assert_int_equal(atomic_load(&reads), 0);
    request_free(request);
}

static void answers_without_the_representation_have_no_digest(void **state)
{
    static const struct {
        const char *field;
        const char *value;
        unsigned status;
    } cases[] = {{"If-None-Match", "\"large\"", 304},
                 {"Range", "bytes=99999999-", 416},
                 {"If-Match", "\"x\"", 412}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request *request = add(ask(METHOD_GET, "/large"), cases[i].field, cases[i].value);
        const struct answer *answer =
            answer_of(add(add(request, "Want-Content-Digest", WANTED), "Want-Repr-Digest", WANTED));

        assert_int_equal(answer->status, cases[i].status);
        assert_string_equal(field_of(answer, "Content-Digest"), "");
        assert_string_equal(field_of(answer, "Repr-Digest"), "");
        assert_int_equal(atomic_load(&reads), 0);
        request_free(request);
    }
}

static void other_methods_have_no_digests(void **state)
{
    struct request *request = add(ask(METHOD_POST, "/small"), "Want-Content-Digest", WANTED);

    (void)state;
    assert_string_equal(field_of(answer_of(request), "Content-Digest"), "");
    request_free(request);
}

static void bytes_that_cannot_be_read_are_a_problem(void **state)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Range", "bytes=9000000-");
    const struct answer *answer;

    (void)state;
    atomic_store(&cut_short, true);
    answer = answer_of(add(request, "Want-Repr-Digest", WANTED));
    assert_int_equal(answer->status, 500);
    assert_string_equal(field_of(answer, "Content-Type"), "application/problem+json");
    assert_string_equal(field_of(answer, "Content-Range"), "");
    assert_string_equal(field_of(answer, "Repr-Digest"), "");
    assert_true(answer->content_length == request->reply.length);
    request_free(request);
    atomic_store(&cut_short, false);
    request = ask(METHOD_GET, "/large");
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    request_free(request);
}

static void digests_of_bytes_that_changed_are_neither_sent_nor_kept(void **state)
{
    struct request *request = add(ask(METHOD_GET, "/file"), "Want-Repr-Digest", WANTED);

    (void)state;
    is_written_to = true;
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    request_free(request);
    request = add(ask(METHOD_GET, "/file"), "Range", "bytes=5-70000");
    assert_string_equal(
        field_of(answer_of(add(request, "Want-Content-Digest", WANTED)), "Content-Digest"), "");
    request_free(request);
    is_written_to = false;
    request = ask(METHOD_GET, "/file");
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    request_free(request);
    request = add(ask(METHOD_GET, "/file"), "Want-Repr-Digest", WANTED);
    assert_is_of(answer_of(request), "Repr-Digest", LARGE);
    request_free(request);
}

static bool no(const struct connection *connection)
{
    (void)connection;
    return false;
}

static void a_half_closed_connection_gets_no_digest_that_takes_long(void **state)
{
    static const struct transport half_closed = {.is_gone = no, .is_established = no};
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);
    const struct answer *answer;

    (void)state;
    request_state(request)->transport = &half_closed;
    answer = answer_of(request);
    assert_int_equal(answer->status, 200);
    assert_string_equal(field_of(answer, "Repr-Digest"), "");
    assert_in_range(atomic_load(&reads), 1, 20);
    request_free(request);
}

static void stopping_the_server_ends_hashing(void **state)
{
    struct digest_queue *queue = server.digest_queue;
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);

    (void)state;
    server.digest_queue = digest_queue_new(server.workers, 1);
    digest_queue_stop(server.digest_queue);
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    assert_int_equal(atomic_load(&reads), 0);
    request_free(request);
    digest_queue_free(server.digest_queue);
    server.digest_queue = queue;
}

/* As happens when a connection is cut while its request waits. */
static void a_request_can_end_between_jobs(void **state)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);

    (void)state;
    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    while (!atomic_load(&request_state(request)->woken))
        usleep(100);
    request_free(request);
}

static void a_digest_that_another_request_computed_is_taken(void **state)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);
    uint8_t sha256[32] = {1, 2, 3};
    char expected[DIGEST_FIELD_SIZE];

    (void)state;
    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    while (!atomic_load(&request_state(request)->woken))
        usleep(100);
    digest_memory_keep(server.digests, "/large", "\"large\"", sha256);
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    digest_field_format(sha256, expected);
    assert_string_equal(field_of(exchange_answer(request), "Repr-Digest"), expected);
    request_free(request);
}

static void a_digest_that_another_request_computed_leaves_the_other_one(void **state)
{
    static const uint8_t sha256[32] = {1, 2, 3};
    struct request *request = add(ask(METHOD_GET, "/large"), "Range", "bytes=2000-2999");

    (void)state;
    add(add(request, "Want-Repr-Digest", WANTED), "Want-Content-Digest", WANTED);
    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    while (!atomic_load(&request_state(request)->woken))
        usleep(100);
    atomic_store(&request_state(request)->woken, false);
    digest_memory_keep(server.digests, "/large", "\"large\"", sha256);
    atomic_store(&reads, 0);
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    while (!atomic_load(&request_state(request)->woken))
        usleep(100);
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    assert_is_body(exchange_answer(request), "Content-Digest");
    assert_int_equal(atomic_load(&reads), 1);
    request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(unwanted_digests_are_not_computed, forget),
        cmocka_unit_test_setup(small_bodies_are_hashed_without_waiting, forget),
        cmocka_unit_test_setup(a_wanted_digest_is_computed_once, forget),
        cmocka_unit_test_setup(parts_are_hashed_as_they_are_sent, forget),
        cmocka_unit_test_setup(a_range_can_have_both_digests, forget),
        cmocka_unit_test_setup(head_has_the_digests_of_get, forget),
        cmocka_unit_test_setup(digests_of_known_pieces_are_sent_unasked, forget),
        cmocka_unit_test_setup(answers_without_the_representation_have_no_digest, forget),
        cmocka_unit_test_setup(other_methods_have_no_digests, forget),
        cmocka_unit_test_setup(bytes_that_cannot_be_read_are_a_problem, forget),
        cmocka_unit_test_setup(digests_of_bytes_that_changed_are_neither_sent_nor_kept, forget),
        cmocka_unit_test_setup(a_half_closed_connection_gets_no_digest_that_takes_long, forget),
        cmocka_unit_test_setup(stopping_the_server_ends_hashing, forget),
        cmocka_unit_test_setup(a_request_can_end_between_jobs, forget),
        cmocka_unit_test_setup(a_digest_that_another_request_computed_is_taken, forget),
        cmocka_unit_test_setup(a_digest_that_another_request_computed_leaves_the_other_one, forget),
    };
    int failed;

    config_defaults(&config);
    large = malloc(LARGE);
    server.workers = workers_start(2);
    server.digest_queue = digest_queue_new(server.workers, 1);
    if (large == NULL || server.workers == NULL || server.digest_queue == NULL)
        return 1;
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t)(i * 2654435761u >> 13);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    workers_stop(server.workers);
    digest_queue_free(server.digest_queue);
    digest_memory_free(server.digests);
    free(large);
    return failed;
}
