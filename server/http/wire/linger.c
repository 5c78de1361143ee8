/* Lingering connections: a small epoll set of their own and one list of deadlines. */
#include "http/wire/linger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/wire/deadlines.h"

/* A client that sends its whole body before it reads has this long. */
#define LINGER_MS 30000
/* Beyond it connections are closed at once. */
#define LINGER_MOST 256
/* Read and forgotten in one go. */
#define DROP_BYTES 16384
/* Drops a turn, so that a fast sender does not keep the loop. */
#define DROPS_A_TURN 16

struct lingering {
    struct deadline deadline; /* first, so that one is the other */
    int descriptor;
};

struct linger_set {
    struct deadlines due;
    int epoll;
    unsigned count;
};

struct linger_set *linger_new(void)
{
    struct linger_set *linger = calloc(1, sizeof(*linger));

    if (linger == NULL)
        return NULL;
    linger->due.time_ms = LINGER_MS;
    linger->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (linger->epoll < 0) {
        free(linger);
        return NULL;
    }
    return linger;
}

static void end(struct linger_set *linger, struct lingering *one)
{
    deadline_clear(&one->deadline);
    close(one->descriptor);
    free(one);
    linger->count--;
}

void linger_free(struct linger_set *linger)
{
    struct deadline *due;

    if (linger == NULL)
        return;
    while ((due = deadlines_take_due(&linger->due, UINT64_MAX)) != NULL)
        end(linger, (struct lingering *)due);
    close(linger->epoll);
    free(linger);
}

int linger_descriptor(const struct linger_set *linger)
{
    return linger->epoll;
}

void linger_take(struct linger_set *linger, int descriptor, uint64_t now_ms)
{
    struct lingering *one = linger->count < LINGER_MOST ? calloc(1, sizeof(*one)) : NULL;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};

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
    /* The client sees the end of the answer. */
    shutdown(one->descriptor, SHUT_WR);
    linger->count++;
    deadline_set(&one->deadline, &linger->due, now_ms);
}

static void drop(struct linger_set *linger, struct lingering *one)
{
    char nothing[DROP_BYTES];

    for (unsigned i = 0; i < DROPS_A_TURN; i++) {
        const ssize_t dropped = recv(one->descriptor, nothing, sizeof(nothing), MSG_DONTWAIT);

        if (dropped > 0 || (dropped < 0 && errno == EINTR))
            continue;
        if (dropped == 0 || errno != EAGAIN)
            end(linger, one);
        return;
    }
}

void linger_run(struct linger_set *linger, uint64_t now_ms)
{
    struct epoll_event events[16];
    struct deadline *due;
    int count;

    if (linger->count == 0)
        return;
    count = epoll_wait(linger->epoll, events, 16, 0);
    for (int i = 0; i < count; i++)
        drop(linger, events[i].data.ptr);
    while ((due = deadlines_take_due(&linger->due, now_ms)) != NULL)
        end(linger, (struct lingering *)due);
}

uint64_t linger_due_ms(const struct linger_set *linger)
{
    return linger->due.first != NULL ? linger->due.first->due_ms : UINT64_MAX;
}
