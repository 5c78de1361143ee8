/* Opens files for the catalog. */
#include "catalog/catalog_open.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "catalog/parking.h"
#include "catalog/split_path.h"

/* Times that a file is opened if there are no descriptors, files of other models being closed in
 * between. */
#define OPEN_TRIES 2
/* Threads that open files elsewhere, each of which waits for two or three answers; and what each is
 * given, because all wait for the last one. */
#define OPENERS_MOST     192
#define FILES_FOR_OPENER 16
/* Beyond so many, nothing is remembered of the others. */
#define UNOPENED_MAX 4096

/* --- one file --- */

static bool ignore_file(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    return true;
}

/* Asks the store what the model has now. */
static void look_again(struct store *store, const char *path)
{
    struct zt_error ignored;
    size_t name_length;
    unsigned rank;

    if (store_is_elsewhere(store) && catalog_path_split(path, &name_length, &rank))
        (void)store->ops->seek(store, (struct zt_text){path, name_length}, ignore_file, NULL,
                               &ignored);
}

/* Gives up what has been brought of a file. False: it cannot be had, or is here for good. */
static bool forget_bytes(struct store *store, const char *path)
{
    struct file_identity identity;
    struct zt_source *source;
    struct zt_error ignored;
    bool is_forgotten;

    if (!store_is_elsewhere(store) ||
        store->ops->open(store, path, &source, &identity, &ignored) != ZT_OK)
        return false;
    is_forgotten = zt_source_forget(source, 0, zt_source_size(source));
    zt_source_close(source);
    return is_forgotten;
}

static bool has_status(const struct opening *opening, enum zt_status status)
{
    return opening->opened != NULL && opening->opened->error->status == status;
}

static bool is_withheld(const struct catalog_content *content, const char *path)
{
    const struct catalog_withheld *withheld = content->withheld;

    while (withheld != NULL && strcmp(withheld->path, path) != 0)
        withheld = withheld->next;
    return withheld != NULL;
}

/* What is at a path now. The index may be read, since only the holder of the update lock, who
 * waits for this, changes it. */
static struct generation *open_path(struct catalog_content *content, const char *path,
                                    struct shard_search *search)
{
    size_t length;
    uint32_t count;

    if (!split_path_read(path, &length, &count))
        return generation_open(content->server, path, search);
    if (is_withheld(content, path))
        return NULL;
    return generation_open_split(content->server, path, &content->index);
}

/* A version that is lost is no version of the file: there is another, or none. */
static void open_version(struct catalog_content *content, struct shard_search *search,
                         struct opening *opening)
{
    struct store *store = content->server->store;

    opening->outcome = OPENING_DONE;
    opening->opened = open_path(content, opening->path, search);
    if (has_status(opening, ZT_STALE)) {
        generation_release(opening->opened);
        look_again(store, opening->path);
        opening->opened = open_path(content, opening->path, search);
    }
    /* Bytes from elsewhere that make no sense may only have come wrong. */
    if ((has_status(opening, ZT_CORRUPT) || has_status(opening, ZT_INVALID)) &&
        forget_bytes(store, opening->path)) {
        generation_release(opening->opened);
        opening->opened = open_path(content, opening->path, search);
    }
    if (has_status(opening, ZT_STALE) || has_status(opening, ZT_UNAVAILABLE))
        opening->outcome = OPENING_UNAVAILABLE;
    else if (opening->opened != NULL && parking_is_out_of_files(opening->opened->error))
        opening->outcome = OPENING_POSTPONED;
    if (opening->outcome == OPENING_DONE)
        return;
    generation_release(opening->opened);
    opening->opened = NULL;
}

/* The same with the files of other models closed if need be, which takes the index's lock. */
static void open_alone(struct catalog_content *content, struct opening *opening)
{
    const bool by_name = atomic_load(&content->server->shards_by_name);

    for (int i = 0; i < OPEN_TRIES; i++) {
        open_version(content, by_name ? NULL : &content->search, opening);
        if (opening->outcome != OPENING_POSTPONED)
            return;
        parking_make_room(content);
    }
}

/* --- several at a time --- */

/* A quarter of the requests that there may be at a time is left to clients. */
static size_t openers_of(const struct catalog_content *content)
{
    const size_t requests = (size_t)content->server->config->s3.connections;
    const size_t openers = requests - requests / 4;

    assert(requests > 0);
    return openers < OPENERS_MOST ? openers : OPENERS_MOST;
}

