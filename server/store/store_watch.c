/* Combines inotify and a timer in one epoll descriptor. The end of each scan sets the timer: the
 * longer the scan took, the later the next one, so that scanning a large tree takes only a small
 * share of a processor. */
#include "store/store_watch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
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

/* With the scan itself, this is less than the 3 s within which a change must be noticed. */
#define POLL_NS (2 * CLOCK_NS_PER_S)
/* The share of time that scans may take: 1/50 if inotify reports changes, 1/5 without it. */
#define SCAN_SHARE_WATCHED   50
#define SCAN_SHARE_UNWATCHED 5

#define WATCHED_EVENTS                                                                  \
    (IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | \
     IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

/* Bytes per read, and maximum reads in a row: during a flood of events one scan is enough. */
#define EVENT_BUFFER_BYTES 16384
#define DRAIN_READS_MAX    256

/* A watched folder. */
struct watched {
    int item;
    char *path;     /* in the store; "" for the root */
    bool is_shared; /* it can be reached by several paths */
};

struct watch_set {
    struct watched *items; /* sorted by item */
    size_t count;
    size_t capacity;
};

struct store_watch {
    atomic_int poll; /* the epoll descriptor, -1 until it is requested */
    int events;      /* inotify; -1 if not available */
    int timer;
    pthread_mutex_t lock; /* guards the following three */
    struct watch_event *happened;
    size_t happened_count;
    bool whole; /* only a scan of everything can find the changes */
    /* kept: watches of the last whole scan and since. seen: watches of the current scan. */
    struct watch_set kept;
    struct watch_set seen;
    atomic_bool complete; /* the last scan could watch every folder */
    bool is_scanning;
    bool incomplete; /* the current scan could not watch every folder */
    bool logged;
    int64_t begun_ns;
};

static void set_timer(const struct store_watch *watch, int64_t delay_ns)
{
    struct itimerspec when = {.it_value = {delay_ns / CLOCK_NS_PER_S, delay_ns % CLOCK_NS_PER_S}};

    assert(delay_ns > 0);
    if (watch->timer >= 0)
        timerfd_settime(watch->timer, 0, &when, NULL);
}

struct store_watch *store_watch_new(void)
{
    struct store_watch *watch = calloc(1, sizeof(*watch));

    if (watch == NULL)
        return NULL;
    atomic_init(&watch->poll, -1);
    watch->events = -1;
    watch->timer = -1;
    pthread_mutex_init(&watch->lock, NULL);
    return watch;
}

/* Empties the set but keeps its array. */
static void clear_set(struct watch_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->items[i].path);
    set->count = 0;
}

