/* Taking over a local file that has the bytes of a version: one that was uploaded here. It gets a
 * name in the folder, which works if it is in the same file system; no data is copied. Its blocks
 * are here at once. Their checksums are computed in the background, and only then is a block in the
 * index. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/workers.h"
#include "cache/files.h"
#include "cache/index_file.h"
#include "cache/pins.h"
#include "disk/disk_file.h"
#include "zt/digest.h"

#define PROC_NAME_SIZE 40

struct hashing {
    struct job job; /* first */
    struct cached_file *file;
};

/* --- the bytes --- */

static bool link_file(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                      int descriptor)
{
    char own[PROC_NAME_SIZE];
    char name[FOLDER_NAME_SIZE];

    assert(descriptor >= 0);
    snprintf(own, sizeof(own), "/proc/self/fd/%d", descriptor);
    folder_name(key, FOLDER_BLOCKS, name);
    return linkat(AT_FDCWD, own, atomic_load(&folder->descriptor), name, AT_SYMLINK_FOLLOW) == 0;
}

static bool has_size(int descriptor, uint64_t size_bytes)
{
    struct stat facts;

    return fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) &&
           (uint64_t)facts.st_size == size_bytes;
}

/* --- the checksums --- */

/* Without the lock. Adds one block to the index. False: it cannot be read. */
static bool hash_block(struct cached_file *file, uint32_t block, uint8_t *buffer)
{
    struct cache *cache = file->cache;
    struct extent *extent = &file->extents[extent_of_block(block)];
    size_t length = (size_t)block_length(file, block);
    struct index_block found = {.block = block};
    bool is_read = true;

    assert(block < file->block_count && file->descriptor >= 0);
    atomic_fetch_add(&extent->pins, 1);
    /* It may have been evicted, or fetched again, meanwhile. */
    if (atomic_load(&file->states[block]) == BLOCK_HERE) {
        is_read = disk_read(file->descriptor, buffer, length, block * CACHE_BLOCK_BYTES);
        found.checksum = zt_xxh3(buffer, length);
        cache_lock(cache);
        if (is_read && atomic_load(&file->states[block]) == BLOCK_HERE) {
            file->checksums[block] = found.checksum;
            atomic_store(&file->states[block], BLOCK_KNOWN | BLOCK_HERE);
        } else
            is_read = false;
        cache_unlock(cache);
        if (is_read)
            index_append(&cache->folder, file->key, &found, 1);
    }
    atomic_fetch_sub(&extent->pins, 1);
    return is_read;
}

static void hash_all(struct job *job)
{
    struct cached_file *file = ((struct hashing *)job)->file;
    struct cache *cache = file->cache;
    uint8_t *buffer = malloc(CACHE_BLOCK_BYTES);
    /* Without a view the blocks could not be opened. */
    bool is_good = buffer != NULL && file->view != NULL;

    for (uint32_t block = 0; is_good && block < file->block_count; block++)
        is_good = !atomic_load(&cache->is_stopping) && hash_block(file, block, buffer);
    free(buffer);
    free(job);
    cache_lock(cache);
    assert(cache->job_count > 0 && file->users > 0);
    cache->job_count--;
    file_release(file);
    pthread_cond_broadcast(&cache->settled);
    cache_unlock(cache);
}

/* --- taking over --- */

/* With the lock. */
static void mark_here(struct cached_file *file)
{
    assert(file->phase == FILE_OPEN && file->view != NULL);
    for (uint32_t block = 0; block < file->block_count; block++)
        block_set(file, block, BLOCK_HERE);
    for (uint32_t i = 0; i < file->extent_count; i++) {
        file->extents[i].is_used = true;
        pins_touch(&file->extents[i]);
    }
    file->was_asked = true;
}

/* The file has its name in the folder; it is opened, and hashed in the background. */
static void take_over(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES], uint64_t size_bytes)
{
    struct hashing *hashing = calloc(1, sizeof(*hashing));
    struct cached_file *file;

    assert(size_bytes > 0);
    if (hashing == NULL || !index_write(&cache->folder, key, size_bytes, NULL, 0) ||
        file_acquire(cache, key, size_bytes, &file, NULL) != ZT_OK) {
        folder_remove(&cache->folder, key);
        free(hashing);
        return;
    }
    hashing->file = file;
    hashing->job.run = hash_all;
    cache_lock(cache);
    /* Another thread may have opened the version already, and be fetching it. */
    if (file->view != NULL && file->runs == NULL && file->users == 1)
        mark_here(file);
    cache->job_count++;
    cache->is_to_trim = true;
    pthread_cond_signal(&cache->work);
    cache_unlock(cache);
    if (cache->workers != NULL)
        workers_submit_idle(cache->workers, &hashing->job);
    else
        hash_all(&hashing->job);
}

void cache_adopt(struct cache *cache, const uint8_t key[CACHE_KEY_BYTES], int descriptor,
                 uint64_t size_bytes)
{
    const struct folder *folder = &cache->folder;
    bool is_known;

    assert(descriptor >= 0);
    cache_lock(cache);
    is_known = file_find(cache, key) != NULL;
    cache_unlock(cache);
    if (!is_known && atomic_load(&folder->descriptor) >= 0 && size_bytes > 0 &&
        has_size(descriptor, size_bytes) && link_file(folder, key, descriptor))
        take_over(cache, key, size_bytes);
    close(descriptor);
}