size_t openings_at_once(const struct catalog_content *content)
{
    const size_t files = FILES_FOR_OPENER * openers_of(content);

    if (!store_is_elsewhere(content->server->store))
        return 1;
    return files < OPENINGS_MOST ? files : OPENINGS_MOST;
}

struct crowd {
    struct catalog_content *content;
    struct opening *openings;
    size_t count;
    atomic_size_t next;
};

static void *open_some(void *context)
{
    struct crowd *crowd = context;
    size_t at;

    for (at = atomic_fetch_add(&crowd->next, 1); at < crowd->count;
         at = atomic_fetch_add(&crowd->next, 1)) {
        struct opening *opening = &crowd->openings[at];

        if (atomic_load(&crowd->content->stopping))
            opening->outcome = OPENING_UNAVAILABLE;
        else
            open_version(crowd->content, NULL, opening);
    }
    return NULL;
}

static void open_all(struct catalog_content *content, struct opening *openings, size_t count)
{
    struct crowd crowd = {.content = content, .openings = openings, .count = count};
    /* This thread is one of them. */
    const size_t most = openers_of(content) - 1;
    const size_t wanted = count - 1 < most ? count - 1 : most;
    pthread_t openers[OPENERS_MOST];
    size_t started = 0;

    while (started < wanted && thread_start(&openers[started], "opener", open_some, &crowd) == 0)
        started++;
    (void)open_some(&crowd);
    while (started > 0)
        pthread_join(openers[--started], NULL);
}

/* Whether it lacks shards, which only the search by content, for one thread at a time, may find; or
 * needs room. */
static bool needs_another(const struct catalog_content *content, const struct opening *opening)
{
    const bool by_name = atomic_load(&content->server->shards_by_name);

    if (opening->outcome == OPENING_POSTPONED)
        return true;
    return !by_name && opening->opened != NULL && opening->opened->model == NULL &&
           opening->opened->shards.count > 0 && !opening->opened->is_joined;
}

void openings_run(struct catalog_content *content, struct opening *openings, size_t count)
{
    assert(count > 0 && count <= OPENINGS_MOST);
    if (!store_is_elsewhere(content->server->store)) {
        for (size_t i = 0; i < count; i++)
            open_alone(content, &openings[i]);
        return;
    }
    open_all(content, openings, count);
    for (size_t i = 0; i < count; i++) {
        if (!needs_another(content, &openings[i]))
            continue;
        generation_release(openings[i].opened);
        open_alone(content, &openings[i]);
    }
}

/* --- what could not be opened --- */

static size_t unopened_find(const struct catalog_files *unopened, const char *path)
{
    size_t at = 0;

    while (at < unopened->count && strcmp(unopened->items[at].path, path) != 0)
        at++;
    return at;
}

void unopened_note(struct catalog_content *content, const char *path, bool is_unopened)
{
    struct catalog_files *unopened = &content->unopened;
    size_t at;

    pthread_mutex_lock(&content->unopened_lock);
    at = unopened_find(unopened, path);
    if (is_unopened && at == unopened->count && at < UNOPENED_MAX) {
        (void)catalog_files_add(unopened, path, NULL);
    } else if (!is_unopened && at < unopened->count) {
        free(unopened->items[at].path);
        unopened->items[at] = unopened->items[--unopened->count];
    }
    pthread_mutex_unlock(&content->unopened_lock);
}

void unopened_clear(struct catalog_content *content)
{
    pthread_mutex_lock(&content->unopened_lock);
    catalog_files_free(&content->unopened);
    pthread_mutex_unlock(&content->unopened_lock);
}

bool unopened_has(struct catalog_content *content, struct zt_text name)
{
    bool has = false;

    pthread_mutex_lock(&content->unopened_lock);
    for (size_t i = 0; i < content->unopened.count && !has; i++) {
        const char *path = content->unopened.items[i].path;
        size_t name_length;
        unsigned rank;

        has = catalog_path_split(path, &name_length, &rank) &&
              zt_text_equal(name, (struct zt_text){path, name_length});
    }
    pthread_mutex_unlock(&content->unopened_lock);
    return has;
}
