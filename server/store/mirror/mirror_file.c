/* The files behind the sources of mirrored files. All sources of the same bytes share one.
 *
 * A file that is not verified is remembered for an hour after its last use: the cache then still
 * has the checksums of the bytes that clients have had, and a later fetch must match them. */
#include "store/mirror/mirror_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/mirror/mirror_state.h"

/* How long files are remembered and notes count, and how many files that have no source. */
#define REMEMBERED_MS   INT64_C(3600000)
#define REMEMBERED_MOST 256u
/* How many others stay open: the cache compares the blocks of a file that it opens with their
 * checksums again, which each request for the file would wait for. */
#define READY_MOST 64u

/* --- places --- */

size_t mirror_texts_size(const struct mirror_place *place)
{
    return strlen(place->file.repository) + strlen(place->file.commit) + strlen(place->file.path) +
           strlen(place->file.etag) + 4;
}

void mirror_place_copy(const struct mirror_place *from, char *texts, struct mirror_place *out_place)
{
    struct mirror_place place = *from;

    place.file.repository = strcpy(texts, from->file.repository);
    texts += strlen(texts) + 1;
    place.file.commit = strcpy(texts, from->file.commit);
    texts += strlen(texts) + 1;
    place.file.path = strcpy(texts, from->file.path);
    texts += strlen(texts) + 1;
    place.file.etag = strcpy(texts, from->file.etag);
    *out_place = place;
}

/* The key names the content, or the place if no digest is stated. ZT_NO_MEMORY. */
static enum zt_status make_key(const struct mirror_place *place, uint8_t out_key[CACHE_KEY_BYTES])
{
    const struct upstream_place *file = &place->file;
    char text[UPSTREAM_REPOSITORY_SIZE + UPSTREAM_ETAG_SIZE + UPSTREAM_PATH_SIZE + 64];
    struct zt_digest digest;
    enum zt_status status;
    size_t length = sizeof(uint32_t) + sizeof(uint64_t);
    const uint32_t kind = file->digest_kind;

    memcpy(text, &kind, sizeof(kind));
    memcpy(text + sizeof(kind), &file->size_bytes, sizeof(file->size_bytes));
    if (file->digest_kind == UPSTREAM_NO_DIGEST)
        length +=
            (size_t)snprintf(text + length, sizeof(text) - length, "%s\n%s\n%s", file->repository,
                             file->etag[0] != '\0' ? file->etag : file->commit, file->path);
    else {
        memcpy(text + length, file->digest, sizeof(file->digest));
        length += file->digest_kind == UPSTREAM_SHA256 ? 32 : 20;
    }
    assert(length < sizeof(text));
    status = zt_digest_of(ZT_DIGEST_SHA256, text, length, &digest);
    if (status == ZT_OK)
        memcpy(out_key, digest.bytes, CACHE_KEY_BYTES);
    return status;
}

/* --- notes --- */

void mirror_noted_add(struct mirror_noted *noted, const uint8_t key[CACHE_KEY_BYTES])
{
    const unsigned at = noted->next++ % MIRROR_NOTED_MOST;

    memcpy(noted->files[at].key, key, CACHE_KEY_BYTES);
    noted->files[at].at_ms = clock_ms();
}

bool mirror_noted_has(const struct mirror_noted *noted, const uint8_t key[CACHE_KEY_BYTES])
{
    const int64_t since_ms = clock_ms() - REMEMBERED_MS;

    for (unsigned i = 0; i < MIRROR_NOTED_MOST; i++)
        if (noted->files[i].at_ms != 0 && noted->files[i].at_ms >= since_ms &&
            memcmp(noted->files[i].key, key, CACHE_KEY_BYTES) == 0)
            return true;
    return false;
}

void mirror_noted_remove(struct mirror_noted *noted, const uint8_t key[CACHE_KEY_BYTES])
{
    for (unsigned i = 0; i < MIRROR_NOTED_MOST; i++)
        if (memcmp(noted->files[i].key, key, CACHE_KEY_BYTES) == 0)
            noted->files[i].at_ms = 0;
}

/* --- files --- */

static struct mirror_file *find(struct mirror_files *files, const uint8_t key[CACHE_KEY_BYTES])
{
    struct mirror_file *file = files->first;

