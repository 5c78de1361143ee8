/* A list of duplicates, and one dead end for all: dup3 puts it in the place of a socket without a
 * moment in which the descriptor is free. */
#include "http/wire/kept_sockets.h"

#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/exchange/request_state.h"
#include "http/wire/mhd.h"
#include "http/wire/mhd_state.h"

struct kept_socket {
    struct kept_socket *next;
    int descriptor;
    struct sockaddr_storage address;
    uint64_t answer_bytes;
    uint64_t request_bytes;
};

/* The sandbox allows no new sockets. To receive from a pipe is an error, and that nobody writes to
 * it is an event at once, if the library should ask for one. */
int kept_sockets_init(struct kept_sockets *kept)
{
    int ends[2];

    *kept = (struct kept_sockets){.dead = -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    close(ends[1]);
    kept->dead = ends[0];
    return 0;
}

void kept_sockets_end(struct kept_sockets *kept)
{
    while (kept->first != NULL) {
        struct kept_socket *one = kept->first;

        kept->first = one->next;
        close(one->descriptor);
        free(one);
    }
    if (kept->dead >= 0)
        close(kept->dead);
    kept->dead = -1;
}

/* An option whose name merely has "close" in it costs a connection. */
static bool wants_close(struct request *request)
{
    const char *options = request_header(request, "Connection");

    return options != NULL && strcasestr(options, "close") != NULL;
}

bool kept_sockets_may_keep(const struct connection *connection)
{
    const struct request_state *state = request_state_const(connection->request);
    const struct mhd *mhd = connection->mhd;

    return !mhd->cutting && !mhd->connections.draining && !connection->surplus &&
           !state->answer.close && !state->closes && !state->http_1_0 &&
           !wants_close(connection->request);
}

bool kept_sockets_take(struct connection *connection)
{
    assert(connection->kept < 0);
    connection->kept = fcntl(connection->descriptor, F_DUPFD_CLOEXEC, 0);
    return connection->kept >= 0;
}

void kept_sockets_drop(struct connection *connection)
{
    if (connection->kept >= 0)
        close(connection->kept);
    connection->kept = -1;
}

void kept_sockets_detach(struct connection *connection)
{
    struct mhd *mhd = connection->mhd;

    assert(connection->suspended && connection->tls == NULL);
    /* The library has forgotten the socket while it is suspended, so nothing else watches it. */
    hangups_remove(&mhd->hangups, connection);
    if (dup3(mhd->kept_sockets.dead, connection->descriptor, O_CLOEXEC) < 0)
        shutdown(connection->descriptor, SHUT_RDWR);
    mhd_resume(connection);
}

void kept_sockets_put(struct connection *connection, const struct sockaddr *address)
{
    struct kept_sockets *kept = &connection->mhd->kept_sockets;
    struct kept_socket *one = address != NULL ? calloc(1, sizeof(*one)) : NULL;

    assert(connection->kept >= 0);
    if (one == NULL) {
        close(connection->kept);
        return;
    }
    one->next = kept->first;
    one->descriptor = connection->kept;
    memcpy(&one->address, address,
           address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in));
    one->answer_bytes = connection->answer_bytes;
    one->request_bytes = connection->request_bytes;
    kept->first = one;
}

void kept_sockets_readmit(struct mhd *mhd, void (*add)(struct mhd *mhd, int descriptor,
                                                       const struct sockaddr *address))
{
    struct kept_sockets *kept = &mhd->kept_sockets;

    while (kept->first != NULL) {
        struct kept_socket *one = kept->first;

        kept->first = one->next;
        kept->readmitting = one;
        add(mhd, one->descriptor, (const struct sockaddr *)&one->address);
        kept->readmitting = NULL;
        free(one);
    }
}

bool kept_sockets_are_readmitting(const struct kept_sockets *kept)
{
    return kept->readmitting != NULL;
}

void kept_sockets_restore(const struct kept_sockets *kept, struct connection *connection)
{
    if (kept->readmitting == NULL)
        return;
    connection->answer_bytes = kept->readmitting->answer_bytes;
    connection->request_bytes = kept->readmitting->request_bytes;
    connections_idle_begin(&connection->mhd->connections, connection, connection->mhd->now_ms);
}
