/* Answers that workers read ahead: a source that is slow, fails and counts, on a real socket. */
#include "support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/workers.h"
#include "http/exchange/router.h"
#include "http/wire/listener.h"
#include "http/wire/loop.h"

#define LOOPS      2
#define HOST       "Host: x\r\n"
#define BYTES      ((size_t)6 << 20)
#define REPLY_SIZE (BYTES + (1u << 20))
#define CLIENTS    48
/* Of the parts of /parts: odd, so that they begin anywhere. */
#define PART_BYTES 1237u

static struct config config;
static struct server server;
static struct loop *loops[LOOPS];
static unsigned short port;
static uint8_t *expected;
static char reply[REPLY_SIZE];
static struct zt_source *file;
static atomic_int held;

/* --- a source that can be neither mapped nor sent from a descriptor --- */

static atomic_uint reads;
static atomic_uint reading;
static atomic_uint delay_ms;
static atomic_ullong fails_at;
static atomic_bool read_by_loop;
static _Thread_local bool is_loop;

static void sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
              NULL);
}

static uint64_t fake_size(const struct zt_source *source)
{
    (void)source;
    return BYTES;
}

static enum zt_status fake_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                   size_t length, struct zt_error *error)
{
    (void)source;
    if (is_loop)
        atomic_store(&read_by_loop, true);
    atomic_fetch_add(&reads, 1);
    atomic_fetch_add(&reading, 1);
    if (atomic_load(&delay_ms) > 0)
        sleep_ms(atomic_load(&delay_ms));
    atomic_fetch_sub(&reading, 1);
    assert_true(offset <= BYTES && length <= BYTES - offset);
    memcpy(buffer, expected + offset, length);
    return offset + length > atomic_load(&fails_at)
               ? zt_fail(error, ZT_IO, NULL, offset, "the disk is on fire")
               : ZT_OK;
}

static const uint8_t *fake_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void fake_close(struct zt_source *source)
{
    (void)source;
}

static const struct zt_source_ops fake_ops = {fake_size, fake_read_at, fake_map, fake_close};
static struct zt_source fake = {&fake_ops};

/* --- what is served --- */

static void let_go(void *thing)
{
    (void)thing;
    /* A worker may not read any more from what is released. */
    assert_int_equal(atomic_load(&reading) > 0 && atomic_load(&held) == 1, 0);
    atomic_fetch_sub(&held, 1);
}

static void hold(struct request *request)
{
    is_loop = true;
    atomic_fetch_add(&held, 1);
    request_hold(request, request, let_go);
    request->reply.ranges = true;
}

static enum outcome handle_text(struct request *request)
{
    reply_json(request, 200, "{}", 2);
    return OUTCOME_READY;
}

static enum outcome handle_fake(struct request *request)
{
    hold(request);
    representation_source(&request->reply, &fake, 0, BYTES);
    return OUTCOME_READY;
}

static enum outcome handle_mixed(struct request *request)
{
    hold(request);
    representation_memory(&request->reply, expected, 1000);
    representation_source(&request->reply, file, 1000, 2000000);
    representation_source(&request->reply, &fake, 2001000, BYTES - 2001000 - 70000);
    representation_memory(&request->reply, expected + BYTES - 70000, 70000);
    return OUTCOME_READY;
}

/* As many parts of memory and of a source as the query says, each where it is in the whole. */
static enum outcome reply_parts(struct request *request, struct zt_source *source)
{
    /* The text of a parameter is followed by anything; that of the target is not. */
    const size_t count = (size_t)atol(strchr(request_target(request), '=') + 1);
    struct segment *segments;

    segments = request_allocate(request, count * sizeof(*segments));
    assert_non_null(segments);
    hold(request);
    for (size_t i = 0; i < count; i++)
        segments[i] = (struct segment){.kind = i % 2 == 0 ? SEGMENT_MEMORY : SEGMENT_SOURCE,
                                       .length = PART_BYTES,
                                       .bytes = expected + i * PART_BYTES,
                                       .source = source,
                                       .offset = i * PART_BYTES};
    representation_segments(&request->reply, segments, count);
    return OUTCOME_READY;
}

static enum outcome handle_parts(struct request *request)
{
    return reply_parts(request, file);
}

static enum outcome handle_fake_parts(struct request *request)
{
    return reply_parts(request, &fake);
}

