/* After a refusal, the refused connection's descriptor is the reserve until the next one. */
#include "http/limits/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

/* How much of a refused client's data to read: closing the socket with unread bytes would reset
 * it. */
#define DROP_BYTES 4096
#define DROPS_MOST 16

/* Held while a reserve is exchanged for a connection, and while descriptors are taken. Otherwise
 * another thread could take the descriptor that is free for a moment. The reserve would be lost,
 * and some clients would wait without an answer. */
static pthread_mutex_t exchanging = PTHREAD_MUTEX_INITIALIZER;

void reserve_fill(struct reserve *reserve)
{
    if (reserve->descriptor >= 0)
        return;
    pthread_mutex_lock(&exchanging);
    reserve->descriptor = open("/", O_PATH | O_CLOEXEC);
    pthread_mutex_unlock(&exchanging);
}

static void drop_unread(int descriptor)
{
    char dropped[DROP_BYTES];

    for (unsigned i = 0; i < DROPS_MOST; i++)
        if (recv(descriptor, dropped, sizeof(dropped), MSG_DONTWAIT) <= 0)
            return;
}

void reserve_end(struct reserve *reserve)
{
    if (reserve->descriptor < 0)
        return;
    drop_unread(reserve->descriptor);
    close(reserve->descriptor);
    reserve->descriptor = -1;
}

bool reserve_is_awaited(int listening)
{
    struct pollfd look = {.fd = listening, .events = POLLIN};

    return poll(&look, 1, 0) > 0;
}

int reserve_accept(int listening, struct sockaddr_storage *out_peer, socklen_t *out_length)
{
    int descriptor;
    int number;

    *out_length = sizeof(*out_peer);
    pthread_mutex_lock(&exchanging);
    descriptor =
        accept4(listening, (struct sockaddr *)out_peer, out_length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    number = errno;
    pthread_mutex_unlock(&exchanging);
    errno = number;
    return descriptor;
}

bool reserve_is_needed(int os_error)
{
    return os_error == EMFILE || os_error == ENFILE || os_error == ENOBUFS || os_error == ENOMEM;
}

bool reserve_refuse(struct reserve *reserve, int listening,
                    void (*refuse)(void *context, int descriptor), void *context)
{
    if (reserve->descriptor < 0 || !reserve_is_awaited(listening))
        return false;
    pthread_mutex_lock(&exchanging);
    reserve_end(reserve);
    reserve->descriptor = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    pthread_mutex_unlock(&exchanging);
    /* Another thread may have accepted the connection first. */
    if (reserve->descriptor < 0) {
        reserve_fill(reserve);
        return false;
    }
    refuse(context, reserve->descriptor);
    shutdown(reserve->descriptor, SHUT_WR);
    return true;
}
