/* Plans of exports: the exact content of an exported file, known before any of it is sent.
 *
 * Workers make a plan in two stages. The outline determines whether the target format can represent
 * the selection. Preparation verifies every component, reads those whose digest or length the
 * target contains and the server does not know yet, and lays out the file. If the client states
 * what it has, preparation first computes the SHA-256 of every component and leaves out the objects
 * that the client has.
 *
 * Complete plans are kept in a memo, by version of the model and query, for the ranges of a resumed
 * download; they keep no file open. Requests with the same query share one plan, even while it is
 * being made. */
#ifndef DERIVED_EXPORT_PLAN_H
#define DERIVED_EXPORT_PLAN_H

#include "base/memo.h"
#include "derived/export_bytes.h"
#include "derived/export_lists.h"
#include "selection/axis_rules.h"
#include "zt/file_plan.h"

/* What to export. The texts are not copied. */
struct export_query {
    enum zt_target target;
    struct zt_text prefix;         /* of objects' names; empty: all */
    const struct zt_text *matches; /* and any of these globs (base/glob.h); none: all names */
    size_t match_count;
    struct zt_cut cut;             /* parts 0: whole objects; its axis is ignored */
    const struct axis_rule *rules; /* the axes */
    size_t rule_count;
    bool to_f32; /* widen everything that can be widened */
    /* The range of objects in the model's order: count objects from first on; count 0: all. */
    uint32_t first;
    uint32_t count;
    /* Replace the file's metadata by {"format": "pt"}, as transformers expects. */
    bool is_for_torch;
    /* Leave out the objects that the client has, and name them in the file's metadata
     * (EXPORT_LEFT_OUT). */
    bool leaves_out;
    /* The client has the objects that are the same in this revision of the model
     * (export_base.h). NULL: none. */
    struct generation *base;
    /* Names in addition to the globs, and what else the client has. NULL: neither. */
    struct export_lists *lists;
};

/* The attribute that lists the names of the objects that were left out. safetensors has it as text,
 * a JSON array; NPZ has no attributes. */
#define EXPORT_LEFT_OUT "ztserve.left_out"

enum export_failure {
    EXPORT_NO_OBJECT,            /* no object matches */
    EXPORT_RULE_UNUSED,          /* a glob or an axis rule matches no object */
    EXPORT_NOT_REPRESENTABLE,    /* the target cannot represent an object, or cannot be cut */
    EXPORT_NOT_CUT,              /* the cut does not fit an object; see plan->verdict */
    EXPORT_UNSUPPORTED_ENCODING, /* a component cannot be decoded, or is too large to be decoded */
    EXPORT_CORRUPT,
    EXPORT_INVALID, /* the content of a component breaks a rule */
    EXPORT_ENDING,  /* the server is stopping */
    EXPORT_ERROR    /* out of memory, or a disk error */
};

struct export_plan {
    /* Set with the outline: hash of the query; the tag combines it with the version of the
     * model. */
    uint64_t identity[2];
    /* Set when the plan is complete. */
    struct zt_file_plan *file;
    struct export_origin *origins; /* one per component of the file */
    uint32_t origin_count;
    uint32_t left_out_count; /* objects that the client has */
    /* Set with the outline: the set of axis rules for the model, if the query cuts it without any
     * rule. NULL: none. */
    const struct axis_set *suggestion;
    /* Set on failure. */
    enum export_failure failure;
    enum zt_slice_verdict verdict;
    struct zt_error error;
};

/* For server->exports. Returns NULL if out of memory. */
struct memo *export_memo_new(void);

/* Returns the plan for a query, which the caller must release with memo_release; starts no work.
 * Returns NULL if out of memory. */
struct export_plan *export_plan_hold(struct memo *plans, const struct generation *generation,
                                     const struct export_query *query);

/* Request the outline, and then the complete plan. PENDING: the stage is in progress (this call
 * starts it if necessary); waiter is woken when it ends, and the caller must call again. FAILED:
 * the plan has the reason. Never returns MAKE. */
enum memo_answer export_plan_outline(struct server *server, struct export_plan *plan,
                                     struct generation *generation,
                                     const struct export_query *query, struct waiter *waiter);
enum memo_answer export_plan_prepare(struct export_plan *plan, struct waiter *waiter);

#endif
