/* Which files are closed while nobody reads them. */
#include "catalog/parking.h"

#include <assert.h>
#include <sys/resource.h>

/* Files that nobody reads may hold a quarter of the descriptors; connections and temporary files
 * need the rest. */
#define OPEN_SHARE 4
#define OPEN_MAX   ((rlim_t)16384)

size_t parking_most_open(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / OPEN_SHARE > OPEN_MAX)
        return (size_t)OPEN_MAX;
    return files.rlim_cur < OPEN_SHARE ? 1 : (size_t)(files.rlim_cur / OPEN_SHARE);
}

size_t parking_open_files(const struct generation *generation)
{
    return atomic_load(&generation->parked) ? 0 : generation_open_files(generation);
}

/* Closes the files of generations that only the index holds, until few enough are open. The index's
 * write lock is held, so nobody can take a reference meanwhile. */
static void park_some(struct catalog_content *content)
{
    size_t open_count = 0;

    /* Counted again: the count drifts if a generation is dropped while it is opened again. */
    for (size_t i = 0; i < content->index.count; i++)
        open_count += parking_open_files(content->index.by_path[i]);
    atomic_store(&content->open_count, open_count);
    for (size_t i = 0;
         i < content->index.count && atomic_load(&content->open_count) > content->open_most / 2;
         i++) {
        struct generation *generation = content->index.by_path[i];

        if (atomic_load(&generation->references) != 1 || generation->source == NULL)
            continue;
        assert(!atomic_load(&generation->parked));
        atomic_fetch_sub(&content->open_count, generation_open_files(generation));
        zt_source_close(generation->source);
        generation->source = NULL;
        shard_files_park(&generation->shards);
        atomic_store(&generation->parked, true);
    }
}

void parking_limit(struct catalog_content *content)
{
    if (atomic_load(&content->open_count) <= content->open_most)
        return;
    pthread_rwlock_wrlock(&content->index_lock);
    park_some(content);
    pthread_rwlock_unlock(&content->index_lock);
}

static bool same_bytes(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->modified_ns == b->modified_ns;
}

static bool open_again(struct catalog_content *content, struct generation *generation)
{
    struct store *store = content->server->store;
    struct file_identity identity;
    struct zt_source *source = NULL;

    if (store->ops->open(store, generation->path, &source, &identity, NULL) != ZT_OK)
        return false;
    if (!same_bytes(&identity, &generation->identity) ||
        !shard_files_unpark(&generation->shards, store)) {
        zt_source_close(source);
        return false;
    }
    assert(generation->source == NULL);
    generation->source = source;
    atomic_fetch_add(&content->open_count, generation_open_files(generation));
    atomic_store(&generation->parked, false);
    return true;
}

bool parking_open(struct catalog_content *content, struct generation *generation)
{
    bool opened;

    if (!atomic_load(&generation->parked))
        return true;
    pthread_mutex_lock(&content->parking);
    opened = !atomic_load(&generation->parked) || open_again(content, generation);
    pthread_mutex_unlock(&content->parking);
    parking_limit(content);
    return opened;
}
