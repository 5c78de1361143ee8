/* Computes SHA-256 digests of byte ranges on workers, the most urgent first.
 *
 * A task that a request waits for is an ordinary job that hashes a few MiB. Clients take turns, and
 * only a few of these jobs run at the same time. So even if many clients want digests of large
 * answers, all of them make progress, and workers stay available for other requests.
 *
 * A few idle jobs share all other tasks. Each works in short turns, so that it never occupies a
 * thread for long, and sleeps between reads while answers have to wait for a disk. The task with
 * the fewest remaining bytes comes first, so that a huge file does not delay many small ones. */
#ifndef DIGESTS_HASH_QUEUE_H
#define DIGESTS_HASH_QUEUE_H

#include "base/server.h"
#include "base/workers.h"
#include "zt/digest.h"
#include "zt/source.h"

#define SHA256_BYTES 32

enum hash_urgency {
    HASH_AWAITED,   /* a request waits for the digest */
    HASH_ASKED,     /* a client has asked for the digest, but does not wait for it */
    HASH_BACKGROUND /* delayed while hash_queue_hold is in effect */
};

struct hash_queue;

/* A range to be hashed, embedded in its owner's structure. */
struct hash_task {
    struct job job; /* first: an awaited task is a job; its owner sets client */
    const struct hash_task_ops *ops;
    enum hash_urgency urgency;
    bool only_local; /* fail with ZT_UNAVAILABLE instead of fetching bytes from a remote store */
    uint64_t length; /* of the range */
    uint64_t piece_bytes; /* each piece of this size is hashed too if there are several; 0: none */
    struct zt_error *error; /* set on failure; may be NULL */
    /* Set by ops->prepare. */
    struct zt_source *source;
    uint64_t offset; /* of the range in the source */
    /* For the queue, zero at first. digests has the SHA-256 of the whole range and then the pieces'
     * digests; ops->over may take ownership. */
    uint64_t done_bytes;
    uint8_t *digests;
    struct hash_queue *queue; /* the queue in which it is awaited */
    struct zt_hasher *whole;
    struct zt_hasher *piece;
};

struct hash_task_ops {
    /* Called on a worker at the beginning of each turn; opens the source the first time. An error
     * ends the task. */
    enum zt_status (*prepare)(struct hash_task *task, struct server *server);
    /* Called without a lock when the task has ended, with ZT_OK if digests is complete. For an
     * awaited task it is also called after each turn (hash_task_is_done). The owner must call
     * hash_task_clear and free the task. */
    void (*over)(struct hash_task *task, struct server *server, enum zt_status status);
};

/* Returns the number of digests of a range: one for the whole and, if there are several pieces, one
 * for each. */
uint64_t hash_digest_count(uint64_t length_bytes, uint64_t piece_bytes);

/* Returns true if the whole range can be read without fetching. */
bool hash_task_is_local(const struct hash_task *task);
/* Returns true if digests is complete. */
bool hash_task_is_done(const struct hash_task *task);
/* Hashes the whole range on this thread without turns. Fails with ZT_UNAVAILABLE if the server is
 * draining, unless the task is awaited; otherwise fails like ops->prepare and reading. */
enum zt_status hash_task_run(struct hash_task *task, struct server *server);
/* Frees the memory that the queue has allocated for the task. */
void hash_task_clear(struct hash_task *task);

/* Runs up to awaited_most awaited tasks concurrently, at least one. Returns NULL if out of
 * memory. */
struct hash_queue *hash_queue_new(struct server *server, unsigned awaited_most);
/* Ends all tasks with ZT_UNAVAILABLE. Call it after the workers have ended. Accepts NULL. */
void hash_queue_free(struct hash_queue *queue);

/* Call it before the loops are stopped: hash_queue_await then accepts no more tasks. */
void hash_queue_stop(struct hash_queue *queue);

/* Lets a worker hash the next few MiB of an awaited task when its turn comes, and then calls
 * ops->over. Returns false after hash_queue_stop. Never waits. */
bool hash_queue_await(struct hash_queue *queue, struct hash_task *task);

/* Queues a task that is not awaited and takes ownership. Returns false, and the caller keeps the
 * task, if too many are queued, the server is draining or memory is short. Never waits; may be
 * called on any thread. */
bool hash_queue_add(struct hash_queue *queue, struct hash_task *task);

/* Sets the source of background tasks, which is used when no other task is queued: next returns a
 * task or NULL. It is called with the queue's lock held. */
void hash_queue_set_feed(struct hash_queue *queue, struct hash_task *(*next)(void *context),
                         void *context);
/* Call it when the feed has a task again. */
void hash_queue_wake(struct hash_queue *queue);

/* Delays background tasks until hash_queue_release has been called as often. */
void hash_queue_hold(struct hash_queue *queue);
void hash_queue_release(struct hash_queue *queue);

#endif
