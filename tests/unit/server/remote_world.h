/* A service that answers what a test wants, also what no service should: for tests of exchanges. */
#ifndef REMOTE_WORLD_H
#define REMOTE_WORLD_H

#include "tests.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/remote.h"

#define REQUESTS_MAX 256
#define REQUEST_SIZE 8192
#define SERVED_MAX   64
#define HANG_MOST_MS 20000

/* What happens after an answer's bytes. */
enum after { THEN_KEEP, THEN_CLOSE, THEN_RESET, THEN_HANG };

struct step {
    const char *answer; /* NULL: none */
    enum after after;
    unsigned delay_ms;
    size_t filler; /* bytes of 'x' behind the answer */
};

struct service;

struct served {
    struct service *service;
    int connection;
    pthread_t thread;
};

struct service {
    int listener;
    char origin[64];
    pthread_t thread;
    pthread_mutex_t lock;
    /* One for each request, in the order in which they come; the last again and again. */
    const struct step *steps;
    unsigned step_count;
    /* Under the lock: */
    char (*requests)[REQUEST_SIZE];
    uint64_t body_lengths[REQUESTS_MAX];
    atomic_uint request_count;
    struct served served[SERVED_MAX];
    atomic_uint served_count;
    unsigned busy; /* requests that are being answered */
    atomic_uint busy_most;
    atomic_bool is_ending;
};

static inline bool is_quiet(struct service *service, int connection, unsigned wait_ms)
{
    struct pollfd event = {.fd = connection, .events = POLLIN};
    const int64_t end_ms = clock_ms() + wait_ms;

    while (clock_ms() < end_ms && !atomic_load(&service->is_ending))
        if (poll(&event, 1, 10) > 0)
            return false;
    return true;
}

static inline void pause_service(struct service *service, unsigned delay_ms)
{
    const int64_t end_ms = clock_ms() + delay_ms;

    AWAIT(clock_ms() >= end_ms || atomic_load(&service->is_ending));
}

