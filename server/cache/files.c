#include "cache/files.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "cache/file_load.h"

/* st_blocks counts these, whatever the file system's blocks are. */
#define STAT_BLOCK_BYTES 512u

static struct cached_file **bucket_of(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES])
{
    /* A key is a hash already. */
    uint32_t word;

    memcpy(&word, key, sizeof(word));
    return &cache->table[word % CACHE_TABLE_SIZE];
}

struct cached_file *file_find(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES])
{
    struct cached_file *file = *bucket_of(cache, key);

    while (file != NULL && memcmp(file->key, key, CACHE_KEY_BYTES) != 0)
        file = file->next;
    assert(file == NULL || file->cache == cache);
    return file;
}

static void file_free(struct cached_file *file)
{
    assert(file->view == NULL && file->states == NULL);
    free(file->extents);
    free(file);
}

static struct cached_file *file_new(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES],
                                    uint64_t size_bytes)
{
    struct cached_file *file = calloc(1, sizeof(*file));

    assert(size_bytes <= CACHE_FILE_BYTES_MOST);
    if (file == NULL)
        return NULL;
    memcpy(file->key, key, CACHE_KEY_BYTES);
    file->cache = cache;
    file->descriptor = -1;
    file->size_bytes = size_bytes;
    file->block_count = block_of(size_bytes + CACHE_BLOCK_BYTES - 1);
    file->extent_count = (file->block_count + CACHE_EXTENT_BLOCKS - 1) / CACHE_EXTENT_BLOCKS;
    file->extents = calloc(file->extent_count + 1, sizeof(*file->extents));
    if (file->extents == NULL) {
        free(file);
        return NULL;
    }
    return file;
}

static void insert(struct cache *cache, struct cached_file *file)
{
    struct cached_file **bucket = bucket_of(cache, file->key);

    assert(file->next == NULL && file_find(cache, file->key) == NULL);
    file->next = *bucket;
    *bucket = file;
    cache->file_count++;
}

static void take_out(struct cached_file *file)
{
    struct cached_file **link = bucket_of(file->cache, file->key);

    while (*link != NULL && *link != file)
        link = &(*link)->next;
    if (*link == NULL)
        return;
    *link = file->next;
    assert(file->cache->file_count > 0);
    file->cache->file_count--;
}

void cached_file_remove(struct cached_file *file)
{
    assert(file->phase != FILE_OPEN && file->users == 0 && !file->is_leaving);
    file_measured(file, 0);
    take_out(file);
    file_free(file);
}

void file_measured(struct cached_file *file, uint64_t disk_bytes)
{
    struct cache *cache = file->cache;

    assert(file->disk_bytes <= cache->used_bytes);
    cache->used_bytes += disk_bytes - file->disk_bytes;
    file->disk_bytes = disk_bytes;
    metric_set(METRIC_CACHE_USED_BYTES, (int64_t)cache->used_bytes);
}

uint64_t file_disk_bytes(int descriptor)
{
    struct stat facts;

    return fstat(descriptor, &facts) == 0 ? (uint64_t)facts.st_blocks * STAT_BLOCK_BYTES : 0;
}

/* --- opening --- */

/* With the lock, which it gives up meanwhile. */
static enum zt_status open_file(struct cached_file *file, struct zt_error *error)
{
    struct cache *cache = file->cache;
    uint64_t disk_bytes = 0;
    enum zt_status status;

    assert(file->phase == FILE_CLOSED && file->users == 0);
    file->phase = FILE_BUSY;
    cache_unlock(cache);
    status = file_load(file, error);
    if (file->descriptor >= 0)
        disk_bytes = file_disk_bytes(file->descriptor);
    cache_lock(cache);
    pthread_cond_broadcast(&cache->settled);
    if (status != ZT_OK) {
        assert(!file->is_leaving);
        file->phase = FILE_CLOSED;
        if (file->disk_bytes == 0)
            cached_file_remove(file);
        return status;
    }
    assert(file->phase == FILE_BUSY && file->states != NULL);
    file_measured(file, disk_bytes);
    file->phase = FILE_OPEN;
    file->users = 1;
    return ZT_OK;
}

/* With the lock. Waits while the file is busy; removes what is left of one with another size. */
static struct cached_file *find_settled(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES],
                                        uint64_t size_bytes)
{
    struct cached_file *file;

    while ((file = file_find(cache, key)) != NULL &&
           (file->phase == FILE_BUSY || (file->is_leaving && file->size_bytes != size_bytes)))
        cache_wait(cache, &cache->settled);
    if (file == NULL || file->phase == FILE_OPEN || file->size_bytes == size_bytes)
        return file;
    /* A file that was truncated or is not ours; file_load starts it again. */
    cached_file_remove(file);
    return NULL;
}

