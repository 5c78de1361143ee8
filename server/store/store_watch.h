/* Noticing changes below a folder: inotify on every folder that a scan has read, and a slow timer
 * for what inotify does not see (network file systems, more folders than there are watches).
 *
 * A scan calls begin, add for each folder before it reads it, and end. So a file that appears after
 * its folder was read is reported, and one that appeared before was read. One scan at a time;
 * descriptor and drain are for another thread. */
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
    int events;      /* inotify; -1 where there is none */
    int timer;
    /* Watches of the last whole scan, and of the one that runs. */
    struct watch_set kept;
    struct watch_set seen;
    bool incomplete; /* the running scan could not watch every folder */
    bool logged;
    int64_t begun_ns;
};

void store_watch_init(struct store_watch *watch);
void store_watch_close(struct store_watch *watch);

/* The descriptor to wait for, which the first call makes, due at once. -1 if the system refuses. */
int store_watch_descriptor(struct store_watch *watch);
/* Reads all events. Whether any of them calls for a scan. */
bool store_watch_drain(struct store_watch *watch);

void store_watch_begin(struct store_watch *watch);
void store_watch_add(struct store_watch *watch, int folder);
void store_watch_end(struct store_watch *watch);

#endif
