/* Rules that say along which axis each object is cut, so that one request gives a rank of a
 * tensor-parallel group its whole share. */
#ifndef SELECTION_AXIS_RULES_H
#define SELECTION_AXIS_RULES_H

#include "selection/axis_sets.h"
#include "zt/select.h"

/* For messages about rules that axis_rule_read refuses. */
#define AXIS_RULE_FORMS                                                                           \
    "an integer, GLOB:INTEGER, GLOB:none or a set (" AXIS_SET_NAMES "), with a glob that is not " \
    "empty and closes every '['"

struct axis_rule {
    struct zt_text text;        /* as written */
    struct zt_text glob;        /* of objects' names (base/glob.h); a part of text */
    int64_t axis;               /* negative: from the end; ZT_AXIS_NONE: the object stays whole */
    const struct axis_set *set; /* NULL: the rule is glob and axis */
};

/* Reads "R/N": part R, counted from 0, of N. Numbers past the largest become the largest: no tensor
 * has as many parts. The cut's axis becomes 0. False if the text is none. */
bool cut_read(struct zt_text text, struct zt_cut *out_cut);

/* Reads an integer such as "-1". False if the text is no integer. */
bool axis_read(struct zt_text text, int64_t *out_axis);

/* Reads a rule: "1" (every object), "GLOB:1", "GLOB:none" or "@llama". The text is borrowed. False
 * if it is none. */
bool axis_rule_read(struct zt_text text, struct axis_rule *out_rule);

/* Finds the axis of each chosen object (for the others, anything): the first rule that matches
 * counts; if none does, axis 0. The rules' globs are within the bounds of one set. The caller frees
 * *out_axes. ZT_NOT_FOUND if a rule matches no object of the model, chosen or not: its author meant
 * something else. ZT_UNSUPPORTED if there is a set but no rule for a chosen object, which the error
 * names. ZT_NO_MEMORY. */
enum zt_status axis_rules_apply(const struct axis_rule *rules, size_t count,
                                const struct zt_model *model, const bool *chosen,
                                int64_t **out_axes, struct zt_error *error);

#endif
