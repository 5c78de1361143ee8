/* Sources of mirrored files, which remember what clients have had: of a file that is not verified,
 * the last block that no client has had is held back. So no client can have all of its bytes before
 * they are known to be right, in any order and over any number of requests.
 *
 * Requests that need the held block are called back (zt_source_await), so even many clients of
 * one slow file occupy no thread. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/mirror/mirror_state.h"

struct mirror_source {
    struct zt_source base; /* first */
    struct mirror_file *file;
    struct mirror_place place;
    char texts[];
};

static const struct zt_source_ops mirror_ops;

static struct mirror_file *file_of(const struct zt_source *source)
{
    assert(source->ops == &mirror_ops);
    return ((const struct mirror_source *)source)->file;
}

static uint64_t source_size(const struct zt_source *source)
{
    return file_of(source)->place.file.size_bytes;
}

static void count_read(const struct zt_source *source, uint64_t length)
{
    atomic_fetch_add_explicit(&file_of(source)->files->read_bytes, length, memory_order_relaxed);
}

/* With the lock. How many bytes may be passed on; marks them if wanted. */
static uint64_t passable(struct mirror_file *file, uint64_t offset, uint64_t length, bool marks)
{
    const uint64_t end = offset + length;
    uint64_t at = offset;

    assert(length > 0 && end <= file->place.file.size_bytes);
    if (atomic_load(&file->verdict) == MIRROR_VERIFIED || !mirror_has_digest(file))
        return length;
    if (atomic_load(&file->verdict) == MIRROR_WRONG || file->is_withheld ||
        atomic_load(&file->files->is_strict))
        return 0;
    while (at < end) {
        const uint32_t block = (uint32_t)(at / CACHE_BLOCK_BYTES);
        const bool is_had = (file->had[block / 8] >> block % 8 & 1) != 0;

        if (marks ? !mirror_file_mark(file, block) : (!is_had && file->left_count <= 1))
            break;
        at = (block + 1) * CACHE_BLOCK_BYTES;
    }
    return (at < end ? at : end) - offset;
}

static uint64_t source_pass(struct zt_source *source, uint64_t offset, uint64_t length)
{
    struct mirror_file *file = file_of(source);
    uint64_t passed;

    if (atomic_load(&file->verdict) == MIRROR_VERIFIED)
        return length;
    pthread_mutex_lock(&file->files->lock);
    passed = passable(file, offset, length, true);
    pthread_mutex_unlock(&file->files->lock);
    return passed;
}

/* The server has read bytes, perhaps to make others of them, so clients may have what they say. */
static void note_read(struct zt_source *source, uint64_t offset, uint64_t length,
                      enum zt_status status, const struct zt_error *error)
{
    struct mirror_file *file = file_of(source);
    const struct mirror_files_options *options = &file->files->options;

    if (status == ZT_OK) {
        count_read(source, length);
        if (length > 0)
            (void)source_pass(source, offset, length);
    } else if (status == ZT_UNAVAILABLE && error != NULL && options->on_failed != NULL)
        options->on_failed(options->context, &file->place, error);
}

static enum zt_status source_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    const enum zt_status status =
        zt_source_read_at(file_of(source)->cached, offset, buffer, length, error);

    note_read(source, offset, length, status, error);
    return status;
}

static const uint8_t *source_map(struct zt_source *source)
{
    (void)source;
    return NULL;
}

static void source_close(struct zt_source *source)
{
    struct mirror_file *file = file_of(source);

    free(source);
    mirror_file_release(file);
}

static enum zt_status source_pin(struct zt_source *source, uint64_t offset, uint64_t length,
                                 bool wait, struct zt_pin *out_pin, struct zt_error *error)
{
    const enum zt_status status =
        zt_source_pin(file_of(source)->cached, offset, length, wait, out_pin, error);

    note_read(source, offset, length, status, error);
    return status;
}

static void source_advise(struct zt_source *source, uint64_t offset, uint64_t length)
{
    zt_source_advise(file_of(source)->cached, offset, length);
}

/* A reader finds the bytes wrong. Clients may have had them already, so they must not be replaced
 * by other bytes: only the digest of the whole file decides, for which all of it is fetched. The
 * local copy is compared with its checksums again, because a disk may have damaged it. */
static void source_invalidate(struct zt_source *source, uint64_t offset, uint64_t length)
{
    struct mirror_file *file = file_of(source);

    cache_recheck(file->cached, offset, length);
    pthread_mutex_lock(&file->files->lock);
    file->is_doubted = mirror_has_digest(file) && atomic_load(&file->verdict) == MIRROR_UNKNOWN;
    pthread_mutex_unlock(&file->files->lock);
    mirror_file_continue(source);
}

