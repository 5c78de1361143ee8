/* The work of making a plan, done by workers. export_plan.c starts the stages and takes the result;
 * export_work.c makes the outline, export_prepare.c the rest. */
#ifndef DERIVED_EXPORT_WORK_H
#define DERIVED_EXPORT_WORK_H

#include <pthread.h>

#include "derived/export_plan.h"
#include "zt/convert.h"

/* Components prepared in parallel: enough to keep a few disks and processors busy. */
#define EXPORT_RUNNERS 4

/* The members of a plan that a stage fills in. */
struct export_result {
    struct zt_file_plan *file;
    struct export_origin *origins;
    uint32_t origin_count;
    uint32_t left_out_count;
    const struct axis_set *suggestion;
    bool failed;
    enum export_failure failure;
    enum zt_slice_verdict verdict;
    struct zt_error error;
};

struct export_order {
    struct server *server;
    struct generation *generation; /* held until the work is freed */
    uint64_t client;               /* the client that started it (struct job) */
    const struct export_query *query;
    /* Called on a worker at the end of a stage. */
    void (*ended)(void *context);
    /* Returns true if any client still waits for the plan. May be called on any worker. */
    bool (*wanted)(void *context);
    void *context;
};

/* Prepares one component after another, in parallel with the other runners. */
struct export_runner {
    struct job job; /* first: the job is the structure */
    struct waiter waiter;
    struct export_work *work;
    uint32_t component; /* index in the outline, in progress; UINT32_MAX: none */
    uint64_t spent_bytes;
    struct export_bytes *bytes;
    struct zt_source *cuts;
    struct zt_source **files; /* the files of struct zt_conversion, then the cuts */
};

struct export_work {
    struct job job; /* first: the job is the structure */
    struct export_order order;
    const struct zt_cut *cut;
    bool *chosen;     /* of all objects of the generation: what the query selects */
    bool *left_out;   /* and which of these are left out; NULL: the query does not ask for that */
    int64_t *axes;    /* of all objects of the generation; NULL: no cut */
    char *attributes; /* of the selection's model; NULL: it has the generation's */
    struct zt_selection selection;
    struct export_origin *selected; /* one per component of the selection */
    struct zt_projection *projection;
    struct zt_fingerprint *fingerprints;
    /* The first of two passes over the components: their SHA-256 are computed, to find the objects
     * that the client has. */
    bool is_comparing;
    bool *unchanged;  /* of the components in that pass: the base has the same bytes; NULL: none */
    uint64_t bytes;   /* upper estimate of the bytes to read and decode */
    atomic_uint next; /* the component for the next runner */
    atomic_uint running;
    struct export_runner runners[EXPORT_RUNNERS];
    pthread_mutex_t lock; /* guards the failure in result */
    atomic_bool failed;
    struct export_result result;
};

/* Returns NULL if out of memory. The query is not copied. */
struct export_work *export_work_new(const struct export_order *order);
/* Accepts NULL. */
void export_work_free(struct export_work *work);

/* Returns the state of a component, as verifier_ask does for the runner's waiter. */
enum component_state export_verify(struct export_runner *runner, struct generation *generation,
                                   uint32_t component);
/* For struct zt_progress; context is the runner. */
bool export_runner_advance(void *runner, uint64_t bytes);

/* Closes the sources of a pass. */
void export_runner_close(struct export_runner *runner);

/* Selects the chosen objects that are not left out, and projects them. Replaces an earlier
 * selection. */
void export_work_select(struct export_work *work);

/* Returns true if digests are needed to find the objects that the client has. */
bool export_must_compare(const struct export_work *work);
/* Leaves out the objects that the client has, and selects the others. Without export_must_compare,
 * no fingerprints are needed. */
void export_leave_out(struct export_work *work);
/* Sets the attributes of the selection's model: the names of the objects that were left out. */
void export_name_left_out(struct export_work *work);

/* Runs the first stage at once, on this worker, without calling ended. */
void export_work_make_outline(struct export_work *work);

/* Returns the origin of each component of a file that has been laid out; NULL if out of memory. */
struct export_origin *export_work_origins(const struct export_work *work);

/* Start the stages. Each is started once, on any thread, and calls ended once. */
void export_work_outline(struct export_work *work);
void export_work_prepare(struct export_work *work);

/* Call it when another client waits for the current stage. */
void export_work_share(struct export_work *work, uint64_t client);

/* Takes the result after a stage has ended. The caller then owns file and origins. */
void export_work_take(struct export_work *work, struct export_result *out_result);

/* Record a failure; only the first one counts. export_fail_component also names the component. */
void export_fail(struct export_work *work, enum export_failure failure,
                 const struct zt_error *error);
void export_fail_component(struct export_work *work, enum export_failure failure,
                           const struct export_origin *origin, const char *message);
void export_fail_memory(struct export_work *work);

/* Translates a status; ZT_UNSUPPORTED and ZT_LIMIT become the failure passed as unsupported. */
enum export_failure export_failure_of(enum zt_status status, enum export_failure unsupported);

/* Returns true if the work should continue: no failure, a client is waiting, and the server is not
 * stopping. */
bool export_is_wanted(struct export_work *work);

const struct zt_component *export_component_of(const struct export_work *work,
                                               const struct export_origin *origin);

/* Returns true, and records the failure, if the decoded length of a component exceeds the server's
 * limit. */
bool export_is_too_large(struct export_work *work, const struct export_origin *origin,
                         uint64_t length);

#endif
