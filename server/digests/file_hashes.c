/* The digests of whole files: the table, the tasks that compute missing digests, and the saved
 * digests in a ledger of the state folder (hashes/), which is replaced when most of it is obsolete:
 *
 *   magic (8 bytes), hash; then records: key (16), SHA-256 (32), hash */
#include "digests/file_hashes.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/changes.h"
#include "base/clock.h"
#include "digests/hash_table.h"
#include "disk/ledger.h"
#include "store/state_place.h"
#include "store/store_here.h"

/* File times advance in ticks of the kernel's clock. A file that was written more recently than
 * this may be written again without getting another time. */
#define SETTLED_NS (50 * CLOCK_NS_PER_MS)

/* The last digit is the format version. */
#define MAGIC        "ZTSHSH01"
#define MAGIC_BYTES  8
#define HEADER_BYTES (MAGIC_BYTES + RECORD_HASH_BYTES)
#define RECORD_BYTES (16 + SHA256_BYTES + RECORD_HASH_BYTES)
/* Takes the place of a model's path in ledger.h. */
#define SAVED "file-hashes"
/* A longer ledger is replaced: half of it is obsolete. */
#define SAVED_MAX (HEADER_BYTES + 2 * HASHES_MAX * RECORD_BYTES)

struct file_hashes {
    struct job saver; /* first: the job is the structure */
    struct server *server;
    pthread_mutex_t lock; /* protects the members below; hash_queue's lock may be taken while it is
                           * held */
    struct hash_table table;
    struct record_writer unsaved; /* records to be appended to the ledger */
    bool is_saving_queued;
    bool must_replace;       /* the ledger has a digest that was forgotten */
    atomic_bool has_answers; /* read without the lock */
    pthread_mutex_t saving;  /* protects the members below; never taken while the other lock is
                              * held */
    struct ledger_folder folder;
    uint64_t saved_bytes; /* length of the ledger that this process appends to; 0: replace it */
};

/* One version of a file that is being hashed. */
struct file_task {
    struct hash_task task; /* first: the task is the structure */
    struct hash_key key;
    struct file_identity identity;
    struct hash_made made; /* ops is NULL for a stored file */
    char path[];
};

/* --- the saved file --- */

static void put_header(struct record_writer *image)
{
    record_write_bytes(image, MAGIC, MAGIC_BYTES);
    record_write_hash(image, 0);
}

static void put_record(struct record_writer *image, const struct hash_key *key,
                       const uint8_t sha256[SHA256_BYTES])
{
    const size_t from = image->length;

    record_write_uint(image, key->words[0], 8);
    record_write_uint(image, key->words[1], 8);
    record_write_bytes(image, sha256, SHA256_BYTES);
    record_write_hash(image, from);
}

/* Writes the oldest digest first, so that reading them restores the order of use. After a failure
 * the old ledger remains, which may have a digest that was forgotten. */
static void write_all(struct file_hashes *hashes)
{
    struct record_writer image = {.bytes = NULL};
    bool is_written;

    put_header(&image);
    pthread_mutex_lock(&hashes->lock);
    for (const struct recency_link *link = hashes->table.recency.oldest; link != NULL;
         link = link->newer) {
        const struct hash_entry *entry = (const struct hash_entry *)link;

        if (entry->is_known && entry->is_saved)
            put_record(&image, &entry->key, entry->sha256);
    }
    pthread_mutex_unlock(&hashes->lock);
    is_written = ledger_replace(&hashes->folder, SAVED, &image);
    hashes->saved_bytes = is_written ? (uint64_t)image.length : 0;
    record_writer_free(&image);
    if (is_written)
        return;
    pthread_mutex_lock(&hashes->lock);
    hashes->must_replace = true;
    pthread_mutex_unlock(&hashes->lock);
}

/* Returns false if the ledger must be replaced. */
static bool append(struct file_hashes *hashes, const struct record_writer *unsaved)
{
    return (unsaved->length == 0 && !unsaved->failed) ||
           ledger_append(&hashes->folder, SAVED, unsaved, SAVED_MAX, &hashes->saved_bytes);
}

/* Saves the new digests. Runs on a worker, or after all workers have ended. */
static void save(struct job *job)
{
    struct file_hashes *hashes = (struct file_hashes *)job;
    struct record_writer unsaved;
    bool must_replace;

    pthread_mutex_lock(&hashes->saving);
    pthread_mutex_lock(&hashes->lock);
    unsaved = record_writer_take(&hashes->unsaved);
    must_replace = hashes->must_replace;
    hashes->must_replace = false;
    hashes->is_saving_queued = false;
    pthread_mutex_unlock(&hashes->lock);
    if (hashes->folder.descriptor >= 0 && (must_replace || !append(hashes, &unsaved)))
        write_all(hashes);
    pthread_mutex_unlock(&hashes->saving);
    record_writer_free(&unsaved);
}

