/* Loops on a real socket that serve a source which is slow, fails and counts, and a client that
 * reads as it likes. */
#ifndef SENDER_WORLD_H
#define SENDER_WORLD_H

#include "sources.h"
#include "tests.h"

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

#include "base/clock.h"
#include "base/log.h"
#include "base/workers.h"
#include "http/exchange/router.h"
#include "http/wire/listener.h"
#include "http/wire/loop.h"

#define LOOPS 2
#define HOST  "Host: x\r\n"
#ifndef BYTES
#define BYTES ((size_t)6 << 20)
#endif
#define REPLY_SIZE  (BYTES + (1u << 20))
#define CLIENTS     48
#define PATIENCE_MS 60000
/* The length of the parts of /parts; odd, so that parts begin at any alignment. */
#define PART_BYTES 1237u

static struct config config;
static struct server server;
static unsigned waiters; /* threads of server.waiters; 0: none */
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

static uint64_t fake_size(const struct zt_source *source)
{
    (void)source;
    return BYTES;
}

static enum zt_status fake_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                   size_t length, struct zt_error *error)
{
    const int64_t slow_until_ms = clock_ms() + atomic_load(&delay_ms);

    (void)source;
    if (is_loop)
        atomic_store(&read_by_loop, true);
    atomic_fetch_add(&reads, 1);
    atomic_fetch_add(&reading, 1);
    AWAIT(clock_ms() >= slow_until_ms);
    atomic_fetch_sub(&reading, 1);
    assert_true(offset <= BYTES && length <= BYTES - offset);
    memcpy(buffer, expected + offset, length);
    return offset + length > atomic_load(&fails_at)
               ? zt_fail(error, ZT_IO, NULL, offset, "the disk is on fire")
               : ZT_OK;
}

static void fake_close(struct zt_source *source)
{
    (void)source;
}

static const struct zt_source_ops fake_ops = {
    .size = fake_size, .read_at = fake_read_at, .map = source_without_map, .close = fake_close};
static struct zt_source fake = {&fake_ops};

/* --- what is served --- */

static void let_go(void *thing)
{
    (void)thing;
    /* No worker reads any more from what is released. */
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

/* As many parts as the query says, of memory and of a source in turn, each from its place in the
 * whole. */
static enum outcome reply_parts(struct request *request, struct zt_source *source)
{
    /* A parameter is not NUL-terminated; the target is. */
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
    {.pattern = "/parts", .get = {.handle = handle_parts}, .ignores_parameters = true},
    {.pattern = "/fake-parts", .get = {.handle = handle_fake_parts}, .ignores_parameters = true},
#ifdef OTHER_ROUTES
    OTHER_ROUTES
#endif
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

/* --- the client --- */

static inline int connect_client(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int small = 65536;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(client >= 0);
    /* So that the server has to wait for a client that does not read. */
    setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof(address)), 0);
    return client;
}

static inline int ask(const char *target, const char *fields)
{
    char text[16384];
    int client = connect_client();
    const int length =
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST "%s\r\n", target, fields);

    assert_int_equal(send(client, text, (size_t)length, MSG_NOSIGNAL), length);
    return client;
}

/* True at the end of the connection, false after wait_ms without a byte. */
static inline bool receive_all(int client, int wait_ms, size_t *out_length)
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

/* Returns how many bytes of the body have come; they must be right. */
static inline size_t check_body(size_t length, size_t first)
{
    const char *end = strstr(reply, "\r\n\r\n");
    size_t body;

    assert_non_null(end);
    body = length - (size_t)(end + 4 - reply);
    assert_true(body <= BYTES - first);
    assert_memory_equal(end + 4, expected + first, body);
    return body;
}

/* Reads the head and so much of the body, behind which the connection may stay open. */
static inline void receive_body(int client, size_t length)
{
    const char *end = NULL;
    size_t got = 0;

    while (end == NULL || got < (size_t)(end + 4 - reply) + length) {
        ssize_t now;

        assert_int_equal(poll(&(struct pollfd){.fd = client, .events = POLLIN}, 1, PATIENCE_MS), 1);
        now = recv(client, reply + got, REPLY_SIZE - 1 - got, 0);
        assert_true(now > 0);
        got += (size_t)now;
        reply[got] = '\0';
        end = strstr(reply, "\r\n\r\n");
    }
    assert_int_equal(check_body(got, 0), length);
}

static inline void assert_fetched(const char *target, const char *fields, size_t first,
                                  size_t length)
{
    size_t got;
    char all[12000];
    int client;

    snprintf(all, sizeof(all), "Connection: close\r\n%s", fields);
    client = ask(target, all);
    assert_true(receive_all(client, PATIENCE_MS, &got));
    close(client);
    assert_int_equal(strncmp(reply, "HTTP/1.1 20", 11), 0);
    assert_int_equal(check_body(got, first), length);
}

static inline void await_free(void)
{
    AWAIT(atomic_load(&held) == 0);
}

static inline void wait_until_held(int count)
{
    AWAIT(atomic_load(&held) == count);
}

/* --- the server --- */

static inline int start(void **state)
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
    if (waiters > 0)
        server.waiters = workers_start(waiters);
    if (listener_open(&listener, "127.0.0.1:0", error, sizeof(error)) != 0)
        return -1;
    port = (unsigned short)atoi(strrchr(listener.address, ':') + 1);
    for (unsigned i = 0; i < LOOPS; i++) {
        loops[i] = loop_start(&server, sockets[i], -1, error, sizeof(error));
        if (loops[i] == NULL)
            return -1;
    }
    return 0;
}

static inline void stop_loops(void)
{
    for (unsigned i = 0; i < LOOPS; i++)
        loop_stop(loops[i]);
    workers_stop(server.waiters);
    workers_stop(server.workers);
    assert_int_equal(atomic_load(&held), 0);
    assert_false(atomic_load(&read_by_loop));
}

static inline int stop(void **state)
{
    (void)state;
    stop_loops();
    return 0;
}

static inline int make_bytes(void **state)
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

static inline int free_bytes(void **state)
{
    (void)state;
    zt_source_close(file);
    free(expected);
    return 0;
}

#define ON_LOOPS(name) TEST_WITH(name, start, stop)

#endif