static inline bool send_all(int connection, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(connection, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static inline bool send_filler(int connection, size_t length)
{
    char filler[65536];

    memset(filler, 'x', sizeof(filler));
    for (; length > 0; length -= length < sizeof(filler) ? length : sizeof(filler))
        if (!send_all(connection, filler, length < sizeof(filler) ? length : sizeof(filler)))
            return false;
    return true;
}

static inline const struct step *step_of(const struct service *service, unsigned number)
{
    return &service->steps[number < service->step_count ? number : service->step_count - 1];
}

/* The header and a body of the stated length, unless it waits for "100 Continue", which it never
 * gets if the answer is none of success. Returns false at the connection's end. */
static inline bool read_request(struct service *service, int connection, char *out_request,
                                uint64_t *out_body)
{
    char rest[65536];
    size_t length = 0;
    uint64_t left = 0;
    char *end = NULL;
    const char *field;

    while (end == NULL) {
        ssize_t got;

        if (is_quiet(service, connection, HANG_MOST_MS))
            return false;
        got = recv(connection, out_request + length, REQUEST_SIZE - 1 - length, 0);
        if (got <= 0)
            return false;
        length += (size_t)got;
        out_request[length] = '\0';
        end = strstr(out_request, "\r\n\r\n");
    }
    field = strcasestr(out_request, "\r\ncontent-length:");
    if (field != NULL)
        left = strtoull(field + 17, NULL, 10);
    *out_body = length - (size_t)(end + 4 - out_request);
    if (strcasestr(out_request, "\r\nexpect:") != NULL) {
        const struct step *step = step_of(service, service->request_count);

        if (step->answer == NULL || strncmp(step->answer, "HTTP/1.1 2", 10) != 0)
            return true;
        send_all(connection, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    }
    while (*out_body < left) {
        ssize_t got = recv(connection, rest, sizeof(rest), 0);

        if (got <= 0)
            return false;
        *out_body += (uint64_t)got;
    }
    return true;
}

static inline const struct step *note_request(struct service *service, const char *request,
                                              uint64_t body)
{
    unsigned number;

    pthread_mutex_lock(&service->lock);
    number = service->request_count;
    assert_true(number < REQUESTS_MAX);
    memcpy(service->requests[number], request, REQUEST_SIZE);
    service->body_lengths[number] = body;
    service->request_count++;
    if (++service->busy > service->busy_most)
        service->busy_most = service->busy;
    pthread_mutex_unlock(&service->lock);
    return step_of(service, number);
}

static inline void *serve_connection(void *argument)
{
    struct served *served = argument;
    struct service *service = served->service;
    const struct linger at_once = {1, 0};
    char *request = calloc(1, REQUEST_SIZE);
    enum after after = THEN_KEEP;
    uint64_t body;

    while (after == THEN_KEEP && read_request(service, served->connection, request, &body)) {
        const struct step *step = note_request(service, request, body);

        pause_service(service, step->delay_ms);
        if (step->answer != NULL)
            send_all(served->connection, step->answer, strlen(step->answer));
        send_filler(served->connection, step->filler);
        after = step->after;
        if (after == THEN_HANG)
            is_quiet(service, served->connection, HANG_MOST_MS);
        pthread_mutex_lock(&service->lock);
        service->busy--;
        pthread_mutex_unlock(&service->lock);
    }
    if (after == THEN_RESET)
        setsockopt(served->connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(served->connection);
    free(request);
    return NULL;
}

static inline void *serve(void *argument)
{
    struct service *service = argument;

    while (!atomic_load(&service->is_ending)) {
        struct served *served = &service->served[service->served_count];

        if (is_quiet(service, service->listener, 1000))
            continue;
        served->connection = accept(service->listener, NULL, NULL);
        served->service = service;
        assert_true(served->connection >= 0 && service->served_count < SERVED_MAX - 1);
        assert_int_equal(pthread_create(&served->thread, NULL, serve_connection, served), 0);
        service->served_count++;
    }
    return NULL;
}

static inline void service_start(struct service *service, const struct step *steps, unsigned count)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);

    memset(service, 0, sizeof(*service));
    pthread_mutex_init(&service->lock, NULL);
    service->steps = steps;
    service->step_count = count;
    service->requests = calloc(REQUESTS_MAX, REQUEST_SIZE);
    service->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(service->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(service->listener, SERVED_MAX), 0);
    assert_int_equal(getsockname(service->listener, (struct sockaddr *)&address, &length), 0);
    snprintf(service->origin, sizeof(service->origin), "http://127.0.0.1:%u",
             ntohs(address.sin_port));
    assert_int_equal(pthread_create(&service->thread, NULL, serve, service), 0);
}

static inline void service_stop(struct service *service)
{
    atomic_store(&service->is_ending, true);
    pthread_join(service->thread, NULL);
    for (unsigned i = 0; i < service->served_count; i++)
        pthread_join(service->served[i].thread, NULL);
    close(service->listener);
    free(service->requests);
    pthread_mutex_destroy(&service->lock);
}

#define SERVICE_START(service, steps) \
    service_start(service, steps, sizeof(steps) / sizeof((steps)[0]))

static inline struct remote *start_remote(unsigned connections)
{
    const struct remote_options options = {.connections = connections};
    struct remote *remote;

    assert_ok(remote_start(&options, &remote, NULL));
    return remote;
}

/* A GET of the service's "/", with room for a body of 1,000 bytes. */
static inline void exchange_with(struct remote_exchange *exchange, const struct service *service)
{
    remote_exchange_init(exchange);
    exchange->method = "GET";
    exchange->origin = service->origin;
    exchange->path = "/";
    exchange->body_most = 1000;
}

static inline void ask_range(struct remote_exchange *exchange, uint64_t first, uint64_t last)
{
    exchange->has_range = true;
    exchange->range_first = first;
    exchange->range_last = last;
}

/* Ends an exchange, its client and its service. */
static inline void end_exchange(struct remote_exchange *exchange, struct remote *remote,
                                struct service *service)
{
    remote_exchange_free(exchange);
    remote_stop(remote);
    service_stop(service);
}

#endif
