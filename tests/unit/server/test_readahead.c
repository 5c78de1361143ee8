/* Answers that workers read ahead, for many clients and for those that leave. */
#define OTHER_ROUTES {.pattern = "/units", .get = {.handle = handle_units}},

#include "http/exchange/request.h"
#include "zt/source.h"

static enum outcome handle_units(struct request *request);

#include "sender_world.h"

/* --- a source whose bytes are made in units --- */

#define UNIT_BYTES ((size_t)1 << 20)
#define UNITS      (BYTES / UNIT_BYTES)

static atomic_uint unit_reads[UNITS];
static atomic_bool unit_waits_for_next;

static uint32_t units_unit(const struct zt_source *source)
{
    (void)source;
    return UNIT_BYTES;
}

static enum zt_status units_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                    size_t length, struct zt_error *error)
{
    const size_t unit = (size_t)offset / UNIT_BYTES;

    atomic_fetch_add(&unit_reads[unit], 1);
    if (atomic_load(&unit_waits_for_next) && unit + 1 < UNITS)
        AWAIT(atomic_load(&unit_reads[unit + 1]) > 0);
    return fake_read_at(source, offset, buffer, length, error);
}

static const struct zt_source_ops units_ops = {.size = fake_size,
                                               .read_at = units_read_at,
                                               .map = source_without_map,
                                               .close = fake_close,
                                               .unit = units_unit};
static struct zt_source units = {&units_ops};

/* Units between bytes that have none. */
static enum outcome handle_units(struct request *request)
{
    hold(request);
    representation_memory(&request->reply, expected, 1000);
    representation_source(&request->reply, &units, 1000, BYTES - 71000);
    representation_memory(&request->reply, expected + BYTES - 70000, 70000);
    return OUTCOME_READY;
}

static int start_units(void **state)
{
    for (unsigned i = 0; i < UNITS; i++)
        atomic_store(&unit_reads[i], 0);
    atomic_store(&unit_waits_for_next, false);
    return start(state);
}

/* Each waits until the next one is being read too. */
TEST_WITH(two_units_are_read_at_a_time, start_units, stop)
{
    atomic_store(&unit_waits_for_next, true);
    assert_fetched("/units", "", 0, BYTES);
    for (unsigned i = 0; i < UNITS; i++)
        assert_int_equal(atomic_load(&unit_reads[i]), 1);
}

TEST_WITH(ranges_over_units_are_whole, start_units, stop)
{
    static const size_t ranges[][2] = {{0, 1000},
                                       {999, 2},
                                       {1000, UNIT_BYTES},
                                       {UNIT_BYTES - 1, 2},
                                       {5000, BYTES - 5000},
                                       {BYTES - 70001, 70001}};

    for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        char range[80];

        snprintf(range, sizeof(range), "Range: bytes=%zu-%zu\r\n", ranges[i][0],
                 ranges[i][0] + ranges[i][1] - 1);
        assert_fetched("/units", range, ranges[i][0], ranges[i][1]);
    }
}

TEST_WITH(unit_that_fails_cuts_the_answer_before_it, start_units, stop)
{
    int client;
    size_t length;

    atomic_store(&fails_at, 3 * UNIT_BYTES);
    client = ask("/units", "");
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    assert_int_equal(check_body(length, 0), 3 * UNIT_BYTES);
    await_free();
}

TEST_WITH(clients_that_leave_within_units_free_everything, start_units, stop)
{
    int clients[CLIENTS];

    atomic_store(&delay_ms, 20);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = ask("/units", "");
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (i % 2 == 0)
            recv(clients[i], reply, 10000, 0);
        close(clients[i]);
    }
    await_free();
}

/* --- bytes without units --- */

ON_LOOPS(clients_that_leave_free_everything)
{
    int clients[CLIENTS];

    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = ask("/fake", "");
    wait_until_held(CLIENTS);
    pause_ms(200);
    /* No client reads: the server has read only what fits into windows and buffers. */
    assert_true(atomic_load(&reads) < CLIENTS * 8);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(clients[i]);
    await_free();
}