static void free_set(struct watch_set *set)
{
    clear_set(set);
    free(set->items);
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

void store_watch_free(struct store_watch *watch)
{
    if (watch == NULL)
        return;
    close_all(watch, atomic_load(&watch->poll));
    free_set(&watch->kept);
    free_set(&watch->seen);
    store_watch_events_free(watch->happened, watch->happened_count);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

static bool join(int poll, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

    assert(poll >= 0);
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

/* Returns true if an event can change the result of a scan. A link to a folder may have any name,
 * so only events about a file's bytes are judged by its extension. A file is read when its writer
 * closes it; earlier writes only matter to readers of the old content. */
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

void store_watch_events_free(struct watch_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(events[i].name);
    free(events);
}

/* The lock must be held. */
static void drop_events(struct store_watch *watch)
{
    store_watch_events_free(watch->happened, watch->happened_count);
    watch->happened = NULL;
    watch->happened_count = 0;
}

/* Returns true if the event adds nothing to the previous one. */
static bool is_repeated(const struct store_watch *watch, const struct inotify_event *event)
{
    const struct watch_event *last;

    if (watch->happened_count == 0)
        return false;
    last = &watch->happened[watch->happened_count - 1];
    return last->item == event->wd && last->mask == event->mask && event->len > 0 &&
           strcmp(last->name, event->name) == 0;
}

static void note_event(struct store_watch *watch, const struct inotify_event *event)
{
    char *name;

    pthread_mutex_lock(&watch->lock);
    assert(watch->happened_count <= WATCH_EVENTS_MAX);
    if (watch->happened == NULL) {
        watch->happened = malloc(WATCH_EVENTS_MAX * sizeof(*watch->happened));
        watch->happened_count = 0;
    }
    if ((event->mask & IN_Q_OVERFLOW) != 0 || watch->happened_count == WATCH_EVENTS_MAX ||
        watch->happened == NULL) {
        watch->whole = true;
        drop_events(watch);
    }
    if (!watch->whole && !is_repeated(watch, event)) {
        name = strdup(event->len > 0 ? event->name : "");
        watch->whole = name == NULL;
        if (name != NULL)
            watch->happened[watch->happened_count++] =
                (struct watch_event){event->wd, event->mask, name};
    }
    pthread_mutex_unlock(&watch->lock);
}

bool store_watch_take(struct store_watch *watch, struct watch_event **out_events, size_t *out_count)
{
    bool whole;

    pthread_mutex_lock(&watch->lock);
    whole = watch->whole;
    *out_events = watch->happened;
    *out_count = watch->happened_count;
    watch->happened = NULL;
    watch->happened_count = 0;
    watch->whole = false;
    pthread_mutex_unlock(&watch->lock);
    return !whole;
}

static bool drain_events(struct store_watch *watch)
{
    _Alignas(struct inotify_event) char buffer[EVENT_BUFFER_BYTES];
    bool found = false;

    assert(watch->events >= 0);
    for (int i = 0; i < DRAIN_READS_MAX; i++) {
        ssize_t length = read(watch->events, buffer, sizeof(buffer));

        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            break;
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event =
                (const struct inotify_event *)(const void *)(buffer + at);

            if (matters(event)) {
                note_event(watch, event);
                found = true;
            }
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    return found;
}

bool store_watch_is_waiting(const struct store_watch *watch)
{
    struct pollfd events = {.events = POLLIN};

    /* Until the first scan has ended, another thread may still create the descriptor. */
    if (!atomic_load(&watch->complete))
        return false;
    events.fd = watch->events;
    return poll(&events, 1, 0) > 0;
}

bool store_watch_is_complete(const struct store_watch *watch)
{
    return atomic_load(&watch->complete);
}

bool store_watch_drain(struct store_watch *watch)
{
    uint64_t expirations = 0;
    bool found = false;

    if (atomic_load(&watch->poll) < 0)
        return false;
    if (watch->events >= 0)
        found = drain_events(watch);
    if (read(watch->timer, &expirations, sizeof(expirations)) != (ssize_t)sizeof(expirations))
        return found;
    pthread_mutex_lock(&watch->lock);
    watch->whole = true;
    pthread_mutex_unlock(&watch->lock);
    return true;
}

/* --- the watched folders --- */

void store_watch_begin(struct store_watch *watch)
{
    assert(!watch->is_scanning);
    /* The scan sees the effect of earlier events. */
    pthread_mutex_lock(&watch->lock);
    drop_events(watch);
    watch->whole = false;
    pthread_mutex_unlock(&watch->lock);
    clear_set(&watch->seen);
    watch->is_scanning = true;
    watch->incomplete = false;
    watch->begun_ns = clock_ns();
}

static int compare_items(const void *a, const void *b)
{
    const struct watched *left = a;
    const struct watched *right = b;

    return (left->item > right->item) - (left->item < right->item);
}

static struct watched *find_item(const struct watch_set *set, int item)
{
    const struct watched key = {.item = item};

    if (set->count == 0)
        return NULL;
    return bsearch(&key, set->items, set->count, sizeof(key), compare_items);
}

const char *store_watch_folder(const struct store_watch *watch, const struct watch_event *event)
{
    const struct watched *folder = find_item(&watch->kept, event->item);

    return folder != NULL && !folder->is_shared ? folder->path : NULL;
}

static bool remember(struct watch_set *set, int item, const char *path)
{
    struct watched folder = {.item = item, .path = strdup(path)};

    if (folder.path == NULL || zt_array_reserve(&set->items, &set->capacity, set->count + 1,
                                                sizeof(folder), SIZE_MAX) != ZT_OK) {
        free(folder.path);
        return false;
    }
    assert(set->count < set->capacity && item >= 0);
    set->items[set->count++] = folder;
    return true;
}

/* Sorts the folders. A folder that was reached by two paths keeps one of them. */
static void put_in_order(struct watch_set *set)
{
    size_t used = 0;

    if (set->count > 1)
        qsort(set->items, set->count, sizeof(*set->items), compare_items);
    for (size_t i = 0; i < set->count; i++) {
        if (used == 0 || set->items[used - 1].item != set->items[i].item) {
            set->items[used++] = set->items[i];
            continue;
        }
        set->items[used - 1].is_shared = true;
        free(set->items[i].path);
    }
    set->count = used;
}

static bool remember_new(struct store_watch *watch, int item, const char *path)
{
    assert(item >= 0);
    if (watch->is_scanning)
        return remember(&watch->seen, item, path);
    if (!remember(&watch->kept, item, path))
        return false;
    put_in_order(&watch->kept);
    return true;
}

void store_watch_add(struct store_watch *watch, int folder, const char *path)
{
    char link[64];
    int item = -1;

    assert(folder >= 0);
    if (atomic_load(&watch->poll) < 0)
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
    if (watch->events >= 0)
        item = inotify_add_watch(watch->events, link, WATCHED_EVENTS);
    if (item >= 0 && remember_new(watch, item, path))
        return;
    watch->incomplete = true;
    atomic_store(&watch->complete, false);
    if (!watch->logged)
        log_write(
            LOG_LEVEL_WARN,
            "not every folder can be watched (%s): changes are found by scanning every few seconds",
            strerror(errno));
    watch->logged = true;
}

/* Stops watching folders that are no longer below the root. Removed folders have already lost their
 * watch. */
static void drop_unseen(struct store_watch *watch)
{
    struct watch_set old = watch->kept;

    put_in_order(&watch->seen);
    for (size_t i = 0; i < old.count; i++)
        if (find_item(&watch->seen, old.items[i].item) == NULL)
            inotify_rm_watch(watch->events, old.items[i].item);
    watch->kept = watch->seen;
    watch->seen = old;
    clear_set(&watch->seen);
}

void store_watch_end(struct store_watch *watch)
{
    int64_t took_ns = clock_ns() - watch->begun_ns;
    int64_t delay_ns = took_ns * (watch->incomplete ? SCAN_SHARE_UNWATCHED : SCAN_SHARE_WATCHED);

    assert(watch->is_scanning);
    watch->is_scanning = false;
    if (atomic_load(&watch->poll) < 0)
        return;
    if (watch->events >= 0)
        drop_unseen(watch);
    atomic_store(&watch->complete, watch->events >= 0 && !watch->incomplete);
    set_timer(watch, delay_ns > POLL_NS ? delay_ns : POLL_NS);
}
