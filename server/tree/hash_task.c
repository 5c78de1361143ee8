/* Reading one version of a file from its start to its end, in pieces. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tree/hash_work.h"

/* Times of files advance by ticks of the kernel's clock. A file that was written to so recently may
 * be written to again without another time. */
#define SETTLED_NS (50 * CLOCK_NS_PER_MS)

struct hash_task *hash_task_new(const char *path, const struct file_identity *identity,
                                const struct hash_key *key)
{
    const size_t size = strlen(path) + 1;
    struct hash_task *task = malloc(sizeof(*task) + size);

    if (task == NULL)
        return NULL;
    *task = (struct hash_task){.key = *key, .identity = *identity};
    memcpy(task->path, path, size);
    return task;
}

void hash_task_make(struct hash_task *task, const struct hash_made *made)
{
    assert(task->made.ops == NULL && task->source == NULL);
    task->made = *made;
    made->ops->hold(made->thing);
}

void hash_task_free(struct hash_task *task)
{
    if (task == NULL)
        return;
    zt_source_close(task->source);
    if (task->made.ops != NULL)
        task->made.ops->release(task->made.thing);
    zt_hasher_free(task->hasher);
    free(task);
}

uint64_t hash_task_left(const struct hash_task *task)
{
    assert(task->read_bytes <= task->identity.size_bytes);
    return task->identity.size_bytes - task->read_bytes;
}

static void wait_until_settled(const struct file_identity *identity)
{
    const int64_t age_ns = clock_wall_ns() - identity->changed_ns;

    if (age_ns >= 0 && age_ns < SETTLED_NS)
        nanosleep(&(struct timespec){.tv_nsec = SETTLED_NS - age_ns}, NULL);
}

static enum zt_status stale(struct zt_error *error)
{
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file has changed");
}

static enum zt_status open_file(struct hash_task *task, struct store *store, struct zt_error *error)
{
    struct file_identity identity;
    const enum zt_status status =
        store->ops->open(store, task->path, &task->source, &identity, error);

    return status == ZT_OK && !store_identity_equal(&identity, &task->identity) ? stale(error)
                                                                                : status;
}

static enum zt_status open_made(struct hash_task *task, struct server *server,
                                struct zt_error *error)
{
    const enum zt_status status = task->made.ops->open(&task->made, server, &task->source, error);

    return status == ZT_OK && zt_source_size(task->source) != task->identity.size_bytes
               ? stale(error)
               : status;
}

enum zt_status hash_task_begin(struct hash_task *task, struct server *server,
                               struct zt_error *error)
{
    enum zt_status status;

    assert(task->source == NULL && task->read_bytes == 0);
    if (!store_is_elsewhere(server->store))
        wait_until_settled(&task->identity);
    status = task->made.ops != NULL ? open_made(task, server, error)
                                    : open_file(task, server->store, error);
    if (status == ZT_OK && zt_hasher_new(ZT_DIGEST_SHA256, &task->hasher) != ZT_OK)
        return zt_fail_memory(error, "a digest");
    return status;
}

enum zt_status hash_task_read(struct hash_task *task, uint8_t *chunk, struct zt_error *error)
{
    const uint64_t left = hash_task_left(task);
    const size_t length = left < HASH_CHUNK_BYTES ? (size_t)left : HASH_CHUNK_BYTES;
    enum zt_status status;

    assert(task->source != NULL && left > 0);
    zt_source_read_on(task->source, task->read_bytes, left, 0);
    status = zt_source_read_at(task->source, task->read_bytes, chunk, length, error);
    if (status != ZT_OK)
        return status;
    zt_hasher_update(task->hasher, chunk, length);
    task->read_bytes += length;
    return ZT_OK;
}

static bool is_still(const struct hash_task *task, struct store *store)
{
    struct file_identity now;

    if (task->made.ops != NULL)
        return task->made.ops->is_still(task->source);
    return store->ops->identity_of(store, task->source, &now) &&
           store_identity_equal(&now, &task->identity);
}

enum zt_status hash_task_finish(struct hash_task *task, struct store *store,
                                uint8_t out_sha256[FILE_SHA256_BYTES], struct zt_error *error)
{
    struct zt_digest digest;

    assert(hash_task_left(task) == 0);
    if (!is_still(task, store))
        return stale(error);
    zt_hasher_finish(task->hasher, &digest);
    memcpy(out_sha256, digest.bytes, FILE_SHA256_BYTES);
    return ZT_OK;
}
