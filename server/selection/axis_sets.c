/* The sets, as groups of names with one axis each. Groups of a set have no name in common, so their
 * order does not matter.
 *
 * A layer whose outputs are divided (queries, keys, values, gate, up, the vocabulary) is cut along
 * its rows; one whose inputs are divided (attention output, down) along its columns. Every rank
 * needs norms, routers, and the biases of layers whose outputs are summed over the ranks. */
#include "selection/axis_sets.h"

#include <stdlib.h>

#include "base/glob.h"
#include "selection/matches.h"
#include "zt/select.h"

#define NO_PREFIX     ((struct zt_text){"", 0})
#define GROUPS_MAX    9
#define NAME_SIZE     16
#define SET_NAMES_MAX 8

struct group {
    int64_t axis;
    const char *globs[GLOB_SET_MAX]; /* up to NULL */
    const char *needs;   /* the group is only for models with such a name; NULL: for all */
    bool is_for_vectors; /* the group is only for objects with one dimension */
};

struct axis_set {
    const char *shown;
    const char *names[SET_NAMES_MAX];       /* up to NULL; without '-' and '_' */
    const struct group *groups[GROUPS_MAX]; /* up to NULL */
};

/* --- attention, embeddings, norms: the same in all sets --- */

static const struct group common_rows = {
    .axis = 0,
    .globs = {"embed_tokens.weight", "*.embed_tokens.weight", "lm_head.weight", "*.lm_head.weight",
              "*layers.*.self_attn.[qkv]_proj.weight", "*layers.*.self_attn.[qkv]_proj.bias",
              "token_embd.weight", "output.weight", "blk.*.attn_[qkv].weight",
              "blk.*.attn_[qkv].bias"},
};

static const struct group common_columns = {
    .axis = 1,
    .globs = {"*layers.*.self_attn.o_proj.weight", "blk.*.attn_output.weight"},
};

static const struct group common_whole = {
    .axis = ZT_AXIS_NONE,
    .globs = {"norm.weight", "*.norm.weight", "*layers.*.input_layernorm.weight",
              "*layers.*.post_attention_layernorm.weight",
              "*layers.*.pre_feedforward_layernorm.weight",
              "*layers.*.post_feedforward_layernorm.weight", "*layers.*.self_attn.o_proj.bias",
              "*rotary_emb.inv_freq", "output_norm.weight", "blk.*.attn_norm.weight",
              "blk.*.ffn_norm.weight", "blk.*.post_attention_norm.weight",
              "blk.*.post_ffw_norm.weight", "blk.*.attn_output.bias", "rope_freqs.weight",
              "rope_factors_long.weight", "rope_factors_short.weight"},
};

/* One for all heads. Command R+ has a row for each head, which ranks would divide. */
static const struct group head_norms = {
    .axis = ZT_AXIS_NONE,
    .globs = {"*layers.*.self_attn.[qk]_norm.weight", "blk.*.attn_[qk]_norm.weight"},
    .is_for_vectors = true,
};

/* --- one feed-forward network a layer --- */

static const struct group dense_rows = {
    .axis = 0,
    .globs = {"*layers.*.mlp.gate_proj.weight", "*layers.*.mlp.up_proj.weight",
              "*layers.*.mlp.gate_proj.bias", "*layers.*.mlp.up_proj.bias"},
};

/* Without a gate beside it, ffn_up may hold both (GLM-4, Phi-3): one cut would separate them. */
static const struct group gguf_rows = {
    .axis = 0,
    .globs = {"blk.*.ffn_gate.weight", "blk.*.ffn_up.weight", "blk.*.ffn_gate.bias",
              "blk.*.ffn_up.bias"},
    .needs = "blk.*.ffn_gate.weight",
};

static const struct group dense_columns = {
    .axis = 1,
    .globs = {"*layers.*.mlp.down_proj.weight", "blk.*.ffn_down.weight"},
};

static const struct group dense_whole = {
    .axis = ZT_AXIS_NONE,
    .globs = {"*layers.*.mlp.down_proj.bias", "blk.*.ffn_down.bias"},
};

/* --- experts, each of which is divided --- */

static const struct group mixtral_rows = {
    .axis = 0,
    .globs = {"*layers.*.block_sparse_moe.experts.*.w[13].weight", "blk.*.ffn_gate.*.weight",
              "blk.*.ffn_up.*.weight"},
};

/* GGUF stacks the experts of a layer. */
static const struct group mixtral_columns = {
    .axis = 1,
    .globs = {"*layers.*.block_sparse_moe.experts.*.w2.weight", "blk.*.ffn_down.*.weight",
              "blk.*.ffn_gate_exps.weight", "blk.*.ffn_up_exps.weight"},
};

