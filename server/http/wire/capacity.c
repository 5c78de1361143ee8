/* Connections are bounded by configuration and by descriptors, whichever is less. */
#include "http/wire/capacity.h"

#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/processors.h"

/* Descriptors for everything but connections: open models, uploads, the state folder. */
#define RESERVED_DESCRIPTORS 1024u

/* The soft limit is for programs that use select; this one does not. */
static void raise_descriptor_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* How many loops there will be: the server has not started them all while this is asked. */
static uint64_t loop_share(const struct config *config)
{
    return config->threads > 0 ? (uint64_t)config->threads : processors_count();
}

/* Every connection may need two descriptors: its socket, and the file that is sent. */
unsigned capacity_connections(const struct server *server)
{
    const uint64_t loops = loop_share(server->config);
    uint64_t limit = (uint64_t)server->config->limits.connections;
    struct rlimit files;

    raise_descriptor_limit();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
        const uint64_t spare =
            files.rlim_cur > 2 * RESERVED_DESCRIPTORS ? RESERVED_DESCRIPTORS : files.rlim_cur / 2;
        const uint64_t allowed = (files.rlim_cur - spare) / 2;

        limit = limit < allowed ? limit : allowed;
    }
    limit = (limit + loops - 1) / loops;
    return limit > 0 ? (unsigned)limit : 1;
}

/* Accepted sockets inherit it. */
void capacity_cap_send_buffer(int listen_socket, int64_t bytes)
{
    const int capped = bytes < INT_MAX ? (int)bytes : INT_MAX;

    if (bytes > 0)
        setsockopt(listen_socket, SOL_SOCKET, SO_SNDBUF, &capped, sizeof(capped));
}
