/* Files that were replaced share extents with the files that replaced them, in the background. A
 * pair is forgotten after one attempt, if there are too many, and at a restart: that costs space,
 * nothing else. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "store/versions/shared_extents.h"
#include "store/versions/versions_state.h"

/* Pairs that wait. */
#define PAIRS_MAX 256

/* A kept file, and the one that replaced it: the path's, unless that was replaced and kept too. */
struct pair {
    char *path;
    bool is_replaced;
    uint8_t earlier[32];
    uint8_t later[32]; /* valid if is_replaced */
};

struct versions_sharing {
    pthread_mutex_t lock; /* protects what follows */
    struct pair pairs[PAIRS_MAX];
    unsigned first;
    unsigned count;
    bool is_off; /* the file system cannot share extents */
    /* Of the thread that shares. */
    struct shared_extents *current;
    bool has_shared;
};

struct versions_sharing *versions_sharing_new(void)
{
    struct versions_sharing *sharing = calloc(1, sizeof(*sharing));

    if (sharing != NULL)
        pthread_mutex_init(&sharing->lock, NULL);
    return sharing;
}

static struct pair *pair_at(struct versions_sharing *sharing, unsigned index)
{
    assert(index < PAIRS_MAX && sharing->first < PAIRS_MAX);
    return &sharing->pairs[(sharing->first + index) % PAIRS_MAX];
}

void versions_sharing_free(struct versions_sharing *sharing)
{
    if (sharing == NULL)
        return;
    for (unsigned i = 0; i < sharing->count; i++)
        free(pair_at(sharing, i)->path);
    shared_extents_free(sharing->current);
    pthread_mutex_destroy(&sharing->lock);
    free(sharing);
}

/* --- pairs --- */

static void add_pair(struct versions_sharing *sharing, const char *path, const uint8_t sha256[32])
{
    struct pair *pair;
    char *copy = sharing->count < PAIRS_MAX ? strdup(path) : NULL;

    assert(sharing->count <= PAIRS_MAX);
    if (copy == NULL)
        return;
    pair = pair_at(sharing, sharing->count++);
    *pair = (struct pair){.path = copy};
    memcpy(pair->earlier, sha256, sizeof(pair->earlier));
}

void versions_share_later(struct versions *versions, const char *path, uint64_t size_bytes,
                          const uint8_t sha256[32])
{
    struct versions_sharing *sharing = versions->sharing;

    if (sharing == NULL)
        return;
    pthread_mutex_lock(&sharing->lock);
    for (unsigned i = 0; i < sharing->count; i++) {
        struct pair *pair = pair_at(sharing, i);

        if (pair->is_replaced || strcmp(pair->path, path) != 0)
            continue;
        pair->is_replaced = true;
        memcpy(pair->later, sha256, sizeof(pair->later));
    }
    if (!sharing->is_off && size_bytes >= SHARED_EXTENTS_LEAST)
        add_pair(sharing, path, sha256);
    pthread_mutex_unlock(&sharing->lock);
}

/* Returns false if there is none. The caller frees the path. */
static bool take_pair(struct versions_sharing *sharing, struct pair *out_pair)
{
    bool is_taken;

    pthread_mutex_lock(&sharing->lock);
    is_taken = sharing->count > 0;
    if (is_taken) {
        *out_pair = *pair_at(sharing, 0);
        sharing->first = (sharing->first + 1) % PAIRS_MAX;
        sharing->count--;
    }
    pthread_mutex_unlock(&sharing->lock);
    return is_taken;
}

bool versions_has_pairs(const struct versions *versions)
{
    struct versions_sharing *sharing = versions->sharing;
    bool has_pairs;

    if (sharing == NULL)
        return false;
    pthread_mutex_lock(&sharing->lock);
    has_pairs = sharing->count > 0;
    pthread_mutex_unlock(&sharing->lock);
    return has_pairs;
}

/* --- sharing --- */

struct opened {
    struct zt_source *source; /* NULL: it cannot be opened */
    struct file_identity identity;
};

static struct opened open_kept(struct versions *versions, const uint8_t sha256[32])
{
    struct opened opened = {.source = NULL};
    struct zt_error ignored;

    if (history_open_kept(versions->options.history, sha256, &opened.source, &opened.identity,
                          &ignored) != ZT_OK)
        opened.source = NULL;
    return opened;
}

static struct opened open_later(struct versions *versions, const struct pair *pair)
{
    struct store *inner = versions->base.inner;
    struct opened opened = {.source = NULL};
    struct zt_error ignored;

    if (pair->is_replaced)
        return open_kept(versions, pair->later);
    if (inner->ops->open(inner, pair->path, &opened.source, &opened.identity, &ignored) != ZT_OK)
        opened.source = NULL;
    return opened;
}

/* Returns false if they are one file, after a rollback, or too small. */
static bool are_worth_it(const struct opened *earlier, const struct opened *later)
{
    return earlier->source != NULL && later->source != NULL &&
           (earlier->identity.device != later->identity.device ||
            earlier->identity.inode != later->identity.inode) &&
           earlier->identity.size_bytes >= SHARED_EXTENTS_LEAST &&
           later->identity.size_bytes >= SHARED_EXTENTS_LEAST;
}

/* The later file gets the extents of the earlier one, which may share them with a third. */
static struct shared_extents *begin(struct versions *versions, const struct pair *pair)
{
    const struct opened earlier = open_kept(versions, pair->earlier);
    const struct opened later = open_later(versions, pair);

    assert(versions->sharing->current == NULL);
    if (are_worth_it(&earlier, &later))
        return shared_extents_new(earlier.source, later.source);
    zt_source_close(earlier.source);
    zt_source_close(later.source);
    return NULL;
}

/* Returns false if there is nothing to share. */
static bool begin_next(struct versions *versions)
{
    struct versions_sharing *sharing = versions->sharing;
    struct pair pair;

    while (sharing->current == NULL && take_pair(sharing, &pair)) {
        sharing->current = begin(versions, &pair);
        free(pair.path);
    }
    return sharing->current != NULL;
}

static void turn_off(struct versions_sharing *sharing)
{
    pthread_mutex_lock(&sharing->lock);
    sharing->is_off = true;
    while (sharing->count > 0)
        free(pair_at(sharing, --sharing->count)->path);
    pthread_mutex_unlock(&sharing->lock);
    log_write(LOG_LEVEL_DEBUG, "files do not share extents: the file system cannot do it");
}

static void end(struct versions_sharing *sharing, enum shared_extents_answer answer)
{
    assert(sharing->current != NULL && answer != SHARED_EXTENTS_MORE);
    sharing->has_shared = sharing->has_shared || shared_extents_bytes(sharing->current) > 0;
    shared_extents_free(sharing->current);
    sharing->current = NULL;
    if (answer == SHARED_EXTENTS_REFUSED && !sharing->has_shared)
        turn_off(sharing);
}

bool versions_share_pairs(struct versions *versions, uint64_t most_bytes, const atomic_bool *stop)
{
    struct versions_sharing *sharing = versions->sharing;

    if (sharing == NULL)
        return false;
    while (!atomic_load(stop) && begin_next(versions)) {
        const enum shared_extents_answer answer =
            shared_extents_run(sharing->current, &most_bytes, stop);

        if (answer == SHARED_EXTENTS_MORE)
            return true;
        end(sharing, answer);
    }
    return false;
}
