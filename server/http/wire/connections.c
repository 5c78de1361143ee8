/* A list of all connections, and three of deadlines; bodies that take too long are told so. */
#include "http/wire/connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "http/exchange/request.h"

/* The library closes an idle connection without a word; a little earlier the client can still be
 * told. */
#define AHEAD_MS 250

void connections_init(struct connections *connections, const struct config *config)
{
    const uint64_t header_ms = (uint64_t)config->limits.header_timeout_s * 1000;
    const uint64_t idle_ms = (uint64_t)config->limits.idle_timeout_s * 1000;

    connections->first_header.time_ms = header_ms;
    connections->next_header.time_ms = idle_ms + header_ms;
    connections->body.time_ms = idle_ms - AHEAD_MS;
    connections->body_time_ms = (uint64_t)config->upload.body_timeout_s * 1000;
    connections->rate_grace_ms = (uint64_t)config->limits.rate_grace_s * 1000;
    connections->body_bytes_per_s = (uint64_t)config->limits.body_min_bytes_per_s;
}

struct connection *connections_add(struct connections *connections, int descriptor, uint64_t now_ms)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL)
        return NULL;
    connection->descriptor = descriptor;
    connection->after = connections->first;
    if (connections->first != NULL)
        connections->first->before = connection;
    connections->first = connection;
    deadline_set(&connection->deadline, &connections->first_header, now_ms);
    return connection;
}

bool connection_awaits_client(const struct connection *connection)
{
    return connection->deadline.list != NULL;
}

bool connection_has_unread(const struct connection *connection)
{
    int unread = 0;

    return connection->refused_early ||
           (ioctl(connection->descriptor, FIONREAD, &unread) == 0 && unread > 0);
}

/* The kernel's TCP_ESTABLISHED; <netinet/tcp.h> has the name, but not the count of bytes. */
#define STATE_ESTABLISHED 1

static bool tcp_facts(const struct connection *connection, struct tcp_info *out_facts)
{
    socklen_t length = sizeof(*out_facts);

    memset(out_facts, 0, sizeof(*out_facts));
    return getsockopt(connection->descriptor, IPPROTO_TCP, TCP_INFO, out_facts, &length) == 0;
}

uint64_t connection_sent(const struct connection *connection)
{
    struct tcp_info facts;

    if (!tcp_facts(connection, &facts) || facts.tcpi_bytes_acked < connection->answered_bytes)
        return 0;
    return facts.tcpi_bytes_acked - connection->answered_bytes;
}

uint64_t connection_received(const struct connection *connection)
{
    struct tcp_info facts;
    int unread = 0;

    /* In this order: what arrives in between counts as received. */
    if (ioctl(connection->descriptor, FIONREAD, &unread) != 0 || !tcp_facts(connection, &facts) ||
        facts.tcpi_bytes_received < (uint64_t)unread)
        return 0;
    return facts.tcpi_bytes_received - (uint64_t)unread;
}

bool connection_is_established(const struct connection *connection)
{
    struct tcp_info facts;

    return tcp_facts(connection, &facts) && facts.tcpi_state == STATE_ESTABLISHED;
}

bool connection_is_gone(const struct connection *connection)
{
    struct pollfd looked = {.fd = connection->descriptor};

    if (atomic_load_explicit(&connection->deserted, memory_order_relaxed))
        return true;
    return poll(&looked, 1, 0) > 0 && (looked.revents & (POLLHUP | POLLERR)) != 0;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
    if (connection == NULL)
        return;
    deadline_clear(&connection->deadline);
    if (connection->before != NULL)
        connection->before->after = connection->after;
    else
        connections->first = connection->after;
    if (connection->after != NULL)
        connection->after->before = connection->before;
    free(connection);
}

void connections_cut(struct connections *connections)
{
    for (const struct connection *one = connections->first; one != NULL; one = one->after)
        shutdown(one->descriptor, SHUT_RDWR);
}

