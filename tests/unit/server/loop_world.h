/* A server of two event loops, with routes that do what a test wants, and a client on a bare
 * socket. */
#ifndef LOOP_WORLD_H
#define LOOP_WORLD_H

#include "tests.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
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
/* Larger than any answer that is read in these tests. */
#define REPLY_SIZE (4u << 20)
/* More than one small read, and more than a connection's buffers. */
#define FILE_BYTES (3u << 20)
/* Within this time everything happens that does happen, however busy the machine is. */
#define PATIENCE_MS 60000
#define HOST        "Host: x\r\n"
#define SMUGGLED    "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

static struct config config;
static struct server server;
static struct loop *loops[LOOPS];
static unsigned short port;
static atomic_uint smuggled;
static struct zt_source *file;
static char file_path[] = "/tmp/zt-test-loop-XXXXXX";
static char reply[REPLY_SIZE];

static inline enum outcome handle_text(struct request *request)
{
    reply_json(request, 200, "{}", 2);
    return OUTCOME_READY;
}

static inline enum outcome handle_smuggled(struct request *request)
{
    atomic_fetch_add(&smuggled, 1);
    return handle_text(request);
}

static inline enum outcome handle_file(struct request *request)
{
    request->reply.ranges = true;
    representation_source(&request->reply, file, 0, zt_source_size(file));
    return OUTCOME_READY;
}

static inline void work_nothing(struct request *request)
{
    (void)request;
}

static atomic_bool slow_is_running;
static atomic_bool slow_is_held; /* until a test lets it go */

static inline void work_long(struct request *request)
{
    (void)request;
    atomic_store(&slow_is_running, true);
    AWAIT(!atomic_load(&slow_is_held));
    pause_ms(200);
}

static inline enum outcome handle_fast_worker(struct request *request)
{
    if (request->context != NULL)
        return handle_text(request);
    request->context = request;
    return request_work(request, work_nothing);
}

static atomic_uint queued;
static atomic_uint counted;

static inline void work_counted(struct request *request)
{
    (void)request;
    atomic_fetch_add(&counted, 1);
}

static inline enum outcome handle_counted(struct request *request)
{
    if (request->context != NULL)
        return handle_text(request);
    request->context = request;
    atomic_fetch_add(&queued, 1);
    return request_work_long(request, work_counted);
}

static inline enum outcome handle_slow_worker(struct request *request)
{
    if (request->context != NULL)
        return handle_text(request);
    request->context = request;
    return request_work(request, work_long);
}

/* Woken before the handler has returned. */
static inline enum outcome handle_woken_early(struct request *request)
{
    struct waiter *waiter = request_waiter(request);

    if (request->context != NULL)
        return handle_text(request);
    request->context = request;
    waiter->wake(waiter);
    return OUTCOME_WAITING;
}

static inline void refuse(struct request *request)
{
    reply_json(request, 403, "{}", 2);
}

const struct route routes[] = {
    {.pattern = "/text", .get = {.handle = handle_text}},
    {.pattern = "/smuggled", .get = {.handle = handle_smuggled}},
    {.pattern = "/file", .get = {.handle = handle_file}},
    {.pattern = "/fast", .get = {.handle = handle_fast_worker}},
    {.pattern = "/slow", .get = {.handle = handle_slow_worker}},
    {.pattern = "/counted", .get = {.handle = handle_counted}, .post = {.handle = handle_counted}},
    {.pattern = "/early", .get = {.handle = handle_woken_early}},
    {.pattern = "/refused", .put = {.begin = refuse, .handle = handle_text}},
};
const size_t route_count = sizeof(routes) / sizeof(routes[0]);

/* --- the client --- */

static inline int connect_client(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(client >= 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof(address)), 0);
    return client;
}

static inline void send_text(int client, const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads into reply until the end of the connection, or wait_ms without a byte. True at the end. */
static inline bool receive_all(int client, int wait_ms, size_t *out_length)
{
    struct pollfd waited = {.fd = client, .events = POLLIN};
    size_t length = 0;
    ssize_t got = 1;

    while (got > 0 && poll(&waited, 1, wait_ms) == 1) {
        got = recv(client, reply + length, REPLY_SIZE - 1 - length, 0);
        length += got > 0 ? (size_t)got : 0;
    }
    reply[length] = '\0';
    if (out_length != NULL)
        *out_length = length;
    return got == 0;
}

/* Reads into reply until a text has come, behind which the connection stays open. */
static inline void receive_until(int client, const char *text)
{
    size_t length = 0;

    reply[0] = '\0';
    while (strstr(reply, text) == NULL) {
        ssize_t got;

        assert_int_equal(poll(&(struct pollfd){.fd = client, .events = POLLIN}, 1, PATIENCE_MS), 1);
        got = recv(client, reply + length, REPLY_SIZE - 1 - length, 0);
        assert_true(got > 0);
        length += (size_t)got;
        reply[length] = '\0';
    }
}

/* Reads what comes first into reply: a small answer, or nothing if the connection is refused. */
static inline void receive_first(int client)
{
    ssize_t got;

    assert_int_equal(poll(&(struct pollfd){.fd = client, .events = POLLIN}, 1, PATIENCE_MS), 1);
    got = recv(client, reply, REPLY_SIZE - 1, 0);
    reply[got > 0 ? got : 0] = '\0';
}

static inline bool is_answered(void)
{
    return strncmp(reply, "HTTP/1.1 200", 12) == 0;
}

/* Reads the answer to one request with Connection: close. */
static inline size_t fetch(const char *target, const char *fields)
{
    char text[1024];
    size_t length;
    int client = connect_client();

    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST "Connection: close\r\n%s\r\n", target,
             fields);
    send_text(client, text);
    assert_true(receive_all(client, PATIENCE_MS, &length));
    close(client);
    return length;
}

static inline const char *body(void)
{
    const char *end = strstr(reply, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

/* --- the server --- */

static inline int start(void **state)
{
    int sockets[LOOPS];
    struct listener listener = {.count = LOOPS, .sockets = sockets};
    char error[600];

    (void)state;
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    server = (struct server){
        .config = &config, .workers = workers_start(2), .loops = loops, .loop_count = LOOPS};
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

static inline int stop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LOOPS; i++)
        loop_stop(loops[i]);
    workers_stop(server.workers);
    return 0;
}

static inline int make_file(void **state)
{
    const int descriptor = mkstemp(file_path);
    uint8_t *bytes = malloc(FILE_BYTES);

    (void)state;
    config_defaults(&config);
    config.limits.header_timeout_s = 1;
    config.threads = LOOPS;
    if (descriptor < 0 || bytes == NULL)
        return -1;
    for (size_t i = 0; i < FILE_BYTES; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    if (write(descriptor, bytes, FILE_BYTES) != (ssize_t)FILE_BYTES || fsync(descriptor) != 0)
        return -1;
    free(bytes);
    return zt_source_from_descriptor(descriptor, &file, NULL) == ZT_OK ? 0 : -1;
}

static inline int remove_file(void **state)
{
    (void)state;
    zt_source_close(file);
    return unlink(file_path);
}

/* Each test that asks needs loops of its own. */
#define ON_LOOPS(name) TEST_WITH(name, start, stop)

#endif
