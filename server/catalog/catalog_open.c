/* Opens files for the catalog. */
#include "catalog/catalog_open.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "catalog/parking.h"
#include "parts/split_path.h"
#include "store/store_here.h"

/* How often to try to open a file when no descriptors are left; files of other models are closed
 * between the tries. */
#define OPEN_TRIES 2
/* The maximum number of threads that open remote files, each of which waits for two or three
 * responses, and the number of files per thread: all threads wait for the slowest. */
#define OPENERS_MOST     PARALLEL_THREADS_MAX
#define FILES_FOR_OPENER 16
/* The maximum number of files to remember as unopened. */
#define UNOPENED_MAX 4096

/* --- one file --- */

static bool ignore_file(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    return true;
}

/* Asks the store for the current version of the model. */
static void look_up_again(struct store *store, const char *path)
{
    struct zt_error ignored;
    size_t name_length;
    unsigned rank;

    if (store_may_wait(store) && catalog_path_split(path, &name_length, &rank))
        (void)store->search->look_up(store, (struct zt_text){path, name_length}, ignore_file, NULL,
                                     &ignored);
}

/* Discards the cached bytes of a file. Returns false if the file cannot be opened, or its bytes are
 * stored locally for good. */
static bool invalidate_bytes(struct store *store, const char *path)
{
    struct file_identity identity;
    struct zt_source *source;
    struct zt_error ignored;
    bool is_forgotten;

    if (!store_may_wait(store) ||
        store->ops->open(store, path, &source, &identity, &ignored) != ZT_OK)
        return false;
    is_forgotten = zt_source_invalidate(source, 0, zt_source_size(source));
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

/* Opens the current file at a path. The index may be read, because only the holder of the update
 * lock changes it, and it is waiting for this call. */
static struct generation *open_path(struct catalog_content *content, const char *path,
                                    struct shard_search *search)
{
    struct split_name name;
    struct generation *opened = NULL;

    /* A listed file that is gone with its repository is not looked up at an upstream again. */
    store_here_begin();
    if (!split_path_read(path, &name))
        opened = generation_open(content->server, path, search);
    else if (!is_withheld(content, path))
        opened = generation_open_split(content->server, path, &content->index);
    store_here_end();
    return opened;
}

/* Opens the current version of a file. If the listed version is gone, looks the file up again: it
 * has another version, or none. */
static void open_version(struct catalog_content *content, struct shard_search *search,
                         struct opening *opening)
{
    struct store *store = content->server->store;

    opening->outcome = OPENING_DONE;
    opening->opened = open_path(content, opening->path, search);
    if (has_status(opening, ZT_STALE)) {
        generation_release(opening->opened);
        look_up_again(store, opening->path);
        opening->opened = open_path(content, opening->path, search);
    }
    /* Invalid bytes of a remote file may be a transfer error, so fetch them again. */
    if ((has_status(opening, ZT_CORRUPT) || has_status(opening, ZT_INVALID)) &&
        invalidate_bytes(store, opening->path)) {
        generation_release(opening->opened);
        opening->opened = open_path(content, opening->path, search);
    }
    if (has_status(opening, ZT_STALE) || has_status(opening, ZT_UNAVAILABLE))
        opening->outcome = OPENING_UNAVAILABLE;
    else if (opening->opened != NULL && parking_is_out_of_files(opening->opened->error))
        opening->outcome = OPENING_POSTPONED;
    if (opening->outcome == OPENING_DONE)
        return;
    assert(opening->opened != NULL && opening->opened->model == NULL);
    generation_release(opening->opened);
    opening->opened = NULL;
}

/* Does the same, and if necessary closes files of other models, which takes the index's lock. */
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

/* Returns the number of threads; a quarter of the allowed concurrent requests is reserved for
 * clients. */
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

    if (!store_may_wait(content->server->store))
        return 1;
    return files < OPENINGS_MOST ? files : OPENINGS_MOST;
}

struct opening_list {
    struct catalog_content *content;
    struct opening *openings;
};

static bool open_one(void *context, uint32_t index)
{
    const struct opening_list *list = context;
    struct opening *opening = &list->openings[index];

    if (atomic_load(&list->content->stopping))
        opening->outcome = OPENING_UNAVAILABLE;
    else
        open_version(list->content, NULL, opening);
    return true;
}

/* Returns true if open_alone must try again: the model lacks shards, which the search by content
 * may find but only on one thread, or descriptors must be freed first. */
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
    struct opening_list list = {content, openings};
    const struct parallel_work work = {(uint32_t)count, open_one, &list};

    assert(count > 0 && count <= OPENINGS_MOST);
    if (!store_may_wait(content->server->store)) {
        for (size_t i = 0; i < count; i++)
            open_alone(content, &openings[i]);
        return;
    }
    parallel_for_threads("opener", (unsigned)openers_of(content), &work);
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
    assert(unopened->count <= UNOPENED_MAX);
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
        char own_name[MODEL_NAME_MAX + 1];
        size_t name_length;
        unsigned rank;

        if (!catalog_path_split(path, &name_length, &rank))
            continue;
        has = model_path_name(path, own_name)
                  ? zt_text_is(name, own_name)
                  : zt_text_equal(name, (struct zt_text){path, name_length});
    }
    pthread_mutex_unlock(&content->unopened_lock);
    return has;
}
