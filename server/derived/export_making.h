/* A plan in the making, which is in three files: its life and how it fails (export_work.c), its
 * outline (export_outline.c), and what reads the data (export_prepare.c). */
#ifndef DERIVED_EXPORT_MAKING_H
#define DERIVED_EXPORT_MAKING_H

#include <pthread.h>

#include "derived/export_work.h"
#include "zt/convert.h"

/* Components in flight: enough for a few disks and processors. */
#define EXPORT_RUNNERS 4

/* Works on one component after another, beside the others. */
struct export_runner {
    struct job job; /* first: the job is the structure */
    struct waiter waiter;
    struct export_work *work;
    uint32_t component; /* of the outline, at hand; UINT32_MAX: none */
    uint64_t spent_bytes;
    struct export_bytes *bytes;
    struct zt_source *cuts;
    struct zt_source **files; /* as struct zt_conversion has them, and the cuts */
};

struct export_work {
    struct job job;
    struct export_order order;
    const struct zt_cut *cut;
    struct zt_selection selection;
    struct export_part *selected; /* of each of the selection's components */
    struct zt_projection *projection;
    struct zt_fingerprint *facts;
    uint64_t bytes;   /* about what there is to read and decode at most */
    atomic_uint next; /* component that no runner has taken yet */
    atomic_uint running;
    struct export_runner runners[EXPORT_RUNNERS];
    pthread_mutex_t lock; /* of the failure: the first one counts */
    atomic_bool failed;
    struct export_result result;
};

/* The first failure counts. What is about a component names it. */
void export_fail(struct export_work *work, enum export_failure failure,
                 const struct zt_error *error);
void export_fail_memory(struct export_work *work);
void export_fail_component(struct export_work *work, enum export_failure failure,
                           const struct export_part *part, const char *message);

/* What a status means; unsupported: what ZT_UNSUPPORTED and ZT_LIMIT mean here. */
enum export_failure export_failure_of(enum zt_status status, enum export_failure unsupported);

/* Whether to go on: nothing has failed, somebody waits, and the server is not ending. */
bool export_is_wanted(struct export_work *work);

const struct zt_component *export_component_of(const struct export_work *work,
                                               const struct export_part *part);

/* Whether so many decoded bytes of a component are more than the server allows. Fails the work
 * then. */
bool export_is_too_large(struct export_work *work, const struct export_part *part, uint64_t length);

#endif
