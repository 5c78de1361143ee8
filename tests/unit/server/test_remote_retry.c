/* When an exchange is tried again, how many are on their way together, and how all of it ends. */
#include "remote_world.h"

#include "remote/pace.h"
#include "remote/retry.h"

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define BUSY     "HTTP/1.1 503 Slow Down\r\nContent-Length: 4\r\n\r\nslow"

/* --- policy --- */

TEST(pause_grows_and_has_a_limit)
{
    uint64_t seed = 12345;
    uint64_t longest[10] = {0};

    for (unsigned tried = 1; tried < 10; tried++)
        for (unsigned i = 0; i < 10000; i++) {
            const uint64_t pause = retry_pause_ms(tried, &seed);

            assert_true(pause <= 5000 && pause <= 100u << tried);
            if (pause > longest[tried])
                longest[tried] = pause;
        }
    assert_true(longest[1] > 180 && longest[4] > 1500 && longest[9] > 4900);
}

TEST(service_says_how_long_to_pause)
{
    const int64_t now_s = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */

    assert_int_equal(retry_after_ms("0", now_s), 0);
    assert_int_equal(retry_after_ms("7", now_s), 7000);
    assert_int_equal(retry_after_ms("31", now_s), 30000);
    assert_int_equal(retry_after_ms("99999999999999999999999999", now_s), 30000);
    assert_int_equal(retry_after_ms("Sun, 06 Nov 1994 08:49:42 GMT", now_s), 5000);
    assert_int_equal(retry_after_ms("Sun, 06 Nov 1994 09:49:42 GMT", now_s), 30000);
    assert_int_equal(retry_after_ms("Sun, 06 Nov 1994 08:49:36 GMT", now_s), 0);
    assert_int_equal(retry_after_ms("", now_s), 0);
    assert_int_equal(retry_after_ms("-1", now_s), 0);
    assert_int_equal(retry_after_ms("1.5", now_s), 0);
    assert_int_equal(retry_after_ms("soon", now_s), 0);
}

TEST(pace_halves_once_a_round_and_grows_slowly)
{
    struct pace pace;

    pace_init(&pace, 16);
    pace_halve(&pace, 0);
    pace_halve(&pace, 0);
    assert_int_equal(pace.allowed, 8);
    pace_halve(&pace, 1);
    assert_int_equal(pace.allowed, 4);
    for (unsigned i = 0; i < 15; i++)
        pace_succeed(&pace);
    assert_int_equal(pace.allowed, 4);
    pace_succeed(&pace);
    assert_int_equal(pace.allowed, 5);
    for (unsigned i = 2; i < 9; i++)
        pace_halve(&pace, i);
    assert_int_equal(pace.allowed, 4);
    for (unsigned i = 0; i < 1000; i++)
        pace_succeed(&pace);
    assert_int_equal(pace.allowed, 16);
}

TEST(pace_never_falls_below_what_a_few_hanging_requests_hold)
{
    for (unsigned most = 1; most <= 9; most++) {
        struct pace pace;

        (void)state;
        pace_init(&pace, most);
        for (unsigned i = 0; i < 9; i++)
            pace_halve(&pace, i);
        assert_int_equal(pace.allowed, most < 4 ? most : 4);
    }
}

/* --- answers --- */

static void run_one(const struct step *steps, unsigned count, struct remote_exchange *exchange,
                    unsigned tries, unsigned *out_requests)
{
    struct service service;
    struct remote *remote = start_remote(2);

    service_start(&service, steps, count);
    exchange_with(exchange, &service);
    exchange->tries = tries;
    remote_run(remote, exchange);
    remote_stop(remote);
    *out_requests = service.request_count;
    service_stop(&service);
}

