/* The connections of a loop and their deadlines, with clocks of the test's own and a pair of
 * sockets instead of a client. */
#include "tests.h"

#include <sys/socket.h>
#include <unistd.h>

#include "http/wire/connections.h"

#define START_MS 100000u

static struct config config;
static struct connections connections;
static struct connection *connection;
static struct request request = {.id = "the-id"};
static int client;

static int open_connection(void **state)
{
    int pair[2];

    (void)state;
    config_defaults(&config);
    config.limits.header_timeout_s = 10;
    config.limits.idle_timeout_s = 60;
    config.limits.rate_grace_s = 5;
    config.limits.body_min_bytes_per_s = 1000;
    config.limits.reader_min_bytes_per_s = 0;
    config.upload.body_timeout_s = 600;
    connections = (struct connections){0};
    connections_configure(&connections, &config);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    client = pair[1];
    connection = connections_add(&connections, pair[0], START_MS);
    assert_non_null(connection);
    return 0;
}

static int close_connection(void **state)
{
    const int descriptor = connection->descriptor;

    (void)state;
    connection->request = NULL;
    connections_remove(&connections, connection);
    connections_end(&connections);
    close(descriptor);
    close(client);
    return 0;
}

/* What the client has received; empty at the end of the stream, NULL while it is open and
 * silent. */
static const char *received(void)
{
    static char text[4096];
    const ssize_t length = recv(client, text, sizeof(text) - 1, MSG_DONTWAIT);

    if (length < 0)
        return NULL;
    text[length] = '\0';
    return text;
}

static void begin_body(void)
{
    connection->request = &request;
    connections_body_begin(&connections, connection, START_MS);
}

static bool piece(uint64_t total, uint64_t after_ms)
{
    return connections_body_piece(&connections, connection, total, START_MS + after_ms);
}

static void assert_answered_408(void)
{
    const char *text = received();

    assert_non_null(text);
    assert_int_equal(strncmp(text, "HTTP/1.1 408 Request Timeout\r\n", 30), 0);
    assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(text, "\r\nX-Request-Id: the-id\r\n"));
    assert_non_null(strstr(text, "\"code\":\"timeout\""));
    assert_int_equal(connection->result, RESULT_TIMED_OUT);
}

AROUND_EACH_TEST(open_connection, close_connection)

TEST(a_header_that_takes_too_long_ends_the_connection)
{
    assert_true(connection_awaits_client(connection));
    assert_true(connections_due_ms(&connections) == START_MS + 10000);
    connections_cut_due(&connections, START_MS + 9999);
    assert_null(received());
    connections_cut_due(&connections, START_MS + 10000);
    assert_string_equal(received(), "");
    assert_int_equal(connection->result, RESULT_TIMED_OUT);
    assert_true(connections_due_ms(&connections) == UINT64_MAX);
}

TEST(the_least_rate_holds_after_the_grace)
{
    begin_body();
    assert_true(piece(1, 5000));
    assert_true(piece(6000, 6000));
    assert_true(piece(19999, 19999));
    assert_false(piece(19999, 20000));
    assert_answered_408();
}

/* A rate that is a thousand times too small would pass. */
TEST(a_body_just_below_the_least_rate_is_cut)
{
    begin_body();
    assert_false(piece(9990, 10000));
    assert_answered_408();
}

TEST(a_cut_body_is_answered_once)
{
    begin_body();
    assert_false(piece(10, 10000));
    assert_answered_408();
    assert_false(piece(100000, 10001));
    assert_null(received());
    connections_cut_due(&connections, START_MS + 1000000);
    assert_null(received());
}

TEST(a_body_that_stops_gets_408)
{
    begin_body();
    assert_true(connections_due_ms(&connections) == START_MS + 60000);
    connections_cut_due(&connections, START_MS + 60000);
    assert_answered_408();
    assert_string_equal(received(), "");
    assert_true(connection_has_unread(connection));
}

TEST(a_body_whose_bytes_lie_unread_is_spared_once)
{
    begin_body();
    assert_int_equal(send(client, "x", 1, MSG_NOSIGNAL), 1);
    connections_cut_due(&connections, START_MS + 60000);
    assert_null(received());
    assert_true(connections_due_ms(&connections) == START_MS + 120000);
    connections_cut_due(&connections, START_MS + 120000);
    assert_answered_408();
}

TEST(each_piece_of_a_body_may_be_spared)
{
    begin_body();
    assert_int_equal(send(client, "x", 1, MSG_NOSIGNAL), 1);
    connections_cut_due(&connections, START_MS + 60000);
    assert_true(piece(1000000, 60001));
    connections_cut_due(&connections, START_MS + 120001);
    assert_null(received());
    connections_cut_due(&connections, START_MS + 180001);
    assert_answered_408();
}