const struct route routes[] = {
    {.pattern = "/text", .get = {.handle = handle_text}},
    {.pattern = "/fake", .get = {.handle = handle_fake}},
    {.pattern = "/mixed", .get = {.handle = handle_mixed}},
    {.pattern = "/parts", .get = {.handle = handle_parts}},
    {.pattern = "/fake-parts", .get = {.handle = handle_fake_parts}},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

/* --- the client --- */

static int connect_client(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int small = 65536;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(client >= 0);
    /* So that a client that does not read holds the server up. */
    setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof(address)), 0);
    return client;
}

static int ask(const char *target, const char *fields)
{
    char text[16384];
    int client = connect_client();
    const int length =
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST "%s\r\n", target, fields);

    assert_int_equal(send(client, text, (size_t)length, MSG_NOSIGNAL), length);
    return client;
}

/* True at the connection's end, false after wait_ms without a byte. */
static bool receive_all(int client, int wait_ms, size_t *out_length)
{
    struct pollfd waited = {.fd = client, .events = POLLIN};
    size_t length = 0;
    ssize_t got = 1;

    while (got > 0 && length < REPLY_SIZE - 1 && poll(&waited, 1, wait_ms) == 1) {
        got = recv(client, reply + length, REPLY_SIZE - 1 - length, 0);
        length += got > 0 ? (size_t)got : 0;
    }
    reply[length] = '\0';
    *out_length = length;
    return got <= 0;
}

/* How many bytes of the body came; they must be right. */
static size_t check_body(size_t length, size_t first)
{
    const char *end = strstr(reply, "\r\n\r\n");
    size_t body;

    assert_non_null(end);
    body = length - (size_t)(end + 4 - reply);
    assert_true(body <= BYTES - first);
    assert_memory_equal(end + 4, expected + first, body);
    return body;
}

static void assert_fetched(const char *target, const char *fields, size_t first, size_t length)
{
    size_t got;
    char all[12000];
    int client;

    snprintf(all, sizeof(all), "Connection: close\r\n%s", fields);
    client = ask(target, all);
    assert_true(receive_all(client, 10000, &got));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 20", 11), 0);
    assert_int_equal(check_body(got, first), length);
}

static bool becomes_free(unsigned within_ms)
{
    for (unsigned waited = 0; atomic_load(&held) > 0 && waited < within_ms; waited += 10)
        sleep_ms(10);
    return atomic_load(&held) == 0;
}

static void wait_until_held(int count)
{
    for (unsigned waited = 0; atomic_load(&held) < count && waited < 10000; waited += 10)
        sleep_ms(10);
    assert_int_equal(atomic_load(&held), count);
}

/* --- the server --- */

static int start(void **state)
{
    int sockets[LOOPS];
    struct listener listener = {.count = LOOPS, .sockets = sockets};
    char error[600];

    (void)state;
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    atomic_store(&reads, 0);
    atomic_store(&delay_ms, 0);
    atomic_store(&fails_at, BYTES);
    atomic_store(&read_by_loop, false);
    server = (struct server){
        .config = &config, .workers = workers_start(3), .loops = loops, .loop_count = LOOPS};
    if (listener_open(&listener, "127.0.0.1:0", error, sizeof(error)) != 0)
        return -1;
    port = (unsigned short)atoi(strrchr(listener.address, ':') + 1);
    for (unsigned i = 0; i < LOOPS; i++) {
        loops[i] = loop_start(&server, sockets[i], error, sizeof(error));
        if (loops[i] == NULL)
            return -1;
    }
    return 0;
}

static void stop_loops(void)
{
    for (unsigned i = 0; i < LOOPS; i++)
        loop_stop(loops[i]);
    workers_stop(server.workers);
    assert_int_equal(atomic_load(&held), 0);
    assert_false(atomic_load(&read_by_loop));
}

static int stop(void **state)
{
    (void)state;
    stop_loops();
    return 0;
}

static int make_bytes(void **state)
{
    char path[] = "/tmp/zt-test-sender-XXXXXX";
    const int descriptor = mkstemp(path);

    (void)state;
    config_defaults(&config);
    config.threads = LOOPS;
    expected = malloc(BYTES);
    if (descriptor < 0 || expected == NULL || unlink(path) != 0)
        return -1;
    for (size_t i = 0; i < BYTES; i++)
        expected[i] = (uint8_t)(i * 2654435761u >> 13);
    if (write(descriptor, expected, BYTES) != (ssize_t)BYTES)
        return -1;
    return zt_source_from_descriptor(descriptor, &file, NULL) == ZT_OK ? 0 : -1;
}