TEST(only_transient_answers_are_asked_for_again)
{
    static const unsigned statuses[] = {408, 429, 500, 502, 503, 504, /* the transient ones */
                                        301, 304, 400, 401, 403, 404, 409, 412, 416, 501};
    struct remote_exchange exchange;
    char answer[100];
    unsigned requests;

    for (unsigned i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        const struct step steps[] = {{answer, THEN_KEEP, 0, 0}, {OK_HELLO, THEN_KEEP, 0, 0}};
        const bool is_transient = i < 6;

        snprintf(answer, sizeof(answer), "HTTP/1.1 %u E\r\nContent-Length: %d\r\n\r\n%s",
                 statuses[i], is_transient ? 4 : 0, is_transient ? "wait" : "");
        run_one(steps, 2, &exchange, 0, &requests);
        assert_ok(exchange.status);
        if (requests != (is_transient ? 2 : 1) ||
            exchange.head.status != (is_transient ? 200 : statuses[i]))
            fail_msg("%u: %u requests, then %u", statuses[i], requests, exchange.head.status);
        remote_exchange_free(&exchange);
    }
}

TEST(busy_until_the_last_try_is_a_failure_with_its_answer)
{
    const struct step steps[] = {{BUSY, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;
    unsigned requests;

    run_one(steps, 1, &exchange, 3, &requests);
    assert_int_equal(exchange.status, ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_BUSY);
    assert_int_equal(exchange.head.status, 503);
    assert_string_equal(exchange.answer, "slow");
    assert_int_equal(requests, 3);
    remote_exchange_free(&exchange);
}

TEST(no_connection_is_tried_again_and_then_a_failure)
{
    struct remote_exchange exchange;
    struct remote *remote = start_remote(2);

    remote_exchange_init(&exchange);
    exchange.method = "GET";
    exchange.origin = "http://127.0.0.1:1";
    exchange.path = "/";
    exchange.tries = 2;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_CONNECT);
    assert_int_equal(exchange.tried, 2);
    assert_true(exchange.error.message[0] != '\0');
    remote_stop(remote);
}

TEST(strange_origins_are_failures)
{
    static const char *const origins[] = {"ftp://127.0.0.1:1", "file:///etc/passwd",      "http://",
                                          "http://a b",        "http://127.0.0.1:1/path", ""};
    struct remote_exchange exchange;
    struct remote *remote = start_remote(2);

    for (unsigned i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
        remote_exchange_init(&exchange);
        exchange.method = "GET";
        exchange.origin = origins[i];
        exchange.path = "/";
        assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
        assert_int_equal(exchange.failure, REMOTE_FAILURE_BROKEN);
        assert_int_equal(exchange.tried, 1);
    }
    remote_stop(remote);
}

/* --- time --- */

TEST(hanging_service_is_left_and_asked_again)
{
    const struct step steps[] = {
        {NULL, THEN_HANG, 0, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", THEN_HANG, 0, 0},
        {OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchange;
    struct service service;
    struct remote *remote = start_remote(2);

    SERVICE_START(&service, steps);
    exchange_with(&exchange, &service);
    /* On a busy machine, more tries than two may end before they are answered. */
    exchange.try_ms = 500;
    assert_ok(remote_run(remote, &exchange));
    assert_string_equal(exchange.answer, "hello");
    assert_true(exchange.tried >= 3);
    end_exchange(&exchange, remote, &service);
}

TEST(nothing_outlasts_its_time)
{
    const struct step steps[] = {{NULL, THEN_HANG, 0, 0}};
    const int64_t begun_ms = clock_ms();
    struct remote_exchange exchange;
    struct service service;
    struct remote *remote = start_remote(2);

    SERVICE_START(&service, steps);
    exchange_with(&exchange, &service);
    exchange.time_ms = 300;
    assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
    assert_int_equal(exchange.failure, REMOTE_FAILURE_TIMEOUT);
    assert_true(clock_ms() - begun_ms < 60000);
    remote_stop(remote);
    service_stop(&service);
}

/* What would come after its time is not waited for: the last answer is the outcome, at once. Now
 * and then a try ends just then, and is cut off. */
TEST(pause_that_is_too_long_is_not_begun)
{
    const struct step steps[] = {{BUSY, THEN_KEEP, 0, 0}};
    struct remote *remote = start_remote(2);
    enum remote_failure failure = REMOTE_FAILURE_NONE;
    struct service service;

    SERVICE_START(&service, steps);
    for (unsigned i = 0; i < 5 && failure != REMOTE_FAILURE_BUSY; i++) {
        struct remote_exchange exchange;

        exchange_with(&exchange, &service);
        exchange.time_ms = 500;
        exchange.tries = 50;
        assert_int_equal(remote_run(remote, &exchange), ZT_UNAVAILABLE);
        failure = exchange.failure;
        remote_exchange_free(&exchange);
    }
    assert_int_equal(failure, REMOTE_FAILURE_BUSY);
    remote_stop(remote);
    service_stop(&service);
}

/* --- many --- */

#define MANY 40

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned count;
    unsigned stopped;
    unsigned timed_out;
    const char *order[MANY]; /* of the paths */
} ended = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void note_end(struct remote_exchange *exchange)
{
    pthread_mutex_lock(&ended.lock);
    ended.order[ended.count++] = exchange->path;
    ended.stopped += exchange->failure == REMOTE_FAILURE_STOPPED;
    ended.timed_out += exchange->failure == REMOTE_FAILURE_TIMEOUT;
    /* The test may use it again at once. */
    remote_exchange_free(exchange);
    pthread_cond_signal(&ended.changed);
    pthread_mutex_unlock(&ended.lock);
}

static void begin_many(struct remote *remote, const struct service *service,
                       struct remote_exchange *exchanges, unsigned count)
{
    ended.count = ended.stopped = ended.timed_out = 0;
    for (unsigned i = 0; i < count; i++) {
        exchange_with(&exchanges[i], service);
        exchanges[i].done = note_end;
        remote_begin(remote, &exchanges[i]);
    }
}

static void wait_for_ends(unsigned count)
{
    pthread_mutex_lock(&ended.lock);
    while (ended.count < count)
        pthread_cond_wait(&ended.changed, &ended.lock);
    pthread_mutex_unlock(&ended.lock);
}

TEST(so_many_are_on_their_way_together)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 20, 0}};
    struct remote_exchange *exchanges = calloc(MANY, sizeof(*exchanges));
    struct service service;
    struct remote *remote = start_remote(4);
    struct remote_load load;

    SERVICE_START(&service, steps);
    begin_many(remote, &service, exchanges, MANY);
    wait_for_ends(MANY);
    remote_load(remote, &load);
    assert_int_equal(load.running, 0);
    assert_int_equal(load.waiting, 0);
    assert_int_equal(load.allowed, 4);
    assert_int_equal(service.busy_most, 4);
    assert_true(service.served_count <= 5);
    remote_stop(remote);
    service_stop(&service);
    free(exchanges);
}

