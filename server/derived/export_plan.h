/* Plans of exports: what an exported file will contain, byte for byte, before any of it is sent.
 *
 * Workers make a plan in two stages. The outline establishes whether the target format can hold the
 * selection. Preparation verifies every component, reads those whose digest or length the target
 * states but nobody knows yet, and lays out the file.
 *
 *   NEW --ask--> OUTLINING --> OUTLINED --ask--> PREPARING --> READY
 *                    |                               |
 *                    +------------> FAILED <---------+
 *
 * Ready plans are kept, by version of the model and query, for the ranges of a resumed download;
 * they keep no file open. Requests with the same query share one plan, even while it is being
 * made. */
#ifndef DERIVED_EXPORT_PLAN_H
#define DERIVED_EXPORT_PLAN_H

#include "derived/axis_rules.h"
#include "derived/export_bytes.h"
#include "zt/file_plan.h"

struct export_cache;

/* What to export; texts are borrowed. */
struct export_query {
    enum zt_target target;
    struct zt_text prefix;         /* of objects' names; empty: any */
    const struct zt_text *matches; /* and any of these globs (base/glob.h); none: any name */
    size_t match_count;
    struct zt_cut cut;             /* parts 0: whole objects; its axis does not count */
    const struct axis_rule *rules; /* the axes */
    size_t rule_count;
    bool to_f32; /* what can be widened is */
    /* Of the objects, in the model's order, those from first on; count 0: all. */
    uint32_t first;
    uint32_t count;
    /* The file's metadata is {"format": "pt"} and nothing else: what transformers wants to read. */
    bool is_for_torch;
};

enum export_failure {
    EXPORT_NO_OBJECT,            /* nothing matches */
    EXPORT_NOT_REPRESENTABLE,    /* the target cannot hold an object, or it cannot be cut */
    EXPORT_NOT_CUT,              /* the cut does not fit an object; plan->verdict says why */
    EXPORT_UNSUPPORTED_ENCODING, /* a component cannot be decoded, or is too large for that */
    EXPORT_CORRUPT,
    EXPORT_INVALID, /* the content of a component breaks a rule */
    EXPORT_ENDING,  /* the server is stopping */
    EXPORT_ERROR    /* memory or a disk */
};

struct export_plan {
    /* Hash of the query; the tag combines it with the version of the model. */
    uint64_t identity[2];
    /* Once the plan is ready. */
    struct zt_file_plan *file;
    struct export_origin *origins; /* for each component of the file */
    uint32_t origin_count;
    /* Once it has failed. */
    enum export_failure failure;
    enum zt_slice_verdict verdict;
    struct zt_error error;
};

struct export_cache *export_cache_new(struct server *server);
/* Nobody may hold a plan. Takes NULL. */
void export_cache_free(struct export_cache *cache);
/* Makes unfinished plans fail soon, which wakes the requests that wait for them. Call it before
 * loops and workers are stopped. */
void export_cache_stop(struct export_cache *cache);

/* The plan for a query, which the caller releases; begins no work. NULL if out of memory. */
struct export_plan *export_plan_find(struct export_cache *cache, struct generation *generation,
                                     const struct export_query *query);
/* void * for request_hold. */
void export_plan_release(void *plan);

enum export_answer { EXPORT_READY, EXPORT_PENDING, EXPORT_FAILED };

/* Ask for the outline, and then for the whole plan. PENDING: the stage is in progress (this call
 * begins it if necessary); waiter is woken when it ends, and the caller asks again. */
enum export_answer export_plan_outline(struct export_plan *plan, struct generation *generation,
                                       struct waiter *waiter);
enum export_answer export_plan_prepare(struct export_plan *plan, struct waiter *waiter);

#endif
