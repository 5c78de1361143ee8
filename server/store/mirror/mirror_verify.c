/* Hashes a mirrored file behind its arriving bytes, and says whether they are right.
 *
 * A worker hashes what is settled in the cache, in turns. When the next bytes are missing, the file
 * waits without a thread: the cache wakes it. If a client or a prefetch wants the whole file, or a
 * reader found wrong bytes in it, the missing bytes are fetched; otherwise the file is parked until
 * some request fetches more of it. */
#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/mirror/mirror_state.h"

/* How much a worker hashes before others get their turn, and reads at once. */
#define TURN_BYTES ((uint64_t)32 << 20)
#define READ_BYTES ((size_t)256 << 10)

void mirror_wake(struct zt_source_waiter *waiter, const struct zt_error *error)
{
    while (waiter != NULL) {
        struct zt_source_waiter *next = waiter->next;

        if (error == NULL)
            zt_error_clear(&waiter->error);
        else
            waiter->error = *error;
        waiter->wake(waiter);
        waiter = next;
    }
}

void mirror_wake_failed(struct zt_source_waiter *waiter, enum zt_status status, const char *why)
{
    struct zt_error error;

    zt_fail(&error, status, NULL, ZT_NO_OFFSET, "%s", why);
    mirror_wake(waiter, &error);
}

/* With the lock. */
static struct zt_source_waiter *take_waiters(struct mirror_file *file)
{
    struct zt_source_waiter *waiters = file->waiters;

    file->waiters = NULL;
    return waiters;
}

static void submit(struct mirror_file *file)
{
    struct workers *workers = file->files->options.workers;

    assert(file->hashing == MIRROR_QUEUED && !file->is_closed);
    if (file->waiters != NULL)
        workers_submit_long(workers, &file->job);
    else
        workers_submit_idle(workers, &file->job);
}

/* --- the verdict --- */

/* What is kept of the file for other servers may be wrong too, and has to be replaced. */
static void note_wrong(struct mirror_files *files, const struct mirror_file *file)
{
    mirror_noted_add(&files->wrong, file->key);
    mirror_noted_remove(&files->kept, file->key);
}

void mirror_verify_wrong(struct mirror_file *file, const char *why)
{
    struct mirror_files *files = file->files;
    const struct upstream_place *place = &file->place.file;
    struct zt_source_waiter *waiters;
    bool is_new;

    pthread_mutex_lock(&files->lock);
    is_new = atomic_exchange(&file->verdict, MIRROR_WRONG) != MIRROR_WRONG;
    if (is_new) {
        mirror_file_unlist(file);
        note_wrong(files, file);
    }
    waiters = take_waiters(file);
    pthread_mutex_unlock(&files->lock);
    cache_lose(file->cached);
    if (is_new) {
        log_write(LOG_LEVEL_ERROR, "mirror: %s/%s at %s: %s; the bytes are dropped",
                  place->repository, place->path, place->commit, why);
        files->options.on_wrong(files->options.context, &file->place);
    }
    mirror_wake_failed(waiters, ZT_STALE, why);
}

void mirror_verify_drop(struct mirror_file *file)
{
    struct mirror_files *files = file->files;
    struct zt_source_waiter *waiters;
    enum mirror_verdict before;

    pthread_mutex_lock(&files->lock);
    assert(file->users > 0);
    atomic_store(&file->is_dropped, atomic_load(&file->verdict) != MIRROR_WRONG);
    before = atomic_exchange(&file->verdict, MIRROR_WRONG);
    if (before != MIRROR_WRONG)
        mirror_file_unlist(file);
    /* Clients may have bytes that were never checked, and that a later fetch need not match. */
    if (before == MIRROR_UNKNOWN && file->left_count < file->block_count)
        note_wrong(files, file);
    waiters = take_waiters(file);
    pthread_mutex_unlock(&files->lock);
    cache_lose(file->cached);
    mirror_wake_failed(waiters, ZT_STALE, MIRROR_DROPPED);
}

static void verified(struct mirror_file *file, const uint8_t proof[MIRROR_PROOF_BYTES])
{
    struct mirror_files *files = file->files;
    struct zt_source_waiter *waiters;

    static_assert(MIRROR_PROOF_BYTES == CACHE_PROOF_BYTES, "the proof is the cache's");
    pthread_mutex_lock(&files->lock);
    file->place.is_verified = true;
    memcpy(file->place.proof, proof, MIRROR_PROOF_BYTES);
    pthread_mutex_unlock(&files->lock);
    files->options.on_verified(files->options.context, &file->place);
    pthread_mutex_lock(&files->lock);
    atomic_store(&file->verdict, MIRROR_VERIFIED);
    waiters = take_waiters(file);
    pthread_mutex_unlock(&files->lock);
    mirror_wake(waiters, NULL);
    files->options.after_verified(files->options.context, &file->place);
    mirror_shared_offer(file);
}

