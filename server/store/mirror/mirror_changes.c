#include "store/mirror/mirror_changes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void mirror_changes_init(struct mirror_changes *changes)
{
    memset(changes, 0, sizeof(*changes));
    pthread_mutex_init(&changes->lock, NULL);
    changes->own = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    changes->both = -1;
}

static void free_paths(struct mirror_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        free(changes->paths[i]);
    free(changes->paths);
    changes->paths = NULL;
    changes->count = 0;
}

void mirror_changes_end(struct mirror_changes *changes)
{
    free_paths(changes);
    if (changes->both >= 0)
        close(changes->both);
    if (changes->own >= 0)
        close(changes->own);
    pthread_mutex_destroy(&changes->lock);
}

/* With the lock. Returns false if out of memory. */
static bool add(struct mirror_changes *changes, const char *path)
{
    char *copy;

    for (size_t i = 0; i < changes->count; i++)
        if (strcmp(changes->paths[i], path) == 0)
            return true;
    if (changes->paths == NULL)
        changes->paths = calloc(MIRROR_CHANGES_MAX, sizeof(changes->paths[0]));
    copy = strdup(path);
    if (changes->paths == NULL || copy == NULL || changes->count == MIRROR_CHANGES_MAX) {
        free(copy);
        return false;
    }
    changes->paths[changes->count++] = copy;
    return true;
}

void mirror_changes_add(struct mirror_changes *changes, const char *path)
{
    const uint64_t one = 1;

    pthread_mutex_lock(&changes->lock);
    if (!changes->is_whole && !add(changes, path)) {
        changes->is_whole = true;
        free_paths(changes);
    }
    pthread_mutex_unlock(&changes->lock);
    if (changes->own >= 0)
        (void)!write(changes->own, &one, sizeof(one));
}

static bool watch(int set, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

int mirror_changes_watch(struct mirror_changes *changes, int inner)
{
    if (changes->both >= 0)
        return changes->both;
    if (inner < 0)
        return changes->own;
    changes->both = epoll_create1(EPOLL_CLOEXEC);
    if (changes->both < 0)
        return inner;
    if (!watch(changes->both, inner) || changes->own < 0 || !watch(changes->both, changes->own)) {
        close(changes->both);
        changes->both = -1;
        return inner;
    }
    return changes->both;
}

bool mirror_changes_wait(struct mirror_changes *changes)
{
    bool waits;

    pthread_mutex_lock(&changes->lock);
    waits = changes->count > 0 || changes->is_whole;
    pthread_mutex_unlock(&changes->lock);
    return waits;
}

bool mirror_changes_drain(struct mirror_changes *changes)
{
    uint64_t count;

    if (changes->own >= 0)
        (void)!read(changes->own, &count, sizeof(count));
    return mirror_changes_wait(changes);
}

bool mirror_changes_take(struct mirror_changes *changes, char ***out_paths, size_t *out_count)
{
    bool is_whole;

    pthread_mutex_lock(&changes->lock);
    *out_paths = changes->paths;
    *out_count = changes->count;
    is_whole = changes->is_whole;
    changes->paths = NULL;
    changes->count = 0;
    changes->is_whole = false;
    pthread_mutex_unlock(&changes->lock);
    return !is_whole;
}