static bool take_record(void *context, struct record_reader *reader)
{
    struct hash_table *table = context;
    const uint8_t *from = reader->at;
    struct hash_key key;
    const uint8_t *sha256;
    struct hash_entry *entry;

    key.words[0] = record_read_uint(reader, 8);
    key.words[1] = record_read_uint(reader, 8);
    sha256 = record_read_bytes(reader, SHA256_BYTES);
    if (sha256 == NULL || !record_read_hash(reader, from))
        return false;
    entry = hash_table_put(table, &key);
    if (entry == NULL)
        return false;
    entry->is_known = true;
    entry->is_saved = true;
    memcpy(entry->sha256, sha256, SHA256_BYTES);
    return true;
}

static void read_saved(struct file_hashes *hashes)
{
    const int state_folder = state_folder_open(hashes->server->config);
    struct record_writer header = {.bytes = NULL};
    size_t length = 0;
    uint8_t *bytes;

    ledger_folder_open(&hashes->folder, state_folder, "hashes");
    if (state_folder >= 0)
        close(state_folder);
    bytes = ledger_read(&hashes->folder, SAVED, &length);
    if (bytes == NULL)
        return;
    put_header(&header);
    hashes->saved_bytes = ledger_scan(bytes, length, &header, take_record, &hashes->table);
    record_writer_free(&header);
    free(bytes);
}

/* --- life --- */

struct file_hashes *file_hashes_new(struct server *server)
{
    struct file_hashes *hashes = calloc(1, sizeof(*hashes));

    if (hashes == NULL)
        return NULL;
    hashes->server = server;
    hashes->saver.run = save;
    pthread_mutex_init(&hashes->lock, NULL);
    pthread_mutex_init(&hashes->saving, NULL);
    read_saved(hashes);
    return hashes;
}

void file_hashes_free(struct file_hashes *hashes)
{
    if (hashes == NULL)
        return;
    save(&hashes->saver);
    hash_table_free(&hashes->table);
    ledger_folder_close(&hashes->folder);
    pthread_mutex_destroy(&hashes->saving);
    pthread_mutex_destroy(&hashes->lock);
    free(hashes);
}

/* --- the table --- */

static bool find(struct file_hashes *hashes, const struct hash_key *key,
                 uint8_t out_sha256[SHA256_BYTES])
{
    const struct hash_entry *entry;
    bool is_known;

    pthread_mutex_lock(&hashes->lock);
    entry = hash_table_find(&hashes->table, key);
    is_known = entry != NULL && entry->is_known;
    if (is_known)
        memcpy(out_sha256, entry->sha256, SHA256_BYTES);
    pthread_mutex_unlock(&hashes->lock);
    return is_known;
}

/* The lock must be held. */
static void queue_saving(struct file_hashes *hashes)
{
    if (hashes->is_saving_queued || atomic_load(&hashes->server->draining))
        return;
    hashes->is_saving_queued = true;
    workers_submit_idle(server_waiters(hashes->server), &hashes->saver);
}

/* Returns true if the digest was not known before. */
static bool keep(struct file_hashes *hashes, const struct hash_key *key,
                 const uint8_t sha256[SHA256_BYTES], bool is_saved)
{
    struct hash_entry *entry;
    bool is_new;

    pthread_mutex_lock(&hashes->lock);
    entry = hash_table_put(&hashes->table, key);
    is_new = entry != NULL && !entry->is_known;
    if (is_new) {
        entry->is_known = true;
        entry->is_saved = is_saved;
        memcpy(entry->sha256, sha256, SHA256_BYTES);
        if (is_saved)
            put_record(&hashes->unsaved, key, sha256);
    }
    if (is_new && is_saved)
        queue_saving(hashes);
    pthread_mutex_unlock(&hashes->lock);
    return is_new;
}

/* Finds the digest that the upstream of a mirrored file states, once the bytes agree with it. */
static bool find_stated(const struct file_hashes *hashes, const char *path,
                        const struct file_identity *identity, uint8_t out_sha256[SHA256_BYTES])
{
    struct store_stated stated;

    if (hashes->server->store == NULL ||
        !store_state(hashes->server->store, path, identity, &stated) || !stated.has_sha256 ||
        !stated.is_verified)
        return false;
    memcpy(out_sha256, stated.sha256, SHA256_BYTES);
    return true;
}