/* --- bodies that take too long --- */

/* The library sends no answer in the middle of a body, so this goes past it: nothing was sent of an
 * answer yet, and nothing will be. A client whose buffer is full does not learn of it. */
static void tell_timeout(const struct connection *connection)
{
    static const char answer[] = "HTTP/1.1 408 Request Timeout\r\n"
                                 "Connection: close\r\n"
                                 "Cache-Control: no-store\r\n"
                                 "Content-Type: application/problem+json\r\n"
                                 "X-Request-Id: %s\r\n"
                                 "Content-Length: %zu\r\n\r\n%s";
    static const char problem[] =
        "{\"type\":\"/problems/timeout\",\"title\":\"Request timeout\",\"status\":408,"
        "\"detail\":\"the body took too long, or came too slowly\",\"code\":\"timeout\","
        "\"request_id\":\"%s\"}";
    char body[sizeof(problem) + REQUEST_ID_SIZE];
    char text[sizeof(answer) + sizeof(body) + REQUEST_ID_SIZE + 20];
    const char *id = connection->request->id;
    int length;

    snprintf(body, sizeof(body), problem, id);
    length = snprintf(text, sizeof(text), answer, id, strlen(body), body);
    (void)send(connection->descriptor, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void cut_body(struct connection *connection)
{
    connection->timed_out = true;
    connection->refused_early = true;
    if (connection->request != NULL)
        tell_timeout(connection);
}

void connections_body_begin(struct connections *connections, struct connection *connection,
                            uint64_t now_ms)
{
    connection->body_begun_ms = now_ms;
    deadline_set(&connection->deadline, &connections->body, now_ms);
}

bool connections_body_piece(struct connections *connections, struct connection *connection,
                            uint64_t received, uint64_t now_ms)
{
    const uint64_t taken_ms = now_ms - connection->body_begun_ms;

    /* It was told so already; this was on its way. */
    if (connection->timed_out)
        return false;
    deadline_set(&connection->deadline, &connections->body, now_ms);
    if (taken_ms <= connections->body_time_ms &&
        (taken_ms <= connections->rate_grace_ms ||
         received >= taken_ms / 1000 * connections->body_bytes_per_s))
        return true;
    cut_body(connection);
    return false;
}

void connections_body_pause(struct connection *connection, uint64_t now_ms)
{
    deadline_clear(&connection->deadline);
    if (connection->body_paused_ms == 0)
        connection->body_paused_ms = now_ms;
}

void connections_body_resume(struct connections *connections, struct connection *connection,
                             uint64_t now_ms)
{
    if (connection->body_paused_ms != 0)
        connection->body_begun_ms += now_ms - connection->body_paused_ms;
    connection->body_paused_ms = 0;
    deadline_set(&connection->deadline, &connections->body, now_ms);
}

/* --- cutting --- */

static void cut_due(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(list, now_ms)) != NULL) {
        struct connection *connection = (struct connection *)due;

        connection->timed_out = true;
        shutdown(connection->descriptor, SHUT_RDWR);
    }
}

/* The client is told, and has the time that a connection lingers to read it. */
static void cut_due_bodies(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(list, now_ms)) != NULL) {
        cut_body((struct connection *)due);
        shutdown(((struct connection *)due)->descriptor, SHUT_RDWR);
    }
}

void connections_cut_due(struct connections *connections, uint64_t now_ms)
{
    cut_due(&connections->first_header, now_ms);
    cut_due(&connections->next_header, now_ms);
    cut_due_bodies(&connections->body, now_ms);
}

static uint64_t sooner(const struct deadlines *list, uint64_t due_ms)
{
    return list->first != NULL && list->first->due_ms < due_ms ? list->first->due_ms : due_ms;
}

uint64_t connections_due_ms(const struct connections *connections)
{
    return sooner(&connections->first_header,
                  sooner(&connections->next_header, sooner(&connections->body, UINT64_MAX)));
}