TEST(a_header_that_lies_unread_is_spared_once)
{
    assert_int_equal(send(client, "GET", 3, MSG_NOSIGNAL), 3);
    connections_cut_due(&connections, START_MS + 10000);
    assert_null(received());
    connections_cut_due(&connections, START_MS + 20000);
    assert_string_equal(received(), "");
}

/* Its bytes are left unread on purpose. */
TEST(a_connection_that_lingers_is_not_spared)
{
    assert_int_equal(send(client, "GET", 3, MSG_NOSIGNAL), 3);
    connection_enter(connection, CONNECTION_REFUSED);
    connections_cut_due(&connections, START_MS + 10000);
    assert_string_equal(received(), "");
}

TEST(a_whole_body_has_its_own_limit)
{
    begin_body();
    assert_true(piece(1 << 30, 600000));
    assert_false(piece(1 << 30, 600001));
    assert_answered_408();
}

TEST(the_clock_stops_while_a_body_is_paused)
{
    begin_body();
    connections_body_pause(connection, START_MS + 1000);
    connections_body_pause(connection, START_MS + 50000);
    assert_true(connections_due_ms(&connections) == UINT64_MAX);
    connections_body_resume(&connections, connection, START_MS + 101000);
    connections_body_resume(&connections, connection, START_MS + 101000);
    /* Ten seconds of the client's own. */
    assert_true(piece(10000, 110000));
    assert_false(piece(10000, 111000));
}

TEST(what_a_client_sent_is_unread)
{
    assert_false(connection_has_unread(connection));
    assert_int_equal(send(client, "x", 1, 0), 1);
    assert_true(connection_has_unread(connection));
}

TEST(a_connection_is_gone_when_its_client_is)
{
    assert_false(connection_is_gone(connection));
    shutdown(client, SHUT_RDWR);
    assert_true(connection_is_gone(connection));
}

TEST(a_deserted_connection_counts_as_gone)
{
    atomic_store(&connection->is_deserted, true);
    assert_true(connection_is_gone(connection));
}

TEST(sockets_that_are_not_tcp_have_no_counts)
{
    assert_int_equal(connection_sent(connection), 0);
    assert_false(connection_is_established(connection));
}

static void assert_refused(void)
{
    const char *text = received();

    assert_non_null(text);
    assert_int_equal(strncmp(text, "HTTP/1.1 503 Service Unavailable\r\n", 34), 0);
    assert_non_null(strstr(text, "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(text, "\"code\":\"overloaded\""));
    assert_string_equal(received(), "");
}

TEST(one_connection_too_many_may_send_its_request_first)
{
    connections_refuse(&connections, connection, START_MS);
    assert_true(connection->is_surplus);
    assert_null(received());
    connection_refuse(connection);
    assert_refused();
    /* More of it can still be sent, so that no reset destroys the answer. */
    assert_int_equal(send(client, "x", 1, MSG_NOSIGNAL), 1);
    connections_cut_due(&connections, START_MS + 10000);
    assert_string_equal(received(), "");
}

TEST(a_silent_client_that_was_turned_away_is_refused_and_cut_soon)
{
    connections_refuse(&connections, connection, START_MS);
    assert_true(connections_due_ms(&connections) == START_MS + 2000);
    connections_cut_due(&connections, START_MS + 1999);
    assert_null(received());
    assert_false(connection_is_gone(connection));
    connections_cut_due(&connections, START_MS + 2000);
    assert_refused();
    assert_true(connection_is_gone(connection));
    assert_true(connections_due_ms(&connections) == UINT64_MAX);
}

TEST(the_header_of_one_connection_too_many_gets_no_more_time)
{
    connections_refuse(&connections, connection, START_MS);
    connection->request = &request;
    connections_header_begin(&connections, connection, START_MS + 1000);
    assert_true(connections_due_ms(&connections) == START_MS + 2000);
    connections_cut_due(&connections, START_MS + 2000);
    assert_string_equal(received(), "");
}

TEST(connections_leave_the_list_in_any_order)
{
    struct connection *more[4];

    for (unsigned i = 0; i < 4; i++)
        more[i] = connections_add(&connections, -1, START_MS + i);
    connections_remove(&connections, more[1]);
    connections_remove(&connections, more[3]);
    assert_ptr_equal(connections.first, more[2]);
    assert_ptr_equal(more[2]->after, more[0]);
    assert_ptr_equal(more[0]->before, more[2]);
    assert_ptr_equal(more[0]->after, connection);
    connections_remove(&connections, more[0]);
    connections_remove(&connections, more[2]);
    connections_remove(&connections, NULL);
    assert_ptr_equal(connections.first, connection);
    assert_true(connections_due_ms(&connections) == START_MS + 10000);
}

