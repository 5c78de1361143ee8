/* Notices changes below a folder: inotify on every folder that a scan has read, and a slow timer
 * for what inotify does not see (network file systems, more folders than watches).
 *
 * A scan calls begin, then add for each folder before it reads the folder, then end. So a file that
 * appears before its folder is read is found by the scan, and one that appears later is reported.
 * One scan at a time; descriptor and drain may be called on another thread. */
#ifndef STORE_STORE_WATCH_H
#define STORE_STORE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_set {
    int *items;
    size_t count;
    size_t capacity;
};

struct store_watch {
    atomic_int poll; /* the epoll descriptor handed out, -1 before */
    int events;      /* inotify; -1 if not available */
    int timer;
    /* Watches of the last whole scan, and of the one that runs. */
    struct watch_set kept;
    struct watch_set seen;
    atomic_bool complete; /* the last scan could watch every folder */
    bool incomplete; /* the current scan could not watch every folder */
    bool logged;
    int64_t begun_ns;
};

void store_watch_init(struct store_watch *watch);
void store_watch_close(struct store_watch *watch);

/* The descriptor to wait for. The first call makes it, readable at once. -1 if that fails. */
int store_watch_descriptor(struct store_watch *watch);
/* Reads all events and returns whether a scan is needed. */
bool store_watch_drain(struct store_watch *watch);
/* Whether there are events to read. From any thread. */
bool store_watch_is_waiting(const struct store_watch *watch);

void store_watch_begin(struct store_watch *watch);
void store_watch_add(struct store_watch *watch, int folder);
void store_watch_end(struct store_watch *watch);

#endif
