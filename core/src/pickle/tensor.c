/* The calls that make tensors. Their arguments are checked at once against the storage that they
 * name: kinds, numbers, types, bounds. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "pickle/machine.h"
#include "zt/model.h"

#define CALL_RULE  "pt §Pickle Call"
#define SHAPE_RULE "pt §Tensor Shape"
#define DTYPE_RULE "pt §Tensor Dtype"

/* The words of a tensor in the arena. */
enum {
    TENSOR_HEAD,
    TENSOR_STORAGE,
    TENSOR_OFFSET,
    TENSOR_SIZE,
    TENSOR_STRIDE,
    TENSOR_DATA,
    TENSOR_WORDS
};

/* The arguments of a call, one after another. */
struct call {
    struct pickle *pickle;
    const pickle_value *values;
    uint32_t count;
    struct zt_error *error;
};

static enum zt_status refuse(const struct call *call, const char *rule, const char *message)
{
    pickle_fail(call->pickle, call->pickle->opcode_at, rule, call->error, "%s", message);
    return ZT_INVALID;
}

static bool is_kind(const struct call *call, uint32_t index, enum pickle_kind kind)
{
    return index < call->count && pickle_kind_of(call->values[index]) == kind;
}

/* --- shapes --- */

static bool read_sizes(const struct pickle *pickle, pickle_value tuple, uint64_t *out_sizes,
                       uint8_t *out_rank)
{
    uint32_t count = 0;
    const pickle_value *values =
        pickle_kind_of(tuple) == PICKLE_TUPLE ? pickle_tuple(pickle, tuple, &count) : NULL;

    if (values == NULL || count > PICKLE_RANK_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!pickle_size_of(pickle, values[i], &out_sizes[i]))
            return false;
    *out_rank = (uint8_t)count;
    return true;
}

/* The number of elements; false if it, or the number of bytes, does not fit in 63 bits. */
static bool count_elements(const struct pickle_tensor *tensor, unsigned width_bytes,
                           uint64_t *out_elements)
{
    uint64_t elements = 1;

    assert(width_bytes > 0);
    for (unsigned i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(elements, tensor->shape[i], &elements) || elements > INT64_MAX)
            return false;
    *out_elements = elements;
    return elements <= INT64_MAX / width_bytes;
}

/* The number of elements from the first one of the storage to the last one of the tensor; false if
 * it does not fit in 63 bits. The tensor has elements. */
static bool count_reach(const struct pickle_tensor *tensor, uint64_t *out_reach)
{
    uint64_t reach = tensor->offset;

    for (unsigned i = 0; i < tensor->rank; i++) {
        uint64_t step;

        assert(tensor->shape[i] > 0);
        if (__builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &step) ||
            __builtin_add_overflow(reach, step, &reach) || reach >= INT64_MAX)
            return false;
    }
    *out_reach = reach + 1;
    return true;
}

static enum zt_status check_bounds(const struct call *call, const struct pickle_tensor *tensor)
{
    const unsigned width = tensor->type->width_bytes;
    struct pickle_storage storage;
    uint64_t elements;
    uint64_t reach;

    if (tensor->type->logical == ZT_LOGICAL_F4_E2M1 &&
        (tensor->rank == 0 || tensor->shape[tensor->rank - 1] > INT64_MAX / 4))
        return refuse(call, SHAPE_RULE, "pairs of 4-bit numbers need a last dimension");
    if (!count_elements(tensor, width, &elements) || elements > INT64_MAX / 2)
        return refuse(call, SHAPE_RULE, "the tensor's bytes do not fit in 63 bits");
    if (elements == 0)
        return ZT_OK;
    pickle_storage_read(call->pickle, tensor->storage, &storage);
    if (!count_reach(tensor, &reach) ||
        reach > storage.view_count * storage.type->width_bytes / width)
        return pickle_fail(call->pickle, call->pickle->opcode_at, "pt §Tensor Bounds", call->error,
                           "the tensor goes past its storage of %" PRIu64 " bytes",
                           storage.view_count * storage.type->width_bytes);
    return ZT_OK;
}

/* --- dense tensors --- */

/* The first four arguments of every rebuilding function: storage, offset, size, stride. */
static enum zt_status read_place(const struct call *call, struct pickle_tensor *out_tensor)
{
    struct pickle_storage storage;
    uint8_t stride_rank = 0;