static int free_bytes(void **state)
{
    (void)state;
    zt_source_close(file);
    free(expected);
    return 0;
}

/* --- tests --- */

static void sources_are_read_by_workers_in_order(void **state)
{
    (void)state;
    assert_fetched("/fake", "", 0, BYTES);
    /* A window is read in one go. */
    assert_in_range(atomic_load(&reads), 7, 60);
    assert_fetched("/fake", "Range: bytes=1-\r\n", 1, BYTES - 1);
    assert_fetched("/fake", "Range: bytes=3000001-3100000\r\n", 3000001, 100000);
    assert_fetched("/fake", "Range: bytes=100-65635\r\n", 100, 65536);
    assert_fetched("/fake", "Range: bytes=100-65636\r\n", 100, 65537);
    assert_fetched("/fake", "Range: bytes=77-77\r\n", 77, 1);
}

static void windows_span_segments_of_all_kinds(void **state)
{
    (void)state;
    assert_fetched("/mixed", "", 0, BYTES);
    assert_fetched("/mixed", "Range: bytes=500-2500000\r\n", 500, 2499501);
    assert_fetched("/mixed", "Range: bytes=-70001\r\n", BYTES - 70001, 70001);
    assert_fetched("/mixed", "Range: bytes=990-1100\r\n", 990, 111);
}

static void parts_come_whole_however_many(void **state)
{
    static const unsigned counts[] = {2, 60, 63, 65, 129, 300, 500, 600, 650, 700, 750, 1000, 4000};
    static char long_field[9000];
    char target[40];

    (void)state;
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
    assert_true(receive_all(client, 5000, &length));
    close(client);
    assert_true(length > (size_t)count * PART_BYTES);
    assert_memory_equal(reply + length - 2, "{}", 2);
    assert_memory_equal(strstr(reply, "\r\n\r\n") + 4, expected, (size_t)count * PART_BYTES);
}

