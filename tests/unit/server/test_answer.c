/* Answers: which bytes of a representation, under which fields. */
#include "exchange_world.h"

#include "store/store.h"
#include "tree/stored_file.h"

AROUND_ALL_TESTS(open_exchange, NULL)

AROUND_EACH_TEST(NULL, free_last)

TEST(whole_answers_carry_every_field)
{
    struct request *request = ask_next(METHOD_GET, "/bytes");
    const struct answer *answer = answer_of(request);

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
    assert_string_equal(field_of(answer, "X-Request-Id"), "");
}

TEST(head_has_the_length_and_no_body)
{
    struct request *request = ask_next(METHOD_HEAD, "/bytes");
    const struct answer *answer = answer_with(request, "Range", "bytes=0-1");

    assert_int_equal(answer->status, 200);
    assert_true(answer->content_length == 20);
    assert_int_equal(answer->segment_count, 0);
}

TEST(ranges_cut_across_segments)
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct answer *answer = get("/bytes", "Range", cases[i].range);

        assert_int_equal(answer->status, 206);
        assert_string_equal(field_of(answer, "Content-Range"), cases[i].content_range);
        assert_string_not_equal(field_of(answer, "Repr-Digest"), "");
        assert_body(answer, cases[i].body);
    }
}

TEST(ranges_past_the_end_are_416)
{
    const struct answer *answer = get("/bytes", "Range", "bytes=20-");

    assert_int_equal(answer->status, 416);
    assert_string_equal(field_of(answer, "Content-Range"), "bytes */20");
    assert_string_equal(field_of(answer, "Content-Type"), "application/problem+json");
    assert_string_equal(field_of(answer, "ETag"), "");
}

TEST(malformed_ranges_get_the_whole)
{
    static const char *const ranges[] = {"bytes=", "bytes=5-4", "lines=0-1", "bytes=a-b",
                                         "bytes=0-1,x"};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const struct answer *answer = get("/bytes", "Range", ranges[i]);

        assert_int_equal(answer->status, 200);
        assert_body(answer, HEAD_TEXT TAIL_TEXT);
    }
}

TEST(ranges_that_meet_are_one)
{
    static const char *const ranges[] = {"bytes=8-9,10-11", "bytes=10-11,8-10", "bytes=8-11,99-",
                                         "bytes=9-9,8-11,-0"};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const struct answer *answer = get("/bytes", "Range", ranges[i]);

        assert_int_equal(answer->status, 206);
        assert_string_equal(field_of(answer, "Content-Range"), "bytes 8-11/20");
        assert_string_equal(field_of(answer, "Content-Type"), "application/octet-stream");
        assert_body(answer, "89ab");
    }
}

TEST(ranges_and_preconditions_apply_to_query)
{
    const struct answer *answer =
        answer_with(ask_next(METHOD_QUERY, "/bytes"), "Range", "bytes=8-11");

    assert_int_equal(answer->status, 206);
    assert_body(answer, "89ab");
    answer = answer_with(ask_next(METHOD_QUERY, "/bytes"), "If-None-Match", ETAG);
    assert_int_equal(answer->status, 304);
    answer = answer_with(ask_next(METHOD_QUERY, "/bytes"), "If-Match", "\"other\"");
    assert_int_equal(answer->status, 412);
}

TEST(several_ranges_become_parts)
{
    static const char type[] = "multipart/byteranges; boundary=";
    const struct answer *answer = get("/bytes", "Range", "bytes=15-, 9-10,0-0");
    const char *boundary = field_of(answer, "Content-Type") + strlen(type);
    char expected[1024];

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
}

