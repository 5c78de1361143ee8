/* A list of all connections, and three of deadlines. */
#include "http/connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

void connections_init(struct connections *connections, const struct config *config)
{
    const uint64_t header_ms = (uint64_t)config->limits.header_timeout_s * 1000;
    const uint64_t idle_ms = (uint64_t)config->limits.idle_timeout_s * 1000;

    connections->first_header.time_ms = header_ms;
    connections->next_header.time_ms = idle_ms + header_ms;
    connections->body.time_ms = idle_ms;
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

    return connection->refused_early || (ioctl(connection->descriptor, FIONREAD, &unread) == 0 && unread > 0);
}

/* The kernel's TCP_ESTABLISHED; <netinet/tcp.h> has the name, but not the count of bytes. */
#define STATE_ESTABLISHED 1

static bool tcp_facts(const struct connection *connection, struct tcp_info *out_facts)
{
    socklen_t length = sizeof(*out_facts);

    memset(out_facts, 0, sizeof(*out_facts));
    return getsockopt(connection->descriptor, IPPROTO_TCP, TCP_INFO, out_facts, &length) == 0;
}

uint64_t connection_acknowledged(const struct connection *connection)
{
    struct tcp_info facts;

    return tcp_facts(connection, &facts) ? facts.tcpi_bytes_acked : 0;
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

static void cut_due(struct deadlines *list, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(list, now_ms)) != NULL) {
        struct connection *connection = (struct connection *)due;

        connection->timed_out = true;
        shutdown(connection->descriptor, SHUT_RDWR);
    }
}

void connections_cut_due(struct connections *connections, uint64_t now_ms)
{
    cut_due(&connections->first_header, now_ms);
    cut_due(&connections->next_header, now_ms);
    cut_due(&connections->body, now_ms);
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
