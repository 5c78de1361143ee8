/* Repr-Digest and Content-Digest, from the begin of the exchange to its answer, with and without
 * workers. */
#include "exchange_request.h"

#include <stdatomic.h>
#include <unistd.h>

#include "catalog/generation.h"
#include "digests/file_hashes.h"
#include "http/exchange/exchange.h"
#include "http/exchange/problem.h"
#include "http/fields/digest_fields.h"
#include "sources.h"
#include "zt/digest.h"

#define SMALL  1000
#define LARGE  ((size_t)10 << 20)
#define WANTED "sha-256=10"

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

static void source_close(struct zt_source *source)
{
    (void)source;
}

static const struct zt_source_ops source_ops = {
    .size = source_size, .read_at = source_read, .map = source_without_map, .close = source_close};
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
    {.pattern = "/object", .get = {.handle = handle_large}, .problems = PROBLEM_FORM_S3},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

/* --- asking --- */

/* The request is freed by the next, or at the end. */
static struct request *ask(enum method method, const char *target)
{
    free_last(NULL);
    last = request_of(method, target);
    atomic_store(&reads, 0);
    return last;
}

static void await_woken(struct request *request)
{
    struct request_state *state = request_state(request);

    AWAIT(atomic_exchange(&state->woken, false));
}

static const struct answer *answer_of(struct request *request)
{
    assert_false(exchange_begin(request));
    while (exchange_advance(request) == OUTCOME_WAITING)
        await_woken(request);
    return exchange_answer(request);
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

static int start_server(void **state)
{
    (void)state;
    config_defaults(&config);
    strcpy(config.state.dir, "/dev/null/nowhere");
    large = malloc(LARGE);
    server.workers = workers_start(2);
    server.hash_queue = hash_queue_new(&server, 1);
    if (large == NULL || server.workers == NULL || server.hash_queue == NULL)
        return -1;
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t)(i * 2654435761u >> 13);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    free_last(NULL);
    workers_stop(server.workers);
    hash_queue_free(server.hash_queue);
    file_hashes_free(server.hashes);
    free(large);
    return 0;
}

static int reset_hashes(void **state)
{
    (void)state;
    file_hashes_free(server.hashes);
    server.hashes = file_hashes_new(&server);
    atomic_store(&cut_short, false);
    is_written_to = false;
    return server.hashes == NULL;
}

AROUND_ALL_TESTS(start_server, stop_server)

AROUND_EACH_TEST(reset_hashes, NULL)

TEST(unwanted_digests_are_not_computed)
{
    static const char *const wishes[] = {"sha-256=0",      "sha-512=10", "sha-256", "sha-256=11",
                                         "sha-256=\"10\"", "=",          ""};

    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        struct request *request = ask(METHOD_GET, "/large");
        const struct answer *answer = answer_of(
            add(add(request, "Want-Repr-Digest", wishes[i]), "Want-Content-Digest", wishes[i]));

        assert_int_equal(answer->status, 200);
        assert_string_equal(field_of(answer, "Repr-Digest"), "");
        assert_string_equal(field_of(answer, "Content-Digest"), "");
        assert_int_equal(atomic_load(&reads), 0);
    }
}

TEST(small_bodies_are_hashed_without_waiting)
{
    struct request *request = add(ask(METHOD_GET, "/small"), "Want-Content-Digest", WANTED);

    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    assert_is_of(exchange_answer(request), "Content-Digest", SMALL);
    assert_is_of(exchange_answer(request), "Repr-Digest", SMALL);
}

TEST(a_wanted_digest_is_computed_once)
{
    struct request *request =
        add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", "sha-512=3, sha-256=1;x");
    const struct answer *answer = answer_of(request);

    assert_is_of(answer, "Repr-Digest", LARGE);
    assert_string_equal(field_of(answer, "Content-Digest"), "");
    assert_true(atomic_load(&reads) > 0);
    /* Later answers have it, wanted or not. */
    request = ask(METHOD_GET, "/large");
    assert_is_of(answer_of(request), "Repr-Digest", LARGE);
    assert_int_equal(atomic_load(&reads), 0);
    request = add(ask(METHOD_GET, "/large"), "Want-Content-Digest", WANTED);
    assert_is_of(answer_of(request), "Content-Digest", LARGE);
    assert_int_equal(atomic_load(&reads), 0);
    request = ask(METHOD_GET, "/large?other");
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
}