    while (file != NULL && memcmp(file->key, key, CACHE_KEY_BYTES) != 0)
        file = file->next;
    return file;
}

void mirror_file_unlist(struct mirror_file *file)
{
    struct mirror_files *files = file->files;
    struct mirror_file **link = &files->first;

    if (!file->is_listed)
        return;
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    file->is_listed = false;
}

void mirror_file_unlock(struct mirror_file *file)
{
    struct mirror_files *files = file->files;
    const bool is_to_close =
        !file->is_listed && file->users == 0 && file->hashing == MIRROR_PARKED && !file->is_closed;

    assert(file->users > 0 || file->waiters == NULL);
    file->is_closed = file->is_closed || is_to_close;
    pthread_mutex_unlock(&files->lock);
    if (is_to_close)
        zt_source_close(file->cached);
}

/* With the lock. Returns true if something would be forgotten with the file: clients had bytes that
 * are not verified. */
static bool is_memory(const struct mirror_file *file)
{
    return atomic_load(&file->verdict) == MIRROR_UNKNOWN && file->left_count < file->block_count &&
           mirror_has_digest(file);
}

/* With the lock. Of the files without users; NULL: there is none. */
static struct mirror_file *find_oldest(const struct mirror_files *files, bool are_memory,
                                       unsigned *out_count)
{
    struct mirror_file *oldest = NULL;

    *out_count = 0;
    for (struct mirror_file *file = files->first; file != NULL; file = file->next) {
        if (file->users > 0 || is_memory(file) != are_memory)
            continue;
        ++*out_count;
        if (oldest == NULL || file->used_ms < oldest->used_ms)
            oldest = file;
    }
    return oldest;
}

/* Without the lock. Forgets files that have not been used for a long time, or are too many. */
static void sweep(struct mirror_files *files, bool are_memory, unsigned most)
{
    while (true) {
        const int64_t before_ms = clock_ms() - REMEMBERED_MS;
        struct mirror_file *oldest;
        unsigned count;

        pthread_mutex_lock(&files->lock);
        oldest = find_oldest(files, are_memory, &count);
        if (oldest == NULL || (count <= most && oldest->used_ms > before_ms)) {
            pthread_mutex_unlock(&files->lock);
            return;
        }
        mirror_file_unlist(oldest);
        mirror_file_unlock(oldest);
    }
}

void mirror_file_release(struct mirror_file *file)
{
    pthread_mutex_lock(&file->files->lock);
    assert(file->users > 0);
    file->users--;
    file->used_ms = clock_ms();
    mirror_file_unlock(file);
}

/* --- the origin --- */

static void begin_fetch(struct cache_origin *origin, struct cache_fetch *fetch)
{
    struct mirror_file *file = (struct mirror_file *)origin;
    const struct mirror_files_options *options = &file->files->options;

    pthread_mutex_lock(&file->files->lock);
    if (mirror_has_digest(file) && atomic_load(&file->verdict) == MIRROR_UNKNOWN)
        mirror_verify_poke(file);
    pthread_mutex_unlock(&file->files->lock);
    if (!mirror_shared_fetch(file, fetch))
        options->fetch(options->upstream, &file->place.file, fetch);
}

static void close_origin(struct cache_origin *origin)
{
    struct mirror_file *file = (struct mirror_file *)origin;

    assert(file->users == 0 && !file->is_listed);
    assert(file->waiters == NULL && file->hashing == MIRROR_PARKED);
    zt_hasher_free(file->hasher);
    mirror_files_release(file->files);
    free(file->texts);
    free(file->had);
    free(file);
}

/* --- opening --- */

