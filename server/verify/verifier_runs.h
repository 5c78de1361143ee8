/* Runs over all components of a generation (POST, and verify: eager): a queue of runs, worked off
 * by idle jobs. */
#ifndef VERIFY_VERIFIER_RUNS_H
#define VERIFY_VERIFIER_RUNS_H

#include "base/server.h"
#include "verify/found_work.h"
#include "verify/verification.h"

/* Idle jobs at once; the pool has no more threads for them than that on most machines. */
#define RUN_SLOTS_MAX 64

struct run_slot {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    bool queued;
};

/* The verifier's whole state. */
struct verifier {
    struct server *server;
    struct state_folder folder;
    struct found_queue found;
    atomic_bool stopping;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct run *first_run;
    struct run **last_run;
    struct run_slot slots[RUN_SLOTS_MAX];
    unsigned slot_count;
    size_t eager_left; /* runs of verify: eager not yet done */
    bool loaded;
    atomic_bool ready;
    struct generation *dirty; /* to be written down by the saver */
    bool ending;
    pthread_t saver;
};

void verifier_runs_init(struct verifier *verifier);

/* Begins a run over the components not yet known, or, with recheck, over all and over the content
 * of the objects too. Nothing when one is under way. */
void verifier_run_begin(struct verifier *verifier, struct generation *generation, bool recheck);

/* verifier_checks.c: checks one component on this thread, for whoever waits for it too. */
void verifier_check_now(struct verifier *verifier, struct generation *generation,
                        uint32_t component, struct run *run);
/* verifier.c: lets the saver write it down, soon. */
void verifier_mark_dirty(struct verifier *verifier, struct generation *generation);

/* Counts stored bytes as read by the run. */
void verifier_run_advance(struct run *run, uint64_t stored_bytes);

/* With the verifier's lock held: readiness is remembered once it was there. */
void verifier_note_ready(struct verifier *verifier);

#endif
