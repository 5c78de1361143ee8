/* Facts about a generation's components beyond their states: counts, failures and running checks.
 * Only the verifier's files use this header; other files use verifier.h. */
#ifndef VERIFY_VERIFICATION_H
#define VERIFY_VERIFICATION_H

#include "base/json_write.h"
#include "catalog/generation.h"
#include "zt/verify.h"

#define COMPONENT_STATES (COMPONENT_CORRUPT + 1)
/* For a rule that an object breaks as a whole. */
#define NO_COMPONENT UINT32_MAX
/* The maximum number of failures kept with their texts; further failures are only counted. */
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

/* A component that could not be read or fetched. Until until_ns, requests for it fail without
 * another attempt. */
struct trouble {
    uint32_t component;
    bool is_unreachable;
    int64_t until_ns;
    struct trouble *next;
};

/* A generation's side table. */
struct verification {
    struct side_table base;
    pthread_mutex_t lock;
    uint32_t counts[COMPONENT_STATES];
    /* For each component, whether its content breaks a rule. Such a component is still served, but
     * the report counts it as failed, whatever its state. */
    bool *broken;
    uint32_t broken_counts[COMPONENT_STATES];
    uint64_t stated_bytes; /* stored bytes of components with a digest of a known algorithm */
    uint64_t known_bytes;  /* how many of these have a known verdict */
    struct failure *failures;
    uint32_t failure_count;
    struct check *checks;
    struct trouble *troubles;
    struct shard_check *shards; /* for verifier_shards.c; NULL until needed */
    struct run *run;            /* the current run over all components */
    uint32_t round;             /* number of runs so far */
    /* Used by the verifier, under its lock. */
    bool dirty;
    struct generation *next_dirty;
};

/* The generation's verdicts; NULL if it has none. */
static inline struct verification *verification_of(const struct generation *generation)
{
    return (struct verification *)generation_side_table(generation, SIDE_TABLE_VERDICTS);
}

/* Attaches verdicts to a new generation, and determines from the manifest which components can be
 * checked. Returns NULL if out of memory. */
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

/* Returns the object that contains a component. */
uint32_t verification_object_of(const struct zt_model *model, uint32_t component);

/* --- saved_state.c: verdicts across restarts --- */

/* Saves the verdicts, all or none. */
void verification_save(struct verifier *verifier, struct generation *generation);
/* Restores an earlier run's verdicts about exactly these bytes. A damaged file is ignored. */
void verification_recall(struct verifier *verifier, struct generation *generation);

#endif
