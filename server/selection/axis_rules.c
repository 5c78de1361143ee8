/* Reads rules, and applies them one by one: each glob is compiled once, and only one is held at a
 * time. */
#include "selection/axis_rules.h"

#include <stdlib.h>

#include "base/decimal.h"
#include "base/glob.h"
#include "selection/matches.h"

/* --- reading --- */

bool cut_read(struct zt_text text, struct zt_cut *out_cut)
{
    struct zt_cut cut = {0, 0, 0};

    if (!zt_decimal_take(&text, &cut.part) || text.length == 0 || text.bytes[0] != '/')
        return false;
    text = (struct zt_text){text.bytes + 1, text.length - 1};
    if (!zt_decimal_take(&text, &cut.parts) || text.length > 0 || cut.part >= cut.parts)
        return false;
    *out_cut = cut;
    return true;
}

bool axis_read(struct zt_text text, int64_t *out_axis)
{
    const bool negative = text.length > 0 && text.bytes[0] == '-';
    uint64_t number;
    int64_t axis;

    if (negative)
        text = (struct zt_text){text.bytes + 1, text.length - 1};
    if (!zt_decimal_take(&text, &number) || text.length > 0)
        return false;
    axis = number < INT64_MAX ? (int64_t)number : INT64_MAX;
    *out_axis = negative ? -axis : axis;
    return true;
}

/* The last ':' ends the glob, which may hold others and is not empty. Without one, the rule is for
 * every object. */
bool axis_rule_read(struct zt_text text, struct axis_rule *out_rule)
{
    struct axis_rule rule = {.text = text};
    size_t end = text.length;

    while (end > 0 && text.bytes[end - 1] != ':')
        end--;
    if (end == 0 && text.length > 0 && text.bytes[0] == '@') {
        rule.set = axis_set_find((struct zt_text){text.bytes + 1, text.length - 1});
        *out_rule = rule;
        return rule.set != NULL;
    }
    if (end == 1)
        return false;
    rule.glob = end > 0 ? (struct zt_text){text.bytes, end - 1} : (struct zt_text){"*", 1};
    text = (struct zt_text){text.bytes + end, text.length - end};
    if (zt_text_is(text, "none"))
        rule.axis = ZT_AXIS_NONE;
    else if (!axis_read(text, &rule.axis))
        return false;
    *out_rule = rule;
    return glob_is_valid(rule.glob);
}

/* --- applying --- */

/* Gives its axis to the chosen objects that match and that no earlier rule has taken. *out_known:
 * how many objects match, taken and chosen or not. False if out of memory. */
static bool apply_glob(const struct axis_rule *rule, const struct zt_model *model, bool *waiting,
                       int64_t *axes, uint32_t *out_known)
{
    struct glob_set *glob = glob_set_new(&rule->glob, 1);

    *out_known = 0;
    if (glob == NULL)
        return false;
    for (uint32_t i = 0; i < model->object_count; i++) {
        if (!glob_set_matches(glob, zt_object_name(&model->objects[i])))
            continue;
        *out_known += 1;
        if (waiting[i])
            axes[i] = rule->axis;
        waiting[i] = false;
    }
    glob_set_free(glob);
    return true;
}

static enum zt_status apply(const struct axis_rule *rule, const struct zt_model *model,
                            bool *waiting, int64_t *axes, struct zt_error *error)
{
    uint32_t known;
    const bool done = rule->set != NULL ? axis_set_apply(rule->set, model, waiting, axes, &known)
                                        : apply_glob(rule, model, waiting, axes, &known);

    if (!done)
        return zt_fail_memory(error, "axis rules");
    return known > 0 ? ZT_OK : match_fail("axis", rule->text, error);
}

static void fail_unknown(const struct axis_set *set, const struct axis_set *other,
                         struct zt_error *error)
{
    if (other != NULL)
        zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                "%s has no rule for this object; %s has the rules for this model's names",
                axis_set_name(set), axis_set_name(other));
    else
        zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                "%s has no rule for this object: add one, such as axis=GLOB:0 or axis=GLOB:none",
                axis_set_name(set));
}

/* With a set, an object without a rule may be one that axis 0 would spoil. */
static enum zt_status check_known(const struct axis_rule *rules, size_t count,
                                  const struct zt_model *model, const bool *waiting,
                                  struct zt_error *error)
{
    const struct axis_set *set = NULL;

    for (size_t i = 0; i < count; i++)
        if (rules[i].set != NULL)
            set = rules[i].set;
    for (uint32_t i = 0; set != NULL && i < model->object_count; i++) {
        if (!waiting[i])
            continue;
        fail_unknown(set, axis_set_suggest(model), error);
        zt_error_at(error, zt_object_name(&model->objects[i]), (struct zt_text){"", 0});
        return ZT_UNSUPPORTED;
    }
    return ZT_OK;
}

enum zt_status axis_rules_apply(const struct axis_rule *rules, size_t count,
                                const struct zt_model *model, const bool *chosen,
                                int64_t **out_axes, struct zt_error *error)
{
    int64_t *axes = calloc(model->object_count + (size_t)1, sizeof(*axes));
    bool *waiting = calloc(model->object_count + (size_t)1, sizeof(*waiting));
    enum zt_status status = ZT_OK;

    if (axes == NULL || waiting == NULL)
        status = zt_fail_memory(error, "axis rules");
    for (uint32_t i = 0; status == ZT_OK && i < model->object_count; i++)
        waiting[i] = chosen[i];
    for (size_t i = 0; i < count && status == ZT_OK; i++)
        status = apply(&rules[i], model, waiting, axes, error);
    if (status == ZT_OK)
        status = check_known(rules, count, model, waiting, error);
    free(waiting);
    if (status == ZT_OK) {
        *out_axes = axes;
        return ZT_OK;
    }
    free(axes);
    return status;
}