bool file_hashes_find(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity, uint8_t out_sha256[SHA256_BYTES])
{
    const struct hash_key key = hash_key_of(path, identity);
    struct store *store = hashes->server->store;

    /* Its bytes were verified and kept, then lost, and are fetched again. */
    if (store != NULL && store_is_unverified(store, path, identity))
        return false;
    return find(hashes, &key, out_sha256) || find_stated(hashes, path, identity, out_sha256);
}

void file_hashes_keep(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity, const uint8_t sha256[SHA256_BYTES])
{
    const struct hash_key key = hash_key_of(path, identity);
    size_t name_length;
    unsigned rank;

    if (hashes == NULL)
        return;
    /* Answers about models' files are cached, others are not. */
    if (keep(hashes, &key, sha256, true) && model_path_split(path, &name_length, &rank))
        changes_note();
}

void file_hashes_forget(struct file_hashes *hashes, const char *path,
                        const struct file_identity *identity)
{
    const struct hash_key key = hash_key_of(path, identity);
    struct hash_entry *entry;
    bool was_known;

    pthread_mutex_lock(&hashes->lock);
    entry = hash_table_find(&hashes->table, &key);
    was_known = entry != NULL && entry->is_known;
    if (was_known) {
        assert(entry->is_saved);
        hash_table_remove(&hashes->table, entry);
        hashes->must_replace = true;
        queue_saving(hashes);
    }
    pthread_mutex_unlock(&hashes->lock);
    if (was_known)
        changes_note();
}

/* --- answers --- */

bool answer_hashes_find(struct file_hashes *hashes, const char *target, const char *etag,
                        uint8_t out_sha256[SHA256_BYTES])
{
    struct hash_key key;

    /* On most servers no client wants a digest that must be computed; requests then take no
     * lock. */
    return atomic_load_explicit(&hashes->has_answers, memory_order_relaxed) &&
           hash_key_of_answer(target, etag, &key) && find(hashes, &key, out_sha256);
}

void answer_hashes_keep(struct file_hashes *hashes, const char *target, const char *etag,
                        const uint8_t sha256[SHA256_BYTES])
{
    struct hash_key key;

    if (!hash_key_of_answer(target, etag, &key))
        return;
    if (keep(hashes, &key, sha256, false))
        changes_note();
    atomic_store_explicit(&hashes->has_answers, true, memory_order_relaxed);
}

/* --- tasks --- */

static enum zt_status fail_stale(struct zt_error *error)
{
    return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the file has changed");
}

/* Waits until a change of the file would also change its times. */
static void settle(const struct file_task *file, const struct store *store)
{
    const int64_t age_ns = clock_wall_ns() - file->identity.changed_ns;

    if (store_has_locally(store, zt_text_from(file->path)) && age_ns >= 0 && age_ns < SETTLED_NS)
        nanosleep(&(struct timespec){.tv_nsec = SETTLED_NS - age_ns}, NULL);
}

static enum zt_status open_file(struct file_task *file, struct store *store, struct zt_error *error)
{
    struct file_identity identity;
    enum zt_status status;

    store_here_begin();
    status = store->ops->open(store, file->path, &file->task.source, &identity, error);
    store_here_end();
    return status == ZT_OK && !store_identity_equal(&identity, &file->identity) ? fail_stale(error)
                                                                                : status;
}

static enum zt_status open_made(struct file_task *file, struct server *server,
                                struct zt_error *error)
{
    const enum zt_status status =
        file->made.ops->open(&file->made, server, &file->task.source, error);

    return status == ZT_OK && zt_source_size(file->task.source) != file->identity.size_bytes
               ? fail_stale(error)
               : status;
}

static enum zt_status prepare(struct hash_task *task, struct server *server)
{
    struct file_task *file = (struct file_task *)task;

    if (task->source != NULL)
        return ZT_OK;
    settle(file, server->store);
    return file->made.ops != NULL ? open_made(file, server, task->error)
                                  : open_file(file, server->store, task->error);
}

/* Opens the file. In the background, only a limited amount is fetched from a remote store. */
static enum zt_status prepare_wanted(struct hash_task *task, struct server *server)
{
    const bool is_new = task->source == NULL;
    const enum zt_status status = prepare(task, server);

    return status == ZT_OK && is_new && task->length > HASH_FETCHED_MAX && !hash_task_is_local(task)
               ? ZT_UNAVAILABLE
               : status;
}

static bool is_unchanged(const struct file_task *file, struct store *store)
{
    struct file_identity now;

    assert(file->task.source != NULL);
    if (file->made.ops != NULL)
        return file->made.ops->is_still(file->task.source);
    return store->ops->identity_of(store, file->task.source, &now) &&
           store_identity_equal(&now, &file->identity);
}

static void file_task_free(struct file_task *file)
{
    zt_source_close(file->task.source);
    if (file->made.ops != NULL)
        file->made.ops->release(file->made.thing);
    hash_task_clear(&file->task);
    free(file);
}

