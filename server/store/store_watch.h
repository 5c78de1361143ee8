/* Notices changes below a folder and where they happened: with inotify on every folder that a scan
 * has read, and with a slow timer for changes that inotify misses (network file systems, more
 * folders than watches).
 *
 * A scan calls begin, then add for each folder before reading it, then end. So a file that appears
 * before its folder is read is found by the scan, and a later one is reported. One scan runs at
 * once; descriptor and drain may be called on another thread. */
#ifndef STORE_STORE_WATCH_H
#define STORE_STORE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With more events than this, everything is scanned. */
#define WATCH_EVENTS_MAX 4096

/* Something that happened in a watched folder. */
struct watch_event {
    int item;
    uint32_t mask;
    char *name; /* "" for the folder itself */
};

struct store_watch;

/* Returns NULL if out of memory. */
struct store_watch *store_watch_new(void);
/* Accepts NULL. */
void store_watch_free(struct store_watch *watch);

/* Returns the descriptor to wait for, or -1. The first call makes it, readable at once. */
int store_watch_descriptor(struct store_watch *watch);
/* Reads all events and returns true if there may be changes, which take then returns. */
bool store_watch_drain(struct store_watch *watch);
/* Returns true if there are events to read. From any thread. */
bool store_watch_is_waiting(const struct store_watch *watch);
/* Returns true if the last scan could watch every folder. From any thread. */
bool store_watch_is_complete(const struct store_watch *watch);
/* Hands over the events since the last scan or call, at most WATCH_EVENTS_MAX.
 * store_watch_events_free frees the names and the array. Returns false if everything must be
 * scanned. */
bool store_watch_take(struct store_watch *watch, struct watch_event **out_events,
                      size_t *out_count);
void store_watch_events_free(struct watch_event *events, size_t count);
/* Returns the folder in which an event happened; NULL if it is unknown or has several paths. */
const char *store_watch_folder(const struct store_watch *watch, const struct watch_event *event);

/* begin and end enclose a scan of everything. Without them, add adds a new folder. */
void store_watch_begin(struct store_watch *watch);
void store_watch_add(struct store_watch *watch, int folder, const char *path);
void store_watch_end(struct store_watch *watch);

#endif