ON_LOOPS(clients_that_leave_in_a_read_are_freed_after_it)
{
    int clients[CLIENTS];

    atomic_store(&delay_ms, 30);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = ask("/fake", "");
    for (unsigned i = 0; i < CLIENTS; i++) {
        pause_ms(5);
        if (i % 2 == 0)
            recv(clients[i], reply, 10000, 0);
        close(clients[i]);
    }
    await_free();
    assert_fetched("/fake", "Range: bytes=0-99999\r\n", 0, 100000);
}

struct reader {
    int client;
    size_t first;
    size_t seen;
    bool in_body;
};

/* One piece. False at the end. */
static bool read_some(struct reader *reader)
{
    const ssize_t got = recv(reader->client, reply, 30000, 0);
    const char *body = reply;

    assert_true(got >= 0);
    reply[got] = '\0';
    if (!reader->in_body && got > 0) {
        /* The head comes in one piece. */
        body = strstr(reply, "\r\n\r\n") + 4;
        reader->in_body = true;
    }
    assert_memory_equal(body, expected + reader->first + reader->seen,
                        (size_t)(reply + got - body));
    reader->seen += (size_t)(reply + got - body);
    return got > 0;
}

ON_LOOPS(many_clients_get_their_own_bytes)
{
    struct reader readers[CLIENTS] = {0};
    unsigned open = CLIENTS;

    for (unsigned i = 0; i < CLIENTS; i++) {
        char range[80];

        readers[i].first = i * 1000;
        snprintf(range, sizeof(range), "Connection: close\r\nRange: bytes=%u-%u\r\n", i * 1000,
                 i * 1000 + 2999999);
        readers[i].client = ask(i % 2 == 0 ? "/fake" : "/mixed", range);
    }
    for (unsigned i = 0; open > 0; i = (i + 1) % CLIENTS) {
        if (readers[i].client < 0 || read_some(&readers[i]))
            continue;
        assert_int_equal(readers[i].seen, 3000000);
        close(readers[i].client);
        readers[i].client = -1;
        open--;
    }
}

/* They hold the whole budget of windows. */
ON_LOOPS(stalled_clients_do_not_hold_up_others)
{
    int clients[4 * CLIENTS];

    for (unsigned i = 0; i < 4 * CLIENTS; i++)
        clients[i] = ask("/fake", "");
    wait_until_held(4 * CLIENTS);
    pause_ms(200);
    assert_fetched("/fake", "", 0, BYTES);
    for (unsigned i = 0; i < 4 * CLIENTS; i++)
        close(clients[i]);
    await_free();
}

TEST(stopping_in_the_middle_frees_everything)
{
    int clients[CLIENTS];
    struct timespec before;
    struct timespec after;

    for (unsigned round = 0; round < 4; round++) {
        assert_int_equal(start(NULL), 0);
        atomic_store(&delay_ms, round * 10);
        for (unsigned i = 0; i < CLIENTS; i++)
            clients[i] = ask(i % 2 == 0 ? "/fake" : "/mixed", "");
        pause_ms(100);
        clock_gettime(CLOCK_MONOTONIC, &before);
        stop_loops();
        clock_gettime(CLOCK_MONOTONIC, &after);
        assert_in_range(after.tv_sec - before.tv_sec, 0, 60);
        for (unsigned i = 0; i < CLIENTS; i++)
            close(clients[i]);
    }
}

#define FILL_READS 500

/* Filling a whole window with them would take 100 s. */
TEST(stopping_ends_a_fill_between_two_reads)
{
    struct timespec before;
    struct timespec after;
    int client;

    assert_int_equal(start(NULL), 0);
    atomic_store(&delay_ms, 200);
    client = ask("/fake-parts?n=1000", "");
    pause_ms(100);
    clock_gettime(CLOCK_MONOTONIC, &before);
    stop_loops();
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_in_range(after.tv_sec - before.tv_sec, 0, 60);
    assert_true(atomic_load(&reads) < FILL_READS / 2);
    close(client);
}

TEST(slow_clients_are_cut_and_slow_disks_are_not)
{
    int client;

    config.limits.idle_timeout_s = 1;
    assert_int_equal(start(NULL), 0);
    client = ask("/fake", "");
    wait_until_held(1);
    await_free();
    close(client);
    atomic_store(&delay_ms, 1500);
    assert_fetched("/fake", "Range: bytes=0-149999\r\n", 0, 150000);
    stop_loops();
    config_defaults(&config);
    config.threads = LOOPS;
}

AROUND_ALL_TESTS(make_bytes, free_bytes)