TEST(parts_are_hashed_as_they_are_sent)
{
    static const char *const ranges[] = {"bytes=5-5",
                                         "bytes=999-70000",
                                         "bytes=-9999999",
                                         "bytes=0-9,5000-70000",
                                         "bytes=9000000-,5-7,100-200",
                                         "bytes=0-"};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct request *request = add(ask(METHOD_GET, "/large"), "Range", ranges[i]);
        const struct answer *answer = answer_of(add(request, "Want-Content-Digest", WANTED));

        assert_int_equal(answer->status, 206);
        assert_is_body(answer, "Content-Digest");
        if (i < 5)
            assert_string_equal(field_of(answer, "Repr-Digest"), "");
    }
}

TEST(a_range_can_have_both_digests)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Range", "bytes=100-5000000");
    const struct answer *answer =
        answer_of(add(add(request, "Want-Content-Digest", WANTED), "Want-Repr-Digest", WANTED));

    assert_int_equal(answer->status, 206);
    assert_is_body(answer, "Content-Digest");
    assert_is_of(answer, "Repr-Digest", LARGE);
}

TEST(head_has_the_digests_of_get)
{
    struct request *request = add(ask(METHOD_HEAD, "/large"), "Range", "bytes=0-5");
    const struct answer *answer = answer_of(add(request, "Want-Content-Digest", WANTED));

    assert_int_equal(answer->status, 200);
    assert_int_equal(answer->segment_count, 0);
    assert_is_of(answer, "Content-Digest", LARGE);
    assert_is_of(answer, "Repr-Digest", LARGE);
}

TEST(digests_of_known_pieces_are_sent_unasked)
{
    char expected[DIGEST_FIELD_SIZE];
    uint8_t sha256[32];
    struct request *request = add(ask(METHOD_GET, "/pieces"), "Range", "bytes=4096-8191");

    memset(sha256, 7, sizeof(sha256));
    digest_field_format(sha256, expected);
    assert_string_equal(field_of(answer_of(request), "Content-Digest"), expected);
    request = add(ask(METHOD_GET, "/pieces"), "Range", "bytes=4096-8192");
    assert_string_equal(field_of(answer_of(request), "Content-Digest"), "");
    request = add(ask(METHOD_GET, "/pieces"), "Range", "bytes=4096-8191");
    assert_string_equal(
        field_of(answer_of(add(request, "Want-Content-Digest", WANTED)), "Content-Digest"),
        expected);
    assert_int_equal(atomic_load(&reads), 0);
}

TEST(answers_without_the_representation_have_no_digest)
{
    static const struct {
        const char *field;
        const char *value;
        unsigned status;
    } cases[] = {{"If-None-Match", "\"large\"", 304},
                 {"Range", "bytes=99999999-", 416},
                 {"If-Match", "\"x\"", 412}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request *request = add(ask(METHOD_GET, "/large"), cases[i].field, cases[i].value);
        const struct answer *answer =
            answer_of(add(add(request, "Want-Content-Digest", WANTED), "Want-Repr-Digest", WANTED));

        assert_int_equal(answer->status, cases[i].status);
        assert_string_equal(field_of(answer, "Content-Digest"), "");
        assert_string_equal(field_of(answer, "Repr-Digest"), "");
        assert_int_equal(atomic_load(&reads), 0);
    }
}

TEST(other_methods_have_no_digests)
{
    struct request *request = add(ask(METHOD_POST, "/small"), "Want-Content-Digest", WANTED);

    assert_string_equal(field_of(answer_of(request), "Content-Digest"), "");
}

TEST(bytes_that_cannot_be_read_are_a_problem)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Range", "bytes=9000000-");
    const struct answer *answer;

    atomic_store(&cut_short, true);
    answer = answer_of(add(request, "Want-Repr-Digest", WANTED));
    assert_int_equal(answer->status, 500);
    assert_string_equal(field_of(answer, "Content-Type"), "application/problem+json");
    assert_string_equal(field_of(answer, "Content-Range"), "");
    assert_string_equal(field_of(answer, "Repr-Digest"), "");
    assert_true(answer->content_length == request->reply.length);
    atomic_store(&cut_short, false);
    request = ask(METHOD_GET, "/large");
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
}