TEST(head_and_unchanged_answers_have_no_parts)
{
    struct request *request = ask_next(METHOD_HEAD, "/bytes");
    const struct answer *answer = answer_with(request, "Range", "bytes=0-1,5-6");

    assert_int_equal(answer->status, 200);
    assert_true(answer->content_length == 20);
    request = ask_next(METHOD_GET, "/bytes");
    add(request, "If-None-Match", ETAG);
    answer = answer_with(request, "Range", "bytes=0-1,5-6");
    assert_int_equal(answer->status, 304);
    assert_string_equal(field_of(answer, "Content-Type"), "");
    assert_int_equal(get("/corrupt", "Range", "bytes=0-1,5-6")->status, 500);
}

TEST(if_range_of_another_version_gets_the_whole)
{
    struct request *request = ask_next(METHOD_GET, "/bytes");
    const struct answer *answer;

    add(request, "If-Range", "\"other\"");
    answer = answer_with(request, "Range", "bytes=0-1");
    assert_int_equal(answer->status, 200);
    request = ask_next(METHOD_GET, "/bytes");
    add(request, "If-Range", ETAG);
    answer = answer_with(request, "Range", "bytes=0-1");
    assert_int_equal(answer->status, 206);
}

TEST(not_modified_has_a_length_only_if_it_is_known)
{
    struct request *request = ask_next(METHOD_GET, "/unknown");

    assert_true(answer_with(request, "If-None-Match", ETAG)->content_length ==
                ANSWER_LENGTH_UNKNOWN);
    request = ask_next(METHOD_GET, "/unknown");
    add(request, "X-Foretold", "1");
    assert_true(answer_with(request, "If-None-Match", ETAG)->content_length == 77);
}

/* --- mirrored files --- */

static bool is_verified;
static bool is_wrong;

static bool state_it(struct store *store, const char *path, const struct file_identity *identity,
                     struct store_stated *out_stated)
{
    (void)store;
    (void)identity;
    *out_stated = (struct store_stated){.is_verified = is_verified};
    return strcmp(path, "o/m/a") == 0;
}

static bool say_wrong(struct store *store, const char *path, const struct file_identity *identity)
{
    (void)store;
    (void)identity;
    return is_wrong && strcmp(path, "o/m/a") == 0;
}

static bool may_be_wrong;

static bool say_maybe(struct store *store, const char *path, const struct file_identity *identity)
{
    (void)store;
    (void)identity;
    return may_be_wrong && strcmp(path, "o/m/a") == 0;
}

static const struct store_revision_ops revisions = {
    .state = state_it, .was_wrong = say_wrong, .may_be_wrong = say_maybe};
static struct store mirror = {.revisions = &revisions};
static char mirrored_path[] = "o/m/a";
static const struct stored_file mirrored = {.store = &mirror, .path = mirrored_path};

static const struct answer *get_mirrored(const char *range)
{
    struct request *request = ask_next(METHOD_GET, "/bytes");

    server.store = &mirror;
    request->file = &mirrored;
    return answer_with(request, "Range", range);
}

TEST(unverified_files_are_labelled)
{
    is_verified = false;
    assert_string_equal(field_of(get_mirrored("bytes=0-4"), "ZT-Verified"), "no");
    is_verified = true;
    assert_string_equal(field_of(get_mirrored("bytes=0-4"), "ZT-Verified"), "");
    is_verified = false;
    assert_string_equal(field_of(get("/bytes", "Range", "bytes=0-4"), "ZT-Verified"), "");
}

TEST(downloads_of_files_that_were_wrong_begin_again)
{
    static const struct {
        const char *range;
        unsigned status;
    } cases[] = {{"bytes=10-", 200},
                 {"bytes=0-", 206},
                 {"bytes=0-4", 206},
                 {"bytes=-5", 206},
                 {"bytes=15-19", 206}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        is_wrong = true;
        assert_int_equal(get_mirrored(cases[i].range)->status, cases[i].status);
        is_wrong = false;
        assert_int_equal(get_mirrored(cases[i].range)->status, 206);
        /* An earlier process may have sent other bytes to a client that continues. */
        may_be_wrong = true;
        assert_int_equal(get_mirrored(cases[i].range)->status, cases[i].status);
        may_be_wrong = false;
    }
}
