/* Opens sockets that share an address; the kernel spreads connections over them. */
#include "http/wire/listener.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"

/* The maximum number of connections waiting to be accepted; the kernel caps it at
 * net.core.somaxconn. */
#define BACKLOG 4096

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
};

static int fail(char *error, size_t error_size, const char *listen, const char *why)
{
    snprintf(error, error_size, "cannot listen on %s: %s", listen, why);
    return -1;
}

/* Returns a hint for an error of bind. */
static const char *advice(int os_error)
{
    switch (os_error) {
    case EADDRINUSE:
        return "; ss -ltnp shows which program has the port";
    case EADDRNOTAVAIL:
        return "; ip address shows the addresses of this machine";
    case EACCES:
        return "; ports below 1024 need the capability CAP_NET_BIND_SERVICE, or a socket unit";
    default:
        return "";
    }
}

static int fail_to_bind(char *error, size_t error_size, const char *listen)
{
    char why[512];
    const int os_error = errno;
    const int length =
        snprintf(why, sizeof(why), "%s%s", strerrordesc_np(os_error), advice(os_error));
    struct config_message message;
    struct config_listen place;

    if (os_error == EADDRINUSE && config_listen_parse(listen, &place, &message)) {
        const int host = (int)(strrchr(listen, ':') - listen);

        snprintf(why + length, sizeof(why) - (size_t)length,
                 "; --listen %.*s:%u uses another one, --listen %.*s:0 any free one", host, listen,
                 place.port < UINT16_MAX ? place.port + 1U : 1024U, host, listen);
    }
    return fail(error, error_size, listen, why);
}

static int resolve(const char *listen, struct address *out_address, char *error, size_t error_size)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct config_message message;
    struct config_listen place;
    struct addrinfo *found = NULL;
    char port[8];
    int status;

    if (!config_listen_parse(listen, &place, &message)) {
        snprintf(error, error_size, "%s", message.text);
        return -1;
    }
    snprintf(port, sizeof(port), "%u", (unsigned)place.port);
    status = getaddrinfo(place.host, port, &hints, &found);
    if (status != 0)
        return fail(error, error_size, listen, gai_strerror(status));
    memcpy(&out_address->storage, found->ai_addr, found->ai_addrlen);
    out_address->length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int open_socket(const struct address *address, bool reuse_port)
{
    const int yes = 1;
    int descriptor =
        socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (descriptor < 0)
        return -1;
    /* Without this the server cannot restart while old connections are in TIME_WAIT. */
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if ((reuse_port && setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) != 0) ||
        bind(descriptor, (const struct sockaddr *)&address->storage, address->length) != 0) {
        const int why = errno;

        close(descriptor);
        errno = why;
        return -1;
    }
    return descriptor;
}

static bool names_port(const struct address *address)
{
    return address->storage.ss_family == AF_INET6
               ? ((const struct sockaddr_in6 *)&address->storage)->sin6_port != 0
               : ((const struct sockaddr_in *)&address->storage)->sin_port != 0;
}

/* Fails if another server uses the port: binding without SO_REUSEPORT shows it. */
static int probe(const struct address *address)
{
    int descriptor = open_socket(address, false);

    if (descriptor < 0)
        return -1;
    close(descriptor);
    return 0;
}

/* Reads the address that a socket is bound to, including the port that the kernel chose if none was
 * given. */
static int read_address(int descriptor, struct address *out_address)
{
    out_address->length = sizeof(out_address->storage);
    return getsockname(descriptor, (struct sockaddr *)&out_address->storage, &out_address->length);
}

static void format_address(const struct address *address, char *out_text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address->storage;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->storage;

    if (address->storage.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
        snprintf(out_text, size, "[%s]:%u", host, (unsigned)ntohs(six->sin6_port));
        return;
    }
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
    snprintf(out_text, size, "%s:%u", host, (unsigned)ntohs(four->sin_port));
}

int listener_open(struct listener *listener, const char *listen_on, char *error, size_t error_size)
{
    struct address address;
    unsigned opened = 0;

    assert(listener->count > 0);
    if (resolve(listen_on, &address, error, error_size) != 0)
        return -1;
    if (names_port(&address) && probe(&address) != 0)
        return fail_to_bind(error, error_size, listen_on);
    for (; opened < listener->count; opened++) {
        int descriptor = open_socket(&address, true);

        if (descriptor < 0)
            goto failed;
        listener->sockets[opened] = descriptor;
        /* The first socket gets a free port; all others use the same. */
        if ((opened == 0 && read_address(descriptor, &address) != 0) ||
            listen(descriptor, BACKLOG) != 0) {
            opened++;
            goto failed;
        }
    }
    format_address(&address, listener->address, sizeof(listener->address));
    return 0;

failed:
    fail_to_bind(error, error_size, listen_on);
    while (opened > 0)
        close(listener->sockets[--opened]);
    return -1;
}

void listener_address_of(int descriptor, char out_address[LISTENER_ADDRESS_SIZE])
{
    struct address address;

    out_address[0] = '\0';
    if (read_address(descriptor, &address) == 0)
        format_address(&address, out_address, LISTENER_ADDRESS_SIZE);
}

int listener_share(struct listener *listener, const int *descriptors, unsigned count, char *error,
                   size_t error_size)
{
    unsigned opened = 0;

    assert(count > 0 && listener->count >= count);
    listener_address_of(descriptors[0], listener->address);
    for (; opened < listener->count; opened++) {
        listener->sockets[opened] = fcntl(descriptors[opened % count], F_DUPFD_CLOEXEC, 0);
        if (listener->sockets[opened] < 0)
            break;
    }
    if (opened < listener->count) {
        snprintf(error, error_size, "cannot listen on the sockets of the service manager: %s",
                 strerrordesc_np(errno));
        while (opened > 0)
            close(listener->sockets[--opened]);
    }
    for (unsigned i = 0; i < count; i++)
        close(descriptors[i]);
    return opened > 0 ? 0 : -1;
}

/* Accepted sockets inherit the size. */
void listener_cap_send_buffer(int descriptor, int64_t bytes)
{
    const int capped = bytes < INT_MAX ? (int)bytes : INT_MAX;
    const int unlocked = 0;

    if (bytes > 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &capped, sizeof(capped));
    else
        setsockopt(descriptor, SOL_SOCKET, SO_BUF_LOCK, &unlocked, sizeof(unlocked));
}

static int send_buffer_of(int descriptor)
{
    int bytes = 0;
    socklen_t length = sizeof(bytes);

    return getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, &length) == 0 ? bytes : 0;
}

/* The limit shows only if it made the buffer smaller. Afterwards the kernel may grow the buffer
 * again. */
void listener_raise_send_buffer(int descriptor, int bytes)
{
    static atomic_bool is_limited;
    const int before = send_buffer_of(descriptor);

    if (atomic_load_explicit(&is_limited, memory_order_relaxed) || before >= bytes * 2)
        return;
    listener_cap_send_buffer(descriptor, bytes);
    if (send_buffer_of(descriptor) < before)
        atomic_store_explicit(&is_limited, true, memory_order_relaxed);
    listener_cap_send_buffer(descriptor, 0);
}
