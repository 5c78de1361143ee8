/* The verifier's state, shared by its files; all others use verifier.h. */
#ifndef VERIFY_VERIFIER_WORK_H
#define VERIFY_VERIFIER_WORK_H

#include "base/job_queue.h"
#include "verify/blob_index.h"
#include "verify/digest_work.h"
#include "verify/verification.h"
#include "verify/verifier.h"

/* Idle jobs at a time; on most machines the pool has fewer threads for them. */
#define RUN_SLOTS_MAX 64

struct run_slot {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    bool queued;
    bool is_busy; /* with a unit of this client's run */
    uint64_t client;
};

struct verifier {
    struct server *server;
    struct state_folder folder;
    struct finder_queue finders;
    struct blob_index blobs;
    atomic_bool stopping;
    atomic_size_t runs_left; /* begun and not ended */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct job_queue runs; /* with units to be taken */
    struct run_slot slots[RUN_SLOTS_MAX];
    unsigned slot_count;
    size_t eager_left; /* runs of verify: eager not yet done */
    bool loaded;
    atomic_bool ready;
    struct generation *dirty; /* to be saved */
    bool ending;
    pthread_t saver;
};

/* --- verifier.c --- */

/* Has the generation's verdicts and digests saved soon. */
void verifier_mark_dirty(struct verifier *verifier, struct generation *generation);

/* --- verifier_runs.c: runs over all components of a generation (POST, and verify: eager) --- */

void verifier_runs_init(struct verifier *verifier);

/* Begins a run over the components that are not known yet or, with recheck, over all components and
 * the content of all objects. If a run is in progress, it is now this client's too. */
void verifier_run_begin(struct verifier *verifier, struct generation *generation, bool recheck,
                        uint64_t client);

/* Counts stored bytes that the run has read. */
void verifier_run_advance(struct run *run, uint64_t stored_bytes);

/* Bytes counted so far. */
uint64_t verifier_run_bytes(const struct run *run);

/* With the verifier's lock held: becomes ready once the first scan and its runs are done. */
void verifier_note_ready(struct verifier *verifier);

/* --- verifier_shards.c: shards against the digest that the model states for them --- */

/* COMPONENT_VERIFIED, COMPONENT_CORRUPT, COMPONENT_UNSUPPORTED (a digest of an unknown algorithm),
 * or COMPONENT_CHECKING: the shard is being hashed (this call begins it if necessary), and waiter
 * will be woken. A shard that cannot be read is CORRUPT, or UNAVAILABLE, for a second and then
 * tried again. */
enum component_state verifier_ask_shard(struct verifier *verifier, struct generation *generation,
                                        uint32_t shard, struct waiter *waiter);

/* Hashes the shard on this thread, once in each run over the generation. */
void verifier_check_shard_now(struct verifier *verifier, struct generation *generation,
                              uint32_t shard);

#endif
