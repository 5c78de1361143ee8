/* Asks the kernel about the socket of a connection. */
#include <assert.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "http/tls/tls_session.h"
#include "http/wire/connections.h"

bool connection_has_unread(const struct connection *connection)
{
    int unread = 0;

    return connection->state == CONNECTION_REFUSED ||
           (ioctl(connection->descriptor, FIONREAD, &unread) == 0 && unread > 0);
}

/* TCP_ESTABLISHED of <netinet/tcp.h>, which cannot be included beside <linux/tcp.h>. */
#define STATE_ESTABLISHED 1

static bool read_tcp_info(const struct connection *connection, struct tcp_info *out_info)
{
    socklen_t length = sizeof(*out_info);

    memset(out_info, 0, sizeof(*out_info));
    return getsockopt(connection->descriptor, IPPROTO_TCP, TCP_INFO, out_info, &length) == 0;
}

/* Returns how many of all bytes sent are acknowledged; 0 if the kernel does not report it. */
static uint64_t acked_bytes(const struct connection *connection)
{
    struct tcp_info info;

    return read_tcp_info(connection, &info) ? info.tcpi_bytes_acked : 0;
}

uint64_t connection_sent(const struct connection *connection)
{
    const uint64_t begun =
        connection->tls != NULL ? connection->answer_begun : connection->answer_bytes;
    const uint64_t acked = acked_bytes(connection);

    if (acked < begun)
        return 0;
    return connection->tls != NULL ? tls_session_content_of(connection->tls, acked - begun)
                                   : acked - begun;
}

/* The kernel counts the time during which sent data was unacknowledged. If it does not, all time
 * counts during which the client is not waiting for the server. */
struct reader_progress connection_progress(const struct connection *connection, uint64_t now_ms)
{
    struct tcp_info info;

    if (read_tcp_info(connection, &info) && info.tcpi_busy_time > 0)
        return (struct reader_progress){info.tcpi_bytes_acked, info.tcpi_busy_time / 1000};
    return (struct reader_progress){info.tcpi_bytes_acked,
                                    connection_is_held_up(connection) ? 0 : now_ms};
}

uint64_t connection_written(const struct connection *connection)
{
    struct tcp_info info;
    int unacknowledged = 0;

    /* The order matters: bytes acknowledged between the two calls are counted twice and never
     * missed. */
    return ioctl(connection->descriptor, SIOCOUTQ, &unacknowledged) == 0 &&
                   read_tcp_info(connection, &info)
               ? info.tcpi_bytes_acked + (uint64_t)unacknowledged
               : 0;
}

void connection_begin_large(struct connection *connection)
{
    const uint64_t written = connection_written(connection);

    assert(connection->tls != NULL && connection->answer_begun == UINT64_MAX);
    if (written > 0)
        connection->answer_begun = written;
}

bool connection_is_established(const struct connection *connection)
{
    struct tcp_info info;

    return read_tcp_info(connection, &info) && info.tcpi_state == STATE_ESTABLISHED;
}

static bool peer_is_local(const struct connection *connection)
{
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof(storage);
    struct address own;

    return connection->has_peer &&
           getsockname(connection->descriptor, (struct sockaddr *)&storage, &length) == 0 &&
           address_of_socket((const struct sockaddr *)&storage, &own) &&
           address_is_local(&connection->peer.address, &own);
}

void connection_suit_peer(struct connection *connection)
{
    /* Every kernel has it, and unprivileged processes may select it. */
    static const char unpaced[] = "reno";

    connection->is_local = peer_is_local(connection);
    if (connection->is_local)
        setsockopt(connection->descriptor, IPPROTO_TCP, TCP_CONGESTION, unpaced,
                   sizeof(unpaced) - 1);
}

bool connection_is_gone(const struct connection *connection)
{
    struct pollfd looked = {.fd = connection->descriptor};

    if (atomic_load_explicit(&connection->is_deserted, memory_order_relaxed))
        return true;
    return poll(&looked, 1, 0) > 0 && (looked.revents & (POLLHUP | POLLERR)) != 0;
}
