/* The inner parts of file_hashes.h: the table, the queue of what is wanted, and saving. */
#ifndef TREE_HASH_WORK_H
#define TREE_HASH_WORK_H

#include <pthread.h>

#include "base/workers.h"
#include "store/state_file.h"
#include "tree/hash_table.h"
#include "zt/digest.h"

/* Idle jobs at a time. */
#define HASH_FINDERS_MAX 8
/* Files that wait. What is wanted beyond must be wanted again. */
#define HASH_WANTED_MAX ((size_t)1 << 17)

/* A file that is wanted, and how far it has been read. */
struct hash_task {
    struct hash_key key;
    struct file_identity identity;
    struct hash_made made;    /* its ops are NULL: it is a file */
    struct zt_source *source; /* NULL: not begun */
    struct zt_hasher *hasher;
    uint64_t read_bytes;
    char path[];
};

struct hash_finder {
    struct job job; /* first: the job is the structure */
    struct file_hashes *hashes;
    bool is_queued; /* under the lock */
    uint8_t *chunk; /* NULL: not needed so far */
};

/* What is to be appended to the saved file. */
struct hash_record {
    struct hash_key key;
    uint8_t sha256[FILE_SHA256_BYTES];
};

struct hash_records {
    struct hash_record *items;
    size_t count;
    size_t capacity;
};

struct file_hashes {
    struct server *server;
    pthread_mutex_t lock; /* of the following */
    struct hash_table table;
    struct hash_task **wanted; /* a heap: least left first */
    size_t wanted_count;
    size_t wanted_capacity;
    struct hash_records unsaved;
    struct hash_finder finders[HASH_FINDERS_MAX];
    unsigned finder_count;
    pthread_mutex_t saving; /* of the following; never taken with the other one held */
    struct state_folder folder;
    uint64_t saved_bytes; /* of the file that this process goes on writing; 0: to be written anew */
};

/* --- hash_task.c: one file --- */

/* NULL without memory. */
struct hash_task *hash_task_new(const char *path, const struct file_identity *identity,
                                const struct hash_key *key);
/* Of a task that was not begun: it is for what is made, and holds the thing. */
void hash_task_make(struct hash_task *task, const struct hash_made *made);
/* Takes NULL. */
void hash_task_free(struct hash_task *task);
uint64_t hash_task_left(const struct hash_task *task);
/* Bytes that hash_task_read needs. */
#define HASH_CHUNK_BYTES 131072
/* Opens the file. ZT_STALE: another version of it is there now; else as store->ops->open. */
enum zt_status hash_task_begin(struct hash_task *task, struct server *server,
                               struct zt_error *error);
/* Hashes the next bytes, at most HASH_CHUNK_BYTES. Only before the end. */
enum zt_status hash_task_read(struct hash_task *task, uint8_t *chunk, struct zt_error *error);
/* Of a file that was read to its end. ZT_STALE: it was written to, or renamed, meanwhile. */
enum zt_status hash_task_finish(struct hash_task *task, struct store *store,
                                uint8_t out_sha256[FILE_SHA256_BYTES], struct zt_error *error);

/* --- hash_finder.c --- */

void hash_finders_init(struct file_hashes *hashes);
void hash_finders_clear(struct file_hashes *hashes);
/* Queues a task, which it takes over; with the lock held. False: too many. */
bool hash_finder_add(struct file_hashes *hashes, struct hash_task *task);
/* Has a finder look for work, or save; with the lock held. */
void hash_finder_wake(struct file_hashes *hashes);

/* --- saved_hashes.c --- */

/* Reads what an earlier process has saved. */
void saved_hashes_recall(struct file_hashes *hashes);
/* Writes what is not saved yet. On a worker, or when nothing else runs. */
void saved_hashes_write(struct file_hashes *hashes);

#endif
