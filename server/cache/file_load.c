#include "cache/file_load.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/index_file.h"

/* Records beyond one per block after which an index is rewritten: each block fetched a second time,
 * and some for small files. */
#define SPARE_RECORDS 1024u

static void claim(void *context, uint32_t block, uint64_t checksum)
{
    struct cached_file *file = context;

    assert(file->states != NULL && file->checksums != NULL);
    if (block >= file->block_count)
        return;
    file->checksums[block] = checksum;
    atomic_store(&file->states[block], BLOCK_KNOWN | BLOCK_CLAIMED);
}

static void unclaim(void *context, uint32_t extent)
{
    struct cached_file *file = context;
    uint64_t first = (uint64_t)extent * CACHE_EXTENT_BLOCKS;

    for (uint64_t i = first; i < first + CACHE_EXTENT_BLOCKS && i < file->block_count; i++)
        block_set(file, (uint32_t)i, BLOCK_ABSENT);
}

static void drop_claims(struct cached_file *file)
{
    for (uint32_t block = 0; block < file->block_count; block++)
        atomic_store(&file->states[block], BLOCK_ABSENT);
}

/* Writes the index with the claimed blocks only. */
static bool rewrite_index(struct cached_file *file)
{
    struct index_block *blocks = malloc((file->block_count + 1) * sizeof(*blocks));
    size_t count = 0;
    bool is_written;

    if (blocks == NULL)
        return false;
    for (uint32_t block = 0; block < file->block_count; block++)
        if (block_state(file, block) == BLOCK_CLAIMED)
            blocks[count++] =
                (struct index_block){.checksum = file->checksums[block], .block = block};
    assert(count <= file->block_count);
    is_written = index_write(&file->cache->folder, file->key, file->size_bytes, blocks, count);
    free(blocks);
    return is_written;
}

/* Makes the file as long as the version; what was in it is gone unless it had that length. -1 with
 * errno. */
static int open_blocks(struct cached_file *file, bool *out_is_new)
{
    int descriptor =
        folder_file(&file->cache->folder, file->key, FOLDER_BLOCKS, O_RDWR | O_CREAT | O_NONBLOCK);
    struct stat facts;

    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) {
        *out_is_new = (uint64_t)facts.st_size != file->size_bytes;
        if (!*out_is_new)
            return descriptor;
        if (ftruncate(descriptor, 0) == 0 && ftruncate(descriptor, (off_t)file->size_bytes) == 0)
            return descriptor;
    }
    close(descriptor);
    return -1;
}

/* An extent without claimed blocks may still take space. */
static void note_used(struct cached_file *file, bool is_new)
{
    for (uint32_t i = 0; is_new && i < file->extent_count; i++)
        file->extents[i].is_used = false;
    for (uint32_t block = 0; block < file->block_count; block++)
        if (block_state(file, block) == BLOCK_CLAIMED) {
            file->extents[extent_of_block(block)].is_used = true;
            file->was_asked = true;
        }
}

static bool load_index(struct cached_file *file, bool is_new)
{
    const struct index_reader reader = {.block = claim, .removed = unclaim, .context = file};
    uint64_t records = 0;
    bool is_good =
        !is_new && index_load(&file->cache->folder, file->key, file->size_bytes, &reader, &records);

    if (!is_good)
        drop_claims(file);
    if ((!is_good || records > 2 * (uint64_t)file->block_count + SPARE_RECORDS) &&
        !rewrite_index(file))
        return false;
    note_used(file, is_new);
    return true;
}

/* Without a view everything still works, from memory. */
static void open_view(struct cached_file *file)
{
    bool is_new = false;
    int descriptor;

    assert(file->view == NULL && file->descriptor < 0);
    if (atomic_load(&file->cache->folder.descriptor) < 0 || file->size_bytes == 0)
        return;
    descriptor = open_blocks(file, &is_new);
    if (descriptor < 0 && errno == ENOENT) {
        folder_restore(&file->cache->folder);
        descriptor = open_blocks(file, &is_new);
    }
    if (descriptor < 0)
        return;
    if (!load_index(file, is_new) ||
        zt_source_from_descriptor(descriptor, &file->view, NULL) != ZT_OK) {
        drop_claims(file);
        close(descriptor);
        return;
    }
    file->descriptor = descriptor;
}

enum zt_status file_load(struct cached_file *file, struct zt_error *error)
{
    assert(file->runs == NULL && file->users == 0);
    assert(file->phase == FILE_BUSY && file->states == NULL && file->checksums == NULL);
    file->was_asked = false;
    file->checks_left = 0;
    file->is_cut = false;
    file->states = calloc(file->block_count + 1, sizeof(*file->states));
    file->checksums = calloc(file->block_count + 1, sizeof(*file->checksums));
    if (file->states == NULL || file->checksums == NULL) {
        file_unload(file);
        return zt_fail_memory(error, "the index of a cached file");
    }
    open_view(file);
    return ZT_OK;
}

void file_unload(struct cached_file *file)
{
    assert(file->phase == FILE_BUSY && file->runs == NULL);
    zt_source_close(file->view);
    file->view = NULL;
    file->descriptor = -1;
    while (file->prefixes != NULL) {
        struct cached_prefix *next = file->prefixes->next;

        free(file->prefixes);
        file->prefixes = next;
    }
    free(file->states);
    free(file->checksums);
    file->states = NULL;
    file->checksums = NULL;
}