/* Wakes the waiters of a file with a verdict, or of one without a digest whose bytes have all
 * come. */
static void complete(struct mirror_file *file)
{
    const bool is_wrong = atomic_load(&file->verdict) == MIRROR_WRONG;
    struct zt_source_waiter *waiters;

    pthread_mutex_lock(&file->files->lock);
    waiters = take_waiters(file);
    pthread_mutex_unlock(&file->files->lock);
    if (is_wrong)
        mirror_wake_failed(waiters, ZT_STALE, mirror_why_lost(file));
    else
        mirror_wake(waiters, NULL);
}

/* The next turn hashes from the beginning again. */
static void begin_again(struct mirror_file *file)
{
    zt_hasher_free(file->hasher);
    file->hasher = NULL;
    atomic_store(&file->hashed_bytes, 0);
}

static void conclude(struct mirror_file *file)
{
    const struct upstream_place *place = &file->place.file;
    uint8_t proof[MIRROR_PROOF_BYTES];
    struct zt_digest digest;

    assert(atomic_load(&file->hashed_bytes) == place->size_bytes);
    if (!mirror_has_digest(file)) {
        begin_again(file);
        complete(file);
        return;
    }
    zt_hasher_finish(file->hasher, &digest);
    begin_again(file);
    if (memcmp(digest.bytes, place->digest, digest.length_bytes) != 0)
        mirror_verify_wrong(file, "the upstream sent bytes that do not match its digest");
    else if (cache_proof(file->cached, proof))
        verified(file, proof);
    /* Otherwise the cache has lost it, which the next turn finds. */
}

/* --- hashing --- */

/* False: no memory. */
static bool begin(struct mirror_file *file)
{
    const struct upstream_place *place = &file->place.file;
    const bool is_git = place->digest_kind == UPSTREAM_GIT_SHA1;
    char header[32];
    int length;

    if (!mirror_has_digest(file) || file->hasher != NULL)
        return true;
    assert(atomic_load(&file->hashed_bytes) == 0);
    if (zt_hasher_new(is_git ? ZT_DIGEST_SHA1 : ZT_DIGEST_SHA256, &file->hasher) != ZT_OK)
        return false;
    if (is_git) {
        length = snprintf(header, sizeof(header), "blob %" PRIu64, place->size_bytes);
        zt_hasher_update(file->hasher, header, (size_t)length + 1);
    }
    return true;
}

/* Hashes what is settled. False: no memory. */
static bool hash_some(struct mirror_file *file)
{
    const uint64_t size = file->place.file.size_bytes;
    uint8_t *buffer = malloc(READ_BYTES);
    uint64_t turn = 0;
    size_t length = 1;

    while (buffer != NULL && length > 0 && turn < TURN_BYTES &&
           !atomic_load(&file->files->is_stopping)) {
        const uint64_t at = atomic_load(&file->hashed_bytes);

        if (at == size)
            break;
        length = cache_read_settled(file->cached, at, buffer,
                                    size - at < READ_BYTES ? (size_t)(size - at) : READ_BYTES);
        if (file->hasher != NULL)
            zt_hasher_update(file->hasher, buffer, length);
        atomic_store(&file->hashed_bytes, at + length);
        turn += length;
    }
    free(buffer);
    return buffer != NULL;
}

/* With the lock; gives it up. */
static void park(struct mirror_file *file)
{
    struct mirror_files *files = file->files;

    assert(file->hashing != MIRROR_PARKED && files->busy_count > 0);
    file->hashing = MIRROR_PARKED;
    files->busy_count--;
    pthread_cond_broadcast(&files->parked);
    mirror_file_unlock(file);
}

/* The next bytes are missing. */
static void await_more(struct mirror_file *file)
{
    struct mirror_files *files = file->files;
    const uint64_t at = atomic_load(&file->hashed_bytes);
    uint64_t ahead = file->place.file.size_bytes - at;
    bool fetch;

    if (ahead > CACHE_AHEAD_BYTES)
        ahead = CACHE_AHEAD_BYTES;
    pthread_mutex_lock(&files->lock);
    assert(file->hashing == MIRROR_QUEUED);
    file->hashing = MIRROR_WAITING;
    file->is_poked = false;
    fetch = file->waiters != NULL || file->is_doubted;
    pthread_mutex_unlock(&files->lock);
    if (cache_await_settled(file->cached, at, ahead, fetch, &file->arrival))
        return;
    pthread_mutex_lock(&files->lock);
    if (file->is_poked && !atomic_load(&files->is_stopping)) {
        file->hashing = MIRROR_QUEUED;
        submit(file);
        pthread_mutex_unlock(&files->lock);
    } else
        park(file);
}

