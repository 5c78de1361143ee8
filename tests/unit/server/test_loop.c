/* Event loops: what they answer, refuse and never run, and files of any length. */
#include "loop_world.h"

ON_LOOPS(connections_continue_after_an_answer)
{
    int client = connect_client();

    send_text(client, "GET /text HTTP/1.1\r\n" HOST "\r\nGET /text HTTP/1.1\r\n" HOST
                      "\r\nGET /none HTTP/1.1\r\n" HOST "\r\n");
    receive_until(client, "HTTP/1.1 404");
    assert_non_null(strstr(reply, "HTTP/1.1 200 OK"));
    send_text(client, "GET /text HTTP/1.1\r\n" HOST
                      "Content-Length: 3\r\n\r\nabcGET /none HTTP/1.1\r\n" HOST "\r\n");
    receive_until(client, "HTTP/1.1 404");
    assert_non_null(strstr(reply, "HTTP/1.1 200 OK"));
    close(client);
}

static const char *const methods[] = {"GET /text", "PUT /refused", "POST /text"};

/* Leaves the one answer in reply. */
static void ask_and_smuggle(const char *method, const char *head)
{
    char text[512];
    int client = connect_client();

    snprintf(text, sizeof(text), "%s HTTP/1.1\r\n" HOST "%s" SMUGGLED, method, head);
    send_text(client, text);
    assert_true(receive_all(client, PATIENCE_MS, NULL));
    close(client);
}

ON_LOOPS(smuggled_requests_never_run)
{
    static const char *const heads[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Content-Length: 0\r\nContent-Length: 36\r\n\r\n",
        "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
        "Content-Length: +0\r\n\r\n",
        "Content-Length: 0, 0\r\n\r\n",
        HOST "\r\n",
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "Content-Length : 0\r\n\r\n",
        "Content-Length:\r\n 5\r\n\r\nabcde",
        "Content-Length5: \r\n\r\n",
        "X Y: z\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        for (size_t j = 0; j < 3; j++) {
            ask_and_smuggle(methods[j], heads[i]);
            assert_int_equal(strncmp(reply, "HTTP/1.1 4", 10), 0);
        }
    }
    assert_int_equal(atomic_load(&smuggled), 0);
}

/* The space is not part of the value. libmicrohttpd 1.0 removes it; earlier releases leave it
 * there, and framing.c refuses the request. */
ON_LOOPS(spaces_after_the_coding_hide_no_request)
{
    for (size_t j = 0; j < 3; j++)
        ask_and_smuggle(methods[j], "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n");
    assert_int_equal(atomic_load(&smuggled), 0);
}

ON_LOOPS(refusals_reach_clients_that_keep_sending)
{
    static char piece[65536];
    int client = connect_client();

    send_text(client, "PUT /refused HTTP/1.1\r\n" HOST "Content-Length: 67108864\r\n\r\n");
    for (unsigned i = 0; i < 1024; i++)
        for (size_t sent = 0; sent < sizeof(piece);) {
            const ssize_t now = send(client, piece + sent, sizeof(piece) - sent, MSG_NOSIGNAL);

            assert_true(now > 0);
            sent += (size_t)now;
        }
    assert_true(receive_all(client, PATIENCE_MS, NULL));
    assert_int_equal(strncmp(reply, "HTTP/1.1 403", 12), 0);
    close(client);
}

ON_LOOPS(refusals_come_instead_of_100_continue)
{
    int client = connect_client();

    send_text(client,
              "PUT /refused HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_true(receive_all(client, PATIENCE_MS, NULL));
    assert_int_equal(strncmp(reply, "HTTP/1.1 403", 12), 0);
    close(client);
}

static void assert_file_part(size_t first, size_t length)
{
    static uint8_t expected[FILE_BYTES];

    assert_ok(zt_source_read_at(file, first, expected, length, NULL));
    assert_memory_equal(body(), expected, length);
}

ON_LOOPS(files_come_whole_warm_and_cold)
{
    for (unsigned cold = 0; cold < 2; cold++) {
        if (cold)
            posix_fadvise(zt_source_descriptor(file), 0, 0, POSIX_FADV_DONTNEED);
        assert_true(fetch("/file", "") > FILE_BYTES);
        assert_file_part(0, FILE_BYTES);
        if (cold)
            posix_fadvise(zt_source_descriptor(file), 0, 0, POSIX_FADV_DONTNEED);
        fetch("/file", "Range: bytes=1000000-1004095\r\n");
        assert_int_equal(strncmp(reply, "HTTP/1.1 206", 12), 0);
        assert_file_part(1000000, 4096);
    }
}

TEST(uncapped_send_buffers_get_the_same_bytes)
{
    config.limits.send_buffer_bytes = 0;
    assert_int_equal(start(NULL), 0);
    assert_true(fetch("/file", "") > FILE_BYTES);
    assert_file_part(0, FILE_BYTES);
    stop(NULL);
    config_defaults(&config);
    config.limits.header_timeout_s = 1;
    config.threads = LOOPS;
}

ON_LOOPS(files_cut_short_end_only_their_connection)
{
    int client = connect_client();
    size_t length;

    send_text(client, "GET /file HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(recv(client, reply, 1, MSG_WAITALL), 1);
    assert_int_equal(truncate(file_path, 100), 0);
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_true(fetch("/file", "Range: bytes=500000-500009\r\n") > 0);
    assert_int_equal(strncmp(reply, "HTTP/1.1 500", 12), 0);
    fetch("/text", "");
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
}

AROUND_ALL_TESTS(make_file, remove_file)