static const struct group mixtral_whole = {
    .axis = ZT_AXIS_NONE,
    .globs = {"*layers.*.block_sparse_moe.gate.weight", "blk.*.ffn_gate_inp.weight"},
};

static const struct group stacked_inner = {
    .axis = 2,
    .globs = {"blk.*.ffn_down_exps.weight"},
};

static const struct group qwen_moe_rows = {
    .axis = 0,
    .globs = {"*layers.*.mlp.gate_proj.weight", "*layers.*.mlp.up_proj.weight",
              "*layers.*.mlp.experts.*.gate_proj.weight", "*layers.*.mlp.experts.*.up_proj.weight",
              "*layers.*.mlp.shared_expert.gate_proj.weight",
              "*layers.*.mlp.shared_expert.up_proj.weight", "blk.*.ffn_gate_shexp.weight",
              "blk.*.ffn_up_shexp.weight"},
};

static const struct group qwen_moe_columns = {
    .axis = 1,
    .globs = {"*layers.*.mlp.down_proj.weight", "*layers.*.mlp.experts.*.down_proj.weight",
              "*layers.*.mlp.shared_expert.down_proj.weight", "blk.*.ffn_down.weight",
              "blk.*.ffn_down_shexp.weight", "blk.*.ffn_gate_exps.weight",
              "blk.*.ffn_up_exps.weight"},
};

static const struct group qwen_moe_whole = {
    .axis = ZT_AXIS_NONE,
    .globs = {"*layers.*.mlp.gate.weight", "*layers.*.mlp.shared_expert_gate.weight",
              "blk.*.ffn_gate_inp.weight", "blk.*.ffn_gate_inp_shexp.weight"},
};

/* --- GPT-OSS: the experts of a layer are stacked, and gate and up alternate ---
 *
 * The first axis counts experts. The packed blocks have outputs before inputs, as linear layers do;
 * the unpacked weights have inputs before outputs. Rows of gate and up alternate, so that
 * consecutive parts hold pairs. */

static const struct group gpt_oss_rows = {
    .axis = 0,
    .globs = {"*layers.*.self_attn.sinks", "blk.*.attn_sinks.weight"},
};

static const struct group gpt_oss_second = {
    .axis = 1,
    .globs = {"*layers.*.mlp.experts.gate_up_proj_blocks",
              "*layers.*.mlp.experts.gate_up_proj_scales",
              "*layers.*.mlp.experts.gate_up_proj_bias", "*layers.*.mlp.experts.down_proj",
              "blk.*.ffn_gate_exps.weight", "blk.*.ffn_up_exps.weight", "blk.*.ffn_gate_exps.bias",
              "blk.*.ffn_up_exps.bias"},
};

static const struct group gpt_oss_third = {
    .axis = 2,
    .globs = {"*layers.*.mlp.experts.gate_up_proj", "*layers.*.mlp.experts.down_proj_blocks",
              "*layers.*.mlp.experts.down_proj_scales", "blk.*.ffn_down_exps.weight"},
};

static const struct group gpt_oss_whole = {
    .axis = ZT_AXIS_NONE,
    .globs = {"*layers.*.mlp.experts.down_proj_bias", "*layers.*.mlp.router.weight",
              "*layers.*.mlp.router.bias", "blk.*.ffn_down_exps.bias", "blk.*.ffn_gate_inp.weight",
              "blk.*.ffn_gate_inp.bias"},
};

/* --- the sets --- */

