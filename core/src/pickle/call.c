/* The calls of a pickle: REDUCE, NEWOBJ, BUILD and BINPERSID. Nothing outside the machine happens:
 * a call makes a value of its arguments, or is refused. */
#include <assert.h>

#include "pickle/machine.h"
#include "pickle/storage_words.h"

#define CALL_RULE    "pt §Pickle Call"
#define STORAGE_RULE "pt §Storage Id"

static enum zt_status refuse(const struct pickle *pickle, const char *rule, struct zt_error *error,
                             const char *message)
{
    return pickle_fail(pickle, pickle->opcode_at, rule, error, "%s", message);
}

/* --- REDUCE --- */

static enum zt_status call_map(struct pickle *pickle, const struct pickle_meaning *meaning,
                               pickle_value arguments, pickle_value *out_value,
                               struct zt_error *error)
{
    const uint32_t flags = meaning->effect == EFFECT_ORDERED_MAP ? CONTAINER_IS_ORDERED : 0;
    uint32_t count;
    const pickle_value *values = pickle_tuple(pickle, arguments, &count);
    const uint64_t entry[2] = {0, count > 0 ? values[0] : 0};
    enum zt_status status;

    if (count > 1 || (count == 1 && pickle_kind_of(entry[1]) != PICKLE_MAP &&
                      pickle_kind_of(entry[1]) != PICKLE_LIST))
        return refuse(pickle, CALL_RULE, error, "a dictionary takes no argument, a map or a list");
    status = pickle_new_container(pickle, PICKLE_MAP, flags, out_value, error);
    return status == ZT_OK && count == 1 ? pickle_extend(pickle, *out_value, entry, 2, error)
                                         : status;
}

static enum zt_status call_set(struct pickle *pickle, pickle_value arguments,
                               pickle_value *out_value, struct zt_error *error)
{
    uint32_t count;
    const pickle_value *values = pickle_tuple(pickle, arguments, &count);
    const uint64_t items = count > 0 ? values[0] : 0;
    enum zt_status status;

    if (count > 1 || (count == 1 && pickle_kind_of(items) != PICKLE_LIST &&
                      pickle_kind_of(items) != PICKLE_TUPLE && pickle_kind_of(items) != PICKLE_SET))
        return refuse(pickle, CALL_RULE, error, "a set takes no argument or a list");
    status = pickle_new_container(pickle, PICKLE_SET, 0, out_value, error);
    return status == ZT_OK && count == 1 ? pickle_extend(pickle, *out_value, &items, 1, error)
                                         : status;
}

static enum zt_status call_size(const struct pickle *pickle, pickle_value arguments,
                                pickle_value *out_value, struct zt_error *error)
{
    uint32_t count;
    const pickle_value *values = pickle_tuple(pickle, arguments, &count);

    if (count != 1 || pickle_kind_of(values[0]) != PICKLE_TUPLE)
        return refuse(pickle, CALL_RULE, error, "torch.Size takes a tuple");
    *out_value = values[0];
    return ZT_OK;
}