/* With the lock; gives it up. Waiting threads get the reason; the next request begins again. */
static void give_up_turns(struct mirror_file *file, const struct zt_error *why)
{
    struct zt_source_waiter *waiters = take_waiters(file);

    park(file);
    mirror_wake(waiters, why);
}

static void stop_turns(struct mirror_file *file)
{
    struct zt_error error;

    zt_fail(&error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the program is shutting down");
    give_up_turns(file, &error);
}

/* The verdict was given, or the program ends. */
static void end_turns(struct mirror_file *file)
{
    struct mirror_files *files = file->files;

    pthread_mutex_lock(&files->lock);
    if (!atomic_load(&files->is_stopping) && file->waiters != NULL) {
        /* A request has begun to wait since. */
        submit(file);
        pthread_mutex_unlock(&files->lock);
    } else
        stop_turns(file);
}

/* Returns true if the verdict is known. */
static bool is_over(struct mirror_file *file)
{
    if (atomic_load(&file->verdict) == MIRROR_UNKNOWN && cache_has_lost(file->cached))
        mirror_verify_wrong(file, MIRROR_OTHER_BYTES);
    return atomic_load(&file->verdict) != MIRROR_UNKNOWN;
}

static void run_turn(struct job *job)
{
    struct mirror_file *file =
        (struct mirror_file *)((char *)job - offsetof(struct mirror_file, job));
    struct mirror_files *files = file->files;
    const uint64_t before = atomic_load(&file->hashed_bytes);
    const bool is_decided = is_over(file);
    const bool has_memory = is_decided || (begin(file) && hash_some(file));
    const uint64_t at = atomic_load(&file->hashed_bytes);
    struct zt_error error;

    if (is_decided || atomic_load(&files->is_stopping)) {
        if (is_decided)
            complete(file);
        end_turns(file);
    } else if (!has_memory) {
        log_write(LOG_LEVEL_ERROR, "mirror: no memory to verify a file");
        zt_fail_memory(&error, "the verification of a file");
        pthread_mutex_lock(&files->lock);
        give_up_turns(file, &error);
    } else if (at == file->place.file.size_bytes) {
        conclude(file);
        end_turns(file);
    } else if (at - before >= TURN_BYTES) {
        pthread_mutex_lock(&files->lock);
        submit(file);
        pthread_mutex_unlock(&files->lock);
    } else
        await_more(file);
}

/* The next bytes are settled, or cannot be had. */
static void on_arrival(struct zt_source_waiter *arrival)
{
    struct mirror_file *file =
        (struct mirror_file *)((char *)arrival - offsetof(struct mirror_file, arrival));
    struct mirror_files *files = file->files;

    pthread_mutex_lock(&files->lock);
    assert(file->hashing == MIRROR_WAITING);
    if (atomic_load(&files->is_stopping)) {
        stop_turns(file);
    } else if (arrival->error.status == ZT_OK || cache_has_lost(file->cached)) {
        file->hashing = MIRROR_QUEUED;
        submit(file);
        pthread_mutex_unlock(&files->lock);
    } else {
        const struct zt_error error = arrival->error;

        give_up_turns(file, &error);
    }
}

/* --- asking for it --- */

void mirror_verify_poke(struct mirror_file *file)
{
    file->is_poked = true;
    if (file->is_closed || file->hashing != MIRROR_PARKED || atomic_load(&file->files->is_stopping))
        return;
    file->job = (struct job){.run = run_turn, .client = JOB_OF_SERVER};
    file->arrival.wake = on_arrival;
    file->hashing = MIRROR_QUEUED;
    file->files->busy_count++;
    submit(file);
}

void mirror_verify_await(struct mirror_file *file, struct zt_source_waiter *waiter)
{
    waiter->next = file->waiters;
    file->waiters = waiter;
}

bool mirror_verify_forget(struct mirror_file *file, struct zt_source_waiter *waiter)
{
    struct zt_source_waiter **link = &file->waiters;

    assert(waiter != NULL && waiter->wake != NULL);
    while (*link != NULL && *link != waiter)
        link = &(*link)->next;
    if (*link == NULL)
        return false;
    *link = waiter->next;
    waiter->next = NULL;
    return true;
}
