/* How waits, connections and loops end: by workers, clients that are gone, limits, draining. */
#include "loop_world.h"

static atomic_uint blocked;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(struct job *job)
{
    (void)job;
    atomic_fetch_add(&blocked, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void wait_until(atomic_uint *counter, unsigned count)
{
    AWAIT(atomic_load(counter) == count);
}

static void reset(int client)
{
    const struct linger at_once = {.l_onoff = 1};

    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(client);
}

#define BLOCKING 4 /* as many as there are workers */
/* A client that has only shut down its sending side waits for its answer, and requests that change
 * something are carried out in any case. */
ON_LOOPS(work_for_clients_that_are_gone_is_skipped)
{
    struct job blocking[BLOCKING];
    int clients[4];

    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < BLOCKING; i++) {
        blocking[i] = (struct job){.run = wait_at_gate};
        workers_submit(server.workers, &blocking[i]);
    }
    AWAIT(atomic_load(&blocked) >= BLOCKING);
    for (unsigned i = 0; i < 4; i++) {
        clients[i] = connect_client();
        send_text(clients[i], i < 3 ? "GET /counted HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n"
                                    : "POST /counted HTTP/1.1\r\nContent-Length: 0\r\n" HOST
                                      "\r\n");
        wait_until(&queued, i + 1);
    }
    reset(clients[0]);
    shutdown(clients[1], SHUT_WR);
    reset(clients[3]);
    pause_ms(200);
    pthread_mutex_unlock(&gate);
    for (unsigned i = 1; i < 3; i++) {
        assert_true(receive_all(clients[i], PATIENCE_MS, NULL));
        assert_true(is_answered());
        close(clients[i]);
    }
    wait_until(&counted, 3);
    fetch("/text", "");
    assert_string_equal(body(), "{}");
}

#define SLOW_BYTES 600 /* a minute of them */
ON_LOOPS(slow_headers_are_cut)
{
    int client = connect_client();
    const char *header = "GET /text HTTP/1.1\r\nHost: x\r\nX-Slow: a";
    struct pollfd ended = {.fd = client, .events = POLLIN | POLLRDHUP};
    const int64_t began_ms = clock_ms();
    const size_t begun = strlen(header);
    size_t sent = 0;

    while (sent < begun + SLOW_BYTES && poll(&ended, 1, 100) == 0 &&
           send(client, sent < begun ? header + sent : "a", 1, MSG_NOSIGNAL) == 1)
        sent++;
    /* One second is allowed. */
    assert_true(clock_ms() - began_ms >= 900);
    assert_true(sent < begun + SLOW_BYTES);
    close(client);
}

ON_LOOPS(waits_end_however_fast_the_worker_is)
{
    static const char *const targets[] = {"/fast", "/early"};

    for (size_t i = 0; i < 2; i++)
        for (unsigned round = 0; round < 200; round++) {
            fetch(targets[i], "");
            assert_true(is_answered());
        }
}

/* Returns when a worker is busy with it. */
static void send_slow(int client, bool is_held)
{
    atomic_store(&slow_is_held, is_held);
    atomic_store(&slow_is_running, false);
    send_text(client, "GET /slow HTTP/1.1\r\n" HOST "\r\n");
    AWAIT(atomic_load(&slow_is_running));
}

ON_LOOPS(draining_loops_answer_and_close)
{
    int client = connect_client();

    send_text(client, "GET /text HTTP/1.1\r\n" HOST "\r\n");
    receive_first(client);
    assert_true(is_answered());
    send_slow(client, true);
    assert_int_equal(loop_active(loops[0]) + loop_active(loops[1]), 1);
    atomic_store(&server.draining, true);
    for (unsigned i = 0; i < LOOPS; i++)
        loop_drain(loops[i]);
    atomic_store(&slow_is_held, false);
    assert_true(receive_all(client, PATIENCE_MS, NULL));
    assert_true(is_answered());
    assert_non_null(strstr(reply, "Connection: close"));
    close(client);
    assert_int_equal(loop_active(loops[0]) + loop_active(loops[1]), 0);
}

ON_LOOPS(stopping_waits_for_workers_and_cuts_clients)
{
    int client = connect_client();

    send_slow(client, false);
    stop(NULL);
    assert_true(receive_all(client, PATIENCE_MS, NULL));
    close(client);
    start(NULL);
}

TEST(addresses_have_a_limit)
{
    int clients[4];
    size_t answered = 0;

    config.limits.connections_per_address = 3;
    assert_int_equal(start(NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        clients[i] = connect_client();
        send(clients[i], "GET /text HTTP/1.1\r\n" HOST "\r\n", 31, MSG_NOSIGNAL);
        receive_first(clients[i]);
        answered += is_answered();
    }
    assert_int_equal(answered, 3);
    for (unsigned i = 0; i < 4; i++)
        close(clients[i]);
    /* Until the server has seen them leave, there is no room. */
    do {
        const int client = connect_client();

        send(client, "GET /text HTTP/1.1\r\n" HOST "\r\n", 31, MSG_NOSIGNAL);
        receive_first(client);
        close(client);
    } while (!is_answered());
    stop(NULL);
    config.limits.connections_per_address = 0;
}

static int hold_pipe[2];

/* Occupies the loop until the test lets go. */
static void hold_loop(void *context)
{
    char byte;

    (void)context;
    assert_int_equal(read(hold_pipe[0], &byte, 1), 1);
    assert_int_equal(poll(&(struct pollfd){.fd = hold_pipe[0], .events = POLLIN}, 1, -1), 1);
    assert_int_equal(read(hold_pipe[0], &byte, 1), 1);
}

static void wait_until_turned(struct loop *loop)
{
    AWAIT(loop_has_turned(loop));
}

ON_LOOPS(a_loop_that_hangs_has_not_turned)
{
    assert_int_equal(pipe(hold_pipe), 0);
    assert_int_equal(loop_watch(loops[0], hold_pipe[0], hold_loop, NULL), 0);
    wait_until_turned(loops[0]);
    wait_until_turned(loops[0]);
    assert_int_equal(write(hold_pipe[1], "1", 1), 1);
    /* The loop takes the byte, and then cannot turn; what it was asked before may still count. */
    while (poll(&(struct pollfd){.fd = hold_pipe[0], .events = POLLIN}, 1, 0) > 0)
        sched_yield();
    (void)loop_has_turned(loops[0]);
    for (unsigned i = 0; i < 100; i++) {
        pause_ms(1);
        assert_false(loop_has_turned(loops[0]));
    }
    wait_until_turned(loops[1]);
    assert_int_equal(write(hold_pipe[1], "2", 1), 1);
    wait_until_turned(loops[0]);
}

AROUND_ALL_TESTS(make_file, remove_file)