static enum zt_status call_layout(const struct pickle *pickle, pickle_value arguments,
                                  pickle_value *out_value, struct zt_error *error)
{
    static const char *const layouts[] = {
        "torch.strided",    "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
        "torch.sparse_bsr", "torch.sparse_bsc", "torch._mkldnn",    "torch.jagged"};
    uint32_t count;
    const pickle_value *values = pickle_tuple(pickle, arguments, &count);

    for (unsigned i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (count == 1 && pickle_kind_of(values[0]) == PICKLE_TEXT &&
            zt_text_is(pickle_text(pickle, values[0]), layouts[i])) {
            *out_value = pickle_make(pickle, PICKLE_LAYOUT, pickle_position_of(values[0]));
            return ZT_OK;
        }
    return refuse(pickle, CALL_RULE, error, "a layout that torch does not have");
}

/* A device, bytes or a complex number, made of scalars. */
static enum zt_status call_inert(const struct pickle *pickle, pickle_value arguments,
                                 pickle_value *out_value, struct zt_error *error)
{
    uint32_t count;
    const pickle_value *values = pickle_tuple(pickle, arguments, &count);

    for (uint32_t i = 0; i < count; i++)
        if (pickle_kind_of(values[i]) > PICKLE_INERT)
            return refuse(pickle, CALL_RULE, error, "an argument is not a scalar");
    *out_value = pickle_make(pickle, PICKLE_INERT, 0);
    return ZT_OK;
}

static enum zt_status call_first(const struct pickle *pickle, pickle_value arguments,
                                 pickle_value *out_value, struct zt_error *error)
{
    uint32_t count;
    const pickle_value *values = pickle_tuple(pickle, arguments, &count);

    if (count == 0)
        return refuse(pickle, CALL_RULE, error, "a call without an argument");
    *out_value = values[0];
    return ZT_OK;
}

enum zt_status pickle_call(struct pickle *pickle, pickle_value callee, pickle_value arguments,
                           pickle_value *out_value, struct zt_error *error)
{
    const struct pickle_meaning meaning = pickle_meaning_of(callee);

    switch (meaning.effect) {
    case EFFECT_REBUILD_TENSOR:
    case EFFECT_REBUILD_TENSOR_V2:
    case EFFECT_REBUILD_TENSOR_V3:
    case EFFECT_PARAMETER:
    case EFFECT_PARAMETER_WITH_STATE:
    case EFFECT_FROM_TYPE:
    case EFFECT_TENSOR_FROM_CPU:
    case EFFECT_QUANTIZED:
    case EFFECT_SPARSE:
        return pickle_call_tensor(pickle, meaning.effect, arguments, out_value, error);
    case EFFECT_ORDERED_MAP:
    case EFFECT_COUNTER:
        return call_map(pickle, &meaning, arguments, out_value, error);
    case EFFECT_SET:
        return call_set(pickle, arguments, out_value, error);
    case EFFECT_SIZE:
        return call_size(pickle, arguments, out_value, error);
    case EFFECT_LAYOUT:
        return call_layout(pickle, arguments, out_value, error);
    case EFFECT_INERT:
        return call_inert(pickle, arguments, out_value, error);
    case EFFECT_FIRST_ARGUMENT:
        return call_first(pickle, arguments, out_value, error);
    default:
        return refuse(pickle, CALL_RULE, error, "it calls a value that is not a function");
    }
}

/* --- NEWOBJ and BUILD --- */

enum zt_status pickle_new_object(struct pickle *pickle, pickle_value class, pickle_value arguments,
                                 pickle_value *out_value, struct zt_error *error)
{
    const struct pickle_meaning meaning = pickle_meaning_of(class);
    uint32_t count;

    pickle_tuple(pickle, arguments, &count);
    if (count != 0 ||
        (meaning.effect != EFFECT_ORDERED_MAP && meaning.effect != EFFECT_RECORD_CLASS))
        return refuse(pickle, CALL_RULE, error, "an object that cannot be created this way");
    return pickle_new_container(pickle, PICKLE_MAP,
                                meaning.effect == EFFECT_ORDERED_MAP ? CONTAINER_IS_ORDERED
                                                                     : CONTAINER_IS_RECORD,
                                out_value, error);
}

enum zt_status pickle_build(struct pickle *pickle, pickle_value object, pickle_value state,
                            struct zt_error *error)
{
    const uint32_t flags =
        pickle_kind_of(object) == PICKLE_MAP ? pickle_container_flags(pickle, object) : 0;
    const uint64_t entry[2] = {0, state};

    if (pickle_kind_of(state) != PICKLE_MAP &&
        (flags != CONTAINER_IS_RECORD || pickle_kind_of(state) != PICKLE_TUPLE))
        return refuse(pickle, CALL_RULE, error, "BUILD with a state that is not a map");
    if (flags == CONTAINER_IS_RECORD)
        return pickle_extend(pickle, object, entry, 2, error);
    if (flags != CONTAINER_IS_ORDERED)
        return refuse(pickle, CALL_RULE, error, "BUILD of an object that has no state");
    return ZT_OK; /* attributes of a dictionary: _metadata */
}

/* --- storages --- */

/* The fifth and sixth part of a persistent id: how many elements, and which of them. */
static enum zt_status read_view(const struct pickle *pickle, pickle_value view, uint64_t *storage,
                                struct zt_error *error)
{
    const uint64_t count = storage[STORAGE_COUNT];
    uint32_t part_count = 0;
    const pickle_value *parts;

    storage[STORAGE_VIEW_OFFSET] = 0;
    storage[STORAGE_VIEW_COUNT] = count;
    if (pickle_kind_of(view) == PICKLE_NONE)
        return ZT_OK;
    parts = pickle_kind_of(view) == PICKLE_TUPLE ? pickle_tuple(pickle, view, &part_count) : NULL;
    if (part_count != 3 || pickle_kind_of(parts[0]) != PICKLE_TEXT ||
        !pickle_size_of(pickle, parts[1], &storage[STORAGE_VIEW_OFFSET]) ||
        !pickle_size_of(pickle, parts[2], &storage[STORAGE_VIEW_COUNT]))
        return refuse(pickle, STORAGE_RULE, error, "the view of a storage is malformed");
    if (storage[STORAGE_VIEW_OFFSET] > count ||
        storage[STORAGE_VIEW_COUNT] > count - storage[STORAGE_VIEW_OFFSET])
        return refuse(pickle, STORAGE_RULE, error, "the view goes past its storage");
    return ZT_OK;
}

static enum zt_status read_id(const struct pickle *pickle, pickle_value id, uint64_t *storage,
                              struct zt_error *error)
{
    uint32_t count = 0;
    const pickle_value *parts =
        pickle_kind_of(id) == PICKLE_TUPLE ? pickle_tuple(pickle, id, &count) : NULL;
    const struct torch_type *type;

    if ((count != 5 && (count != 6 || !pickle->is_legacy)) ||
        pickle_kind_of(parts[0]) != PICKLE_TEXT ||
        !zt_text_is(pickle_text(pickle, parts[0]), "storage") ||
        !pickle_is_name(parts[1], EFFECT_STORAGE_CLASS) ||
        pickle_kind_of(parts[2]) != PICKLE_TEXT || pickle_kind_of(parts[3]) != PICKLE_TEXT ||
        !pickle_size_of(pickle, parts[4], &storage[STORAGE_COUNT]))
        return refuse(pickle, STORAGE_RULE, error, "a persistent id that names no storage");
    if (zt_text_is(pickle_text(pickle, parts[3]), "meta"))
        return refuse(pickle, STORAGE_RULE, error, "a storage on meta has no bytes");
    type = pickle_meaning_of(parts[1]).type;
    if (storage[STORAGE_COUNT] > INT64_MAX / type->width_bytes)
        return refuse(pickle, STORAGE_RULE, error, "the storage's bytes do not fit in 63 bits");
    storage[STORAGE_TYPE] = torch_type_number(type);
    storage[STORAGE_KEY] = parts[2];
    return read_view(pickle, count == 6 ? parts[5] : PICKLE_NONE, storage, error);
}

enum zt_status pickle_load_storage(struct pickle *pickle, pickle_value id, pickle_value *out_value,
                                   struct zt_error *error)
{
    uint64_t words[STORAGE_WORDS] = {0};
    uint32_t index = 0;
    enum zt_status status = read_id(pickle, id, words, error);

    if (status == ZT_OK)
        status = pickle_take(pickle, STORAGE_WORDS, &index, error);
    if (status != ZT_OK)
        return status;
    assert(index > pickle->last_storage);
    words[STORAGE_LINK] = 0;
    words[STORAGE_TYPE] |= (uint64_t)pickle->opcode_at << 32;
    for (unsigned i = 0; i < STORAGE_WORDS; i++)
        pickle->arena.items[index + i] = words[i];
    if (pickle->last_storage != 0)
        pickle->arena.items[pickle->last_storage + STORAGE_LINK] |= index;
    else
        pickle->first_storage = index;
    pickle->last_storage = index;
    *out_value = pickle_make(pickle, PICKLE_STORAGE, index);
    return ZT_OK;
}

uint32_t pickle_storage_next(const struct pickle *pickle, uint32_t index)
{
    return index == 0 ? pickle->first_storage : (uint32_t)pickle->arena.items[index + STORAGE_LINK];
}

void pickle_storage_read(const struct pickle *pickle, uint32_t index,
                         struct pickle_storage *out_storage)
{
    const uint64_t *words = pickle->arena.items + index;

    assert(index > 0 && index + STORAGE_WORDS <= pickle->arena.count);
    *out_storage =
        (struct pickle_storage){.key = pickle_text(pickle, words[STORAGE_KEY]),
                                .type = torch_type_numbered((uint32_t)words[STORAGE_TYPE]),
                                .count = words[STORAGE_COUNT],
                                .view_offset = words[STORAGE_VIEW_OFFSET],
                                .view_count = words[STORAGE_VIEW_COUNT],
                                .place = (uint32_t)(words[STORAGE_LINK] >> 32),
                                .index = index,
                                .position = (uint32_t)(words[STORAGE_TYPE] >> 32)};
}

void pickle_storage_place(struct pickle *pickle, uint32_t index, uint32_t place)
{
    uint64_t *link = &pickle->arena.items[index + STORAGE_LINK];

    *link = pickle_pair((uint32_t)*link, place);
}