    if (!is_kind(call, 0, PICKLE_STORAGE) || call->count < 4)
        return refuse(call, CALL_RULE, "a tensor takes a storage, offset, size and stride");
    out_tensor->storage = pickle_index_of(call->values[0]);
    pickle_storage_read(call->pickle, out_tensor->storage, &storage);
    out_tensor->type = storage.type;
    if (!pickle_size_of(call->pickle, call->values[1], &out_tensor->offset))
        return refuse(call, SHAPE_RULE, "the offset is not a non-negative number");
    if (!read_sizes(call->pickle, call->values[2], out_tensor->shape, &out_tensor->rank))
        return refuse(call, SHAPE_RULE,
                      "the size is not a tuple of at most 64 non-negative numbers");
    if (!read_sizes(call->pickle, call->values[3], out_tensor->strides, &stride_rank) ||
        stride_rank != out_tensor->rank)
        return refuse(call, SHAPE_RULE, "the strides are not as many non-negative numbers");
    return ZT_OK;
}

/* requires_grad and hooks, which are not kept. */
static enum zt_status check_flags(const struct call *call, uint32_t first)
{
    if (!is_kind(call, first, PICKLE_BOOL) ||
        (!is_kind(call, first + 1, PICKLE_MAP) && !is_kind(call, first + 1, PICKLE_NONE)))
        return refuse(call, CALL_RULE, "a tensor has a flag and hooks");
    return ZT_OK;
}

/* {"conj": True}, {"neg": True}, or both. */
static enum zt_status read_metadata(const struct call *call, pickle_value metadata,
                                    struct pickle_tensor *tensor)
{
    bool is_conjugate = false;
    bool is_negative = false;
    struct pickle_items items;
    pickle_value key;
    pickle_value value = 0;

    if (pickle_kind_of(metadata) == PICKLE_NONE)
        return ZT_OK;
    if (pickle_kind_of(metadata) != PICKLE_MAP)
        return refuse(call, CALL_RULE, "a tensor's metadata is not a map");
    pickle_items_begin(call->pickle, metadata, &items);
    while (pickle_items_next(call->pickle, &items, &key)) {
        struct zt_text name = {NULL, 0};

        if (pickle_kind_of(key) == PICKLE_TEXT)
            name = pickle_text(call->pickle, key);
        if (!pickle_items_next(call->pickle, &items, &value) ||
            pickle_kind_of(value) != PICKLE_BOOL || !pickle_is_true(call->pickle, value) ||
            (!zt_text_is(name, "conj") && !zt_text_is(name, "neg")))
            return refuse(call, "pt §Tensor Metadata",
                          "a tensor's metadata is neither conj nor neg");
        is_conjugate = is_conjugate || zt_text_is(name, "conj");
        is_negative = is_negative || zt_text_is(name, "neg");
    }
    if ((is_conjugate && !tensor->type->is_complex) ||
        (is_negative && !torch_type_is_signed_float(tensor->type)))
        return refuse(call, "pt §Tensor Metadata", "numbers of this type have no such sign");
    if (is_conjugate)
        tensor->flip = is_negative ? ZT_FLIP_REAL : ZT_FLIP_IMAGINARY;
    else if (is_negative)
        tensor->flip = ZT_FLIP_ALL;
    return ZT_OK;
}

/* How the three functions differ in what follows the four arguments. */
static enum zt_status read_dense_rest(const struct call *call, enum pickle_effect effect,
                                      struct pickle_tensor *tensor)
{
    const uint32_t fixed = effect == EFFECT_REBUILD_TENSOR      ? 4
                           : effect == EFFECT_REBUILD_TENSOR_V2 ? 6
                                                                : 7;
    enum zt_status status = ZT_OK;

    if (call->count != fixed && (fixed == 4 || call->count != fixed + 1))
        return refuse(call, CALL_RULE, "the number of a tensor's arguments is wrong");
    if (fixed > 4)
        status = check_flags(call, 4);
    if (status != ZT_OK)
        return status;
    if (effect == EFFECT_REBUILD_TENSOR_V3) {
        if (!pickle_is_name(call->values[6], EFFECT_DTYPE))
            return refuse(call, CALL_RULE, "the seventh argument is not a dtype");
        tensor->type = pickle_meaning_of(call->values[6]).type;
    }
    if (tensor->type == &torch_untyped || tensor->type->is_quantized)
        return refuse(call, DTYPE_RULE, "a tensor of this storage needs an explicit type");
    return call->count > fixed ? read_metadata(call, call->values[fixed], tensor) : ZT_OK;
}