static struct mirror_file *file_new(struct mirror_files *files, const struct mirror_place *place,
                                    const uint8_t key[CACHE_KEY_BYTES])
{
    struct mirror_file *file = calloc(1, sizeof(*file));
    char *texts = malloc(mirror_texts_size(place));
    const uint64_t blocks = (place->file.size_bytes + CACHE_BLOCK_BYTES - 1) / CACHE_BLOCK_BYTES;
    uint8_t *had = place->file.size_bytes <= CACHE_FILE_BYTES_MOST
                       ? calloc((size_t)(blocks / 8 + 1), sizeof(*had))
                       : NULL;

    if (file == NULL || texts == NULL || had == NULL) {
        free(file);
        free(texts);
        free(had);
        return NULL;
    }
    file->origin = (struct cache_origin){begin_fetch, close_origin};
    file->files = files;
    memcpy(file->key, key, sizeof(file->key));
    atomic_fetch_add(&files->holders, 1);
    file->texts = texts;
    mirror_place_copy(place, texts, &file->place);
    file->had = had;
    file->block_count = file->left_count = (uint32_t)blocks;
    file->users = 1;
    return file;
}

bool mirror_file_mark(struct mirror_file *file, uint32_t block)
{
    const uint8_t bit = (uint8_t)(1u << block % 8);

    assert(block < file->block_count);
    if ((file->had[block / 8] & bit) != 0)
        return true;
    if (file->left_count <= 1)
        return false;
    file->had[block / 8] |= bit;
    file->left_count--;
    return true;
}

/* Clients may have had the bytes that an earlier process fetched. If these are all, any block may
 * be the one that a client lacks. Returns true if there is any. */
static bool mark_settled(struct mirror_file *file)
{
    uint32_t count = 0;

    for (uint32_t block = 0; block < file->block_count; block++)
        if (cache_is_settled(file->cached, block * CACHE_BLOCK_BYTES)) {
            (void)mirror_file_mark(file, block);
            count++;
        }
    file->is_withheld = count == file->block_count;
    return count > 0;
}

/* With the opening lock. */
static enum zt_status make_file(struct mirror_files *files, const struct mirror_place *place,
                                const uint8_t key[CACHE_KEY_BYTES],
                                const struct store_shared_file *shared,
                                struct mirror_file **out_file, struct zt_error *error)
{
    struct mirror_file *file = file_new(files, place, key);
    uint8_t proof[MIRROR_PROOF_BYTES];
    enum zt_status status;
    bool has_any;

    if (file == NULL && place->file.size_bytes > CACHE_FILE_BYTES_MOST)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the file is longer than any store keeps");
    if (file == NULL)
        return zt_fail_memory(error, "a mirrored file");
    file->shared = *shared;
    atomic_init(&file->is_shared, shared->version[0] != '\0');
    /* A failure closes the origin. */
    file->users = 0;
    status = cache_file_open(files->options.cache, key, place->file.size_bytes, &file->origin,
                             &file->cached, error);
    if (status != ZT_OK)
        return status;
    has_any = mark_settled(file);
    if (place->is_verified && cache_proof(file->cached, proof) &&
        memcmp(proof, place->proof, sizeof(proof)) == 0)
        atomic_store(&file->verdict, MIRROR_VERIFIED);
    pthread_mutex_lock(&files->lock);
    file->users = 1;
    file->next = files->first;
    file->is_listed = true;
    files->first = file;
    if (mirror_has_digest(file) && atomic_load(&file->verdict) == MIRROR_UNKNOWN &&
        (has_any || file->block_count == 0))
        mirror_verify_poke(file);
    pthread_mutex_unlock(&files->lock);
    *out_file = file;
    return ZT_OK;
}

/* The file of a key, with one more user; NULL: there is none. */
static struct mirror_file *acquire(struct mirror_files *files, const uint8_t key[CACHE_KEY_BYTES])
{
    struct mirror_file *file;

    pthread_mutex_lock(&files->lock);
    file = find(files, key);
    if (file != NULL)
        file->users++;
    pthread_mutex_unlock(&files->lock);
    if (file == NULL || !cache_has_lost(file->cached))
        return file;
    mirror_verify_wrong(file, MIRROR_OTHER_BYTES);
    mirror_file_release(file);
    return NULL;
}

enum zt_status mirror_file_acquire(struct mirror_files *files, const struct mirror_place *place,
                                   struct mirror_file **out_file, struct zt_error *error)
{
    uint8_t key[CACHE_KEY_BYTES];
    enum zt_status status = make_key(place, key);
    struct store_shared_file shared;
    struct mirror_file *file;

