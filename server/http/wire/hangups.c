/* One epoll set contains all connections and reports only the end of a client's stream. It costs
 * one system call when a connection is opened and one when it is closed. */
#include "http/wire/hangups.h"

#include <assert.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/exchange/request_state.h"
#include "http/tls/tls_session.h"
#include "http/wire/connections.h"
#include "http/wire/sender.h"

/* How often to check a client that hung up: it may be waiting for its answer. */
#define LOOK_MS 250
/* How long a client may wait after it hung up. A terminated program looks the same, and does not
 * need its answer. */
#define HALF_CLOSED_MS 5000

#define EVENTS 64

int hangups_init(struct hangups *hangups)
{
    hangups->looks.time_ms = LOOK_MS;
    hangups->epoll = epoll_create1(EPOLL_CLOEXEC);
    return hangups->epoll < 0 ? -1 : 0;
}

void hangups_end(struct hangups *hangups)
{
    if (hangups->epoll >= 0)
        close(hangups->epoll);
    hangups->epoll = -1;
}

void hangups_add(struct hangups *hangups, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};

    epoll_ctl(hangups->epoll, EPOLL_CTL_ADD, connection->descriptor, &event);
}

void hangups_remove(struct hangups *hangups, struct connection *connection)
{
    assert(hangups->epoll >= 0);
    /* Closing is not enough: a duplicate of the descriptor would keep the socket in the set. */
    epoll_ctl(hangups->epoll, EPOLL_CTL_DEL, connection->descriptor, NULL);
    deadline_clear(&connection->look);
}

void hangups_notice(void *hangups)
{
    ((struct hangups *)hangups)->seen = true;
}

/* Returns true if the library has read all bytes and they do not form a complete request, so that
 * the rest can never arrive. */
static bool waits_in_vain(const struct connection *connection)
{
    int unread = 0;

    return connection_awaits_client(connection) &&
           ioctl(connection->descriptor, FIONREAD, &unread) == 0 && unread == 0 &&
           (connection->tls == NULL || !tls_session_has_unread(connection->tls));
}

/* Returns true if no byte of the answer can be sent yet. Once one can, sending it shows whether the
 * client still exists. */
static bool waits_for_answer(const struct connection *connection)
{
    const struct request *request = connection->request;

    return request != NULL && connection_is_suspended(connection) &&
           request_state_const(request)->stage != STAGE_QUEUED;
}

static void give_up(struct connection *connection, uint64_t now_ms)
{
    assert(now_ms >= connection->hung_up_ms);
    if (connection->hung_up_ms == 0)
        connection->hung_up_ms = now_ms;
    if (now_ms - connection->hung_up_ms < HALF_CLOSED_MS)
        return;
    if (waits_for_answer(connection))
        atomic_store_explicit(&connection->is_deserted, true, memory_order_relaxed);
    /* The rest of an answer may wait longer than its beginning. */
    if (connection->request != NULL && connection_is_suspended(connection))
        sender_give_up(connection->request, HALF_CLOSED_MS);
}

static void look(struct hangups *hangups, struct connection *connection, uint64_t now_ms)
{
    give_up(connection, now_ms);
    if (waits_in_vain(connection))
        shutdown(connection->descriptor, SHUT_RDWR);
    else
        deadline_set(&connection->look, &hangups->looks, now_ms);
}

static void look_at_new(struct hangups *hangups, uint64_t now_ms)
{
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(hangups->epoll, events, EVENTS, 0);

    /* If there are more events, the descriptor stays readable. */
    assert(count <= EVENTS);
    hangups->seen = false;
    for (int i = 0; i < count; i++)
        look(hangups, events[i].data.ptr, now_ms);
}

void hangups_run(struct hangups *hangups, uint64_t now_ms)
{
    struct deadline *due;

    while ((due = deadlines_take_due(&hangups->looks, now_ms)) != NULL)
        look(hangups,
             (struct connection *)(void *)((char *)due - offsetof(struct connection, look)),
             now_ms);
    if (hangups->seen)
        look_at_new(hangups, now_ms);
}
