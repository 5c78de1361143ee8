/* Shared by the parts of the pickle machine: making values, the arena, the stack, the table of
 * names, and calls. */
#ifndef ZT_PICKLE_MACHINE_H
#define ZT_PICKLE_MACHINE_H

#include "pickle/pickle.h"

/* --- values --- */

/* A value of the present opcode. */
static inline pickle_value pickle_make(const struct pickle *pickle, enum pickle_kind kind,
                                       uint32_t index)
{
    return (uint64_t)kind | (uint64_t)pickle->opcode_at << 4 | (uint64_t)index << 34;
}

/* Takes count zeroed words of the arena; *out_index is never 0. Pointers into it become invalid. */
enum zt_status pickle_take(struct pickle *pickle, uint32_t count, uint32_t *out_index,
                           struct zt_error *error);
enum zt_status pickle_push(struct pickle *pickle, pickle_value value, struct zt_error *error);
/* Fails unless the present frame of the stack, above the last mark, has count values. */
enum zt_status pickle_need(const struct pickle *pickle, uint32_t count, struct zt_error *error);
enum zt_status pickle_memo_put(struct pickle *pickle, uint64_t index, struct zt_error *error);
enum zt_status pickle_memo_get(struct pickle *pickle, uint64_t index, struct zt_error *error);

/* --- containers: a tuple is one run of words; the others have a head, and a chain of runs --- */

/* A run: the number of its words and the index of the next run, then its words. */
#define RUN_HEAD_WORDS 1
/* A head: first run and last run, then flags. */
#define CONTAINER_HEAD_WORDS 2
#define CONTAINER_IS_ORDERED 1u /* an OrderedDict, which BUILD may follow */
#define CONTAINER_IS_RECORD  2u /* of TorchScript */

static inline uint64_t pickle_pair(uint32_t low, uint32_t high)
{
    return (uint64_t)low | (uint64_t)high << 32;
}

enum zt_status pickle_new_container(struct pickle *pickle, enum pickle_kind kind, uint32_t flags,
                                    pickle_value *out_value, struct zt_error *error);
/* Copies count words to the end of a list, set or map. */
enum zt_status pickle_extend(struct pickle *pickle, pickle_value container, const uint64_t *words,
                             uint32_t count, struct zt_error *error);
/* The same with the count topmost words of the stack, which it takes away. */
enum zt_status pickle_extend_by_top(struct pickle *pickle, pickle_value container, uint32_t count,
                                    struct zt_error *error);
uint32_t pickle_container_flags(const struct pickle *pickle, pickle_value container);
/* Replaces the count topmost words of the stack by a tuple of them. */
enum zt_status pickle_tuple_of_top(struct pickle *pickle, uint32_t count, struct zt_error *error);

/* --- names --- */

/* The kind of a name, and the effect of calling it. */
enum pickle_effect {
    EFFECT_REBUILD_TENSOR,
    EFFECT_REBUILD_TENSOR_V2,
    EFFECT_REBUILD_TENSOR_V3,
    EFFECT_PARAMETER,
    EFFECT_PARAMETER_WITH_STATE,
    EFFECT_FROM_TYPE,
    EFFECT_TENSOR_FROM_CPU,
    EFFECT_QUANTIZED,
    EFFECT_SPARSE,
    EFFECT_NO_BYTES, /* refused */
    EFFECT_ORDERED_MAP,
    EFFECT_COUNTER,
    EFFECT_SET,
    EFFECT_SIZE,
    EFFECT_LAYOUT,
    EFFECT_INERT,
    EFFECT_FIRST_ARGUMENT,
    EFFECT_PER_TENSOR, /* ways of quantizing */
    EFFECT_PER_CHANNEL,
    EFFECT_OTHER_SCHEME,
    EFFECT_TENSOR_CLASS,
    EFFECT_RECORD_CLASS,
    EFFECT_STORAGE_CLASS,
    EFFECT_DTYPE
};

struct pickle_meaning {
    enum pickle_effect effect;
    const struct torch_type *type; /* of a storage class or dtype */
};

/* Looks a name up; the index is for PICKLE_NAME. Fails at the present opcode. */
enum zt_status pickle_name_find(const struct pickle *pickle, struct zt_text module,
                                struct zt_text name, uint32_t *out_index, struct zt_error *error);
struct pickle_meaning pickle_meaning_of(pickle_value name);
/* Whether the value is a name of that effect. */
bool pickle_is_name(pickle_value value, enum pickle_effect effect);

/* --- calls --- */

/* REDUCE: what a call of a name with a tuple of arguments gives. */
enum zt_status pickle_call(struct pickle *pickle, pickle_value callee, pickle_value arguments,
                           pickle_value *out_value, struct zt_error *error);
/* The same for the names that give tensors. */
enum zt_status pickle_call_tensor(struct pickle *pickle, enum pickle_effect effect,
                                  pickle_value arguments, pickle_value *out_value,
                                  struct zt_error *error);
/* NEWOBJ, BUILD and BINPERSID. */
enum zt_status pickle_new_object(struct pickle *pickle, pickle_value class, pickle_value arguments,
                                 pickle_value *out_value, struct zt_error *error);
enum zt_status pickle_build(struct pickle *pickle, pickle_value object, pickle_value state,
                            struct zt_error *error);
enum zt_status pickle_load_storage(struct pickle *pickle, pickle_value id, pickle_value *out_value,
                                   struct zt_error *error);

#endif