    if (status != ZT_OK)
        return zt_fail_memory(error, "a mirrored file");
    sweep(files, false, READY_MOST);
    sweep(files, true, REMEMBERED_MOST);
    file = acquire(files, key);
    if (file == NULL && !mirror_shared_find(files, place, &shared))
        shared.version[0] = '\0';
    pthread_mutex_lock(&files->opening);
    if (file == NULL)
        file = acquire(files, key);
    /* Perhaps found wrong since. */
    if (file == NULL && mirror_file_was_wrong(files, place))
        shared.version[0] = '\0';
    if (file == NULL)
        status = make_file(files, place, key, &shared, &file, error);
    pthread_mutex_unlock(&files->opening);
    if (status != ZT_OK)
        return status;
    mirror_shared_offer(file);
    *out_file = file;
    return ZT_OK;
}

void mirror_file_drop(struct mirror_files *files, const struct mirror_place *place)
{
    struct mirror_file *file;
    struct zt_error error;

    if (mirror_file_acquire(files, place, &file, &error) != ZT_OK)
        return;
    mirror_verify_drop(file);
    mirror_file_release(file);
}

bool mirror_file_was_wrong(struct mirror_files *files, const struct mirror_place *place)
{
    uint8_t key[CACHE_KEY_BYTES];
    bool was_wrong;

    if (make_key(place, key) != ZT_OK)
        return true;
    pthread_mutex_lock(&files->lock);
    was_wrong = mirror_noted_has(&files->wrong, key);
    pthread_mutex_unlock(&files->lock);
    return was_wrong;
}

/* --- all files --- */

void mirror_files_release(struct mirror_files *files)
{
    if (atomic_fetch_sub(&files->holders, 1) > 1)
        return;
    pthread_cond_destroy(&files->parked);
    pthread_mutex_destroy(&files->lock);
    pthread_mutex_destroy(&files->opening);
    free(files);
}

enum zt_status mirror_files_new(const struct mirror_files_options *options,
                                struct mirror_files **out_files, struct zt_error *error)
{
    struct mirror_files *files = calloc(1, sizeof(*files));

    assert(options->fetch != NULL && options->cache != NULL && options->workers != NULL);
    assert(options->on_verified != NULL && options->after_verified != NULL);
    assert(options->on_wrong != NULL);
    if (files == NULL)
        return zt_fail_memory(error, "the files of an upstream");
    files->options = *options;
    pthread_mutex_init(&files->lock, NULL);
    pthread_cond_init(&files->parked, NULL);
    pthread_mutex_init(&files->opening, NULL);
    atomic_init(&files->is_strict, options->is_strict);
    atomic_init(&files->holders, 1);
    *out_files = files;
    return ZT_OK;
}

uint64_t mirror_files_read_bytes(const struct mirror_files *files)
{
    return atomic_load(&files->read_bytes);
}

void mirror_files_set_strict(struct mirror_files *files, bool is_strict)
{
    atomic_store(&files->is_strict, is_strict);
}

void mirror_files_interrupt(struct mirror_files *files)
{
    struct zt_source_waiter *waiters = NULL;

    atomic_store(&files->is_stopping, true);
    pthread_mutex_lock(&files->lock);
    for (struct mirror_file *file = files->first; file != NULL; file = file->next)
        while (file->waiters != NULL) {
            struct zt_source_waiter *waiter = file->waiters;

            file->waiters = waiter->next;
            waiter->next = waiters;
            waiters = waiter;
        }
    pthread_mutex_unlock(&files->lock);
    mirror_wake_failed(waiters, ZT_UNAVAILABLE, "the program is shutting down");
}

void mirror_files_free(struct mirror_files *files)
{
    if (files == NULL)
        return;
    assert(atomic_load(&files->is_stopping));
    pthread_mutex_lock(&files->lock);
    /* Bytes are on their way, but the interrupted requests end soon. */
    while (files->busy_count > 0)
        pthread_cond_wait(&files->parked, &files->lock);
    while (files->first != NULL) {
        struct mirror_file *file = files->first;

        assert(file->users == 0);
        mirror_file_unlist(file);
        mirror_file_unlock(file);
        pthread_mutex_lock(&files->lock);
    }
    pthread_mutex_unlock(&files->lock);
    mirror_files_release(files);
}
