/* inotify and a timer in one epoll descriptor. The end of each scan sets the timer: the longer the
 * scan took, the later the next one. So scanning a large tree takes only a small share of a
 * processor. */
#include "store/store_watch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/store.h"

/* With the scan itself, this stays below the 3 s within which a change must be noticed. */
#define POLL_NS (2 * CLOCK_NS_PER_S)
/* Scans may take 2 % of the time if inotify reports changes, 20 % if nothing else does. */
#define SCAN_SHARE_WATCHED   50
#define SCAN_SHARE_UNWATCHED 5

#define WATCHED_EVENTS                                                                  \
    (IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | \
     IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

/* Bytes per read, and reads in a row: one scan is enough for a flood of events. */
#define EVENT_BUFFER_BYTES 16384
#define DRAIN_READS_MAX    256

static void set_timer(const struct store_watch *watch, int64_t delay_ns)
{
    struct itimerspec when = {.it_value = {delay_ns / CLOCK_NS_PER_S, delay_ns % CLOCK_NS_PER_S}};

    if (watch->timer >= 0)
        timerfd_settime(watch->timer, 0, &when, NULL);
}

void store_watch_init(struct store_watch *watch)
{
    memset(watch, 0, sizeof(*watch));
    atomic_init(&watch->poll, -1);
    watch->events = -1;
    watch->timer = -1;
}

static void close_all(const struct store_watch *watch, int poll)
{
    if (poll >= 0)
        close(poll);
    if (watch->events >= 0)
        close(watch->events);
    if (watch->timer >= 0)
        close(watch->timer);
}

void store_watch_close(struct store_watch *watch)
{
    close_all(watch, atomic_load(&watch->poll));
    free(watch->kept.items);
    free(watch->seen.items);
    store_watch_init(watch);
}

static bool join(int poll, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

    return descriptor >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

int store_watch_descriptor(struct store_watch *watch)
{
    int poll = atomic_load(&watch->poll);

    if (poll >= 0)
        return poll;
    poll = epoll_create1(EPOLL_CLOEXEC);
    watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch->events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (poll < 0 || !join(poll, watch->timer) ||
        (watch->events >= 0 && !join(poll, watch->events))) {
        log_write(LOG_LEVEL_WARN, "changes in the folder of models are not noticed: %s",
                  strerror(errno));
        close_all(watch, poll);
        watch->events = -1;
        watch->timer = -1;
        return -1;
    }
    /* Due at once: no folder is watched before a scan has read it. */
    set_timer(watch, 1);
    atomic_store(&watch->poll, poll);
    return poll;
}

/* Whether an event can change what a scan finds. A link to a folder may have any name, so only
 * events about a file's bytes are judged by its extension. A file that is being written to is read
 * when it is closed; that it is written to only matters to those who have read it. */
static bool matters(const struct inotify_event *event)
{
    size_t name_length;
    unsigned rank;

    if ((event->mask & (IN_IGNORED | IN_MODIFY)) != 0)
        return false;
    if (event->len == 0 || (event->mask & IN_Q_OVERFLOW) != 0)
        return true;
    if (event->name[0] == '.')
        return false;
    if ((event->mask & (IN_CLOSE_WRITE | IN_ATTRIB)) != 0 && (event->mask & IN_ISDIR) == 0)
        return model_path_split(event->name, &name_length, &rank);
    return true;
}

static bool drain_events(int events)
{
    _Alignas(struct inotify_event) char buffer[EVENT_BUFFER_BYTES];
    bool found = false;

    for (int i = 0; i < DRAIN_READS_MAX; i++) {
        ssize_t length = read(events, buffer, sizeof(buffer));

        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            break;
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event =
                (const struct inotify_event *)(const void *)(buffer + at);

            found = matters(event) || found;
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    return found;
}

bool store_watch_is_waiting(const struct store_watch *watch)
{
    struct pollfd events = {.fd = watch->events, .events = POLLIN};

    return atomic_load(&watch->complete) && poll(&events, 1, 0) > 0;
}

bool store_watch_drain(struct store_watch *watch)
{
    uint64_t expirations = 0;
    bool found = false;

    if (atomic_load(&watch->poll) < 0)
        return false;
    if (watch->events >= 0)
        found = drain_events(watch->events);
    if (read(watch->timer, &expirations, sizeof(expirations)) == (ssize_t)sizeof(expirations))
        found = true;
    return found;
}

void store_watch_begin(struct store_watch *watch)
{
    watch->seen.count = 0;
    watch->incomplete = false;
    watch->begun_ns = clock_ns();
}

static bool remember(struct watch_set *set, int item)
{
    if (zt_array_reserve(&set->items, &set->capacity, set->count + 1, sizeof(item), SIZE_MAX) !=
        ZT_OK)
        return false;
    assert(set->count < set->capacity && item >= 0);
    set->items[set->count++] = item;
    return true;
}

void store_watch_add(struct store_watch *watch, int folder)
{
    char path[64];
    int item = -1;

    assert(folder >= 0);
    if (atomic_load(&watch->poll) < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", folder);
    if (watch->events >= 0)
        item = inotify_add_watch(watch->events, path, WATCHED_EVENTS);
    if (item >= 0 && remember(&watch->seen, item))
        return;
    watch->incomplete = true;
    if (!watch->logged)
        log_write(
            LOG_LEVEL_WARN,
            "not every folder can be watched (%s): changes are found by scanning every few seconds",
            strerror(errno));
    watch->logged = true;
}

static int compare_items(const void *a, const void *b)
{
    const int *left = a;
    const int *right = b;

    return (*left > *right) - (*left < *right);
}

/* Stops watching folders that are no longer below the root; removed ones have lost their watch
 * already. */
static void drop_unseen(struct store_watch *watch)
{
    struct watch_set old = watch->kept;

    if (watch->seen.count > 1)
        qsort(watch->seen.items, watch->seen.count, sizeof(int), compare_items);
    for (size_t i = 0; i < old.count; i++)
        if (watch->seen.count == 0 || bsearch(&old.items[i], watch->seen.items, watch->seen.count,
                                              sizeof(int), compare_items) == NULL)
            inotify_rm_watch(watch->events, old.items[i]);
    watch->kept = watch->seen;
    watch->seen = old;
}

void store_watch_end(struct store_watch *watch)
{
    int64_t took_ns = clock_ns() - watch->begun_ns;
    int64_t delay_ns = took_ns * (watch->incomplete ? SCAN_SHARE_UNWATCHED : SCAN_SHARE_WATCHED);

    if (atomic_load(&watch->poll) < 0)
        return;
    if (watch->events >= 0)
        drop_unseen(watch);
    atomic_store(&watch->complete, watch->events >= 0 && !watch->incomplete);
    set_timer(watch, delay_ns > POLL_NS ? delay_ns : POLL_NS);
}
