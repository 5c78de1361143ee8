/* The table of names: all that a pickle can call, and all classes and constants that it can name.
 * Everything else is refused where it is named. */
#include <assert.h>
#include <string.h>

#include "pickle/machine.h"

/* The part of a name that a message shows. */
#define SHOWN_BYTES 80

/* Indices of names: rows of the table, and from these on dtypes, storage classes, and classes of
 * TorchScript. */
#define FIRST_DTYPE   0x100u
#define FIRST_STORAGE 0x200u
#define RECORD_CLASS  0x300u

struct row {
    const char *module;
    const char *name;
    enum pickle_effect effect;
};

static const struct row rows[] = {
    {"collections", "OrderedDict", EFFECT_ORDERED_MAP},
    {"collections", "Counter", EFFECT_COUNTER},
    {"torch._utils", "_rebuild_tensor", EFFECT_REBUILD_TENSOR},
    {"torch._utils", "_rebuild_tensor_v2", EFFECT_REBUILD_TENSOR_V2},
    {"torch._utils", "_rebuild_tensor_v3", EFFECT_REBUILD_TENSOR_V3},
    {"torch._utils", "_rebuild_parameter", EFFECT_PARAMETER},
    {"torch._utils", "_rebuild_parameter_with_state", EFFECT_PARAMETER_WITH_STATE},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", EFFECT_TENSOR_FROM_CPU},
    {"torch._utils", "_rebuild_qtensor", EFFECT_QUANTIZED},
    {"torch._utils", "_rebuild_sparse_tensor", EFFECT_SPARSE},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", EFFECT_NO_BYTES},
    {"torch._utils", "_rebuild_wrapper_subclass", EFFECT_NO_BYTES},
    {"torch._tensor", "_rebuild_from_type_v2", EFFECT_FROM_TYPE},
    {"torch", "Tensor", EFFECT_TENSOR_CLASS},
    {"torch.nn.parameter", "Parameter", EFFECT_TENSOR_CLASS},
    {"torch", "Size", EFFECT_SIZE},
    {"torch", "device", EFFECT_INERT},
    {"torch", "per_tensor_affine", EFFECT_PER_TENSOR},
    {"torch", "per_tensor_symmetric", EFFECT_OTHER_SCHEME},
    {"torch", "per_channel_affine", EFFECT_PER_CHANNEL},
    {"torch", "per_channel_affine_float_qparams", EFFECT_PER_CHANNEL},
    {"torch", "per_channel_symmetric", EFFECT_OTHER_SCHEME},
    {"torch.serialization", "_get_layout", EFFECT_LAYOUT},
    {"builtins", "set", EFFECT_SET},
    {"builtins", "bytearray", EFFECT_INERT},
    {"builtins", "complex", EFFECT_INERT},
    {"__builtin__", "set", EFFECT_SET},
    {"__builtin__", "bytearray", EFFECT_INERT},
    {"__builtin__", "complex", EFFECT_INERT},
    {"_codecs", "encode", EFFECT_INERT},
};

static const char *const torchscript_names[] = {
    "build_intlist", "build_doublelist", "build_boollist", "build_tensorlist", "restore_type_tag"};

#define ROW_COUNT        (sizeof(rows) / sizeof(rows[0]))
#define TORCHSCRIPT_ROWS (sizeof(torchscript_names) / sizeof(torchscript_names[0]))

static bool find_row(struct zt_text module, struct zt_text name, uint32_t *out_index)
{
    for (uint32_t i = 0; i < ROW_COUNT; i++) {
        if (!zt_text_is(name, rows[i].name) || !zt_text_is(module, rows[i].module))
            continue;
        *out_index = i;
        return true;
    }
    return false;
}

static bool find_type(struct zt_text module, struct zt_text name, uint32_t *out_index)
{
    const bool is_torch = zt_text_is(module, "torch");
    const struct torch_type *type = is_torch ? torch_type_of_dtype(name) : NULL;

    if (type != NULL) {
        *out_index = FIRST_DTYPE + torch_type_number(type);
        return true;
    }
    if (zt_text_is(module, "torch.storage") && zt_text_is(name, "UntypedStorage"))
        type = &torch_untyped;
    else if (is_torch || zt_text_is(module, "torch.cuda"))
        type = torch_type_of_storage(name);
    if (type == NULL)
        return false;
    *out_index = FIRST_STORAGE + torch_type_number(type);
    return true;
}

static bool find_torchscript(struct zt_text module, struct zt_text name, uint32_t *out_index)
{
    if (zt_text_is(module, "__torch__") ||
        zt_text_starts_with(module, zt_text_from("__torch__."))) {
        *out_index = RECORD_CLASS;
        return memchr(name.bytes, '.', name.length) == NULL && name.length > 0;
    }
    if (!zt_text_is(module, "torch.jit._pickle"))
        return false;
    for (uint32_t i = 0; i < TORCHSCRIPT_ROWS; i++)
        if (zt_text_is(name, torchscript_names[i])) {
            *out_index = RECORD_CLASS + 1;
            return true;
        }
    return false;
}

/* Copies a name for a message: bytes that are not printable ASCII become question marks. */
static void show(struct zt_text text, char out_shown[SHOWN_BYTES + 1])
{
    const size_t length = text.length < SHOWN_BYTES ? text.length : SHOWN_BYTES;

    for (size_t i = 0; i < length; i++)
        out_shown[i] = text.bytes[i] > ' ' && text.bytes[i] <= '~' ? text.bytes[i] : '?';
    out_shown[length] = '\0';
}

enum zt_status pickle_name_find(const struct pickle *pickle, struct zt_text module,
                                struct zt_text name, uint32_t *out_index, struct zt_error *error)
{
    char shown_module[SHOWN_BYTES + 1];
    char shown_name[SHOWN_BYTES + 1];
    uint32_t index = 0;
    const bool found = find_row(module, name, &index) || find_type(module, name, &index) ||
                       (pickle->is_torchscript && find_torchscript(module, name, &index));

    if (found && (index >= ROW_COUNT || rows[index].effect != EFFECT_NO_BYTES)) {
        *out_index = index;
        return ZT_OK;
    }
    show(module, shown_module);
    show(name, shown_name);
    return pickle_fail(pickle, pickle->opcode_at, "pt §Pickle Name", error,
                       found ? "%s.%s: such a tensor has no bytes"
                             : "%s.%s is not a supported name",
                       shown_module, shown_name);
}

struct pickle_meaning pickle_meaning_of(pickle_value name)
{
    const uint32_t index = pickle_index_of(name);

    assert(pickle_kind_of(name) == PICKLE_NAME);
    if (index < ROW_COUNT)
        return (struct pickle_meaning){rows[index].effect, NULL};
    if (index >= RECORD_CLASS)
        return (struct pickle_meaning){
            index == RECORD_CLASS ? EFFECT_RECORD_CLASS : EFFECT_FIRST_ARGUMENT, NULL};
    if (index >= FIRST_STORAGE)
        return (struct pickle_meaning){EFFECT_STORAGE_CLASS,
                                       torch_type_numbered(index - FIRST_STORAGE)};
    assert(index >= FIRST_DTYPE);
    return (struct pickle_meaning){EFFECT_DTYPE, torch_type_numbered(index - FIRST_DTYPE)};
}

bool pickle_is_name(pickle_value value, enum pickle_effect effect)
{
    return pickle_kind_of(value) == PICKLE_NAME && pickle_meaning_of(value).effect == effect;
}