/* Removes the entry, so that the file can be requested again. */
static void give_up(struct file_hashes *hashes, const struct hash_key *key)
{
    struct hash_entry *entry;

    pthread_mutex_lock(&hashes->lock);
    entry = hash_table_find(&hashes->table, key);
    if (entry != NULL && !entry->is_known)
        hash_table_remove(&hashes->table, entry);
    pthread_mutex_unlock(&hashes->lock);
}

static void over(struct hash_task *task, struct server *server, enum zt_status status)
{
    struct file_task *file = (struct file_task *)task;

    assert(task->urgency == HASH_ASKED && server->hashes != NULL);
    if (status == ZT_OK && is_unchanged(file, server->store))
        file_hashes_keep(server->hashes, file->path, &file->identity, task->digests);
    else
        give_up(server->hashes, &file->key);
    file_task_free(file);
}

/* made is NULL for a stored file. Returns NULL if out of memory. */
static struct file_task *file_task_new(const char *path, const struct file_identity *identity,
                                       const struct hash_made *made)
{
    static const struct hash_task_ops ops = {prepare_wanted, over};
    const size_t size = strlen(path) + 1;
    struct file_task *file = malloc(sizeof(*file) + size);

    if (file == NULL)
        return NULL;
    *file = (struct file_task){
        .task = {.ops = &ops, .urgency = HASH_ASKED, .length = identity->size_bytes},
        .key = hash_key_of(path, identity),
        .identity = *identity};
    memcpy(file->path, path, size);
    if (made != NULL) {
        file->made = *made;
        made->ops->hold(made->thing);
    }
    return file;
}

/* Queues a file. If memory is short or the queue is full, the file must be requested again. The
 * lock must be held. */
static void add_wanted(struct file_hashes *hashes, struct file_task *file)
{
    struct hash_entry *entry = hash_table_put(&hashes->table, &file->key);

    if (entry != NULL && hash_queue_add(hashes->server->hash_queue, &file->task))
        return;
    if (entry != NULL)
        hash_table_remove(&hashes->table, entry);
    file_task_free(file);
}

void file_hashes_want_made(struct file_hashes *hashes, const char *path,
                           const struct file_identity *identity, const struct hash_made *made)
{
    const struct hash_key key = hash_key_of(path, identity);
    struct store *store = hashes->server->store;
    struct file_task *file;

    if (made == NULL && store != NULL && store_is_unverified(store, path, identity))
        return;
    pthread_mutex_lock(&hashes->lock);
    if (hash_table_find(&hashes->table, &key) == NULL) {
        file = file_task_new(path, identity, made);
        if (file != NULL)
            add_wanted(hashes, file);
    }
    pthread_mutex_unlock(&hashes->lock);
}

void file_hashes_want(struct file_hashes *hashes, const char *path,
                      const struct file_identity *identity)
{
    file_hashes_want_made(hashes, path, identity, NULL);
}

/* Finds the digest that another server stored with its upload. */
static bool find_stored(struct file_hashes *hashes, const char *path,
                        const struct file_identity *identity, uint8_t out_sha256[SHA256_BYTES])
{
    struct store *store = hashes->server->store;
    struct store_stated mirrored;
    struct zt_error ignored;

    if (!store_needs_claims(store) || store->claims->find_sha256 == NULL ||
        store_state(store, path, identity, &mirrored) ||
        store->claims->find_sha256(store, path, identity, out_sha256, &ignored) != ZT_OK)
        return false;
    file_hashes_keep(hashes, path, identity, out_sha256);
    return true;
}

enum zt_status file_hashes_compute(struct file_hashes *hashes, const char *path,
                                   const struct file_identity *identity,
                                   uint8_t out_sha256[SHA256_BYTES], struct zt_error *error)
{
    static const struct hash_task_ops ops = {prepare, NULL};
    struct server *server = hashes->server;
    struct file_task *file;
    enum zt_status status;

    if (file_hashes_find(hashes, path, identity, out_sha256) ||
        find_stored(hashes, path, identity, out_sha256))
        return ZT_OK;
    file = file_task_new(path, identity, NULL);
    if (file == NULL)
        return zt_fail_memory(error, "the digest of a file");
    file->task.ops = &ops;
    file->task.error = error;
    status = hash_task_run(&file->task, server);
    if (status == ZT_OK && !is_unchanged(file, server->store))
        status = fail_stale(error);
    if (status == ZT_OK) {
        memcpy(out_sha256, file->task.digests, SHA256_BYTES);
        file_hashes_keep(hashes, path, identity, out_sha256);
    }
    file_task_free(file);
    return status;
}
