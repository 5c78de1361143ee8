/* What is known about a generation's components beyond their states: counts, failures, running
 * checks. Shared by the verifier's files; all others use verifier.h. */
#ifndef VERIFY_VERIFICATION_H
#define VERIFY_VERIFICATION_H

#include "base/json_write.h"
#include "catalog/generation.h"
#include "store/state_file.h"
#include "zt/verify.h"

#define COMPONENT_STATES (COMPONENT_CORRUPT + 1)
/* For a rule broken by an object as a whole. */
#define NO_COMPONENT UINT32_MAX
/* This many failures are kept with their texts; the rest are only counted. */
#define FAILURES_MAX 1000

/* A wrong digest (expected, actual) or a broken content rule (rule, detail). The other two members
 * are NULL. */
struct failure {
    uint32_t object;
    uint32_t component;
    char *expected;
    char *actual;
    char *rule;
    char *detail;
    struct failure *next;
};

/* A running check. */
struct check {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    struct generation *generation;
    uint32_t component;
    struct waiter *waiters;
    atomic_uint_fast64_t hashed_bytes;
    struct run *run; /* counts the progress; may be NULL */
    struct check *next;
};

/* A component that could not be read, or not be had. Until that time, requests for it fail without
 * another try. */
struct trouble {
    uint32_t component;
    bool is_away;
    int64_t until_ns;
    struct trouble *next;
};

/* A generation's side table. */
struct verification {
    struct side_table base;
    pthread_mutex_t lock;
    uint32_t counts[COMPONENT_STATES];
    /* By component: whether its content breaks a rule. Such a component is still served, but the
     * report counts it as failed, whatever its state. */
    bool *broken;
    uint32_t broken_counts[COMPONENT_STATES];
    uint64_t stated_bytes; /* stored bytes of components with a digest of a known algorithm */
    uint64_t known_bytes;  /* of these, the bytes whose verdict is known */
    struct failure *failures;
    uint32_t failure_count;
    struct check *checks;
    struct trouble *troubles;
    struct shard_check *shards; /* verifier_shards.c's; NULL until one is needed */
    struct run *run;            /* over all components */
    uint32_t round;             /* counts the runs */
    /* Used by the verifier, under its lock. */
    bool dirty;
    struct generation *next_dirty;
};

/* The generation's verdicts; NULL if it has none. */
static inline struct verification *verification_of(const struct generation *generation)
{
    return (struct verification *)generation_side_table(generation, SIDE_TABLE_VERDICTS);
}

/* Attaches verdicts to a new generation: decides from the manifest alone which components can be
 * judged. NULL if out of memory. */
struct verification *verification_attach(struct generation *generation);

/* --- with the lock held --- */

void verification_set(struct generation *generation, uint32_t component,
                      enum component_state state);
/* Replaces the component's digest failure, or removes it (expected NULL). Copies the texts. */
void verification_note_digest(struct generation *generation, uint32_t component,
                              const char *expected, const char *actual);
void verification_set_broken(struct generation *generation, uint32_t component, bool broken);
/* Replaces an object's content failure, or removes it (rule NULL). */
void verification_note_content(struct generation *generation, uint32_t object, uint32_t component,
                               const char *rule, const char *detail);
bool verification_add_failure(struct verification *verification, const struct failure *failure);

/* The object that a component belongs to. */
uint32_t verification_object_of(const struct zt_model *model, uint32_t component);

/* --- saved_state.c: verdicts across restarts --- */

/* Saves the verdicts, all or none. */
void verification_save(struct state_folder *folder, struct generation *generation);
/* Takes over the verdicts of an earlier run about these very bytes. A damaged file is ignored. */
void verification_recall(struct state_folder *folder, struct generation *generation);

#endif