void mirror_file_continue(const struct zt_source *source)
{
    struct mirror_file *file = file_of(source);

    if (atomic_load(&file->verdict) != MIRROR_UNKNOWN)
        return;
    pthread_mutex_lock(&file->files->lock);
    if (file->is_doubted)
        mirror_verify_poke(file);
    pthread_mutex_unlock(&file->files->lock);
}

/* Waits for the whole file. */
static void await_all(struct mirror_file *file, struct zt_source_waiter *waiter)
{
    struct mirror_files *files = file->files;

    waiter->next = NULL;
    if (atomic_load(&file->verdict) == MIRROR_WRONG) {
        mirror_wake_failed(waiter, ZT_STALE, mirror_why_lost(file));
        return;
    }
    pthread_mutex_lock(&files->lock);
    /* With the lock: mirror_files_interrupt wakes only those that wait by then. */
    if (atomic_load(&files->is_stopping)) {
        pthread_mutex_unlock(&files->lock);
        mirror_wake_failed(waiter, ZT_UNAVAILABLE, "the program is shutting down");
        return;
    }
    mirror_verify_await(file, waiter);
    mirror_verify_poke(file);
    pthread_mutex_unlock(&files->lock);
}

static void source_await(struct zt_source *source, uint64_t offset, uint64_t length, uint64_t least,
                         struct zt_source_waiter *waiter)
{
    struct mirror_file *file = file_of(source);
    uint64_t passed;

    pthread_mutex_lock(&file->files->lock);
    passed = passable(file, offset, length, false);
    pthread_mutex_unlock(&file->files->lock);
    if (passed == 0)
        await_all(file, waiter);
    else
        zt_source_await(file->cached, offset, length, least, waiter);
}

static bool source_forget(struct zt_source *source, struct zt_source_waiter *waiter)
{
    struct mirror_file *file = file_of(source);
    bool is_forgotten;

    pthread_mutex_lock(&file->files->lock);
    is_forgotten = mirror_verify_forget(file, waiter);
    pthread_mutex_unlock(&file->files->lock);
    return is_forgotten;
}

static size_t source_take_arrived(struct zt_source *source, uint64_t offset, void *buffer,
                                  size_t length)
{
    const size_t taken = zt_source_take_arrived(file_of(source)->cached, offset, buffer, length);

    count_read(source, taken);
    return taken;
}

static const struct zt_source_ops mirror_ops = {
    .size = source_size,
    .read_at = source_read_at,
    .map = source_map,
    .close = source_close,
    .pin = source_pin,
    .advise = source_advise,
    .invalidate = source_invalidate,
    .await = source_await,
    .take_arrived = source_take_arrived,
    .pass = source_pass,
    .forget = source_forget,
};

enum zt_status mirror_file_open(struct mirror_files *files, const struct mirror_place *place,
                                struct zt_source **out_source, struct zt_error *error)
{
    struct mirror_source *source = malloc(sizeof(*source) + mirror_texts_size(place));
    enum zt_status status;

    if (source == NULL)
        return zt_fail_memory(error, "a mirrored file");
    status = mirror_file_acquire(files, place, &source->file, error);
    if (status != ZT_OK) {
        free(source);
        return status;
    }
    source->base.ops = &mirror_ops;
    mirror_place_copy(place, source->texts, &source->place);
    *out_source = &source->base;
    return ZT_OK;
}

/* --- questions --- */

const struct mirror_place *mirror_file_place(const struct zt_source *source)
{
    return source->ops == &mirror_ops ? &((const struct mirror_source *)source)->place : NULL;
}

bool mirror_file_is_verified(const struct zt_source *source)
{
    const struct mirror_file *file = file_of(source);

    return atomic_load(&file->verdict) == MIRROR_VERIFIED && !cache_has_lost(file->cached);
}

bool mirror_file_proof(const struct zt_source *source, uint8_t out_proof[MIRROR_PROOF_BYTES])
{
    /* It does not change any more. */
    if (!mirror_file_is_verified(source))
        return false;
    memcpy(out_proof, file_of(source)->place.proof, MIRROR_PROOF_BYTES);
    return true;
}

bool mirror_file_is_lost(const struct zt_source *source)
{
    const struct mirror_file *file = file_of(source);

    return atomic_load(&file->verdict) == MIRROR_WRONG || cache_has_lost(file->cached);
}

uint64_t mirror_file_bytes_here(const struct zt_source *source)
{
    return cache_bytes_here(file_of(source)->cached);
}

void mirror_file_bring(struct zt_source *source, struct zt_source_waiter *waiter)
{
    struct mirror_file *file = file_of(source);

    zt_error_clear(&waiter->error);
    waiter->next = NULL;
    if (mirror_file_is_lost(source))
        mirror_wake_failed(waiter, ZT_STALE, mirror_why_lost(file));
    else
        await_all(file, waiter);
}
