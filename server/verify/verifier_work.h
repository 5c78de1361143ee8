/* The verifier's state, for its own files; other files use verifier.h. */
#ifndef VERIFY_VERIFIER_WORK_H
#define VERIFY_VERIFIER_WORK_H

#include "base/job_queue.h"
#include "verify/blob_index.h"
#include "verify/digest_work.h"
#include "verify/verification.h"
#include "verify/verifier.h"

struct verifier {
    struct server *server;
    struct ledger_folder folder;
    struct wanted_digests wanted;
    struct blob_index *blobs;
    atomic_bool stopping;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct job_queue runs;  /* runs that have units left */
    struct run_slot *slots; /* verifier_runs.c */
    unsigned slot_count;
    size_t eager_left; /* unfinished runs of verify: eager */
    bool loaded;
    atomic_bool ready;
    struct generation *dirty; /* generations to be saved */
    bool ending;
    pthread_t saver;
};

/* --- verifier.c --- */

/* Schedules saving the generation's verdicts and digests. */
void verifier_mark_dirty(struct verifier *verifier, struct generation *generation);

/* --- verifier_checks.c: components on demand --- */

/* The maximum number of components that are checked in one go. */
#define VERIFIER_TOGETHER 8

/* Does what verifier_check_now does, for components of one file. run, which may be NULL, counts the
 * progress. */
void verifier_check_together(struct verifier *verifier, struct generation *generation,
                             const uint32_t components[], size_t count, struct run *run);

/* --- verifier_runs.c: runs over all components of a generation (POST, and verify: eager) --- */

/* Returns false if out of memory. */
bool verifier_runs_init(struct verifier *verifier);

/* Starts a run over the unknown components or, with recheck, over all components and the content of
 * all objects. If a run is in progress, it becomes this client's too. */
void verifier_run_begin(struct verifier *verifier, struct generation *generation, bool recheck,
                        uint64_t client);

/* Counts stored bytes that the run has read. */
void verifier_run_advance(struct run *run, uint64_t stored_bytes);

/* Returns the number of bytes counted so far. */
uint64_t verifier_run_bytes(const struct run *run);

/* Marks the verifier as ready once the first scan and its runs are done. The verifier's lock must
 * be held. */
void verifier_note_ready(struct verifier *verifier);

/* --- verifier_shards.c: shards against the digest that the model states for them --- */

/* Returns the state of a shard: COMPONENT_VERIFIED, COMPONENT_CORRUPT, COMPONENT_UNSUPPORTED (a
 * digest of an unknown algorithm), or COMPONENT_CHECKING if the shard is being hashed (this call
 * starts that if necessary); waiter will then be woken. A shard that cannot be read is CORRUPT or
 * UNAVAILABLE for a second and is then tried again. */
enum component_state verifier_ask_shard(struct verifier *verifier, struct generation *generation,
                                        uint32_t shard, struct waiter *waiter);

/* Hashes the shard on this thread, once per run over the generation. */
void verifier_check_shard_now(struct verifier *verifier, struct generation *generation,
                              uint32_t shard);

#endif