/* They lie in the connection's memory, beside the list of parts. */
static void requests_in_line_leave_room_for_parts(void **state)
{
    static const char next[] = "GET /text HTTP/1.1\r\n" HOST "\r\n";
    char fields[16000] = "\r\n";

    (void)state;
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
static void headers_leave_room_for_parts(void **state)
{
    char fields[16000] = "";

    (void)state;
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

static void connections_go_on_after_windows(void **state)
{
    int client = ask("/fake", "Range: bytes=0-199999\r\n\r\nGET /fake HTTP/1.1\r\n" HOST
                              "Range: bytes=200000-399999\r\n\r\nGET /text HTTP/1.1\r\n" HOST
                              "Connection: close\r\n");
    size_t length;

    (void)state;
    assert_true(receive_all(client, 5000, &length));
    close(client);
    assert_in_range(length, 400000, 402000);
    assert_memory_equal(reply + length - 2, "{}", 2);
}

static void failing_at_once_is_a_problem(void **state)
{
    size_t length;
    int client;

    (void)state;
    atomic_store(&fails_at, 1000);
    client = ask("/fake", "Connection: close\r\n");
    assert_true(receive_all(client, 5000, &length));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 500", 12), 0);
    assert_non_null(strstr(reply, "application/problem+json"));
    assert_true(becomes_free(10000));
}

static void failing_later_cuts_the_connection(void **state)
{
    size_t length;
    int client;

    (void)state;
    atomic_store(&fails_at, BYTES / 2);
    /* It would be kept open otherwise. */
    client = ask("/fake", "");
    assert_true(receive_all(client, 5000, &length));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_in_range(check_body(length, 0), 64 * 1024, BYTES / 2);
    assert_true(becomes_free(10000));
    atomic_store(&fails_at, BYTES);
    assert_fetched("/fake", "", 0, BYTES);
}

static void clients_that_leave_free_everything(void **state)
{
    int clients[CLIENTS];

    (void)state;
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = ask("/fake", "");
    wait_until_held(CLIENTS);
    sleep_ms(200);
    /* Nobody reads: what fits into windows and buffers was read, and no more. */
    assert_true(atomic_load(&reads) < CLIENTS * 8);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(clients[i]);
    assert_true(becomes_free(10000));
}

static void clients_that_leave_in_a_read_are_freed_after_it(void **state)
{
    int clients[CLIENTS];

    (void)state;
    atomic_store(&delay_ms, 30);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = ask("/fake", "");
    for (unsigned i = 0; i < CLIENTS; i++) {
        sleep_ms(5);
        if (i % 2 == 0)
            recv(clients[i], reply, 10000, 0);
        close(clients[i]);
    }
    assert_true(becomes_free(10000));
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

static void many_clients_get_their_own_bytes(void **state)
{
    struct reader readers[CLIENTS] = {0};
    unsigned open = CLIENTS;

    (void)state;
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
static void stalled_clients_do_not_hold_up_others(void **state)
{
    int clients[4 * CLIENTS];

    (void)state;
    for (unsigned i = 0; i < 4 * CLIENTS; i++)
        clients[i] = ask("/fake", "");
    wait_until_held(4 * CLIENTS);
    sleep_ms(300);
    assert_fetched("/fake", "", 0, BYTES);
    for (unsigned i = 0; i < 4 * CLIENTS; i++)
        close(clients[i]);
    assert_true(becomes_free(10000));
}

static void stopping_in_the_middle_frees_everything(void **state)
{
    int clients[CLIENTS];
    struct timespec before;
    struct timespec after;

    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        assert_int_equal(start(NULL), 0);
        atomic_store(&delay_ms, round * 10);
        for (unsigned i = 0; i < CLIENTS; i++)
            clients[i] = ask(i % 2 == 0 ? "/fake" : "/mixed", "");
        sleep_ms(100);
        clock_gettime(CLOCK_MONOTONIC, &before);
        stop_loops();
        clock_gettime(CLOCK_MONOTONIC, &after);
        assert_in_range(after.tv_sec - before.tv_sec, 0, 2);
        for (unsigned i = 0; i < CLIENTS; i++)
            close(clients[i]);
    }
}

/* A window of them would take seconds. */
static void stopping_ends_a_fill_between_two_reads(void **state)
{
    struct timespec before;
    struct timespec after;
    int client;

    (void)state;
    assert_int_equal(start(NULL), 0);
    atomic_store(&delay_ms, 200);
    client = ask("/fake-parts?n=1000", "");
    sleep_ms(100);
    clock_gettime(CLOCK_MONOTONIC, &before);
    stop_loops();
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_in_range(after.tv_sec - before.tv_sec, 0, 1);
    assert_true(atomic_load(&reads) < 5);
    close(client);
}

static void draining_finishes_what_was_begun(void **state)
{
    int client;
    size_t length;

    (void)state;
    atomic_store(&delay_ms, 20);
    client = ask("/fake", "");
    sleep_ms(30);
    for (unsigned i = 0; i < LOOPS; i++)
        loop_drain(loops[i]);
    assert_false(receive_all(client, 500, &length));
    assert_int_equal(check_body(length, 0), BYTES);
    close(client);
}

static void slow_clients_are_cut_and_slow_disks_are_not(void **state)
{
    int client;

    (void)state;
    config.limits.idle_timeout_s = 1;
    assert_int_equal(start(NULL), 0);
    client = ask("/fake", "");
    wait_until_held(1);
    assert_true(becomes_free(4000));
    close(client);
    atomic_store(&delay_ms, 1500);
    assert_fetched("/fake", "Range: bytes=0-149999\r\n", 0, 150000);
    stop_loops();
    config_defaults(&config);
    config.threads = LOOPS;
}

#define ON_A_LOOP(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(sources_are_read_by_workers_in_order),
        ON_A_LOOP(windows_span_segments_of_all_kinds),
        ON_A_LOOP(parts_come_whole_however_many),
        ON_A_LOOP(requests_in_line_leave_room_for_parts),
        ON_A_LOOP(headers_leave_room_for_parts),
        ON_A_LOOP(connections_go_on_after_windows),
        ON_A_LOOP(failing_at_once_is_a_problem),
        ON_A_LOOP(failing_later_cuts_the_connection),
        ON_A_LOOP(clients_that_leave_free_everything),
        ON_A_LOOP(clients_that_leave_in_a_read_are_freed_after_it),
        ON_A_LOOP(many_clients_get_their_own_bytes),
        cmocka_unit_test(stopping_in_the_middle_frees_everything),
        ON_A_LOOP(stalled_clients_do_not_hold_up_others),
        cmocka_unit_test(stopping_ends_a_fill_between_two_reads),
        ON_A_LOOP(draining_finishes_what_was_begun),
        cmocka_unit_test(slow_clients_are_cut_and_slow_disks_are_not),
    };

    return cmocka_run_group_tests(tests, make_bytes, free_bytes);
}
