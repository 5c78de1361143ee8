/* What is known of a generation's components beyond their states: counts, failures, who waits.
 * Shared by the verifier's files; everybody else uses verifier.h. */
#ifndef VERIFY_VERIFICATION_H
#define VERIFY_VERIFICATION_H

#include "base/json_write.h"
#include "catalog/generation.h"
#include "store/state_file.h"
#include "zt/verify.h"

#define COMPONENT_STATES (COMPONENT_CORRUPT + 1)
/* No single component: a rule that an object as a whole breaks. */
#define NO_COMPONENT UINT32_MAX
/* Failures that are kept word for word; the rest is only counted. */
#define FAILURES_MAX 1000

/* A digest that is wrong (expected, actual), or a content rule that is broken (rule, detail). NULL
 * where none. */
struct failure {
    uint32_t object;
    uint32_t component;
    char *expected;
    char *actual;
    char *rule;
    char *detail;
    struct failure *next;
};

/* A check under way. */
struct check {
    struct job job; /* first: the job is the structure */
    struct verifier *verifier;
    struct generation *generation;
    uint32_t component;
    struct waiter *waiters;
    atomic_uint_fast64_t hashed_bytes;
    struct run *run; /* whose progress it is, or NULL */
    struct check *next;
};

/* A component that could not be read; asked for again before the time is over, it is refused
 * without another try. */
struct trouble {
    uint32_t component;
    int64_t until_ns;
    struct trouble *next;
};

struct verification {
    pthread_mutex_t lock;
    uint32_t counts[COMPONENT_STATES];
    /* A byte a component: whether its content breaks a rule. That has no part in what is served,
     * but whatever state the component is in, the report counts it as failed and as nothing else.
     */
    bool *broken;
    uint32_t broken_counts[COMPONENT_STATES];
    uint64_t stated_bytes; /* stored bytes of components that state a digest of a known kind */
    uint64_t known_bytes;  /* of those, whose verdict is known */
    struct failure *failures;
    uint32_t failure_count;
    struct check *checks;
    struct trouble *troubles;
    struct shard_knowledge *shards; /* verifier_shards.c's; NULL until one is asked for */
    struct run *run;                /* over all components */
    uint32_t round;                 /* counts the runs */
    uint64_t (*run_bytes)(const struct run *run);
    /* The verifier's, under its lock. */
    bool dirty;
    struct generation *next_dirty;
};

/* Tells without reading any data which components can be judged. NULL when memory is out. */
struct verification *verification_new(struct generation *generation);

/* The lock is held in the following. */

void verification_set(struct generation *generation, uint32_t component,
                      enum component_state state);
/* Replaces the component's digest failure, or removes it (expected NULL). Texts are copied. */
void verification_note_digest(struct generation *generation, uint32_t component,
                              const char *expected, const char *actual);
void verification_set_broken(struct generation *generation, uint32_t component, bool broken);
/* Replaces what is known of an object's content, or removes it (rule NULL). */
void verification_note_content(struct generation *generation, uint32_t object, uint32_t component,
                               const char *rule, const char *detail);
bool verification_add_failure(struct verification *verification, const struct failure *failure);

/* The object a component belongs to. */
uint32_t verification_object_of(const struct zt_model *model, uint32_t component);

/* --- verification_state.c: what outlives the process --- */

/* Writes down what is known; taken whole or not at all. */
void verification_save(struct state_folder *folder, struct generation *generation);
/* Takes over what an earlier run knew of these very bytes; anything odd is as if it were not there.
 */
void verification_recall(struct state_folder *folder, struct generation *generation);

#endif
