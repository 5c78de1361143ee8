/* Reports to the catalog which files of mirrored repositories have changed, through the same
 * descriptor as changes of the inner store. */
#ifndef STORE_MIRROR_MIRROR_CHANGES_H
#define STORE_MIRROR_MIRROR_CHANGES_H

#include <pthread.h>

#include "store/store.h"

/* With more changes than this, everything is listed. */
#define MIRROR_CHANGES_MAX 4096

struct mirror_changes {
    pthread_mutex_t lock;
    char **paths;
    size_t count;
    bool is_whole; /* not all are known */
    int own;       /* an eventfd; -1: none */
    int both;      /* an epoll set of it and of the inner store's; -1: not made yet, or none */
};

void mirror_changes_init(struct mirror_changes *changes);
void mirror_changes_end(struct mirror_changes *changes);

/* Notes a path whose file may have appeared, changed or gone. From any thread. */
void mirror_changes_add(struct mirror_changes *changes, const char *path);
/* A descriptor that is readable while this or inner (-1: none) is. */
int mirror_changes_watch(struct mirror_changes *changes, int inner);
/* Returns true if paths wait to be taken. From any thread. */
bool mirror_changes_wait(struct mirror_changes *changes);
/* Empties the own descriptor. Returns true if paths wait to be taken. */
bool mirror_changes_drain(struct mirror_changes *changes);
/* Hands over the paths; the caller frees them and the array. Returns false if everything must be
 * listed. */
bool mirror_changes_take(struct mirror_changes *changes, char ***out_paths, size_t *out_count);

#endif