enum zt_status file_acquire(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES],
                            uint64_t size_bytes, struct cached_file **out_file,
                            struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    struct cached_file *file;

    /* Its blocks could not be numbered. */
    if (size_bytes > CACHE_FILE_BYTES_MOST)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "a file of %" PRIu64 " bytes is longer than any store keeps", size_bytes);
    cache_lock(cache);
    file = find_settled(cache, key, size_bytes);
    if (file == NULL) {
        file = file_new(cache, key, size_bytes);
        if (file != NULL)
            insert(cache, file);
    }
    if (file == NULL)
        status = zt_fail_memory(error, "a file of the cache");
    else if (file->size_bytes != size_bytes)
        status = zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "a version has two sizes");
    else if (file->phase == FILE_CLOSED)
        status = open_file(file, error);
    else
        file->users++;
    cache_unlock(cache);
    if (status == ZT_OK)
        *out_file = file;
    return status;
}

/* --- closing --- */

/* A lander will look whether it can be closed, or removed. */
static void leave(struct cached_file *file)
{
    struct cache *cache = file->cache;

    assert(file->users == 0);
    if (file->is_leaving)
        return;
    file->is_leaving = true;
    file->next_leaving = cache->leaving;
    cache->leaving = file;
    pthread_cond_signal(&cache->work);
}

void file_release(struct cached_file *file)
{
    assert(file->phase == FILE_OPEN);
    assert(file->users > 0);
    file->users--;
    if (file->users == 0)
        leave(file);
}

static bool is_useless(const struct cached_file *file)
{
    if (file->is_lost)
        return true;
    for (uint32_t i = 0; i < file->extent_count; i++)
        if (file->extents[i].is_used)
            return false;
    return true;
}

void file_settle(struct cached_file *file)
{
    struct cache *cache = file->cache;
    bool is_useless_now;

    assert(file->is_leaving);
    file->is_leaving = false;
    /* It has been opened again, or is being opened. */
    if (file->users > 0 || file->phase == FILE_BUSY)
        return;
    for (uint32_t i = 0; i < file->extent_count; i++)
        assert(atomic_load(&file->extents[i].pins) == 0);
    assert(file->runs == NULL);
    file->phase = FILE_BUSY;
    is_useless_now = is_useless(file);
    cache_unlock(cache);
    /* The names of a lost file may be another's by now. */
    if (is_useless_now && !file->is_lost)
        folder_remove(&cache->folder, file->key);
    file_unload(file);
    cache_lock(cache);
    file->phase = FILE_CLOSED;
    if (is_useless_now || file->disk_bytes == 0)
        cached_file_remove(file);
    pthread_cond_broadcast(&cache->settled);
}

void file_lose(struct cached_file *file)
{
    assert(file->phase == FILE_OPEN && file->users > 0);
    if (file->is_lost)
        return;
    file->is_lost = true;
    for (uint32_t block = 0; block < file->block_count; block++)
        if (block_state(file, block) != BLOCK_COMING)
            block_set(file, block, BLOCK_ABSENT);
    folder_remove(&file->cache->folder, file->key);
    take_out(file);
}

/* --- at start --- */

/* Which extents have anything on the disk. */
static void note_used(struct cached_file *file, const struct folder_entry *entry)
{
    off_t end = (off_t)file->size_bytes;

    for (off_t at = 0; at < end;) {
        off_t data = lseek(entry->descriptor, at, SEEK_DATA);
        off_t hole = data >= 0 ? lseek(entry->descriptor, data, SEEK_HOLE) : -1;

        if (hole <= data)
            break;
        for (uint64_t i = (uint64_t)data / CACHE_EXTENT_BYTES;
             i <= ((uint64_t)hole - 1) / CACHE_EXTENT_BYTES && i < file->extent_count; i++)
            file->extents[i].is_used = true;
        at = hole;
    }
}

static void take_over(void *context, const struct folder_entry *entry)
{
    struct cache *cache = context;
    struct cached_file *file;

    /* A folder that another program changes meanwhile may list a name twice. */
    if (file_find(cache, entry->key) != NULL)
        return;
    if (entry->size_bytes > CACHE_FILE_BYTES_MOST) {
        folder_remove(&cache->folder, entry->key);
        return;
    }
    file = file_new(cache, entry->key, entry->size_bytes);
    if (file == NULL)
        return;
    note_used(file, entry);
    for (uint32_t i = 0; i < file->extent_count; i++)
        atomic_init(&file->extents[i].used_ms, entry->modified_ms);
    insert(cache, file);
    file_measured(file, entry->disk_bytes);
}

void files_scan(struct cache *cache)
{
    if (atomic_load(&cache->folder.descriptor) >= 0)
        folder_scan(&cache->folder, take_over, cache);
}
