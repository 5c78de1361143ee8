/* Applies the rules of an export one by one: each glob is compiled once, and only one is held at a
 * time. */
#include "derived/axis_rules.h"

#include <stdlib.h>

#include "base/glob.h"

/* Gives its axis to the chosen objects that match and that no earlier rule has taken. False if out
 * of memory. */
static bool apply(const struct axis_rule *rule, const struct zt_model *model, bool *waiting,
                  int64_t *axes)
{
    struct glob_set *glob = glob_set_new(&rule->glob, 1);

    if (glob == NULL)
        return false;
    for (uint32_t i = 0; i < model->object_count; i++) {
        if (!waiting[i] || !glob_set_matches(glob, zt_object_name(&model->objects[i])))
            continue;
        axes[i] = rule->axis;
        waiting[i] = false;
    }
    glob_set_free(glob);
    return true;
}

int64_t *axis_rules_apply(const struct axis_rule *rules, size_t count, const struct zt_model *model,
                          const bool *chosen)
{
    int64_t *axes = calloc(model->object_count + (size_t)1, sizeof(*axes));
    bool *waiting = calloc(model->object_count + (size_t)1, sizeof(*waiting));
    bool applied = axes != NULL && waiting != NULL;

    for (uint32_t i = 0; applied && i < model->object_count; i++)
        waiting[i] = chosen[i];
    for (size_t i = 0; applied && i < count; i++)
        applied = apply(&rules[i], model, waiting, axes);
    free(waiting);
    if (applied)
        return axes;
    free(axes);
    return NULL;
}
