/* Keeps an epoll set of the lingering connections, and a list of their deadlines. */
#include "http/wire/linger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Long enough for clients that send the whole body before they read the answer. */
#define LINGER_MS 30000
/* Connections beyond this number are closed at once. */
#define LINGER_MOST 256
/* Bytes per read. */
#define DROP_BYTES 16384
/* The maximum number of consecutive reads of one connection, so that a fast sender does not block
 * the loop. */
#define DROPS_MOST 16

struct lingering {
    struct deadline deadline; /* first: linger_run casts */
    int descriptor;
};

int linger_init(struct linger_set *linger)
{
    *linger =
        (struct linger_set){.due = {.time_ms = LINGER_MS}, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    return linger->epoll < 0 ? -1 : 0;
}

static void end(struct linger_set *linger, struct lingering *one)
{
    assert(one->descriptor >= 0);
    deadline_clear(&one->deadline);
    assert(linger->count > 0);
    close(one->descriptor);
    free(one);
    linger->count--;
}

void linger_end(struct linger_set *linger)
{
    struct deadline *due;

    while ((due = deadlines_take_due(&linger->due, UINT64_MAX)) != NULL)
        end(linger, (struct lingering *)due);
    assert(linger->count == 0);
    if (linger->epoll >= 0)
        close(linger->epoll);
    linger->epoll = -1;
}

void linger_take(struct linger_set *linger, int descriptor, uint64_t now_ms)
{
    struct lingering *one = linger->count < LINGER_MOST ? calloc(1, sizeof(*one)) : NULL;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};

    assert(linger->count <= LINGER_MOST && descriptor >= 0);
    if (one == NULL)
        return;
    one->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (one->descriptor < 0 ||
        epoll_ctl(linger->epoll, EPOLL_CTL_ADD, one->descriptor, &event) != 0) {
        if (one->descriptor >= 0)
            close(one->descriptor);
        free(one);
        return;
    }
    /* Lets the client see the end of the answer. */
    shutdown(one->descriptor, SHUT_WR);
    linger->count++;
    deadline_set(&one->deadline, &linger->due, now_ms);
}

static void drop(struct linger_set *linger, struct lingering *one)
{
    char dropped_bytes[DROP_BYTES];

    for (unsigned i = 0; i < DROPS_MOST; i++) {
        const ssize_t length =
            recv(one->descriptor, dropped_bytes, sizeof(dropped_bytes), MSG_DONTWAIT);

        if (length > 0 || (length < 0 && errno == EINTR))
            continue;
        if (length == 0 || errno != EAGAIN)
            end(linger, one);
        return;
    }
}

void linger_run(struct linger_set *linger, uint64_t now_ms)
{
    struct epoll_event events[16];
    struct deadline *due;
    int count;

    count = epoll_wait(linger->epoll, events, 16, 0);
    for (int i = 0; i < count; i++)
        drop(linger, events[i].data.ptr);
    while ((due = deadlines_take_due(&linger->due, now_ms)) != NULL)
        end(linger, (struct lingering *)due);
}