/* A new configuration, as far as times are concerned. */
static void reconfigure(int64_t header_s, int64_t idle_s)
{
    config.limits.header_timeout_s = header_s;
    config.limits.idle_timeout_s = idle_s;
    connections_configure(&connections, &config);
}

TEST(changed_times_hold_for_what_has_begun)
{
    reconfigure(3, 60);
    assert_true(connections_due_ms(&connections) == START_MS + 3000);
    reconfigure(20, 60);
    assert_true(connections_due_ms(&connections) == START_MS + 20000);
    begin_body();
    reconfigure(20, 5);
    assert_true(connections_due_ms(&connections) == START_MS + 5000);
}

TEST(changed_times_keep_the_order_of_deadlines)
{
    struct connection *later = connections_add(&connections, -1, START_MS + 4000);
    struct connection *last;

    reconfigure(1, 60);
    last = connections_add(&connections, -1, START_MS + 4500);
    assert_true(connection->deadline.due_ms == START_MS + 1000);
    assert_true(later->deadline.due_ms == START_MS + 5000);
    assert_true(last->deadline.due_ms == START_MS + 5500);
    connections_remove(&connections, later);
    connections_remove(&connections, last);
}

TEST(a_header_after_the_first_gets_its_own_time)
{
    connections_header_begin(&connections, connection, START_MS + 9000);
    assert_true(connections_due_ms(&connections) == START_MS + 10000);
    connections_idle_begin(&connections, connection, START_MS + 9500);
    assert_true(connections_due_ms(&connections) == START_MS + 69500);
    connections_header_begin(&connections, connection, START_MS + 69000);
    assert_true(connections_due_ms(&connections) == START_MS + 79000);
}

TEST(a_reader_that_takes_nothing_is_cut)
{
    connections_answer_begin(&connections, connection, START_MS);
    assert_false(connection_awaits_client(connection));
    connections_cut_due(&connections, START_MS + 2000);
    connections_cut_due(&connections, START_MS + 61000);
    assert_null(received());
    connections_cut_due(&connections, START_MS + 63000);
    assert_string_equal(received(), "");
    assert_int_equal(connection->result, RESULT_TIMED_OUT);
}

TEST(a_reader_that_the_server_keeps_waiting_is_not_cut)
{
    connections_answer_begin(&connections, connection, START_MS);
    connections_cut_due(&connections, START_MS + 2000);
    connection_enter(connection, CONNECTION_WAITING);
    connections_cut_due(&connections, START_MS + 63000);
    connections_cut_due(&connections, START_MS + 65000);
    connection_enter(connection, CONNECTION_LIBRARY);
    connections_cut_due(&connections, START_MS + 67000);
    assert_null(received());
    connections_cut_due(&connections, START_MS + 126000);
    assert_null(received());
    connections_cut_due(&connections, START_MS + 128000);
    assert_string_equal(received(), "");
}

TEST(idle_connections_end_soon_while_draining)
{
    connections_drain(&connections, START_MS + 1);
    assert_true(connections_due_ms(&connections) == START_MS + 1001);
    connections_header_begin(&connections, connection, START_MS + 2);
    assert_true(connections_due_ms(&connections) == START_MS + 10002);
    connections_idle_begin(&connections, connection, START_MS + 3);
    connections_cut_due(&connections, START_MS + 1003);
    assert_string_equal(received(), "");
}

TEST(deadlines_are_taken_in_order_and_can_move)
{
    struct deadlines fast = {.time_ms = 10};
    struct deadlines slow = {.time_ms = 1000};
    struct deadline a = {0};
    struct deadline b = {0};
    struct deadline c = {0};

    deadline_clear(&a);
    deadline_set(&a, &fast, 0);
    deadline_set(&b, &fast, 5);
    deadline_set(&c, &fast, 5);
    deadline_set(&a, &fast, 7);
    deadline_set(&c, &slow, 7);
    assert_true(deadlines_due_ms(&fast) == 15);
    assert_null(deadlines_take_due(&fast, 14));
    assert_ptr_equal(deadlines_take_due(&fast, 20), &b);
    assert_ptr_equal(deadlines_take_due(&fast, 20), &a);
    assert_null(deadlines_take_due(&fast, UINT64_MAX));
    assert_ptr_equal(deadlines_take_due(&slow, 1007), &c);
    assert_true(deadlines_due_ms(&slow) == UINT64_MAX);
}