static void assert_fewer_after(const char *busy)
{
    const struct step steps[] = {{busy, THEN_KEEP, 0, 0}, {OK_HELLO, THEN_KEEP, 20, 0}};
    struct remote_exchange *exchanges = calloc(MANY, sizeof(*exchanges));
    struct service service;
    struct remote *remote = start_remote(8);
    struct remote_load load;

    SERVICE_START(&service, steps);
    begin_many(remote, &service, exchanges, 1);
    wait_for_ends(1);
    remote_load(remote, &load);
    assert_int_equal(load.allowed, 4);
    begin_many(remote, &service, exchanges, MANY);
    wait_for_ends(MANY);
    remote_load(remote, &load);
    assert_int_equal(load.allowed, 6);
    assert_in_range(service.busy_most, 4, 6);
    remote_stop(remote);
    service_stop(&service);
    free(exchanges);
}

TEST(busy_service_gets_fewer_requests)
{
    assert_fewer_after(BUSY);
    assert_fewer_after("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n");
}

TEST(urgent_exchanges_come_first)
{
    const struct step steps[] = {{OK_HELLO, THEN_KEEP, 100, 0}, {OK_HELLO, THEN_KEEP, 0, 0}};
    struct remote_exchange exchanges[4];
    struct service service;
    struct remote *remote = start_remote(1);

    SERVICE_START(&service, steps);
    ended.count = 0;
    for (unsigned i = 0; i < 4; i++) {
        exchange_with(&exchanges[i], &service);
        exchanges[i].path = i == 3 ? "/urgent" : "/";
        exchanges[i].is_urgent = i == 3;
        exchanges[i].done = note_end;
        remote_begin(remote, &exchanges[i]);
        /* The first is on its way before the others come. */
        pause_ms(i == 0 ? 30 : 0);
    }
    wait_for_ends(4);
    assert_string_equal(ended.order[1], "/urgent");
    remote_stop(remote);
    service_stop(&service);
}

