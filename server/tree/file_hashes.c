/* What is known of the digests of files, and what is to be found. */
#include "tree/file_hashes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/memory.h"
#include "tree/hash_work.h"

struct file_hashes *file_hashes_new(struct server *server)
{
    struct file_hashes *hashes = calloc(1, sizeof(*hashes));

    if (hashes == NULL)
        return NULL;
    hashes->server = server;
    pthread_mutex_init(&hashes->lock, NULL);
    pthread_mutex_init(&hashes->saving, NULL);
    hash_finders_init(hashes);
    saved_hashes_recall(hashes);
    return hashes;
}

void file_hashes_free(struct file_hashes *hashes)
{
    if (hashes == NULL)
        return;
    saved_hashes_write(hashes);
    hash_finders_clear(hashes);
    hash_table_free(&hashes->table);
    free(hashes->unsaved.items);
    state_folder_leave(&hashes->folder);
    pthread_mutex_destroy(&hashes->saving);
    pthread_mutex_destroy(&hashes->lock);
    free(hashes);
}

static bool find(struct file_hashes *hashes, const struct hash_key *key,
                 uint8_t out_sha256[FILE_SHA256_BYTES])
{
    const struct hash_entry *entry;
    bool is_known;

    pthread_mutex_lock(&hashes->lock);
    entry = hash_table_find(&hashes->table, key);
    is_known = entry != NULL && entry->is_known;
    if (is_known)
        memcpy(out_sha256, entry->sha256, FILE_SHA256_BYTES);
    pthread_mutex_unlock(&hashes->lock);
    return is_known;
}

bool file_hashes_find(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity, uint8_t out_sha256[FILE_SHA256_BYTES])
{
    const struct hash_key key = hash_key_of(path, identity);

    return find(hashes, &key, out_sha256);
}

/* With the lock held. Without memory, or room in the queue, the file must be wanted again. */
static void add_wanted(struct file_hashes *hashes, const struct hash_key *key, const char *path,
                       const struct file_identity *identity, const struct hash_made *made)
{
    struct hash_task *task = hash_task_new(path, identity, key);

    if (task != NULL && made != NULL)
        hash_task_make(task, made);
    if (task != NULL && hash_table_put(&hashes->table, key) != NULL &&
        hash_finder_add(hashes, task)) {
        hash_finder_wake(hashes);
        return;
    }
    hash_task_free(task);
    if (hash_table_find(&hashes->table, key) != NULL)
        hash_table_remove(&hashes->table, hash_table_find(&hashes->table, key));
}

static void want(struct file_hashes *hashes, const char *path, const struct file_identity *identity,
                 const struct hash_made *made)
{
    const struct hash_key key = hash_key_of(path, identity);

    if (atomic_load(&hashes->server->draining))
        return;
    pthread_mutex_lock(&hashes->lock);
    if (hash_table_find(&hashes->table, &key) == NULL)
        add_wanted(hashes, &key, path, identity, made);
    pthread_mutex_unlock(&hashes->lock);
}

void file_hashes_want(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity)
{
    want(hashes, path, identity, NULL);
}

void file_hashes_want_made(struct file_hashes *hashes, const char *path,
                           const struct file_identity *identity, const struct hash_made *made)
{
    want(hashes, path, identity, made);
}

static void keep(struct file_hashes *hashes, const struct hash_key *key,
                 const uint8_t sha256[FILE_SHA256_BYTES])
{
    struct hash_records *unsaved = &hashes->unsaved;
    struct hash_entry *entry;

    pthread_mutex_lock(&hashes->lock);
    entry = hash_table_put(&hashes->table, key);
    if (entry != NULL && !entry->is_known) {
        entry->is_known = true;
        memcpy(entry->sha256, sha256, FILE_SHA256_BYTES);
        /* Without memory for this it is known only as long as the process lives. */
        if (zt_array_reserve(&unsaved->items, &unsaved->capacity, unsaved->count + 1,
                             sizeof(unsaved->items[0]), SIZE_MAX) == ZT_OK) {
            struct hash_record *record = &unsaved->items[unsaved->count++];

            record->key = *key;
            memcpy(record->sha256, sha256, FILE_SHA256_BYTES);
        }
        hash_finder_wake(hashes);
    }
    pthread_mutex_unlock(&hashes->lock);
}

void file_hashes_keep(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity, const uint8_t sha256[FILE_SHA256_BYTES])
{
    const struct hash_key key = hash_key_of(path, identity);
    size_t name_length;
    unsigned rank;

    if (hashes == NULL)
        return;
    keep(hashes, &key, sha256);
    /* Answers about models' files are remembered; others are made anew each time. */
    if (model_path_split(path, &name_length, &rank))
        changes_note();
}

static enum zt_status read_all(struct file_hashes *hashes, struct hash_task *task, uint8_t *chunk,
                               struct zt_error *error)
{
    enum zt_status status = hash_task_begin(task, hashes->server, error);

    while (status == ZT_OK && hash_task_left(task) > 0) {
        if (atomic_load(&hashes->server->draining))
            return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the server is stopping");
        status = hash_task_read(task, chunk, error);
    }
    return status;
}

enum zt_status file_hashes_compute(struct file_hashes *hashes, const char *path,
                                   const struct file_identity *identity,
                                   uint8_t out_sha256[FILE_SHA256_BYTES], struct zt_error *error)
{
    const struct hash_key key = hash_key_of(path, identity);
    struct hash_task *task;
    uint8_t *chunk;
    enum zt_status status;

    if (find(hashes, &key, out_sha256))
        return ZT_OK;
    task = hash_task_new(path, identity, &key);
    chunk = malloc(HASH_CHUNK_BYTES);
    if (task == NULL || chunk == NULL)
        status = zt_fail_memory(error, "the digest of a file");
    else
        status = read_all(hashes, task, chunk, error);
    if (status == ZT_OK)
        status = hash_task_finish(task, hashes->server->store, out_sha256, error);
    if (status == ZT_OK)
        file_hashes_keep(hashes, path, identity, out_sha256);
    free(chunk);
    hash_task_free(task);
    return status;
}
