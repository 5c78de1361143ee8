/* Answers: which bytes of a representation, under which fields. */
#include "exchange_world.h"

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
    assert_string_equal(field_of(answer, "X-Request-Id"), "");
    request_free(request);
}

static void head_has_the_length_and_no_body(void **state)
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

static void malformed_ranges_get_the_whole(void **state)
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

static void head_and_unchanged_answers_have_no_parts(void **state)
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

static void not_modified_has_a_length_only_if_it_is_known(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_answers_carry_every_field),
        cmocka_unit_test(head_has_the_length_and_no_body),
        cmocka_unit_test(ranges_cut_across_segments),
        cmocka_unit_test(ranges_past_the_end_are_416),
        cmocka_unit_test(malformed_ranges_get_the_whole),
        cmocka_unit_test(ranges_that_meet_are_one),
        cmocka_unit_test(several_ranges_become_parts),
        cmocka_unit_test(head_and_unchanged_answers_have_no_parts),
        cmocka_unit_test(if_range_of_another_version_gets_the_whole),
        cmocka_unit_test(not_modified_has_a_length_only_if_it_is_known),
    };

    config_defaults(&config);
    if (zt_source_from_memory(TAIL_TEXT, 10, &tail, NULL) != ZT_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
