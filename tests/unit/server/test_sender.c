/* How answers are sent: their bytes are the right ones, whatever they come from. */
#include "sender_world.h"

ON_LOOPS(sources_are_read_by_workers_in_order)
{
    assert_fetched("/fake", "", 0, BYTES);
    /* A window is read in one go. */
    assert_in_range(atomic_load(&reads), 7, 60);
    assert_fetched("/fake", "Range: bytes=1-\r\n", 1, BYTES - 1);
    assert_fetched("/fake", "Range: bytes=3000001-3100000\r\n", 3000001, 100000);
    assert_fetched("/fake", "Range: bytes=100-65635\r\n", 100, 65536);
    assert_fetched("/fake", "Range: bytes=100-65636\r\n", 100, 65537);
    assert_fetched("/fake", "Range: bytes=77-77\r\n", 77, 1);
}

ON_LOOPS(windows_span_segments_of_all_kinds)
{
    assert_fetched("/mixed", "", 0, BYTES);
    assert_fetched("/mixed", "Range: bytes=500-2500000\r\n", 500, 2499501);
    assert_fetched("/mixed", "Range: bytes=-70001\r\n", BYTES - 70001, 70001);
    assert_fetched("/mixed", "Range: bytes=990-1100\r\n", 990, 111);
}

ON_LOOPS(parts_come_whole_however_many)
{
    static const unsigned counts[] = {2, 60, 63, 65, 129, 300, 500, 600, 650, 700, 750, 1000, 4000};
    static char long_field[9000];
    char target[40];

    memset(long_field, 'a', sizeof(long_field) - 1);
    memcpy(long_field, "X-Long: ", 8);
    memcpy(long_field + sizeof(long_field) - 3, "\r\n", 3);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const size_t length = (size_t)counts[i] * PART_BYTES;

        snprintf(target, sizeof(target), "/parts?n=%u", counts[i]);
        assert_fetched(target, "", 0, length);
        assert_fetched(target, "Range: bytes=5-\r\n", 5, length - 5);
        assert_fetched(target, long_field, 0, length);
    }
}

static void assert_parts_then_text(unsigned count, const char *fields)
{
    char target[40];
    size_t length;
    int client;

    snprintf(target, sizeof(target), "/parts?n=%u", count);
    client = ask(target, fields);
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_true(length > (size_t)count * PART_BYTES);
    assert_memory_equal(reply + length - 2, "{}", 2);
    assert_memory_equal(strstr(reply, "\r\n\r\n") + 4, expected, (size_t)count * PART_BYTES);
}

/* They lie in the connection's memory, beside the list of parts. */
ON_LOOPS(pipelined_requests_leave_room_for_parts)
{
    static const char next[] = "GET /text HTTP/1.1\r\n" HOST "\r\n";
    char fields[16000] = "\r\n";

    for (unsigned lines = 0; lines < 400; lines += 40) {
        char *last = fields + 2 + lines * strlen(next);

        strcpy(last, "GET /text HTTP/1.1\r\n" HOST "Connection: close\r\n");
        for (unsigned count = 100; count < 1000; count += 100)
            assert_parts_then_text(count, fields);
        *last = '\0';
        for (unsigned i = 0; i < 40; i++)
            strcat(last, next);
    }
}

/* So do header fields, of which the library keeps a list, and cookies, which it takes apart. */
ON_LOOPS(headers_leave_room_for_parts)
{
    char fields[16000] = "";

    for (unsigned count = 100; count < 1000; count += 50) {
        *fields = '\0';
        for (unsigned i = 0; i < 90; i++)
            strcat(fields, "a:b\r\n");
        strcat(fields, "\r\nGET /text HTTP/1.1\r\n" HOST "Connection: close\r\n");
        assert_parts_then_text(count, fields);
        strcpy(fields, "Cookie: a");
        for (unsigned i = 0; i < 60; i++)
            strcat(fields, ";a=b");
        strcat(fields, "\r\n\r\nGET /text HTTP/1.1\r\n" HOST "Connection: close\r\n");
        assert_parts_then_text(count, fields);
    }
}

ON_LOOPS(connections_continue_after_windows)
{
    int client = ask("/fake", "Range: bytes=0-199999\r\n\r\nGET /fake HTTP/1.1\r\n" HOST
                              "Range: bytes=200000-399999\r\n\r\nGET /text HTTP/1.1\r\n" HOST
                              "Connection: close\r\n");
    size_t length;

    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_in_range(length, 400000, 402000);
    assert_memory_equal(reply + length - 2, "{}", 2);
}

ON_LOOPS(failing_at_once_is_a_problem)
{
    size_t length;
    int client;

    atomic_store(&fails_at, 1000);
    client = ask("/fake", "Connection: close\r\n");
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 500", 12), 0);
    assert_non_null(strstr(reply, "application/problem+json"));
    await_free();
}

ON_LOOPS(failing_later_cuts_the_connection)
{
    size_t length;
    int client;

    atomic_store(&fails_at, BYTES / 2);
    /* It would be kept open otherwise. */
    client = ask("/fake", "");
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_in_range(check_body(length, 0), 64 * 1024, BYTES / 2);
    await_free();
    atomic_store(&fails_at, BYTES);
    assert_fetched("/fake", "", 0, BYTES);
}

ON_LOOPS(draining_finishes_what_was_begun)
{
    int client;

    atomic_store(&delay_ms, 20);
    client = ask("/fake", "");
    wait_until_held(1);
    for (unsigned i = 0; i < LOOPS; i++)
        loop_drain(loops[i]);
    receive_body(client, BYTES);
    close(client);
}

AROUND_ALL_TESTS(make_bytes, free_bytes)
