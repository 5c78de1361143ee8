/* Named sets of axis rules: how the tensors of known architectures are divided among the ranks of a
 * tensor-parallel group, by the names that checkpoints of the Hugging Face Hub and GGUF files give
 * them.
 *
 * A set knows every name of its architectures. A tensor that it does not know is one that may need
 * another treatment, such as a fused projection, so callers refuse it. */
#ifndef SELECTION_AXIS_SETS_H
#define SELECTION_AXIS_SETS_H

#include "zt/model.h"

/* To be raised when a set changes, so that the tags of exports change too. */
#define AXIS_SETS_REVISION 2
/* For messages. */
#define AXIS_SET_NAMES "@llama, @mixtral, @qwen-moe or @gpt-oss"

struct axis_set;

/* By a name without the '@', in which '-' and '_' do not count. NULL: there is no such set. */
const struct axis_set *axis_set_find(struct zt_text name);

/* With the '@'. */
const char *axis_set_name(const struct axis_set *set);

/* Sets axes[i] of each object that the set knows and for which waiting[i] is true, and clears
 * waiting[i]. *out_known: the number of objects that it knows, waiting or not. False if out of
 * memory. */
bool axis_set_apply(const struct axis_set *set, const struct zt_model *model, bool *waiting,
                    int64_t *axes, uint32_t *out_known);

/* The first set that knows all objects of a model and cuts some of them along another
 * axis than 0, or leaves them whole. NULL: none, or out of memory. */
const struct axis_set *axis_set_suggest(const struct zt_model *model);

#endif