TEST(time_runs_while_an_exchange_waits)
{
    const struct step steps[] = {{NULL, THEN_HANG, 0, 0}};
    struct remote_exchange exchanges[2];
    struct service service;
    struct remote *remote = start_remote(1);
    const int64_t begun_ms = clock_ms();

    SERVICE_START(&service, steps);
    ended.count = ended.timed_out = 0;
    for (unsigned i = 0; i < 2; i++) {
        exchange_with(&exchanges[i], &service);
        exchanges[i].done = note_end;
        exchanges[i].path = i == 0 ? "/first" : "/second";
        exchanges[i].time_ms = i == 0 ? 3000 : 300;
        remote_begin(remote, &exchanges[i]);
        pause_ms(20);
    }
    wait_for_ends(1);
    assert_string_equal(ended.order[0], "/second");
    assert_int_equal(ended.timed_out, 1);
    assert_true(clock_ms() - begun_ms < 1500);
    remote_stop(remote);
    service_stop(&service);
}

TEST(stop_ends_everything_at_once)
{
    const struct step steps[] = {{NULL, THEN_HANG, 0, 0}, {BUSY, THEN_KEEP, 0, 0}};
    struct remote_exchange *exchanges = calloc(MANY, sizeof(*exchanges));
    struct service service;
    struct remote *remote = start_remote(4);
    int64_t begun_ms;

    SERVICE_START(&service, steps);
    begin_many(remote, &service, exchanges, MANY);
    pause_ms(50);
    begun_ms = clock_ms();
    remote_stop(remote);
    assert_true(clock_ms() - begun_ms < 500);
    assert_int_equal(ended.count, MANY);
    assert_int_equal(ended.stopped, MANY);
    service_stop(&service);
    free(exchanges);
}

TEST(stop_waits_for_no_name_server)
{
    struct remote_exchange exchange;
    struct remote *remote = start_remote(1);
    int64_t begun_ms;

    ended.count = 0;
    remote_exchange_init(&exchange);
    exchange.method = "GET";
    exchange.origin = "http://no-such-name.invalid";
    exchange.path = "/";
    exchange.done = note_end;
    remote_begin(remote, &exchange);
    pause_ms(10);
    begun_ms = clock_ms();
    remote_stop(remote);
    assert_true(clock_ms() - begun_ms < 500);
    assert_int_equal(ended.count, 1);
}

static void count_busied(struct remote_exchange *exchange)
{
    assert_int_equal(exchange->head.status, 429);
    exchange->body_most++;
}

TEST(busy_answer_is_reported_before_its_pause)
{
    static const struct step steps[] = {
        {"HTTP/1.1 429 B\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0},
        {"HTTP/1.1 200 K\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0}};
    struct service service;
    struct remote *remote;
    struct remote_exchange exchange;

    SERVICE_START(&service, steps);
    remote = start_remote(2);
    exchange_with(&exchange, &service);
    exchange.busied = count_busied;
    assert_ok(remote_run(remote, &exchange));
    assert_int_equal(exchange.body_most, 1001);
    end_exchange(&exchange, remote, &service);
}

TEST(exchange_is_not_sent_before_its_time)
{
    static const struct step steps[] = {
        {"HTTP/1.1 200 K\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, 0, 0}};
    struct service service;
    struct remote *remote;
    struct remote_exchange exchange;

    SERVICE_START(&service, steps);
    remote = start_remote(2);
    exchange_with(&exchange, &service);
    exchange.not_before_ms = clock_ms() + 300;
    assert_ok(remote_run(remote, &exchange));
    assert_true(clock_ms() >= exchange.not_before_ms);
    end_exchange(&exchange, remote, &service);
}
