/* Answers whose bytes are in a remote store: the right bytes are sent, whichever of them are here
 * already, and no loop waits. */
#define BYTES ((size_t)24 << 20)
#define OTHER_ROUTES                                                    \
    {.pattern = "/far", .get = {.handle = handle_far}},                 \
        {.pattern = "/far-mixed", .get = {.handle = handle_far_mixed}}, \
        {.pattern = "/far-slice", .get = {.handle = handle_far_slice}}, \
        {.pattern = "/far-parts",                                       \
         .get = {.handle = handle_far_parts},                           \
         .ignores_parameters = true},

#include "http/exchange/router.h"

static enum outcome handle_far(struct request *request);
static enum outcome handle_far_mixed(struct request *request);
static enum outcome handle_far_slice(struct request *request);
static enum outcome handle_far_parts(struct request *request);

#include "sender_world.h"

#include "far_source.h"

#include "zt/slice.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1 << 20)

/* What the handlers answer from: polled, or one that calls back. */
static _Atomic(struct far_source *) far;
static struct far_source *polled;
static struct far_source *calling;
static struct zt_source *slice;
static const uint64_t slice_shape[] = {2048, 8192};

static enum outcome handle_far(struct request *request)
{
    hold(request);
    representation_source(&request->reply, &far->base, 0, BYTES);
    return OUTCOME_READY;
}

static enum outcome handle_far_mixed(struct request *request)
{
    hold(request);
    representation_memory(&request->reply, expected, 1000);
    representation_source(&request->reply, &far->base, 1000, 2000000);
    representation_source(&request->reply, file, 2001000, BYTES - 2001000 - 70000);
    representation_source(&request->reply, &far->base, BYTES - 70000, 70000);
    return OUTCOME_READY;
}

static enum outcome handle_far_slice(struct request *request)
{
    hold(request);
    representation_source(&request->reply, slice, 0, zt_source_size(slice));
    return OUTCOME_READY;
}

static enum outcome handle_far_parts(struct request *request)
{
    return reply_parts(request, &far->base);
}

static void assert_ranges_of(const char *target)
{
    static const size_t ranges[][2] = {{77, 1},           {4096, 4096},       {100, 64 * KIB},
                                       {5, 64 * KIB + 1}, {MIB - 1, MIB + 2}, {12345, 8 * MIB},
                                       {3, 8 * MIB + 1},  {1, BYTES - 1}};
    char field[80];

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        snprintf(field, sizeof(field), "Range: bytes=%zu-%zu\r\n", ranges[i][0],
                 ranges[i][0] + ranges[i][1] - 1);
        assert_fetched(target, field, ranges[i][0], ranges[i][1]);
    }
    assert_fetched(target, "", 0, BYTES);
}

ON_LOOPS(what_is_here_is_sent_as_from_a_folder)
{
    far_set(far, true);
    assert_ranges_of("/far");
    assert_ranges_of("/far-mixed");
    await_free();
    assert_int_equal(atomic_load(&far->reads) + atomic_load(&far->waits), 0);
    far_await_released(far);
}

/* What nobody holds is a hole at once, and reads as zeros. */
ON_LOOPS(holes_are_never_sent)
{
    far_set(far, false);
    far->punches = true;
    assert_ranges_of("/far");
    assert_ranges_of("/far-mixed");
    assert_true(atomic_load(&far->waits) > 10);
    assert_int_equal(atomic_load(&far->reads), 0);
}

/* The first byte comes soon, and the store is not asked for many small pieces. */
ON_LOOPS(cold_answers_come_in_growing_parts)
{
    far_set(far, false);
    far->punches = true;
    assert_fetched("/far", "", 0, BYTES);
    await_free();
    assert_in_range(atomic_load(&far->waits), 4, 10);
}

/* The same for what is here before it is asked for, and needs no job. */
ON_LOOPS(what_is_here_stays_while_it_is_sent)
{
    static const size_t lengths[] = {1, 4096, 64 * KIB, 64 * KIB + 1, 8 * MIB, 20 * MIB};
    char field[80];

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        far_set(far, true);
        far->punches = true;
        snprintf(field, sizeof(field), "Range: bytes=100-%zu\r\n", 99 + lengths[i]);
        assert_fetched("/far", field, 100, lengths[i]);
        await_free();
    }
    assert_int_equal(atomic_load(&far->reads) + atomic_load(&far->waits), 0);
}

static void assert_is_slice(size_t first)
{
    const char *body = strstr(reply, "\r\n\r\n") + 4;
    size_t length;
    uint8_t *right = malloc((size_t)zt_source_size(slice));

    assert_non_null(right);
    for (size_t row = 0; row < slice_shape[0]; row++)
        memcpy(right + row * 4096, expected + 4096 + row * 8192 + 1000, 4096);
    length = (size_t)zt_source_size(slice) - first;
    assert_memory_equal(body, right + first, length);
    free(right);
}