static const struct axis_set sets[] = {
    {"@llama",
     {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"},
     {&common_rows, &common_columns, &common_whole, &head_norms, &dense_rows, &gguf_rows,
      &dense_columns, &dense_whole}},
    {"@mixtral",
     {"mixtral"},
     {&common_rows, &common_columns, &common_whole, &mixtral_rows, &mixtral_columns, &mixtral_whole,
      &stacked_inner}},
    {"@qwen-moe",
     {"qwenmoe", "qwen2moe", "qwen3moe"},
     {&common_rows, &common_columns, &common_whole, &head_norms, &gguf_rows, &qwen_moe_rows,
      &qwen_moe_columns, &qwen_moe_whole, &stacked_inner}},
    {"@gpt-oss",
     {"gptoss"},
     {&common_rows, &common_columns, &common_whole, &gpt_oss_rows, &gpt_oss_second, &gpt_oss_third,
      &gpt_oss_whole}},
};
#define SETS (sizeof(sets) / sizeof(sets[0]))

static bool has_name(const struct axis_set *set, struct zt_text name)
{
    for (size_t i = 0; i < SET_NAMES_MAX && set->names[i] != NULL; i++)
        if (zt_text_is(name, set->names[i]))
            return true;
    return false;
}

const struct axis_set *axis_set_find(struct zt_text name)
{
    char plain[NAME_SIZE];
    size_t length = 0;

    for (size_t i = 0; i < name.length; i++) {
        if (name.bytes[i] == '-' || name.bytes[i] == '_')
            continue;
        if (length == sizeof(plain))
            return NULL;
        plain[length++] = name.bytes[i];
    }
    for (size_t i = 0; i < SETS; i++)
        if (has_name(&sets[i], (struct zt_text){plain, length}))
            return &sets[i];
    return NULL;
}

const char *axis_set_name(const struct axis_set *set)
{
    return set->shown;
}

/* --- applying --- */

static bool is_for(const struct group *group, const struct zt_model *model)
{
    const struct zt_text needed = zt_text_from(group->needs != NULL ? group->needs : "*");
    struct zt_error ignored;

    return group->needs == NULL || matches_check(NO_PREFIX, &needed, 1, model, &ignored) == ZT_OK;
}

static bool has_object(const struct group *group, struct glob_set *globs,
                       const struct zt_object *object)
{
    return (!group->is_for_vectors || object->rank == 1) &&
           glob_set_matches(globs, zt_object_name(object));
}

static struct glob_set *compile(const struct group *group)
{
    struct zt_text globs[GLOB_SET_MAX];
    size_t count = 0;

    for (; count < GLOB_SET_MAX && group->globs[count] != NULL; count++)
        globs[count] = zt_text_from(group->globs[count]);
    return glob_set_new(globs, count);
}

static bool apply_group(const struct group *group, const struct zt_model *model, bool *waiting,
                        int64_t *axes, uint32_t *known)
{
    struct glob_set *globs;

    if (!is_for(group, model))
        return true;
    globs = compile(group);
    if (globs == NULL)
        return false;
    for (uint32_t i = 0; i < model->object_count; i++) {
        if (!has_object(group, globs, &model->objects[i]))
            continue;
        *known += 1;
        if (waiting[i])
            axes[i] = group->axis;
        waiting[i] = false;
    }
    glob_set_free(globs);
    return true;
}

bool axis_set_apply(const struct axis_set *set, const struct zt_model *model, bool *waiting,
                    int64_t *axes, uint32_t *out_known)
{
    *out_known = 0;
    for (size_t i = 0; i < GROUPS_MAX && set->groups[i] != NULL; i++)
        if (!apply_group(set->groups[i], model, waiting, axes, out_known))
            return false;
    return true;
}

/* --- suggesting --- */

/* A set, compiled. */
struct compiled {
    const struct axis_set *set;
    struct glob_set *groups[GROUPS_MAX]; /* NULL: not for the model */
};

static bool compile_all(struct compiled *compiled, const struct zt_model *model)
{
    bool done = true;

    for (size_t i = 0; i < GROUPS_MAX && compiled->set->groups[i] != NULL; i++) {
        if (!is_for(compiled->set->groups[i], model))
            continue;
        compiled->groups[i] = compile(compiled->set->groups[i]);
        done &= compiled->groups[i] != NULL;
    }
    return done;
}

/* NULL: the set does not know the object. */
static const struct group *group_of(const struct compiled *compiled, const struct zt_object *object)
{
    for (size_t i = 0; i < GROUPS_MAX; i++)
        if (compiled->groups[i] != NULL &&
            has_object(compiled->set->groups[i], compiled->groups[i], object))
            return compiled->set->groups[i];
    return NULL;
}

/* Whether the set knows all objects, and says more than that everything is cut along axis 0. Most
 * models are told from their first object. */
static bool fits(const struct compiled *compiled, const struct zt_model *model)
{
    bool differs = false;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct group *group = group_of(compiled, &model->objects[i]);

        if (group == NULL)
            return false;
        differs |= group->axis != 0;
    }
    return differs;
}

const struct axis_set *axis_set_suggest(const struct zt_model *model)
{
    const struct axis_set *found = NULL;

    for (size_t i = 0; i < SETS && found == NULL; i++) {
        struct compiled compiled = {.set = &sets[i]};

        if (compile_all(&compiled, model) && fits(&compiled, model))
            found = &sets[i];
        for (size_t j = 0; j < GROUPS_MAX; j++)
            glob_set_free(compiled.groups[j]);
    }
    return found;
}
