/* Headers of answers, line by line. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/answer_head.h"

/* Takes lines that end with "\n"; false as soon as one is refused. */
static bool take(struct answer_head *head, const char *lines)
{
    answer_head_clear(head);
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n") + 1;
        const struct zt_text line = {lines, length};

        if (!answer_head_take(head, line))
            return false;
        lines += length;
    }
    return true;
}

static void fields_are_kept_whatever_their_case_and_blanks(void **state)
{
    struct answer_head head;

    (void)state;
    assert_true(take(&head, "HTTP/1.1 206 Partial Content\r\nCONTENT-length:  7 \t\r\n"
                            "content-Range:bytes 3-9/10\r\nETag: \"a b\"\r\n"
                            "Last-Modified: Fri, 01 Jan 2038 00:00:00 GMT\r\n"
                            "DATE: Sat, 02 Jan 2038 00:00:00 GMT\r\nX-Amz-Version-Id: v.1\r\n"
                            "x-amz-meta-ZTSERVE-sha256: 00ff\r\nEtagged: no\r\n\r\n"));
    assert_true(head.is_whole);
    assert_int_equal(head.fields.status, 206);
    assert_int_equal(head.fields.content_length, 7);
    assert_true(head.fields.has_range);
    assert_int_equal(head.fields.range_first, 3);
    assert_int_equal(head.fields.range_last, 9);
    assert_int_equal(head.fields.range_size, 10);
    assert_string_equal(head.fields.etag, "\"a b\"");
    assert_string_equal(head.fields.last_modified, "Fri, 01 Jan 2038 00:00:00 GMT");
    assert_string_equal(head.fields.date, "Sat, 02 Jan 2038 00:00:00 GMT");
    assert_string_equal(head.fields.version_id, "v.1");
    assert_string_equal(head.fields.digest, "00ff");
}

static void absent_fields_are_empty(void **state)
{
    struct answer_head head;

    (void)state;
    assert_true(take(&head, "HTTP/1.0 200\n\n"));
    assert_true(head.is_whole);
    assert_int_equal(head.fields.content_length, UINT64_MAX);
    assert_false(head.fields.has_range);
    assert_string_equal(head.fields.etag, "");
}

static void interim_answers_leave_nothing(void **state)
{
    struct answer_head head;

    (void)state;
    assert_true(take(&head, "HTTP/1.1 100 Continue\r\nETag: \"interim\"\r\n\r\n"));
    assert_false(head.is_whole);
    assert_true(
        take(&head, "HTTP/1.1 103 Early\r\nETag: \"interim\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"));
    assert_true(head.is_whole);
    assert_string_equal(head.fields.etag, "");
}

static void trailers_change_nothing(void **state)
{
    struct answer_head head;

    (void)state;
    assert_true(take(&head, "HTTP/1.1 200 OK\r\n\r\nETag: \"late\"\r\nHTTP/1.1 206 P\r\n\r\n"));
    assert_int_equal(head.fields.status, 200);
    assert_string_equal(head.fields.etag, "");
}

static void answer_after_a_refused_expectation_counts(void **state)
{
    struct answer_head head;

    (void)state;
    assert_true(take(&head, "HTTP/1.1 417 E\r\nETag: \"a\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"));
    assert_true(head.is_whole);
    assert_int_equal(head.fields.status, 200);
    assert_string_equal(head.fields.etag, "");
}

static void invalid_ranges_count_as_absent(void **state)
{
    static const char *const ranges[] = {"bytes 5-4/10",
                                         "bytes 5-10/10",
                                         "bytes 5-9",
                                         "bytes 5-9/*",
                                         "bytes */10",
                                         "bytes -5-9/10",
                                         "bytes 5-9/10 ",
                                         "bytes=5-9/10",
                                         "bits 5-9/10",
                                         "bytes 5-9/10x",
                                         "bytes 5- 9/10",
                                         "bytes +5-9/10",
                                         "bytes 0-0/0",
                                         "",
                                         "bytes 5-9/10, 1-2/10",
                                         "bytes 5-9/99999999999999999999"};
    struct answer_head head;
    char lines[200];

    (void)state;
    for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        snprintf(lines, sizeof(lines), "HTTP/1.1 206 P\r\nContent-Range: %s\r\n\r\n", ranges[i]);
        assert_true(take(&head, lines));
        /* Blanks at the end are no part of a value. */
        assert_int_equal(head.fields.has_range, strcmp(ranges[i], "bytes 5-9/10 ") == 0);
    }
}

static void malformed_headers_are_refused(void **state)
{
    static const char *const headers[] = {
        "HTTP/2 200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 99999999999999999999 OK\r\n",
        "HTTP/1.1 OK\r\n",
        "HTTP/1.1\r\n",
        "Content-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 0-1/5\r\nContent-Range: bytes 0-1/6\r\n",
        "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nETag: \"b\"\r\n",
        "HTTP/1.1 200 OK\r\nETag: a\x01\r\n",
    };
    struct answer_head head;

    (void)state;
    for (unsigned i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        assert_false(take(&head, headers[i]));
    assert_true(take(&head, "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nETag: \"a\"\r\n"
                            "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"));
}

static void length_counts_only_without_transfer_encoding(void **state)
{
    struct answer_head head;

    (void)state;
    assert_true(take(&head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n"));
    assert_int_equal(head.fields.content_length, UINT64_MAX);
}

static void value_that_is_too_long_counts_as_absent(void **state)
{
    struct answer_head head;
    char lines[2000] = "HTTP/1.1 200 OK\r\nx-amz-version-id: ";
    const size_t start = strlen(lines);

    (void)state;
    memset(lines + start, 'v', REMOTE_VALUE_SIZE - 1);
    strcpy(lines + start + REMOTE_VALUE_SIZE - 1, "\r\n\r\n");
    assert_true(take(&head, lines));
    assert_int_equal(strlen(head.fields.version_id), REMOTE_VALUE_SIZE - 1);
    memset(lines + start, 'v', REMOTE_VALUE_SIZE);
    strcpy(lines + start + REMOTE_VALUE_SIZE, "\r\n\r\n");
    assert_true(take(&head, lines));
    assert_string_equal(head.fields.version_id, "");
}

static void giant_header_is_refused(void **state)
{
    struct zt_text line = {"X-Padding: 0123456789\r\n", 23};
    struct answer_head head;
    unsigned taken = 0;

    (void)state;
    assert_true(take(&head, "HTTP/1.1 200 OK\r\n"));
    while (answer_head_take(&head, line))
        assert_true(++taken < 3000);
    assert_true(taken > 2800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_kept_whatever_their_case_and_blanks),
        cmocka_unit_test(absent_fields_are_empty),
        cmocka_unit_test(interim_answers_leave_nothing),
        cmocka_unit_test(trailers_change_nothing),
        cmocka_unit_test(answer_after_a_refused_expectation_counts),
        cmocka_unit_test(invalid_ranges_count_as_absent),
        cmocka_unit_test(malformed_headers_are_refused),
        cmocka_unit_test(length_counts_only_without_transfer_encoding),
        cmocka_unit_test(value_that_is_too_long_counts_as_absent),
        cmocka_unit_test(giant_header_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