ON_LOOPS(slices_are_gathered_from_what_was_brought)
{
    size_t length;

    for (unsigned i = 0; i < 4; i++) {
        int client;

        far_set(far, i >= 2);
        client = ask("/far-slice", i % 2 == 0 ? "Connection: close\r\n"
                                              : "Connection: close\r\nRange: bytes=1048577-\r\n");
        assert_true(receive_all(client, PATIENCE_MS, &length));
        close(client);
        assert_is_slice(i % 2 == 0 ? 0 : MIB + 1);
        await_free();
    }
    assert_int_equal(atomic_load(&far->reads), 0);
}

ON_LOOPS(a_head_brings_nothing)
{
    static const char head[] = "HEAD /far HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
    const int client = connect_client();
    size_t length;

    far_set(far, false);
    assert_int_equal(send(client, head, strlen(head), MSG_NOSIGNAL), strlen(head));
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_non_null(strstr(reply, "Content-Length: 25165824\r\n"));
    assert_int_equal(atomic_load(&far->waits) + atomic_load(&far->reads) + far->advised, 0);
}

static void assert_unavailable_at(const char *target, const char *fields)
{
    size_t length;
    const int client = ask(target, fields);

    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 503", 12), 0);
    assert_non_null(strstr(reply, "Retry-After: "));
    assert_non_null(strstr(reply, "store-unavailable"));
    await_free();
}

static void assert_unavailable(const char *fields)
{
    assert_unavailable_at("/far", fields);
}

ON_LOOPS(a_store_that_is_away_is_a_problem)
{
    far_set(far, false);
    far->fails = ZT_UNAVAILABLE;
    assert_unavailable("Connection: close\r\n");
    assert_unavailable("Connection: close\r\nRange: bytes=0-9\r\n");
    assert_unavailable("Connection: close\r\nRange: bytes=10-9000000\r\n");
    far->fails = ZT_STALE;
    assert_unavailable("Connection: close\r\n");
    far_await_released(far);
}

/* The head is not sent with what is local before the first byte that must be fetched. */
ON_LOOPS(a_local_beginning_does_not_hide_that_the_store_is_away)
{
    far_set(far, false);
    far->fails = ZT_UNAVAILABLE;
    assert_unavailable_at("/far-mixed", "Connection: close\r\n");
    for (unsigned i = 0; i < 2; i++) {
        far = i == 0 ? polled : calling;
        far_set(far, false);
        far_bring(far, 0, 5 * MIB);
        far->fails = ZT_UNAVAILABLE;
        far->fails_at = 5 * MIB;
        assert_unavailable("Connection: close\r\nRange: bytes=100-8000000\r\n");
        if (i > 0)
            assert_unavailable("Connection: close\r\n");
        assert_fetched("/far", "Range: bytes=100-5000000\r\n", 100, 4999901);
    }
    far_await_released(far);
    far = polled;
}

/* But a client with much to read does not wait. */
ON_LOOPS(a_long_local_beginning_is_sent_at_once)
{
    size_t length;
    int client;

    far = calling;
    far_set(far, false);
    far_bring(far, 0, 12 * MIB);
    far->fails = ZT_UNAVAILABLE;
    far->fails_at = 12 * MIB;
    client = ask("/far", "");
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_int_equal(check_body(length, 0), 12 * MIB);
    await_free();
    far_await_released(far);
    far = polled;
}

ON_LOOPS(what_is_lost_later_cuts_the_answer)
{
    size_t length;
    int client;

    far_set(far, false);
    far->fails = ZT_STALE;
    far->fails_at = 17 * MIB;
    client = ask("/far", "");
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_in_range(check_body(length, 0), MIB, 17 * MIB);
    await_free();
    far_await_released(far);
}

ON_LOOPS(without_room_it_is_read_by_workers)
{
    far_set(far, false);
    far->has_no_room = true;
    assert_ranges_of("/far");
    far->full_at = 13 * MIB + 1;
    assert_fetched("/far", "", 0, BYTES);
    assert_true(atomic_load(&far->reads) > 0);
}