static enum zt_status keep(const struct call *call, const struct pickle_tensor *tensor,
                           const uint64_t words[TENSOR_WORDS], pickle_value *out_value)
{
    struct pickle *pickle = call->pickle;
    uint32_t index = 0;
    enum zt_status status = pickle_take(pickle, TENSOR_WORDS, &index, call->error);
    uint64_t *kept = pickle->arena.items + index;

    if (status != ZT_OK)
        return status;
    assert(index + TENSOR_WORDS <= pickle->arena.count);
    memcpy(kept, words, TENSOR_WORDS * sizeof(*words));
    kept[TENSOR_HEAD] = (uint64_t)tensor->form | (uint64_t)tensor->flip << 8 |
                        (uint64_t)(tensor->type != NULL ? torch_type_number(tensor->type) : 0)
                            << 16;
    *out_value = pickle_make(pickle, PICKLE_TENSOR, index);
    return ZT_OK;
}

static enum zt_status make_dense(const struct call *call, enum pickle_effect effect,
                                 pickle_value *out_value)
{
    struct pickle_tensor tensor = {.form = PICKLE_DENSE};
    uint64_t words[TENSOR_WORDS] = {0};
    enum zt_status status = read_place(call, &tensor);

    if (status == ZT_OK)
        status = read_dense_rest(call, effect, &tensor);
    if (status == ZT_OK)
        status = check_bounds(call, &tensor);
    if (status != ZT_OK)
        return status;
    words[TENSOR_STORAGE] = tensor.storage;
    words[TENSOR_OFFSET] = tensor.offset;
    words[TENSOR_SIZE] = call->values[2];
    words[TENSOR_STRIDE] = call->values[3];
    return keep(call, &tensor, words, out_value);
}

/* --- parts of other tensors --- */

/* Reads a dense tensor of one type and rank that is part of another one. */
static bool read_part(const struct call *call, pickle_value value, unsigned rank,
                      struct pickle_tensor *out_part)
{
    if (pickle_kind_of(value) != PICKLE_TENSOR)
        return false;
    pickle_tensor_read(call->pickle, value, out_part);
    return out_part->form == PICKLE_DENSE && out_part->rank == rank;
}

static bool is_index(const struct pickle_tensor *part, bool allows_32_bits)
{
    return part->flip == ZT_FLIP_NONE &&
           (part->type->dtype == ZT_I64 || (allows_32_bits && part->type->dtype == ZT_I32));
}

/* --- quantized tensors --- */

static enum zt_status read_quantizer(const struct call *call, struct pickle_tensor *tensor)
{
    uint32_t count = 0;
    const pickle_value *values =
        is_kind(call, 4, PICKLE_TUPLE) ? pickle_tuple(call->pickle, call->values[4], &count) : NULL;
    struct pickle_tensor part;

    if (count == 3 && pickle_is_name(values[0], EFFECT_PER_TENSOR) &&
        pickle_kind_of(values[1]) == PICKLE_FLOAT && pickle_kind_of(values[2]) == PICKLE_INTEGER) {
        tensor->form = PICKLE_QUANTIZED;
        return ZT_OK;
    }
    if (count != 4 || !pickle_is_name(values[0], EFFECT_PER_CHANNEL) ||
        !pickle_size_of(call->pickle, values[3], &tensor->axis) || tensor->axis >= tensor->rank)
        return refuse(call, "pt §Tensor Quantizer", "an unsupported quantizer");
    for (unsigned i = 1; i <= 2; i++)
        if (!read_part(call, values[i], 1, &part) || part.shape[0] != tensor->shape[tensor->axis])
            return refuse(call, "pt §Tensor Quantizer",
                          "there is not one scale and zero point for each slice");
    tensor->form = PICKLE_PER_CHANNEL;
    return ZT_OK;
}

static enum zt_status make_quantized(const struct call *call, pickle_value *out_value)
{
    struct pickle_tensor tensor = {0};
    uint64_t words[TENSOR_WORDS] = {0};
    enum zt_status status = read_place(call, &tensor);

    if (status == ZT_OK && call->count != 7)
        return refuse(call, CALL_RULE, "a quantized tensor takes seven arguments");
    if (status == ZT_OK)
        status = check_flags(call, 5);
    if (status == ZT_OK && !tensor.type->is_quantized)
        return refuse(call, DTYPE_RULE, "a quantized tensor with an unquantized storage");
    if (status == ZT_OK)
        status = check_bounds(call, &tensor);
    if (status == ZT_OK)
        status = read_quantizer(call, &tensor);
    if (status != ZT_OK)
        return status;
    words[TENSOR_STORAGE] = tensor.storage;
    words[TENSOR_OFFSET] = tensor.offset;
    words[TENSOR_SIZE] = call->values[2];
    words[TENSOR_STRIDE] = call->values[3];
    words[TENSOR_DATA] = call->values[4];
    return keep(call, &tensor, words, out_value);
}

