/* Rules that say along which axis each object of an export is cut, so that one request gives a rank
 * of a tensor-parallel group its whole share. */
#ifndef DERIVED_AXIS_RULES_H
#define DERIVED_AXIS_RULES_H

#include "zt/select.h"

struct axis_rule {
    struct zt_text glob; /* of objects' names (base/glob.h); valid */
    int64_t axis;        /* negative: from the end; ZT_AXIS_NONE: the object stays whole */
};

/* The axis of each object of the model that is chosen (for the others, anything): that of the first
 * rule whose glob matches, 0 if none does. The rules' globs are within the bounds of one set. The
 * caller frees the array. NULL if out of memory. */
int64_t *axis_rules_apply(const struct axis_rule *rules, size_t count, const struct zt_model *model,
                          const bool *chosen);

#endif