TEST(digests_of_bytes_that_changed_are_neither_sent_nor_kept)
{
    struct request *request = add(ask(METHOD_GET, "/file"), "Want-Repr-Digest", WANTED);

    is_written_to = true;
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    request = add(ask(METHOD_GET, "/file"), "Range", "bytes=5-70000");
    assert_string_equal(
        field_of(answer_of(add(request, "Want-Content-Digest", WANTED)), "Content-Digest"), "");
    is_written_to = false;
    request = ask(METHOD_GET, "/file");
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    request = add(ask(METHOD_GET, "/file"), "Want-Repr-Digest", WANTED);
    assert_is_of(answer_of(request), "Repr-Digest", LARGE);
}

static bool no(const struct connection *connection)
{
    (void)connection;
    return false;
}

TEST(a_half_closed_connection_gets_no_digest_that_takes_long)
{
    static const struct transport half_closed = {.is_gone = no, .is_established = no};
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);
    const struct answer *answer;

    request_state(request)->transport = &half_closed;
    answer = answer_of(request);
    assert_int_equal(answer->status, 200);
    assert_string_equal(field_of(answer, "Repr-Digest"), "");
    assert_in_range(atomic_load(&reads), 1, 40);
}

TEST(stopping_the_server_ends_hashing)
{
    struct hash_queue *queue = server.hash_queue;
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);

    server.hash_queue = hash_queue_new(&server, 1);
    hash_queue_stop(server.hash_queue);
    assert_string_equal(field_of(answer_of(request), "Repr-Digest"), "");
    assert_int_equal(atomic_load(&reads), 0);
    hash_queue_free(server.hash_queue);
    server.hash_queue = queue;
}

/* As happens when a connection is cut while its request waits. */
TEST(a_request_can_end_between_jobs)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);

    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    await_woken(request);
    free_last(NULL);
}

TEST(a_digest_that_another_request_computed_is_taken)
{
    struct request *request = add(ask(METHOD_GET, "/large"), "Want-Repr-Digest", WANTED);
    uint8_t sha256[32] = {1, 2, 3};
    char expected[DIGEST_FIELD_SIZE];

    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    await_woken(request);
    answer_hashes_keep(server.hashes, "/large", "\"large\"", sha256);
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    digest_field_format(sha256, expected);
    assert_string_equal(field_of(exchange_answer(request), "Repr-Digest"), expected);
}

TEST(a_digest_that_another_request_computed_leaves_the_other_one)
{
    static const uint8_t sha256[32] = {1, 2, 3};
    struct request *request = add(ask(METHOD_GET, "/large"), "Range", "bytes=2000-2999");

    add(add(request, "Want-Repr-Digest", WANTED), "Want-Content-Digest", WANTED);
    assert_false(exchange_begin(request));
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    await_woken(request);
    answer_hashes_keep(server.hashes, "/large", "\"large\"", sha256);
    atomic_store(&reads, 0);
    assert_int_equal(exchange_advance(request), OUTCOME_WAITING);
    await_woken(request);
    assert_int_equal(exchange_advance(request), OUTCOME_READY);
    assert_is_body(exchange_answer(request), "Content-Digest");
    assert_int_equal(atomic_load(&reads), 1);
}

static void assert_part_is_read(const char *range, unsigned expected)
{
    struct request *request = add(ask(METHOD_GET, "/object"), "Range", range);
    const struct answer *answer = answer_of(add(request, "x-amz-checksum-mode", "ENABLED"));

    assert_int_equal(answer->status, 206);
    assert_int_equal(strlen(field_of(answer, "x-amz-checksum-sha256")), 44);
    assert_int_equal(atomic_load(&reads), expected);
}

TEST(the_checksum_of_a_part_of_s3_is_remembered)
{
    assert_part_is_read("bytes=2000-2999", 1);
    assert_part_is_read("bytes=2000-2999", 0);
    assert_part_is_read("bytes=2000-2998", 1);
    assert_part_is_read("bytes=2001-2999", 1);
}