/* --- sparse tensors --- */

static bool is_coo(const struct call *data, struct pickle_tensor *tensor)
{
    struct pickle_tensor indices;
    struct pickle_tensor values;

    if ((data->count != 3 && data->count != 4) ||
        (data->count == 4 && !is_kind(data, 3, PICKLE_BOOL) && !is_kind(data, 3, PICKLE_NONE)) ||
        !read_sizes(data->pickle, data->values[2], tensor->shape, &tensor->rank))
        return false;
    return tensor->rank > 0 && read_part(data, data->values[0], 2, &indices) &&
           read_part(data, data->values[1], 1, &values) && is_index(&indices, false) &&
           indices.shape[0] == tensor->rank && indices.shape[1] == values.shape[0];
}

static bool is_csr(const struct call *data, struct pickle_tensor *tensor)
{
    struct pickle_tensor rows;
    struct pickle_tensor columns;
    struct pickle_tensor values;

    if (data->count != 4 ||
        !read_sizes(data->pickle, data->values[3], tensor->shape, &tensor->rank) ||
        tensor->rank != 2)
        return false;
    return read_part(data, data->values[0], 1, &rows) &&
           read_part(data, data->values[1], 1, &columns) &&
           read_part(data, data->values[2], 1, &values) && is_index(&rows, true) &&
           is_index(&columns, true) && rows.type == columns.type &&
           rows.shape[0] == tensor->shape[0] + 1 && columns.shape[0] == values.shape[0];
}

static enum zt_status make_sparse(const struct call *call, pickle_value *out_value)
{
    struct pickle_tensor tensor = {0};
    struct call data = {.pickle = call->pickle, .error = call->error};
    uint64_t words[TENSOR_WORDS] = {0};
    struct zt_text layout;
    uint64_t elements;

    if (call->count != 2 || !is_kind(call, 0, PICKLE_LAYOUT) || !is_kind(call, 1, PICKLE_TUPLE))
        return refuse(call, CALL_RULE, "a sparse tensor takes a layout and a tuple");
    layout = pickle_layout(call->pickle, call->values[0]);
    data.values = pickle_tuple(call->pickle, call->values[1], &data.count);
    if (zt_text_is(layout, "torch.sparse_coo") && is_coo(&data, &tensor))
        tensor.form = PICKLE_COO;
    else if (zt_text_is(layout, "torch.sparse_csr") && is_csr(&data, &tensor))
        tensor.form = PICKLE_CSR;
    else
        return refuse(call, "pt §Tensor Sparse",
                      "a sparse tensor other than COO or CSR without dense dimensions and batches");
    if (!count_elements(&tensor, 1, &elements))
        return refuse(call, SHAPE_RULE, "the number of elements does not fit in 63 bits");
    words[TENSOR_SIZE] = data.values[tensor.form == PICKLE_COO ? 2 : 3];
    words[TENSOR_DATA] = call->values[1];
    return keep(call, &tensor, words, out_value);
}

/* --- calls around calls --- */

/* The first argument, a tensor, with a flag and hooks, and a state if with_state. */
static enum zt_status take_parameter(const struct call *call, bool with_state,
                                     pickle_value *out_value)
{
    enum zt_status status = check_flags(call, 1);

    if (status != ZT_OK)
        return status;
    if (!is_kind(call, 0, PICKLE_TENSOR) || call->count != (with_state ? 4u : 3u))
        return refuse(call, CALL_RULE, "a parameter takes a tensor");
    *out_value = call->values[0];
    return ZT_OK;
}

static enum zt_status take_from_cpu(const struct call *call, pickle_value *out_value)
{
    struct pickle_tensor tensor;

    if (call->count != 4 || !is_kind(call, 0, PICKLE_TENSOR) ||
        !pickle_is_name(call->values[1], EFFECT_DTYPE) ||
        (!is_kind(call, 2, PICKLE_TEXT) && !is_kind(call, 2, PICKLE_INERT)) ||
        !is_kind(call, 3, PICKLE_BOOL))
        return refuse(call, CALL_RULE, "a tensor of a device takes a tensor and its dtype");
    pickle_tensor_read(call->pickle, call->values[0], &tensor);
    if (tensor.form != PICKLE_DENSE || tensor.type != pickle_meaning_of(call->values[1]).type)
        return refuse(call, DTYPE_RULE, "the tensor would be converted to another dtype");
    *out_value = call->values[0];
    return ZT_OK;
}

