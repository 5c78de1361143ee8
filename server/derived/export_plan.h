/* Plans of exports: what a file made of a model's objects will be, byte for byte, before any of it
 * is sent.
 *
 * A plan is made by workers in two stages. Its outline says whether the target can hold what is
 * asked for; then every component is verified, read where the target states digests or lengths that
 * are not known, and the file is laid out.
 *
 *   NEW --ask--> OUTLINING --> OUTLINED --ask--> PREPARING --> READY
 *                    |                               |
 *                    +------------> FAILED <---------+
 *
 * Plans that are ready are kept, by version of the file and question, so that the ranges of a
 * resumed download find them; they keep no file open. Several requests share one plan in the
 * making. */
#ifndef DERIVED_EXPORT_PLAN_H
#define DERIVED_EXPORT_PLAN_H

#include "derived/export_bytes.h"
#include "zt/file_plan.h"

struct export_cache;

/* What is asked for; texts are borrowed. */
struct export_query {
    enum zt_target target;
    struct zt_text prefix;         /* of objects' names; empty: all */
    const struct zt_text *matches; /* and one of these globs (base/glob.h); none: all */
    size_t match_count;
    struct zt_cut cut; /* parts 0: whole objects */
};

enum export_failure {
    EXPORT_NO_OBJECT,            /* none is selected */
    EXPORT_NOT_REPRESENTABLE,    /* the target cannot hold it, or it cannot be cut */
    EXPORT_NOT_CUT,              /* the cut does not fit: plan->verdict */
    EXPORT_UNSUPPORTED_ENCODING, /* it cannot be decoded here, or is too large to be */
    EXPORT_CORRUPT,
    EXPORT_INVALID, /* a rule about its content is broken */
    EXPORT_ENDING,  /* the server is */
    EXPORT_ERROR    /* memory, a disk */
};

struct export_plan {
    /* Of the question alone: for a tag, beside the version of the file. */
    uint64_t identity[2];
    /* Once it is ready. */
    struct zt_file_plan *image;
    struct export_part *parts; /* by the image's components */
    uint32_t part_count;
    /* Once it has failed. */
    enum export_failure failure;
    enum zt_slice_verdict verdict;
    struct zt_error error;
};

struct export_cache *export_cache_new(struct server *server);
/* Nothing may be held or under way. Takes NULL. */
void export_cache_free(struct export_cache *cache);
/* Plans in the making fail soon, and whoever waits is woken. Before loops and workers are stopped.
 */
void export_cache_stop(struct export_cache *cache);

/* The plan for a question, to be released by the caller; nothing is begun yet. NULL when memory is
 * out. */
struct export_plan *export_plan_find(struct export_cache *cache, struct generation *generation,
                                     const struct export_query *query);
/* void * so that it fits request_hold. */
void export_plan_release(void *plan);

enum export_answer { EXPORT_READY, EXPORT_PENDING, EXPORT_FAILED };

/* Whether there is an outline; and then the whole plan. PENDING: it is being made (begun by this
 * call if need be) and waiter will be woken; ask again then. The plan is held by the caller all the
 * while. */
enum export_answer export_plan_outline(struct export_plan *plan, struct generation *generation,
                                       struct waiter *waiter);
enum export_answer export_plan_prepare(struct export_plan *plan, struct waiter *waiter);

#endif
