/* The table of resumable uploads: a list for each first byte of an id. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "upload/tus/resumable.h"

#define LISTS 256
/* How long it is told that an upload was published: its last answer may have been lost. */
#define PUBLISHED_S 600
/* Of so many also after a restart: each has a place, with a descriptor. */
#define OUTCOMES_KEPT_MAX 256

struct resumables {
    struct server *server;
    atomic_uint outcomes_kept;
    pthread_mutex_t lock;
    struct resumable *lists[LISTS];
};

struct resumables *resumables_new(struct server *server)
{
    struct resumables *resumables = calloc(1, sizeof(*resumables));

    if (resumables != NULL) {
        resumables->server = server;
        pthread_mutex_init(&resumables->lock, NULL);
    }
    return resumables;
}

void resumables_free(struct resumables *resumables)
{
    if (resumables == NULL)
        return;
    for (size_t i = 0; i < LISTS; i++) {
        while (resumables->lists[i] != NULL) {
            struct resumable *first = resumables->lists[i];

            resumables->lists[i] = first->next;
            registry_remove(resumables->server->registry, &first->entry);
            resumable_release(first);
        }
    }
    pthread_mutex_destroy(&resumables->lock);
    free(resumables);
}

/* Ids are digits of random numbers. */
static struct resumable **list_of(struct resumables *resumables, const char *id)
{
    return &resumables->lists[((unsigned char)id[0] * 16U + (unsigned char)id[1]) % LISTS];
}

/* Held, or NULL. */
static struct resumable *look_up(struct resumables *resumables, const char *id)
{
    struct resumable *found;

    pthread_mutex_lock(&resumables->lock);
    found = *list_of(resumables, id);
    while (found != NULL && memcmp(found->entry.id, id, UPLOAD_ID_SIZE - 1) != 0)
        found = found->next;
    if (found != NULL)
        resumable_hold(found);
    pthread_mutex_unlock(&resumables->lock);
    return found;
}

struct resumable *resumables_find(struct resumables *resumables, struct zt_text id)
{
    char text[UPLOAD_ID_SIZE] = "";
    struct resumable *found;

    if (!registry_id_is_valid(id))
        return NULL;
    memcpy(text, id.bytes, id.length);
    found = look_up(resumables, text);
    /* A server that has ended since this one started may have left it. */
    if (found == NULL && resumables->server->config->writable &&
        resumables_restore(resumables, text))
        found = look_up(resumables, text);
    return found;
}

/* Takes the reference over. False when there is one of that id already. */
static bool put_in(struct resumables *resumables, struct resumable *resumable)
{
    struct resumable **list = list_of(resumables, resumable->entry.id);
    const struct resumable *same;

    pthread_mutex_lock(&resumables->lock);
    same = *list;
    while (same != NULL && strcmp(same->entry.id, resumable->entry.id) != 0)
        same = same->next;
    if (same == NULL) {
        resumable->next = *list;
        *list = resumable;
    }
    pthread_mutex_unlock(&resumables->lock);
    return same == NULL;
}

static bool take_out(struct resumables *resumables, const struct resumable *resumable)
{
    struct resumable **link = list_of(resumables, resumable->entry.id);
    bool found;

    pthread_mutex_lock(&resumables->lock);
    while (*link != NULL && *link != resumable)
        link = &(*link)->next;
    found = *link != NULL;
    if (found)
        *link = resumable->next;
    pthread_mutex_unlock(&resumables->lock);
    return found;
}

bool resumables_add(struct resumables *resumables, struct resumable *resumable)
{
    unsigned limit = (unsigned)resumables->server->config->upload.sessions_per_client;

    if (!registry_add(resumables->server->registry, &resumable->entry, limit))
        return false;
    (void)put_in(resumables, resumable_hold(resumable));
    return true;
}

/* False: there are as many as there may be. */
static bool keep_outcome(struct resumables *resumables, struct resumable *resumable)
{
    resumable->is_outcome_kept =
        atomic_fetch_add(&resumables->outcomes_kept, 1) < OUTCOMES_KEPT_MAX;
    if (!resumable->is_outcome_kept)
        atomic_fetch_sub(&resumables->outcomes_kept, 1);
    return resumable->is_outcome_kept;
}

static void remove_place(struct resumables *resumables, struct resumable *resumable)
{
    struct store *store = resumables->server->store;
    struct zt_error error;
    enum zt_status status;

    if (resumable->is_outcome_kept)
        atomic_fetch_sub(&resumables->outcomes_kept, 1);
    status = store->ops->kept_drop(store, resumable->entry.id, &error);
    if (status != ZT_OK && status != ZT_NOT_FOUND)
        log_write(LOG_LEVEL_WARN, "upload %s: not removed: %s", resumable->entry.id, error.message);
}

void resumables_drop(struct resumables *resumables, struct resumable *resumable)
{
    atomic_store(&resumable->is_gone, true);
    registry_remove(resumables->server->registry, &resumable->entry);
    /* In this order, or its place could be found, and taken over, by who does not find it in the
     * table. */
    remove_place(resumables, resumable);
    if (take_out(resumables, resumable))
        resumable_release(resumable);
}

void resumables_forget(struct resumables *resumables, struct resumable *resumable)
{
    registry_remove(resumables->server->registry, &resumable->entry);
    if (take_out(resumables, resumable))
        resumable_release(resumable);
}

void resumables_finish(struct resumables *resumables, struct resumable *resumable)
{
    atomic_store(&resumable->entry.active, time(NULL));
    registry_remove(resumables->server->registry, &resumable->entry);
    if (!keep_outcome(resumables, resumable))
        remove_place(resumables, resumable);
}

bool resumables_restore(struct resumables *resumables, const char *id)
{
    struct resumable *resumable = resumable_files_open(resumables->server, id);
    bool is_published;

    if (resumable == NULL)
        return false;
    is_published = atomic_load(&resumable->is_published);
    if (is_published && !keep_outcome(resumables, resumable)) {
        resumable_release(resumable);
        return false;
    }
    /* Another request may have been quicker. */
    if (!put_in(resumables, resumable)) {
        if (is_published)
            atomic_fetch_sub(&resumables->outcomes_kept, 1);
        resumable_release(resumable);
        return true;
    }
    if (is_published)
        return true;
    (void)registry_add(resumables->server->registry, &resumable->entry, 0);
    return true;
}

static bool is_over(struct resumable *resumable, time_t now)
{
    return atomic_load(&resumable->is_published)
               ? now - atomic_load(&resumable->entry.active) >= PUBLISHED_S
               : now >= resumable_expires(resumable);
}

/* Claimed and held, or NULL. */
static struct resumable *find_over(struct resumables *resumables, size_t list, time_t now)
{
    struct resumable *one;

    pthread_mutex_lock(&resumables->lock);
    one = resumables->lists[list];
    while (one != NULL && (!is_over(one, now) || claim_take(&one->claim) == 0))
        one = one->next;
    if (one != NULL)
        resumable_hold(one);
    pthread_mutex_unlock(&resumables->lock);
    return one;
}

void resumables_expire(struct resumables *resumables)
{
    time_t now = time(NULL);

    for (size_t i = 0; i < LISTS; i++) {
        struct resumable *one;

        while ((one = find_over(resumables, i, now)) != NULL) {
            if (!atomic_load(&one->is_published))
                log_write(LOG_LEVEL_INFO, "upload %s: expired", one->entry.id);
            resumables_drop(resumables, one);
            resumable_release(one);
        }
    }
}