static enum zt_status run(const struct call *call, enum pickle_effect effect,
                          pickle_value *out_value)
{
    switch (effect) {
    case EFFECT_REBUILD_TENSOR:
    case EFFECT_REBUILD_TENSOR_V2:
    case EFFECT_REBUILD_TENSOR_V3:
        return make_dense(call, effect, out_value);
    case EFFECT_PARAMETER:
    case EFFECT_PARAMETER_WITH_STATE:
        return take_parameter(call, effect == EFFECT_PARAMETER_WITH_STATE, out_value);
    case EFFECT_TENSOR_FROM_CPU:
        return take_from_cpu(call, out_value);
    case EFFECT_QUANTIZED:
        return make_quantized(call, out_value);
    case EFFECT_SPARSE:
        return make_sparse(call, out_value);
    default:
        return refuse(call, CALL_RULE, "the function does not create a tensor");
    }
}

/* A function, a class, the function's arguments, and a state, which is not kept. */
static enum zt_status run_from_type(const struct call *call, pickle_value *out_value)
{
    struct call inner = {.pickle = call->pickle, .error = call->error};

    if (call->count != 4 || !is_kind(call, 0, PICKLE_NAME) ||
        !pickle_is_name(call->values[1], EFFECT_TENSOR_CLASS) || !is_kind(call, 2, PICKLE_TUPLE))
        return refuse(call, CALL_RULE, "a tensor of a class takes a function and a class");
    inner.values = pickle_tuple(call->pickle, call->values[2], &inner.count);
    return run(&inner, pickle_meaning_of(call->values[0]).effect, out_value);
}

enum zt_status pickle_call_tensor(struct pickle *pickle, enum pickle_effect effect,
                                  pickle_value arguments, pickle_value *out_value,
                                  struct zt_error *error)
{
    struct call call = {.pickle = pickle, .error = error};

    call.values = pickle_tuple(pickle, arguments, &call.count);
    return effect == EFFECT_FROM_TYPE ? run_from_type(&call, out_value)
                                      : run(&call, effect, out_value);
}

/* --- reading --- */

static void read_data(const struct pickle *pickle, pickle_value data, struct pickle_tensor *tensor)
{
    uint32_t count;
    const pickle_value *values = pickle_tuple(pickle, data, &count);

    assert(count >= (tensor->form == PICKLE_PER_CHANNEL ? 4u : 3u));
    switch (tensor->form) {
    case PICKLE_QUANTIZED:
        tensor->scale = values[1];
        tensor->zero_point = values[2];
        return;
    case PICKLE_PER_CHANNEL:
        memcpy(tensor->parts, values + 1, 2 * sizeof(*values));
        pickle_size_of(pickle, values[3], &tensor->axis);
        return;
    default:
        memcpy(tensor->parts, values, (tensor->form == PICKLE_COO ? 2 : 3) * sizeof(*values));
    }
}

void pickle_tensor_read(const struct pickle *pickle, pickle_value value,
                        struct pickle_tensor *out_tensor)
{
    const uint64_t *words = pickle->arena.items + pickle_index_of(value);
    uint8_t stride_rank;

    assert(pickle_kind_of(value) == PICKLE_TENSOR);
    out_tensor->form = (enum pickle_form)(words[TENSOR_HEAD] & 0xFF);
    out_tensor->flip = (uint8_t)(words[TENSOR_HEAD] >> 8 & 0xFF);
    out_tensor->type = NULL;
    out_tensor->storage = (uint32_t)words[TENSOR_STORAGE];
    out_tensor->position = pickle_position_of(value);
    out_tensor->offset = words[TENSOR_OFFSET];
    read_sizes(pickle, words[TENSOR_SIZE], out_tensor->shape, &out_tensor->rank);
    if (out_tensor->storage != 0) {
        out_tensor->type = torch_type_numbered((uint32_t)(words[TENSOR_HEAD] >> 16));
        read_sizes(pickle, words[TENSOR_STRIDE], out_tensor->strides, &stride_rank);
    }
    if (out_tensor->form != PICKLE_DENSE)
        read_data(pickle, words[TENSOR_DATA], out_tensor);
}