ON_LOOPS(other_ways_read_by_workers_too)
{
    static const char old[] = "GET /far HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n";
    const int client = connect_client();
    size_t length;

    far_set(far, false);
    assert_int_equal(send(client, old, strlen(old), MSG_NOSIGNAL), strlen(old));
    shutdown(client, SHUT_WR);
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_int_equal(check_body(length, 0), BYTES);
    assert_int_equal(atomic_load(&far->waits), 0);
    assert_int_equal(far->asked_end, BYTES);
    for (unsigned i = 0; i < 3; i++) {
        char target[40];

        snprintf(target, sizeof(target), "/far-parts?n=%u", 2u + i * i * 2000u);
        far_set(far, false);
        assert_fetched(target, "", 0, (size_t)(2u + i * i * 2000u) * PART_BYTES);
    }
}

ON_LOOPS(connections_go_on_behind_them)
{
    int client = ask("/far", "Range: bytes=0-199999\r\n\r\nGET /far HTTP/1.1\r\n" HOST
                             "Range: bytes=200000-12399999\r\n\r\nGET /text HTTP/1.1\r\n" HOST
                             "Connection: close\r\n");
    size_t length;

    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_in_range(length, 12400000, 12402000);
    assert_memory_equal(reply + length - 2, "{}", 2);
}

ON_LOOPS(clients_that_leave_release_everything)
{
    int clients[CLIENTS];

    far_set(far, false);
    far->delay_ms = 20;
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = ask("/far", i % 3 == 0 ? "Range: bytes=9-5000000\r\n" : "");
    for (unsigned i = 0; i < CLIENTS; i++) {
        pause_ms(5);
        if (i % 2 == 0)
            recv(clients[i], reply, 10000, 0);
        close(clients[i]);
    }
    await_free();
    far_await_released(far);
}

/* Before the head, within a stream, and read by workers. */
ON_LOOPS(clients_that_leave_wait_no_more_for_bytes_that_are_held_back)
{
    static const char old[] = "GET /far HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n";
    int clients[3];

    far = calling;
    far_set(far, false);
    far->held_at = 9 * MIB;
    clients[0] = ask("/far", "Range: bytes=9437184-\r\n");
    clients[1] = ask("/far", "");
    clients[2] = connect_client();
    assert_int_equal(send(clients[2], old, strlen(old), MSG_NOSIGNAL), strlen(old));
    for (unsigned i = 1; i < 3; i++)
        for (size_t left = 9 * MIB; left > 0;) {
            const ssize_t got = recv(clients[i], reply, left, 0);

            assert_true(got > 0);
            left -= (size_t)got;
        }
    AWAIT(atomic_load(&far->waiting_count) == 3);
    for (unsigned i = 0; i < 3; i++)
        close(clients[i]);
    await_free();
    assert_int_equal(atomic_load(&far->waiting_count), 0);
    far_await_released(far);
    far = polled;
}

/* All that wait for the store leave the workers alone. */
ON_LOOPS(waiting_for_the_store_holds_up_nothing_else)
{
    int clients[6];

    far_set(far, false);
    /* Longer than the fetch below may take. */
    far->delay_ms = PATIENCE_MS + 10000;
    for (unsigned i = 0; i < 6; i++)
        clients[i] = ask("/far", "");
    wait_until_held(6);
    /* A worker reads it. */
    assert_fetched("/fake", "Range: bytes=100-199\r\n", 100, 100);
    wait_until_held(6);
    far->delay_ms = 0;
    for (unsigned i = 0; i < 6; i++)
        close(clients[i]);
    await_free();
}

TEST(stopping_in_the_middle_releases_everything)
{
    int clients[CLIENTS];

    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(start(NULL), 0);
        far_set(far, false);
        far->delay_ms = round * 10;
        for (unsigned i = 0; i < CLIENTS; i++)
            clients[i] = ask(i % 2 == 0 ? "/far" : "/far-mixed", "");
        pause_ms(100);
        stop_loops();
        for (unsigned i = 0; i < CLIENTS; i++)
            close(clients[i]);
        far_await_released(far);
    }
}

static int make_far(void **state)
{
    const struct zt_slice_tensor tensor = {slice_shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    struct zt_slice cut;

    waiters = 8;
    if (make_bytes(state) != 0)
        return -1;
    polled = far_open(expected, BYTES, &far_ops);
    calling = far_open(expected, BYTES, &far_calling_ops);
    far = polled;
    if (zt_slice_parse(&tensor, zt_text_from(":,1000:5096"), &cut, NULL) != ZT_SLICE_FITS)
        return -1;
    return zt_slice_source(&cut, &polled->base, 4096, &slice, NULL) == ZT_OK ? 0 : -1;
}

static int free_far(void **state)
{
    assert_false(polled->waited_on_a_loop || calling->waited_on_a_loop);
    zt_source_close(slice);
    zt_source_close(&polled->base);
    zt_source_close(&calling->base);
    return free_bytes(state);
}

AROUND_ALL_TESTS(make_far, free_far)
