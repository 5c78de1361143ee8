/* Opens a version of a file that need not be a model. */
#include "tree/stored_file.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "digests/hash_table.h"

static enum zt_status open_file(struct server *server, struct stored_file *file,
                                struct zt_error *error)
{
    struct store *store = server->store;
    const enum zt_status status =
        store->ops->open(store, file->path, &file->source, &file->identity, error);

    if (status != ZT_OK)
        return status;
    file->has_sha256 = file_hashes_find(server->hashes, file->path, &file->identity, file->sha256);
    if (!file->has_sha256)
        file_hashes_want(server->hashes, file->path, &file->identity);
    return ZT_OK;
}

enum zt_status stored_file_open(struct server *server, struct zt_text path,
                                struct stored_file **out_file, struct zt_error *error)
{
    struct stored_file *file;
    enum zt_status status;

    if (!store_path_is_served(path))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such file");
    file = calloc(1, sizeof(*file));
    if (file == NULL)
        return zt_fail_memory(error, "a file");
    file->store = server->store;
    file->path = strndup(path.bytes, path.length);
    status = file->path != NULL ? open_file(server, file, error) : zt_fail_memory(error, "a file");
    if (status != ZT_OK) {
        stored_file_close(file);
        return status;
    }
    *out_file = file;
    return ZT_OK;
}

/* --- waiting --- */

struct file_wait {
    struct zt_source_waiter waiter; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_woken;
};

static void wake(struct zt_source_waiter *waiter)
{
    struct file_wait *wait = (struct file_wait *)waiter;

    pthread_mutex_lock(&wait->lock);
    wait->is_woken = true;
    pthread_cond_signal(&wait->changed);
    pthread_mutex_unlock(&wait->lock);
}

enum zt_status stored_file_await(struct stored_file *file, struct zt_error *error)
{
    const uint64_t size = zt_source_size(file->source);
    struct file_wait wait = {.waiter.wake = wake,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER};
    uint64_t passed;

    assert(thread_may_wait());
    while (size > 0 && wait.waiter.error.status == ZT_OK &&
           (passed = zt_source_pass(file->source, 0, size)) < size) {
        wait.is_woken = false;
        zt_source_await(file->source, passed, size - passed, 1, &wait.waiter);
        pthread_mutex_lock(&wait.lock);
        while (!wait.is_woken)
            pthread_cond_wait(&wait.changed, &wait.lock);
        pthread_mutex_unlock(&wait.lock);
    }
    pthread_cond_destroy(&wait.changed);
    pthread_mutex_destroy(&wait.lock);
    if (wait.waiter.error.status != ZT_OK && error != NULL)
        *error = wait.waiter.error;
    return wait.waiter.error.status;
}

void stored_file_close(void *thing)
{
    struct stored_file *file = thing;

    if (file == NULL)
        return;
    zt_source_close(file->source);
    free(file->path);
    free(file);
}

bool stored_file_is_unwritten(const struct stored_file *file)
{
    struct file_identity now;

    return !store_has_locally(file->store, zt_text_from(file->path)) ||
           (file->store->ops->identity_of(file->store, file->source, &now) &&
            now.size_bytes == file->identity.size_bytes &&
            now.modified_ns == file->identity.modified_ns);
}

void stored_file_etag(const char *path, const struct file_identity *identity,
                      char out_etag[STORED_FILE_ETAG_SIZE])
{
    const struct hash_key key = hash_key_of(path, identity);

    snprintf(out_etag, STORED_FILE_ETAG_SIZE, "\"%016" PRIx64 "%016" PRIx64 "\"", key.words[0],
             key.words[1]);
}
