/* Headers of answers, line by line. */
#include "tests.h"

#include "remote/answer_head.h"

static struct answer_head head;

/* Takes lines that end with "\n"; false as soon as one is refused. */
static bool take(const char *lines)
{
    answer_head_clear(&head);
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n") + 1;
        const struct zt_text line = {lines, length};

        if (!answer_head_take(&head, line))
            return false;
        lines += length;
    }
    return true;
}

TEST(fields_are_kept_whatever_their_case_and_blanks)
{
    assert_true(take("HTTP/1.1 206 Partial Content\r\nCONTENT-length:  7 \t\r\n"
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

TEST(absent_fields_are_empty)
{
    assert_true(take("HTTP/1.0 200\n\n"));
    assert_true(head.is_whole);
    assert_int_equal(head.fields.content_length, UINT64_MAX);
    assert_false(head.fields.has_range);
    assert_string_equal(head.fields.etag, "");
}

TEST(interim_answers_leave_nothing)
{
    assert_true(take("HTTP/1.1 100 Continue\r\nETag: \"interim\"\r\n\r\n"));
    assert_false(head.is_whole);
    assert_true(take("HTTP/1.1 103 Early\r\nETag: \"interim\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"));
    assert_true(head.is_whole);
    assert_string_equal(head.fields.etag, "");
}

TEST(trailers_change_nothing)
{
    assert_true(take("HTTP/1.1 200 OK\r\n\r\nETag: \"late\"\r\nHTTP/1.1 206 P\r\n\r\n"));
    assert_int_equal(head.fields.status, 200);
    assert_string_equal(head.fields.etag, "");
}

TEST(answer_after_a_refused_expectation_counts)
{
    assert_true(take("HTTP/1.1 417 E\r\nETag: \"a\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"));
    assert_true(head.is_whole);
    assert_int_equal(head.fields.status, 200);
    assert_string_equal(head.fields.etag, "");
}

TEST(invalid_ranges_count_as_absent)
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
    char lines[200];

    for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        snprintf(lines, sizeof(lines), "HTTP/1.1 206 P\r\nContent-Range: %s\r\n\r\n", ranges[i]);
        assert_true(take(lines));
        /* Blanks at the end are no part of a value. */
        assert_int_equal(head.fields.has_range, strcmp(ranges[i], "bytes 5-9/10 ") == 0);
    }
}

TEST(malformed_headers_are_refused)
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

    for (unsigned i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        assert_false(take(headers[i]));
    assert_true(take("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nETag: \"a\"\r\n"
                     "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"));
}

TEST(length_counts_only_without_transfer_encoding)
{
    assert_true(take("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n"));
    assert_int_equal(head.fields.content_length, UINT64_MAX);
}

TEST(value_that_is_too_long_counts_as_absent)
{
    char lines[2000] = "HTTP/1.1 200 OK\r\nx-amz-version-id: ";
    const size_t start = strlen(lines);

    memset(lines + start, 'v', REMOTE_VALUE_SIZE - 1);
    strcpy(lines + start + REMOTE_VALUE_SIZE - 1, "\r\n\r\n");
    assert_true(take(lines));
    assert_int_equal(strlen(head.fields.version_id), REMOTE_VALUE_SIZE - 1);
    memset(lines + start, 'v', REMOTE_VALUE_SIZE);
    strcpy(lines + start + REMOTE_VALUE_SIZE, "\r\n\r\n");
    assert_true(take(lines));
    assert_string_equal(head.fields.version_id, "");
}

TEST(giant_header_is_refused)
{
    struct zt_text line = {"X-Padding: 0123456789\r\n", 23};
    unsigned taken = 0;

    assert_true(take("HTTP/1.1 200 OK\r\n"));
    while (answer_head_take(&head, line))
        assert_true(++taken < 3000);
    assert_true(taken > 2800);
}

TEST(links_are_one_list_and_never_cut_silently)
{
    char lines[REMOTE_LOCATION_SIZE + 200] = "HTTP/1.1 200 OK\r\nLink: <a>; rel=\"x\"\r\nLink: ";
    const size_t start = strlen(lines);

    assert_true(take("HTTP/1.1 302 F\r\nLink: <a>; rel=\"x\"\r\nlink: <b>; rel=\"next\"\r\n"
                     "X-Linked-Size: 7\r\nX-Linked-ETag: \"e\"\r\nX-Repo-Commit: c\r\n\r\n"));
    assert_string_equal(head.fields.link, "<a>; rel=\"x\", <b>; rel=\"next\"");
    assert_false(head.fields.is_link_cut);
    assert_int_equal(head.fields.linked_size, 7);
    assert_string_equal(head.fields.linked_etag, "\"e\"");
    assert_string_equal(head.fields.repo_commit, "c");
    memset(lines + start, 'v', REMOTE_LOCATION_SIZE);
    strcpy(lines + start + REMOTE_LOCATION_SIZE, "\r\n\r\n");
    assert_true(take(lines));
    assert_true(head.fields.is_link_cut);
}
